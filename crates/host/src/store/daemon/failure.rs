//! The status that a program ends with when a build fails: 100, and what kind of failure it was in the last bits.

/// Statuses of builds as the protocol numbers them.
const TIMED_OUT: u64 = 8;
const NOT_DETERMINISTIC: u64 = 12;
const HASH_MISMATCH: u64 = 15;

/// The status for a build that failed in this way; a daemon that knows fewer ways says more in words.
pub(super) fn status(failure: u64, message: &[u8]) -> u8 {
    match failure {
        TIMED_OUT => 101,
        HASH_MISMATCH => 102,
        NOT_DETERMINISTIC => 104,
        _ => told_status(message),
    }
}

/// The status for a failure of which only the message is known.
pub(super) fn told_status(message: &[u8]) -> u8 {
    let has = |text: &[u8]| message.windows(text.len()).any(|part| part == text);
    if has(b"hash mismatch in ") {
        102
    } else if has(b" timed out after ") {
        101
    } else if has(b" may not be deterministic") {
        104
    } else if has(b"uilder for '") || has(b"uild of '") || has(b"failed to build") || has(b"Cannot build '") {
        100
    } else {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_builds_are_told_from_others() {
        assert_eq!(told_status(b"builder for '/nix/store/x.drv' failed with exit code 1"), 100);
        assert_eq!(told_status(b"build of '/nix/store/x.drv' failed"), 100);
        assert_eq!(told_status(b"1 dependencies of derivation '/nix/store/x.drv' failed to build"), 100);
        assert_eq!(told_status(b"hash mismatch in fixed-output derivation '/nix/store/x.drv'"), 102);
        assert_eq!(told_status(b"building of '/nix/store/x.drv' timed out after 1 seconds"), 101);
        assert_eq!(told_status(b"path '/nix/store/x' is not valid"), 1);
        assert_eq!((status(8, b""), status(15, b""), status(3, b"builder for 'x' failed")), (101, 102, 100));
    }
}
