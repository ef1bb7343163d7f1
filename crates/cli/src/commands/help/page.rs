//! Help texts as data: the commands, and the flags that a text lists. Completions and manual pages are made of it, so that
//! all of them say what `--help` says.

/// A flag as a help text lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flag {
    /// With its dashes.
    pub name: String,
    /// What must follow it, as the text calls it.
    pub arguments: Vec<String>,
    /// What it does, in the text's words.
    pub description: String,
}

/// The flags that a text lists: lines that begin with two blanks and a dash.
pub(crate) fn flags(text: &str) -> Vec<Flag> {
    let mut all: Vec<Flag> = Vec::new();
    for line in text.lines() {
        let Some(line) = line.strip_prefix("  ").filter(|line| line.starts_with('-')) else { continue };
        let (names, description) = line.split_once("  ").unwrap_or((line, ""));
        for name in names.split(", ") {
            let mut words = name.split(' ');
            let Some(name) = words.next().filter(|name| is_flag(name)) else { continue };
            let arguments: Vec<String> = words.filter(|word| is_argument(word)).map(str::to_owned).collect();
            all.push(Flag { name: name.to_owned(), arguments, description: description.trim().to_owned() });
        }
        // `-f, --file FILE`: the letter takes what the word takes.
        share_arguments(&mut all, names.split(", ").count());
    }
    all
}

fn share_arguments(all: &mut [Flag], count: usize) {
    let at = all.len().saturating_sub(count);
    if let [short, long] = &mut all[at..]
        && short.name.len() == 2
        && short.arguments.is_empty()
    {
        short.arguments.clone_from(&long.arguments);
    }
}

/// Not `--NAME`, which stands for many.
fn is_flag(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-') && !(word.starts_with("--") && word.bytes().any(|b| b.is_ascii_uppercase()))
}

fn is_argument(word: &str) -> bool {
    word.bytes().all(|b| b.is_ascii_uppercase() || b"-/".contains(&b)) && word.bytes().any(|b| b.is_ascii_uppercase())
}

/// The first sentence: what a command (or the program, without a name) does.
pub(crate) fn summary<'a>(name: &str, text: &'a str) -> &'a str {
    let first = text.split("\n\n").next().unwrap_or_default();
    let sentence = first.split('\n').next().unwrap_or_default();
    let sentence = sentence.strip_prefix("firn ").unwrap_or(sentence);
    sentence.strip_prefix(name).unwrap_or(sentence).trim().trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_from_texts() {
        let text = "firn x does y.\n\nFlags:\n  -f, --file FILE        the file\n  --json, --xml          print so\n  \
                    --arg NAME EXPR        pass it\n  --NAME VALUE           any setting\n  (nothing)   no flag\n";
        let found = flags(text);
        let names: Vec<&str> = found.iter().map(|flag| flag.name.as_str()).collect();
        assert_eq!(names, ["-f", "--file", "--json", "--xml", "--arg"]);
        assert_eq!(found[0].arguments, ["FILE"]);
        assert_eq!(found[4].arguments, ["NAME", "EXPR"]);
        assert_eq!(found[2].description, "print so");
        assert_eq!((summary("x", text), summary("", text)), ("does y", "x does y"));
    }
}
