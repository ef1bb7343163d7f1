//! `:doc`: what a builtin does, or the comment (`/** … */`) in front of a function or an attribute.

use super::Repl;
use crate::failure::Failure;
use firn_eval::show_location;
use firn_source::{Pos, Symbol};
use firn_value::{Function, Value};

impl Repl<'_> {
    /// The documentation of what an expression names.
    pub fn documentation(&self, text: &str) -> Result<String, Failure> {
        let value = self.value(text)?;
        let mut function = value.as_function();
        while let Some(Function::Partial(partial)) = function {
            function = partial.function().as_function();
        }
        match function {
            Some(Function::Primop(primop)) => {
                if let Some((arguments, sentence)) = firn_builtins::documentation(primop.name) {
                    return Ok(format!("Synopsis: builtins.{} {arguments}\n\n    {sentence}", primop.name));
                }
            }
            Some(Function::Closure(closure)) => {
                let pos = closure.lambda().pos_at(0);
                if let Some(shown) = comment_before(pos) {
                    return Ok(described("Function", text, pos, &shown));
                }
            }
            _ => {}
        }
        let Some((name, pos)) = self.attribute(text)? else {
            return Err(Failure::error("value does not have documentation"));
        };
        let found = comment_before(pos).unwrap_or_else(|| "No documentation found.".to_owned());
        Ok(described("Attribute", &name, pos, &found))
    }

    /// The attribute that an expression ending in a selection names, and where it is defined.
    fn attribute(&self, text: &str) -> Result<Option<(String, Pos)>, Failure> {
        let Some((set, name)) = text.rsplit_once('.') else { return Ok(None) };
        let name = name.trim().trim_matches('"');
        let set: Value = self.value(set)?;
        let found = set.as_attrs().and_then(|set| set.get_with_pos(Symbol::from(name)));
        Ok(found.filter(|(_, pos)| pos.is_some()).map(|(_, pos)| (name.to_owned(), pos)))
    }
}

fn described(what: &str, name: &str, pos: Pos, text: &str) -> String {
    let place = pos.resolve().map_or_else(|| "«none»".to_owned(), |at| show_location(&at));
    format!("{what} {name}\n    … defined at {place}\n\n{}", indented(text))
}

fn indented(text: &str) -> String {
    let lines = text.lines().map(|line| if line.is_empty() { String::new() } else { format!("    {line}") });
    lines.collect::<Vec<_>>().join("\n")
}

/// The comment that ends where the definition around a position begins.
fn comment_before(pos: Pos) -> Option<String> {
    let (file, offset) = pos.file_offset()?;
    let text = file.text()?;
    let before = trimmed(&text[..offset as usize]);
    comment_at_end(before).or_else(|| {
        // In front of `name =`, or of a parenthesis around the function.
        let mut rest = before;
        while let Some(inner) = rest.strip_suffix(b"(") {
            rest = trimmed(inner);
        }
        let rest = rest.strip_suffix(b"=").map_or(rest, trimmed);
        let is_name = |b: &u8| b.is_ascii_alphanumeric() || b"_-'.\"".contains(b);
        let names = rest.iter().rev().take_while(|b| is_name(b)).count();
        comment_at_end(trimmed(&rest[..rest.len() - names]))
    })
}

fn trimmed(text: &[u8]) -> &[u8] {
    text.trim_ascii_end()
}

fn comment_at_end(text: &[u8]) -> Option<String> {
    let body = text.strip_suffix(b"*/")?;
    let start = body.windows(3).rposition(|part| part == b"/**")?;
    let inside = String::from_utf8_lossy(&body[start + 3..]).into_owned();
    // Another comment may have ended since: then this is plain text between two of them.
    if inside.contains("*/") {
        return None;
    }
    let lines: Vec<&str> = inside.lines().collect();
    let indent = |line: &&str| line.len() - line.trim_start().len();
    let margin = lines.iter().skip(1).filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or(0);
    let cut = lines.iter().enumerate().map(|(i, line)| match i {
        0 => line.trim(),
        _ => line.get(margin..).unwrap_or("").trim_end(),
    });
    Some(cut.collect::<Vec<_>>().join("\n").trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::comment_at_end;

    #[test]
    fn comments_lose_their_margin() {
        let text = b"{\n  /**\n    Doubles.\n\n      more\n  */";
        assert_eq!(comment_at_end(text).as_deref(), Some("Doubles.\n\n  more"));
        assert_eq!(comment_at_end(b"/** one line */").as_deref(), Some("one line"));
        assert_eq!(comment_at_end(b"/* plain */"), None);
        assert_eq!(comment_at_end(b"x = 1;"), None);
    }
}
