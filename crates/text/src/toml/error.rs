//! Messages in toml11's form: a title, then the lines concerned with the place underlined.

use std::ops::Range;

/// Why a text was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    message: Vec<u8>,
}

impl Error {
    /// The message, of several lines and ending in a newline. Nix puts "while parsing TOML: " before it.
    pub fn message(&self) -> &[u8] {
        &self.message
    }

    /// A message about places in the text, each with a remark.
    pub(super) fn new(text: &[u8], title: &str, places: &[(Range<usize>, &str)]) -> Error {
        let number_of = |at: usize| 1 + text[..at.min(text.len())].iter().filter(|&&byte| byte == b'\n').count();
        let last = |place: &Range<usize>| place.end.max(place.start + 1) - 1;
        let width = places.iter().map(|(place, _)| number_of(last(place)).to_string().len()).max().unwrap_or(1);
        let gutter = " ".repeat(width + 1);
        let mut message = format!("[error] {title}\n --> fromTOML\n{gutter} |\n").into_bytes();
        for (index, (place, remark)) in places.iter().enumerate() {
            if index > 0 {
                message.extend_from_slice(format!("{gutter} | ...\n{gutter} |\n").as_bytes());
            }
            let (first, last) = (number_of(place.start), number_of(last(place)));
            let mut line = |number: usize, range: Range<usize>, remark: &str| {
                let (line, start) = line_at(text, number);
                message.extend_from_slice(format!(" {number:>width$} | ").as_bytes());
                show(&mut message, line);
                let column = range.start.max(start) - start;
                let length = range.len().min(line.len().saturating_sub(column)).max(1);
                let underline = format!("\n{gutter} | {}{}-- {remark}\n", " ".repeat(column), "^".repeat(length));
                message.extend_from_slice(underline.as_bytes());
            };
            if first == last {
                line(first, place.clone(), remark);
            } else {
                line(first, place.clone(), if last > first + 1 { "and" } else { "" });
                line(last, line_at(text, last).1..place.end, remark);
            }
        }
        Error { message }
    }

    /// A message about the end of the text. NIX: the last line is shown twice, as if there were one more.
    pub(super) fn at_end(text: &[u8], title: &str, remark: &str) -> Error {
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        let number = 1 + text.iter().filter(|&&byte| byte == b'\n').count();
        let (line, _) = line_at(text, number);
        let width = (number + 1).to_string().len();
        let gutter = " ".repeat(width + 1);
        let blanks = " ".repeat(line.len());
        let carets = "^".repeat(line.len() + 1);
        let mut message = format!("[error] {title}\n --> fromTOML\n{gutter} |\n {number:>width$} | ").into_bytes();
        show(&mut message, line);
        message.extend_from_slice(format!("\n{gutter} | {blanks}-- \n {:>width$} | ", number + 1).as_bytes());
        show(&mut message, line);
        message.extend_from_slice(format!("\n{gutter} | {carets}-- {remark}\n").as_bytes());
        Error { message }
    }

    /// The message with lines of advice below it.
    pub(super) fn with_hint(mut self, hint: &str) -> Error {
        self.message.extend_from_slice(hint.as_bytes());
        self
    }
}

/// A line without its newline, and where it begins.
fn line_at(text: &[u8], number: usize) -> (&[u8], usize) {
    let mut start = 0;
    for _ in 1..number {
        start += text[start..].iter().position(|&byte| byte == b'\n').map_or(0, |index| index + 1);
    }
    let length = text[start..].iter().position(|&byte| byte == b'\n').unwrap_or(text.len() - start);
    (&text[start..start + length], start)
}

/// Bytes other than printable ASCII by number.
fn show(message: &mut Vec<u8>, line: &[u8]) {
    for &byte in line {
        match byte {
            b' '..=b'~' => message.push(byte),
            b'\t' => message.extend_from_slice(b"0x09(TAB)"),
            b'\r' => message.extend_from_slice(b"0x0d(CARRIAGE RETURN)"),
            _ => message.extend_from_slice(format!("0x{byte:02x}").as_bytes()),
        }
    }
}
