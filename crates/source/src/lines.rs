//! Where the lines of a text begin, in a byte per line until somebody asks.

use memchr::{memchr, memchr2_iter};
use std::sync::OnceLock;

/// The line index of a text.
#[derive(Debug)]
pub(crate) struct Lines {
    /// The length of each line but the last, its terminator included; [`LONG`] and four bytes for long ones.
    lengths: Box<[u8]>,
    starts: OnceLock<Box<[u32]>>,
}

const LONG: u8 = 255;

impl Lines {
    /// NIX: `\r`, `\n` and `\r\n` each end a line.
    pub(crate) fn of(text: &[u8]) -> Lines {
        let mut lengths = Lengths { bytes: Vec::with_capacity(text.len() / 24), start: 0 };
        // Looking for one byte is quicker, and few texts have the other.
        if memchr(b'\r', text).is_none() {
            each_newline(text, |end| lengths.push(end));
        } else {
            let ends = memchr2_iter(b'\n', b'\r', text);
            let within = |end: &usize| text[*end] == b'\r' && text.get(end + 1) == Some(&b'\n');
            ends.filter(|end| !within(end)).for_each(|end| lengths.push(end));
        }
        Lines { lengths: lengths.bytes.into_boxed_slice(), starts: OnceLock::new() }
    }

    /// The offset at which each line begins.
    pub(crate) fn starts(&self) -> &[u32] {
        self.starts.get_or_init(|| {
            let mut starts = vec![0];
            let (mut start, mut rest) = (0, &*self.lengths);
            while let Some((&length, after)) = rest.split_first() {
                rest = after;
                start += match (length, rest.split_first_chunk()) {
                    (LONG, Some((long, after))) => {
                        rest = after;
                        u32::from_le_bytes(*long)
                    }
                    _ => u32::from(length),
                };
                starts.push(start);
            }
            starts.into_boxed_slice()
        })
    }
}

/// Tells of every line feed.
// PERF: lines are short: eight bytes at a time take a quarter of the instructions of a search for each.
fn each_newline(text: &[u8], mut each: impl FnMut(usize)) {
    const FEEDS: u64 = u64::from_ne_bytes([b'\n'; 8]);
    const LOW: u64 = u64::from_ne_bytes([0x7f; 8]);
    let (words, rest) = text.as_chunks::<8>();
    for (i, word) in words.iter().enumerate() {
        let other = u64::from_le_bytes(*word) ^ FEEDS;
        // The highest bit of each byte that is zero, and no other.
        let mut found = !(((other & LOW) + LOW) | other | LOW);
        while found != 0 {
            each(i * 8 + found.trailing_zeros() as usize / 8);
            found &= found - 1;
        }
    }
    let before = words.len() * 8;
    rest.iter().enumerate().filter(|(_, byte)| **byte == b'\n').for_each(|(i, _)| each(before + i));
}

struct Lengths {
    bytes: Vec<u8>,
    start: usize,
}

impl Lengths {
    /// A line ends with the byte at `end`.
    #[inline]
    fn push(&mut self, end: usize) {
        let length = end + 1 - self.start;
        match u8::try_from(length) {
            Ok(short) if short != LONG => self.bytes.push(short),
            _ => {
                self.bytes.push(LONG);
                self.bytes.extend_from_slice(&(length as u32).to_le_bytes());
            }
        }
        self.start = end + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::Lines;

    #[test]
    fn lines_of_every_length_begin_where_they_do() {
        let lengths = [0, 1, 7, 252, 253, 254, 255, 256, 70_000, 3];
        for end in ["\n", "\r", "\r\n"] {
            let mut text = String::new();
            let mut expected = vec![0];
            for length in lengths {
                text.push_str(&"x".repeat(length));
                text.push_str(end);
                expected.push(text.len() as u32);
            }
            assert_eq!(Lines::of(text.as_bytes()).starts(), expected);
        }
    }
}
