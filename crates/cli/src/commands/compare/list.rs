//! Lists of answers, one attribute per line: attribute path, drvPath and outPath separated by tabs. Instead of a path stands
//! `-` (not a derivation), `!` (an error that `tryEval` catches) or `ERROR` (one that it does not).

use std::fmt;

/// What was found, or is expected, in one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A path, or in lists of two columns any string.
    Text(Vec<u8>),
    /// Not a derivation.
    Nothing,
    /// An error that `tryEval` catches.
    Caught,
    /// Any other error.
    Fatal,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The attribute path, as `-A` takes it.
    pub attribute: Vec<u8>,
    /// Its derivation; in lists of two columns possibly the string that it is.
    pub drv: Answer,
    /// Its first output, in lists of three columns.
    pub out: Option<Answer>,
}

impl Answer {
    /// Reads a column.
    pub fn parse(column: &[u8]) -> Answer {
        match column {
            b"-" => Answer::Nothing,
            b"!" => Answer::Caught,
            b"ERROR" => Answer::Fatal,
            text => Answer::Text(text.to_vec()),
        }
    }

    /// The column.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Answer::Text(text) => text,
            Answer::Nothing => b"-",
            Answer::Caught => b"!",
            Answer::Fatal => b"ERROR",
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Text(text) => f.write_str(&String::from_utf8_lossy(text)),
            Answer::Nothing => f.write_str("not a derivation"),
            Answer::Caught => f.write_str("an error that tryEval catches"),
            Answer::Fatal => f.write_str("an error that tryEval does not catch"),
        }
    }
}

impl Row {
    /// Reads a list; empty lines do not count. The number of a line that is no row is the error.
    pub fn parse_all(text: &[u8]) -> Result<Vec<Row>, usize> {
        let lines = text.split(|&b| b == b'\n').enumerate().filter(|(_, line)| !line.is_empty());
        lines.map(|(index, line)| Row::parse(line).ok_or(index + 1)).collect()
    }

    fn parse(line: &[u8]) -> Option<Row> {
        let mut columns = line.split(|&b| b == b'\t');
        let row = Row {
            attribute: columns.next().filter(|name| !name.is_empty())?.to_vec(),
            drv: columns.next().map(Answer::parse)?,
            out: columns.next().map(Answer::parse),
        };
        columns.next().is_none().then_some(row)
    }

    /// The line, without its end.
    pub fn line(&self) -> Vec<u8> {
        let columns = [Some(&self.attribute[..]), Some(self.drv.as_bytes()), self.out.as_ref().map(Answer::as_bytes)];
        columns.into_iter().flatten().collect::<Vec<_>>().join(&b'\t')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_written() {
        let text = b"a\t/s/x.drv\t/s/x\n\nb\t-\t-\nc.d\t!\nd\tERROR\tERROR\n";
        let rows = Row::parse_all(text).expect("a list");
        assert_eq!(rows[2], Row { attribute: b"c.d".to_vec(), drv: Answer::Caught, out: None });
        let again: Vec<Vec<u8>> = rows.iter().map(Row::line).collect();
        assert_eq!(again.join(&b'\n'), b"a\t/s/x.drv\t/s/x\nb\t-\t-\nc.d\t!\nd\tERROR\tERROR");
        assert_eq!(Row::parse_all(b"a\tb\nonly\n"), Err(2));
        assert_eq!(Row::parse_all(b"a\tb\tc\td"), Err(1));
    }
}
