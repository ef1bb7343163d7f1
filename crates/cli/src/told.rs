//! What a program has printed, so that it can begin again (`memo::doubt`) and print only the rest. Messages and lines are
//! counted by what they say, not by their order: threads may come to them in another.

use rustc_hash::FxHashMap;
use std::sync::{Mutex, PoisonError};

/// Messages or lines that were printed.
#[derive(Debug, Default)]
pub struct Told {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// How often each was printed, by its hash.
    now: FxHashMap<[u8; 16], u32>,
    /// The same of an earlier beginning, less what has come again.
    before: FxHashMap<[u8; 16], u32>,
}

impl Told {
    /// Notes a message; whether it was printed before the program began again.
    pub fn was_told(&self, text: &[u8]) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let hash = hash(text);
        if let Some(count) = state.before.get_mut(&hash).filter(|count| **count > 0) {
            *count -= 1;
            return true;
        }
        *state.now.entry(hash).or_default() += 1;
        false
    }

    /// From here on, what was printed before comes again.
    pub fn begin_again(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.before = std::mem::take(&mut state.now);
    }
}

fn hash(text: &[u8]) -> [u8; 16] {
    let mut short = [0; 16];
    short.copy_from_slice(&blake3::hash(text).as_bytes()[..16]);
    short
}

#[cfg(test)]
mod tests {
    use super::Told;

    #[test]
    fn each_message_is_left_out_as_often_as_it_was_told() {
        let told = Told::default();
        assert!(!told.was_told(b"a") && !told.was_told(b"b") && !told.was_told(b"a"));
        told.begin_again();
        assert!(told.was_told(b"a") && told.was_told(b"a") && !told.was_told(b"a"));
        assert!(!told.was_told(b"c") && told.was_told(b"b") && !told.was_told(b"b"));
    }
}
