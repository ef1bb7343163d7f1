//! Text of tool output: bytes made readable, colours removed, differences shown line by line.

use std::fmt::Write;

/// Output as text without loss of information: bytes that are not UTF-8 become `\xNN`.
pub fn readable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            write!(text, "\\x{byte:02x}").expect("writing to a string succeeds");
        }
    }
    text
}

/// `text` without terminal colour sequences.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("\x1b[") {
        out.push_str(&rest[..start]);
        let tail = &rest[start + 2..];
        let end = tail.find(|c: char| c.is_ascii_alphabetic()).map_or(tail.len(), |at| at + 1);
        rest = &tail[end..];
    }
    out.push_str(rest);
    out
}

/// A line diff: common head and tail lines are kept with two spaces, the differing middle with `-` (expected) and `+` (actual).
pub fn diff(expected: &str, actual: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), actual.lines().collect());
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let room = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(room).take_while(|(a, b)| a == b).count();
    let marked =
        |mark: &str, lines: &[&str]| lines.iter().map(|line| format!("    {mark} {line}\n")).collect::<String>();
    let mut shown = marked(" ", &old[..head]);
    shown += &marked("-", &old[head..old.len() - tail]);
    shown += &marked("+", &new[head..new.len() - tail]);
    shown += &marked(" ", &old[old.len() - tail..]);
    shown
}
