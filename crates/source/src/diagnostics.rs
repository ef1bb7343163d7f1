//! Errors and warnings as Nix prints them: message, place, source excerpt with a caret, trace, suggestions.
//!
//! Rendered text carries colours; whoever writes it passes it through [`filter_escapes`](crate::terminal::filter_escapes).

use crate::terminal::{BLUE, MAGENTA, PLAIN, RED};
use crate::{Location, Origin, Pos};
use std::collections::BTreeSet;

/// How bad it is: the word before the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// `error:`
    Error,
    /// `warning:`
    Warning,
    /// `evaluation warning:`, said by the evaluated program.
    EvaluationWarning,
}

/// One step of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Where, if anywhere.
    pub pos: Pos,
    /// What was being done; an empty text is never shown.
    pub text: Vec<u8>,
    /// Shown even where the trace is cut.
    pub always: bool,
}

/// Something to tell the user.
#[derive(Clone, Debug)]
pub struct Diagnostic<'a> {
    /// How bad it is.
    pub level: Level,
    /// The message, highlights included.
    pub message: &'a [u8],
    /// Where.
    pub pos: Pos,
    /// The trace, outermost step first.
    pub trace: Vec<Step>,
    /// Names that may have been meant, best first.
    pub suggestions: &'a [Vec<u8>],
}

/// Without the full trace, steps are shown until this many lines of it (a step is one, its place another) are there.
const SHORT_TRACE: usize = 3;
/// Fewer repeated steps than this are shown as they are.
const FEW_REPEATED: usize = 5;

impl<'a> Diagnostic<'a> {
    /// A message alone.
    pub fn message(level: Level, message: &'a [u8]) -> Diagnostic<'a> {
        Diagnostic { level, message, pos: Pos::NONE, trace: Vec::new(), suggestions: &[] }
    }

    fn prefix(&self) -> (String, usize) {
        let (color, word) = match self.level {
            Level::Error => (RED, "error:"),
            Level::Warning => (MAGENTA, "warning:"),
            Level::EvaluationWarning => (MAGENTA, "evaluation warning:"),
        };
        (format!("{color}{word}{PLAIN} "), word.len() + 1)
    }

    /// The message alone, its lines left as they are: how Nix prints warnings that are not about a place.
    pub fn unaligned(&self) -> Vec<u8> {
        [self.prefix().0.as_bytes(), self.message].concat()
    }

    /// The text, with colours, without a final newline. `full` shows the whole trace.
    pub fn render(&self, full: bool) -> Vec<u8> {
        let (prefix, width) = self.prefix();
        let mut body = Vec::new();
        if !self.trace.is_empty() {
            let mut writer = TraceWriter { out: &mut body, count: 0 };
            writer.write(&self.trace, full);
            body.push(b'\n');
            body.extend_from_slice(prefix.as_bytes());
        }
        body.extend_from_slice(self.message);
        body.push(b'\n');
        place(&mut body, "", self.pos);
        suggest(&mut body, self.suggestions);
        indent(prefix.as_bytes(), width, chomp(&body))
    }
}

struct TraceWriter<'o> {
    out: &'o mut Vec<u8>,
    count: usize,
}

impl TraceWriter<'_> {
    fn write(&mut self, trace: &[Step], full: bool) {
        let mut seen: BTreeSet<(Pos, &[u8])> = BTreeSet::new();
        let mut repeated: Vec<&Step> = Vec::new();
        let mut cut = false;
        for step in trace.iter().filter(|step| !step.text.is_empty()) {
            cut |= !full && self.count > SHORT_TRACE;
            if cut && !step.always {
                continue;
            }
            // NIX: what was seen once counts as repeated for ever, also after "frames omitted" was said.
            if !seen.insert((step.pos, &step.text)) {
                repeated.push(step);
                continue;
            }
            self.repeated(&mut repeated);
            self.count += 1;
            self.step(step);
        }
        self.repeated(&mut repeated);
        if cut {
            let note = "(stack trace truncated; use '--show-trace' to show the full, detailed trace)";
            self.out.extend_from_slice(format!("\n{MAGENTA}{note}{PLAIN}\n").as_bytes());
        }
    }

    fn step(&mut self, step: &Step) {
        self.out.extend_from_slice("\n… ".as_bytes());
        self.out.extend_from_slice(&step.text);
        self.out.push(b'\n');
        if place(self.out, "  ", step.pos) {
            self.count += 1;
        }
    }

    fn repeated(&mut self, steps: &mut Vec<&Step>) {
        if steps.len() <= FEW_REPEATED {
            for step in steps.iter() {
                self.step(step);
            }
        } else {
            let note = format!("\n{MAGENTA}({} duplicate frames omitted){PLAIN}\n", steps.len());
            self.out.extend_from_slice(note.as_bytes());
        }
        steps.clear();
    }
}

/// Writes where, with an excerpt of the source; says whether there was anything to write.
fn place(out: &mut Vec<u8>, indent: &str, pos: Pos) -> bool {
    let Some(location) = pos.resolve() else {
        return false;
    };
    out.extend_from_slice(format!("{indent}{BLUE}at {MAGENTA}").as_bytes());
    out.extend_from_slice(&location.show());
    out.extend_from_slice(PLAIN.as_bytes());
    out.push(b':');
    excerpt(out, &location);
    out.push(b'\n');
    true
}

fn excerpt(out: &mut Vec<u8>, at: &Location) {
    source_line(out, at, at.line.wrapping_sub(1));
    if source_line(out, at, at.line) {
        let spaces = " ".repeat(at.column as usize);
        out.extend_from_slice(format!("\n      |{spaces}{RED}^{PLAIN}").as_bytes());
    }
    source_line(out, at, at.line + 1);
}

fn source_line(out: &mut Vec<u8>, at: &Location, number: u32) -> bool {
    let Some(text) = at.file.line(number) else {
        return false;
    };
    out.extend_from_slice(format!("\n {number:5}| ").as_bytes());
    out.extend_from_slice(&text);
    true
}

fn suggest(out: &mut Vec<u8>, names: &[Vec<u8>]) {
    let colored: Vec<Vec<u8>> = names.iter().map(|name| [MAGENTA.as_bytes(), name, PLAIN.as_bytes()].concat()).collect();
    let said = match colored.split_last() {
        None => return,
        Some((only, [])) => only.clone(),
        Some((last, others)) => [b"one of ".as_slice(), &others.join(&b", "[..]), b" or ", last].concat(),
    };
    out.extend_from_slice(b"Did you mean ");
    out.extend_from_slice(&said);
    out.extend_from_slice(b"?\n");
}

/// Puts the prefix before the first line and as many spaces before the others; white space at the ends of lines goes.
fn indent(prefix: &[u8], spaces: usize, text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() * 2);
    let rest = " ".repeat(spaces).into_bytes();
    for (index, line) in text.split(|&b| b == b'\n').enumerate() {
        if index > 0 {
            out.push(b'\n');
        }
        let start = if index == 0 { prefix } else { &rest };
        out.extend_from_slice(chomp(&[start, line].concat()));
    }
    out
}

fn chomp(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|b| !matches!(b, b' ' | b'\n' | b'\r' | b'\t')).map_or(0, |at| at + 1);
    &text[..end]
}

impl Location {
    /// `path:line:column` as Nix prints a place.
    pub fn show(&self) -> Vec<u8> {
        let mut out = match self.file.origin() {
            Origin::File(path) => path.clone(),
            Origin::Stdin => "«stdin»".as_bytes().to_vec(),
            Origin::Expression => "«string»".as_bytes().to_vec(),
            Origin::Internal(name) => name.as_bytes().to_vec(),
        };
        out.extend_from_slice(format!(":{}:{}", self.line, self.column).as_bytes());
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SourceFile;
    use crate::terminal::filter_escapes;

    fn plain(diagnostic: &Diagnostic<'_>, full: bool) -> String {
        String::from_utf8(filter_escapes(&diagnostic.render(full), true)).expect("UTF-8")
    }

    #[test]
    fn a_message_alone_keeps_its_lines_aligned() {
        let diagnostic = Diagnostic::message(Level::Error, b"one\ntwo  \n\nthree\n");
        assert_eq!(plain(&diagnostic, false), "error: one\n       two\n\n       three");
    }

    #[test]
    fn places_show_the_lines_around() {
        let file = SourceFile::register(Origin::Expression, b"let\n  x = y;\nin x\n".to_vec());
        let names = [b"a".to_vec(), b"b".to_vec(), b"c".to_vec()];
        let diagnostic = Diagnostic {
            level: Level::Error,
            message: b"undefined",
            pos: file.pos(10),
            trace: vec![Step { pos: file.pos(16), text: b"while x".to_vec(), always: false }],
            suggestions: &names,
        };
        let expected = "error:\n       … while x\n         at «string»:3:4:\n            2|   x = y;\n            3| in x\n             |    ^\n            4|\n\n       error: undefined\n       at «string»:2:7:\n            1| let\n            2|   x = y;\n             |       ^\n            3| in x\n       Did you mean one of a, b or c?";
        assert_eq!(plain(&diagnostic, false), expected);
    }

    #[test]
    fn traces_are_cut_and_repetitions_counted() {
        let steps = |n: usize, text: &'static [u8]| vec![Step { pos: Pos::NONE, text: text.to_vec(), always: false }; n];
        let mut diagnostic = Diagnostic::message(Level::Error, b"m");
        diagnostic.trace = steps(8, b"again");
        assert_eq!(
            plain(&diagnostic, true),
            "error:\n       … again\n\n       (7 duplicate frames omitted)\n\n       error: m"
        );
        let texts: Vec<Vec<u8>> = (0..6).map(|n| format!("step {n}").into_bytes()).collect();
        diagnostic.trace = texts.into_iter().map(|text| Step { pos: Pos::NONE, always: text == b"step 5", text }).collect();
        let shown = plain(&diagnostic, false);
        assert!(shown.contains("step 3") && !shown.contains("step 4") && shown.contains("step 5"), "{shown}");
        assert!(shown.contains("(stack trace truncated; use '--show-trace' to show the full, detailed trace)"));
    }
}
