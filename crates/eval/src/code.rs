//! `KeptCode`: code of files that a later evaluation of the process need not parse and lower again. The REPL keeps it when it
//! loads its files anew; everyone else evaluates once and keeps none.
//!
//! Code names the values of global variables, so it goes with them: [`Shared::take_over`] takes both. A text that parses
//! with warnings is not kept: who loads it again is warned again. Nor is anything where it is noted what parsing sees.

use crate::{Machine, Shared};
use firn_host::{AbsPath, Digest};
use firn_ir::Program;
use firn_value::Value;
use hashbrown::HashMap;
use std::sync::{Arc, Mutex};

/// Code, and the digest of the text it was made from.
type Kept = (Digest, &'static Program<Value>);

/// Code of files by path.
#[derive(Debug, Default)]
pub(crate) struct KeptCode(Mutex<HashMap<Vec<u8>, Kept>>);

impl KeptCode {
    pub fn find(&self, path: &AbsPath, text: Digest) -> Option<&'static Program<Value>> {
        let all = self.0.lock().unwrap_or_else(|e| e.into_inner());
        all.get(path.as_bytes()).filter(|(digest, _)| *digest == text).map(|(_, program)| *program)
    }

    pub fn keep(&self, path: &AbsPath, text: Digest, program: &'static Program<Value>) {
        self.0.lock().unwrap_or_else(|e| e.into_inner()).insert(path.as_bytes().to_vec(), (text, program));
    }
}

impl Shared {
    /// Keeps code for a later evaluation to take over.
    pub fn keep_code(&mut self) {
        self.code = Some(Arc::default());
    }

    /// Takes over the global variables and the code of an evaluation that has ended; whether that was possible. Where the
    /// settings differ, or calls are remembered (whose cells belong to that evaluation), it is not.
    pub fn take_over(&mut self, earlier: &Shared) -> bool {
        let settings = crate::Settings { show_trace: self.settings.show_trace, ..earlier.settings.clone() };
        let same = settings == self.settings && earlier.primops.len() == self.primops.len();
        if !same || self.memo.is_on() || self.labels {
            return false;
        }
        self.globals.clone_from(&earlier.globals);
        self.position_parts = earlier.position_parts;
        self.code.clone_from(&earlier.code);
        true
    }
}

impl Machine {
    /// Where code of whole files is kept, if it is.
    pub(crate) fn kept_code(&self) -> Option<&KeptCode> {
        self.shared.code.as_deref().filter(|_| !self.host().notes_places())
    }
}
