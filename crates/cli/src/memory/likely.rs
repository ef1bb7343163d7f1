//! Files prepared for an evaluation that memory has no answer for: those that the last evaluation of the question read (decision 0021).

use super::Memory;
use firn_host::{AbsPath, Digest};
use firn_memo::kept::{Roles, loaded};
use std::sync::atomic::Ordering;

/// Where several questions are asked, files are prepared for so many: others read much the same, and looking through what each rests on takes
/// longer than it saves.
const MOST: u32 = 16;

impl Memory {
    /// As [`Memory::prepare_files`], for one of several questions.
    pub(super) fn prepare_for_one(&self, observations: Digest, roles: &Roles) {
        if self.prepared_for.fetch_add(1, Ordering::Relaxed) < MOST {
            self.prepare_files(observations, None, roles);
        }
    }

    /// Has files prepared that were read for an answer which does not hold any more, by what it rests on but for `others`.
    pub(super) fn prepare_files(&self, observations: Digest, others: Option<Digest>, roles: &Roles) {
        let Some(preparation) = &self.preparation else { return };
        let (disk, roles, store) = (self.disk.clone(), roles.clone(), AbsPath::new(self.store_dir.as_bytes()));
        let likely = move || {
            let (Some(reading), Ok(store)) = (disk.read(), store) else { return Vec::new() };
            let mut paths = loaded(observations, others, &roles, |digest| reading.node(digest).map(<[u8]>::to_vec));
            // What this run puts into the store must not have been looked for before it is there.
            paths.retain(|path| !path.is_within(&store));
            paths
        };
        preparation.begin(self.syntax, Box::new(likely));
    }
}
