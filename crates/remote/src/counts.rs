//! What became of a run's dealings with remotes, in numbers: whatever is wrong is a miss and is counted (spec M6, O2).

use std::fmt;

/// What can be wrong with something that a remote gave.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Wrong {
    /// It is larger than such a thing may be.
    TooLarge,
    /// It cannot be read, or is of another version.
    Malformed,
    /// It is not what its name says.
    NotItsName,
    /// It answers another question.
    OtherQuestion,
    /// Nobody that the user believes has signed it.
    UnknownKey,
    /// The signature is not by the key that it names.
    BadSignature,
    /// Something that it names is not there.
    Incomplete,
}

impl Wrong {
    /// All of them, in the order of [`Counts::wrong`].
    pub const ALL: [Wrong; 7] = [
        Wrong::TooLarge,
        Wrong::Malformed,
        Wrong::NotItsName,
        Wrong::OtherQuestion,
        Wrong::UnknownKey,
        Wrong::BadSignature,
        Wrong::Incomplete,
    ];

    /// The name in statistics.
    pub fn name(self) -> &'static str {
        match self {
            Wrong::TooLarge => "tooLarge",
            Wrong::Malformed => "malformed",
            Wrong::NotItsName => "notItsName",
            Wrong::OtherQuestion => "otherQuestion",
            Wrong::UnknownKey => "unknownKey",
            Wrong::BadSignature => "badSignature",
            Wrong::Incomplete => "incomplete",
        }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Wrong::TooLarge => "is too large",
            Wrong::Malformed => "cannot be read",
            Wrong::NotItsName => "is not what its name says",
            Wrong::OtherQuestion => "answers another question",
            Wrong::UnknownKey => "is signed by nobody who is believed",
            Wrong::BadSignature => "has a signature that is not by its key",
            Wrong::Incomplete => "is not complete",
        })
    }
}

/// Numbers of a run.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counts {
    /// Questions asked.
    pub asked: u64,
    /// Questions of which an answer held.
    pub hits: u64,
    /// Answers that came whole and believed.
    pub candidates: u64,
    /// Objects fetched.
    pub fetched: u64,
    /// Objects asked for that were not there.
    pub absent: u64,
    /// Bytes fetched, as they came.
    pub bytes_in: u64,
    /// Answers pushed.
    pub pushed: u64,
    /// Objects written.
    pub written: u64,
    /// Bytes written, as they went.
    pub bytes_out: u64,
    /// What was wrong, in the order of [`Wrong::ALL`].
    pub wrong: [u64; 7],
    /// Remotes that were left alone before the end.
    pub left_alone: u64,
    /// Microseconds that evaluation waited.
    pub waited: u64,
    /// Microseconds of evaluation that answers saved.
    pub saved: u64,
}

impl Counts {
    /// Notes that something was wrong.
    pub fn note(&mut self, wrong: Wrong) {
        self.wrong[wrong as usize] += 1;
    }

    /// How often this was wrong.
    pub fn of(&self, wrong: Wrong) -> u64 {
        self.wrong[wrong as usize]
    }

    /// All numbers with their names in statistics.
    pub fn named(&self) -> Vec<(&'static str, u64)> {
        let Counts {
            asked,
            hits,
            candidates,
            fetched,
            absent,
            bytes_in,
            pushed,
            written,
            bytes_out,
            wrong,
            left_alone,
            waited,
            saved,
        } = *self;
        let mut all = vec![
            ("asked", asked),
            ("hits", hits),
            ("candidates", candidates),
            ("objectsFetched", fetched),
            ("objectsAbsent", absent),
            ("bytesFetched", bytes_in),
            ("pushed", pushed),
            ("objectsWritten", written),
            ("bytesWritten", bytes_out),
            ("leftAlone", left_alone),
            ("waitedMicroseconds", waited),
            ("savedMicroseconds", saved),
        ];
        all.extend(Wrong::ALL.iter().zip(wrong).map(|(wrong, count)| (wrong.name(), count)));
        all
    }
}
