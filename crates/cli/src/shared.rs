//! `Shared`: the remotes of a run (`--memo shared`): asked where the disk knows no answer, told at the end what was found.
//!
//! What comes from a remote is verified as if it came from disk, and only what holds is kept there. A remote never
//! changes an answer, only how long it takes ([`firn_remote`]).

use crate::log::Log;
use crate::settings::Resolved;
use firn_cache::Disk;
use firn_host::Digest;
use firn_remote::{Care, Counts, Remotes, Travelling, travelling};
use std::cell::RefCell;
use std::sync::Arc;

/// The remotes of a run.
pub struct Shared {
    /// The remotes.
    pub remotes: Remotes,
    /// Questions that were answered by evaluating, each with what was observed.
    found: RefCell<Vec<(Digest, Digest)>>,
}

impl Shared {
    /// Prepares the remotes; none if the user wants none, or they cannot be used.
    pub fn open(resolved: &Resolved, log: &Arc<Log>) -> Option<Shared> {
        let settings = resolved.memo.shared.clone()?;
        let heard = log.clone();
        match Remotes::open(settings, move |text| heard.warn(text.as_bytes())) {
            Ok(remotes) => {
                if !remotes.believes_anybody() {
                    log.warn(b"nothing is taken from remotes: firn.conf names no public-keys, and no secret-key-file");
                } else if remotes.has_writable() && !remotes.can_push() {
                    log.detail(b"nothing is given to remotes: there is no secret-key-file to sign with");
                }
                Some(Shared { remotes, found: RefCell::default() })
            }
            Err(trouble) => {
                log.warn(format!("evaluating without remotes: {trouble}").as_bytes());
                None
            }
        }
    }

    /// A question was answered by evaluating, and its answer is kept on disk.
    pub fn note(&self, question: Digest, observations: Digest) {
        self.found.borrow_mut().push((question, observations));
    }

    /// What became of it.
    pub fn counts(&self) -> Counts {
        self.remotes.counts()
    }

    /// Hands over what was found in this run. Waits no longer than the deadline.
    pub fn finish(&self, disk: &Disk) {
        let found = std::mem::take(&mut *self.found.borrow_mut());
        if found.is_empty() || !self.remotes.can_push() {
            return;
        }
        let answers = found.iter().filter_map(|found| found_now(disk, found)).collect();
        self.remotes.push(answers, Care::Quick, self.remotes.deadline());
    }
}

/// The answer to a question that rests on what was observed in this run.
fn found_now(disk: &Disk, (question, observations): &(Digest, Digest)) -> Option<Travelling> {
    let reading = disk.read()?;
    let records = reading.records(question);
    travelling(&reading, records.iter().find(|found| found.record.observations == *observations)?)
}
