//! `firn man`: manual pages made of the help texts, one for the program and one per command.

use super::help;
use super::help::page::summary;
use crate::arguments::{Word, Words};
use crate::failure::Failure;
use crate::program::Invocation;
use std::os::unix::ffi::OsStrExt;

/// Runs the command.
pub fn run(invocation: &mut Invocation, mut words: Words) -> Result<(), Failure> {
    let (mut topic, mut dir) = (None, None);
    while let Some(word) = words.next_word() {
        match word {
            Word::Flag(flag) if flag == b"--help" => return help::show(invocation, "man"),
            Word::Flag(flag) if flag == b"--output" => dir = words.values(&flag).map(|[dir]| Some(dir))?,
            Word::Argument(name) if topic.is_none() => topic = Some(name),
            Word::Argument(word) => return Err(Failure::usage("unexpected argument '", &word, "'")),
            Word::Flag(flag) => return Err(Failure::usage("unrecognised flag '", &flag, "'")),
        }
    }
    match (dir, topic) {
        (Some(dir), None) => write_all(&dir),
        (Some(_), Some(_)) => Err(Failure::Usage(b"'--output' writes all pages: name no command with it".to_vec())),
        (None, None) => invocation.output.write(page("firn", help::OVERVIEW).as_bytes()),
        (None, Some(name)) => match help::TOPICS.iter().find(|(topic, _)| topic.as_bytes() == name) {
            Some((topic, text)) => invocation.output.write(page(&format!("firn-{topic}"), text).as_bytes()),
            None => Err(Failure::usage("'", &name, "' is not a recognised command")),
        },
    }
}

fn write_all(dir: &[u8]) -> Result<(), Failure> {
    let dir = std::path::Path::new(std::ffi::OsStr::from_bytes(dir));
    let pages = help::TOPICS.iter().map(|(name, text)| (format!("firn-{name}"), *text));
    for (name, text) in pages.chain([("firn".to_owned(), help::OVERVIEW)]) {
        let file = dir.join(format!("{name}.1"));
        std::fs::write(&file, page(&name, text)).map_err(|error| {
            Failure::error(format!("writing to '{}': {}", file.display(), firn_host::Errno::from(error)))
        })?;
    }
    Ok(())
}

/// A page in the language of `man`. The text is laid out already and stays so.
fn page(name: &str, text: &str) -> String {
    let mut out = format!(
        ".TH {} 1 \"\" \"firn {}\" \"firn manual\"\n.SH NAME\n{} \\- {}\n",
        name.to_uppercase(),
        env!("CARGO_PKG_VERSION"),
        escaped(name),
        escaped(summary(name.strip_prefix("firn-").unwrap_or(""), text)),
    );
    let mut is_literal = false;
    let set_literal = |out: &mut String, now: &mut bool, wanted: bool| {
        if *now != wanted {
            out.push_str(if wanted { ".nf\n" } else { ".fi\n" });
            *now = wanted;
        }
    };
    let mut described = false;
    for (index, line) in text.lines().enumerate() {
        if let Some(usage) = line.strip_prefix("Usage: ") {
            set_literal(&mut out, &mut is_literal, false);
            out.push_str(".SH SYNOPSIS\n");
            set_literal(&mut out, &mut is_literal, true);
            out += &format!("{}\n", escaped(usage));
        } else if is_heading(line) {
            set_literal(&mut out, &mut is_literal, false);
            out += &format!(".SH {}\n", escaped(&line.trim_end_matches(':').to_uppercase()));
            described = true;
        } else if line.is_empty() {
            set_literal(&mut out, &mut is_literal, false);
            out.push_str(".PP\n");
        } else if line.starts_with(' ') {
            set_literal(&mut out, &mut is_literal, true);
            out += &format!("{}\n", escaped(line.strip_prefix("       ").filter(|_| !described).unwrap_or(line)));
        } else if index > 0 {
            if !described {
                set_literal(&mut out, &mut is_literal, false);
                out.push_str(".SH DESCRIPTION\n");
                described = true;
            }
            out += &format!("{}\n", escaped(line));
        }
    }
    set_literal(&mut out, &mut is_literal, false);
    if name != "firn" {
        out.push_str(".SH SEE ALSO\n.BR firn (1)\n");
    }
    out
}

fn is_heading(line: &str) -> bool {
    line.ends_with(':') && line.starts_with(|c: char| c.is_ascii_uppercase()) && line.len() < 40
}

/// Text that `man` takes as it is.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::page;

    #[test]
    fn pages_have_the_usual_sections() {
        let text = "firn x does y.\n\nUsage: firn x [FLAG…]\n       firn x z\n\nMore of it.\n\nFlags:\n  --a    b\n";
        let made = page("firn-x", text);
        for part in [".TH FIRN-X 1", ".SH NAME\nfirn\\-x \\- does y", ".SH SYNOPSIS\n.nf\nfirn x [FLAG…]\nfirn x z", ".SH DESCRIPTION\nMore of it.", ".SH FLAGS\n.nf\n  \\-\\-a    b"] {
            assert!(made.contains(part), "{part:?} in {made}");
        }
    }
}
