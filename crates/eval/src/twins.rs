//! `Twins`: files with the same bytes, as two copies of one package set have them by the thousand. Each text is parsed and lowered
//! once; for the other files its code is copied (`firn_ir::relocate`, decision 0018). With the memo off there is none of this.
//!
//! A text has no twin when something is said of it (who reads it again is warned again), when it names the home directory (which is
//! observed), or when it is evaluated with variables of its own. A hash of a few of its bytes locates, all of its bytes decide.

use crate::places::EachPath;
use crate::times::Doing;
use crate::{Machine, Stats};
use firn_host::{AbsPath, Bindings, FileContent};
use firn_ir::{Place, Program};
use firn_source::SourceFile;
use firn_syntax::Ast;
use firn_value::{Constants, Value};
use hashbrown::HashTable;
use rustc_hash::FxHasher;
use smallvec::SmallVec;
use std::hash::Hasher;
use std::sync::{Arc, Mutex};

/// A file and its code.
struct Twin {
    sample: u64,
    file: &'static SourceFile,
    program: &'static Program<Value>,
    traits: Traits,
}

/// What is to be done again for another file with the same text.
pub(crate) struct Traits {
    /// Whether a set of it is guarded.
    is_guarded: bool,
    /// The path literals, where it is noted what parsing sees.
    paths: Box<[Box<[u8]>]>,
}

/// Files whose code may be copied, by a sample of their bytes.
#[derive(Default)]
pub(crate) struct Twins(Mutex<HashTable<Arc<Twin>>>);

/// There is room for so many from the first on.
const MANY: usize = 400;

impl Twins {
    fn find(&self, sample: u64, text: &[u8]) -> Option<Arc<Twin>> {
        let all = self.0.lock().unwrap_or_else(|e| e.into_inner());
        let alike: SmallVec<[Arc<Twin>; 2]> = all.iter_hash(sample).filter(|twin| twin.sample == sample).cloned().collect();
        drop(all);
        alike.into_iter().find(|twin| twin.file.says(text))
    }
}

/// A hash of the length and of a few bytes.
// PERF: nine pieces of the text, hashed as bytes, were 87,000 of the 540 million instructions of a single package.
fn sample(text: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_usize(text.len());
    let Some(last) = text.len().checked_sub(8) else {
        hasher.write(text);
        return hasher.finish();
    };
    for at in [last / 4, last / 2, last / 4 * 3, last] {
        hasher.write_u64(text[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)));
    }
    hasher.finish()
}

impl Machine {
    /// What another file with the text of this tree would need; none if its code is not to be copied.
    pub(crate) fn traits_of(&self, ast: &Ast, is_guarded: bool) -> Option<Traits> {
        if !ast.warnings().is_empty() || ast.names_home() {
            return None;
        }
        let paths = if self.host().notes_places() { ast.path_literals().map(Box::from).collect() } else { Box::default() };
        Some(Traits { is_guarded, paths })
    }

    /// By what twins of a text are found, if any are sought.
    pub(crate) fn sample_of(&self, text: &[u8]) -> Option<u64> {
        self.shared.memo.is_on().then(|| sample(text))
    }

    /// Has the code of a file with this sample copied for others with the same text.
    pub(crate) fn seek_twins(&self, sample: u64, file: &'static SourceFile, program: &'static Program<Value>, traits: Traits) {
        let twin = Arc::new(Twin { sample, file, program, traits });
        let mut all = self.shared.twins.0.lock().unwrap_or_else(|e| e.into_inner());
        if all.is_empty() {
            all.reserve(MANY, |twin| twin.sample);
        }
        all.insert_unique(sample, twin, |twin| twin.sample);
    }

    /// The code of a file that was read, copied from one with the same text, if there is one.
    pub(crate) fn copied(
        &self,
        path: &AbsPath,
        real: &AbsPath,
        content: &FileContent,
        bindings: Option<Bindings>,
        sample: u64,
    ) -> Option<&'static Program<Value>> {
        let twin = self.shared.twins.find(sample, content.bytes())?;
        let Traits { is_guarded, paths } = &twin.traits;
        let guard = match (is_guarded, bindings) {
            (false, None) => 0,
            (true, Some(bindings)) => bindings.guard,
            _ => return None,
        };
        let (origin, reread, base) = self.origin(path, real.clone());
        let file = SourceFile::register_twin(origin, twin.file, reread);
        let each_path = |each: EachPath<'_>| {
            for literal in paths {
                let mut path = Vec::new();
                firn_syntax::path_literal(base.as_bytes(), literal, &mut path);
                each(literal.first() == Some(&b'/'), &path);
            }
        };
        self.note_places(each_path, &base, content.bytes());
        Stats::bump(&self.stats.files_shared);
        let place = Place::new(twin.file, file, base.as_bytes(), guard);
        let copy = || firn_ir::relocate::<Constants>(twin.program, place);
        Some(Stats::time(&self.stats.lower_time, Doing::Lower, copy))
    }
}

#[cfg(test)]
mod tests {
    use super::sample;

    #[test]
    fn every_text_has_a_sample() {
        let text: Vec<u8> = (0..100).collect();
        let mut all: Vec<u64> = (0..=text.len()).map(|len| sample(&text[..len])).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), text.len() + 1);
    }
}
