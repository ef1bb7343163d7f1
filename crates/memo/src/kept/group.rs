//! Digests of what the places of a group have under one name: in a run by number, kept by role.

use super::roles::Roles;
use super::sets::ObservationId;
use firn_host::{Digest, Question};
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;
use std::sync::LazyLock;

/// Places that have a name, and the digest of what they have; ascending.
pub(super) type Given = Vec<(ObservationId, Digest)>;

/// The digest of what a run sees: it tells answers of this run apart, and is never kept.
// PERF: a name has one answer among the same places; proving that took a third of looking it up.
pub(super) fn digest_here(given: &[(ObservationId, Digest)]) -> Digest {
    let mut digest = Digest([0; 32]);
    digest.0[..8].copy_from_slice(&FxBuildHasher.hash_one(given).to_le_bytes());
    digest
}

/// The digest of what places have, wherever they lie. The group says which places there are; these are the ones that have the name.
pub(super) fn digest_kept<'q>(given: impl Iterator<Item = (&'q Question, Digest)>, roles: &Roles) -> Digest {
    let mut placed: Vec<(&str, &[u8], u8, Digest)> = given
        .filter_map(|(question, digest)| {
            let (role, rest) = roles.place(question.path()?);
            Some((role, rest, u8::from(matches!(question, Question::Code(_))), digest))
        })
        .collect();
    placed.sort_unstable();
    placed.dedup();
    // PERF: hashing the name of the key anew each time is most of the work.
    static KEYED: LazyLock<blake3::Hasher> = LazyLock::new(|| blake3::Hasher::new_derive_key("firn memo 2026-11 member"));
    let mut hasher = KEYED.clone();
    for (role, rest, kind, digest) in placed {
        for part in [role.as_bytes(), rest, &[kind]] {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        hasher.update(&digest.0);
    }
    Digest(*hasher.finalize().as_bytes())
}
