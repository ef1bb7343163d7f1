//! The words of a command line, cut as Nix cuts them: `-qlf` is `-q -l -f`, `-j3` is `-j 3`, and after `--` no word is a flag.

use crate::failure::Failure;
use std::collections::VecDeque;

/// The words that are still to be read.
#[derive(Debug)]
pub struct Words {
    queue: VecDeque<Vec<u8>>,
    no_more_flags: bool,
}

/// A word.
#[derive(Debug, PartialEq, Eq)]
pub enum Word {
    /// Begins with `-`.
    Flag(Vec<u8>),
    /// Anything else.
    Argument(Vec<u8>),
}

impl Words {
    /// The words of a command line without the program's name.
    pub fn new(words: impl IntoIterator<Item = Vec<u8>>) -> Words {
        Words { queue: words.into_iter().collect(), no_more_flags: false }
    }

    /// The next word.
    pub fn next_word(&mut self) -> Option<Word> {
        let word = self.queue.pop_front()?;
        if self.no_more_flags || word.first() != Some(&b'-') {
            return Some(Word::Argument(word));
        }
        if word == b"--" {
            self.no_more_flags = true;
            return self.next_word();
        }
        if word.len() > 2 && word[1].is_ascii_alphabetic() {
            return Some(Word::Flag(self.split_letters(&word)));
        }
        Some(Word::Flag(word))
    }

    /// Puts the letters after the first back as words of their own, the rest from the first other character as one.
    fn split_letters(&mut self, word: &[u8]) -> Vec<u8> {
        let letters = word[2..].iter().take_while(|b| b.is_ascii_alphabetic()).count();
        if word.len() > 2 + letters {
            self.queue.push_front(word[2 + letters..].to_vec());
        }
        for &letter in word[2..2 + letters].iter().rev() {
            self.queue.push_front(vec![b'-', letter]);
        }
        word[..2].to_vec()
    }

    /// The values that follow a flag.
    pub fn values<const N: usize>(&mut self, flag: &[u8]) -> Result<[Vec<u8>; N], Failure> {
        let found = self.queue.len().min(N);
        let values: Vec<Vec<u8>> = self.queue.drain(..found).collect();
        let after = format!("' requires {N} argument(s), but only {found} were given");
        values.try_into().map_err(|_| Failure::usage("flag '", flag, &after))
    }

    /// The value of a flag of the older tools, which word its absence otherwise.
    pub fn value(&mut self, flag: &[u8]) -> Result<Vec<u8>, Failure> {
        self.queue.pop_front().ok_or_else(|| Failure::usage("'", flag, "' requires an argument"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Vec<String> {
        let mut words = Words::new(words.iter().map(|w| w.as_bytes().to_vec()));
        std::iter::from_fn(|| words.next_word())
            .map(|word| match word {
                Word::Flag(flag) => format!("flag {}", String::from_utf8_lossy(&flag)),
                Word::Argument(argument) => {
                    format!("argument {}", String::from_utf8_lossy(&argument))
                }
            })
            .collect()
    }

    #[test]
    fn letters_split_and_dashes_end_flags() {
        assert_eq!(read(&["-j3", "-vQ"]), ["flag -j", "argument 3", "flag -v", "flag -Q"]);
        assert_eq!(
            read(&["--x", "-", "a", "--", "-y", "--"]),
            ["flag --x", "flag -", "argument a", "argument -y", "argument --"]
        );
    }

    #[test]
    fn missing_values_are_named() {
        let mut words = Words::new([b"only".to_vec()]);
        let Err(Failure::Usage(text)) = words.values::<2>(b"--arg") else { panic!("two values out of one word") };
        assert!(String::from_utf8_lossy(&text).contains("requires 2 argument(s), but only 1 were given"));
    }
}
