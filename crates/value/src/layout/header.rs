//! The header word of a heap object: kind, a small count, 48 bits of address, length or number.
//! Free of other modules, because `crates/value/tests/thunk_protocol.rs` compiles it a second time.

/// Header kinds, in the top byte of an object's first word.
pub mod kind {
    #![allow(missing_docs, dead_code)]
    pub const STRING: u8 = 1;
    pub const PATH: u8 = 2;
    pub const FLOAT: u8 = 3;
    pub const INT: u8 = 4;
    pub const LIST: u8 = 5;
    pub const SLICE: u8 = 6;
    pub const ATTRS: u8 = 7;
    pub const LAYERED: u8 = 8;
    pub const CLOSURE: u8 = 9;
    pub const PRIMOP: u8 = 10;
    pub const PARTIAL: u8 = 11;
    pub const SUSPENDED: u8 = 16;
    pub const APPLY: u8 = 17;
    pub const CLAIMED: u8 = 18;
    pub const FORCED: u8 = 19;
    pub const FAILED: u8 = 20;
}

const LOW48: u64 = (1 << 48) - 1;

/// A header word: kind in the top byte, a small count in the next, 48 bits of address, length or number.
#[inline]
pub const fn header(kind: u8, count: u8, low: u64) -> u64 {
    (kind as u64) << 56 | (count as u64) << 48 | (low & LOW48)
}

/// The kind.
#[inline]
pub const fn header_kind(word: u64) -> u8 {
    (word >> 56) as u8
}

/// The count.
#[inline]
pub const fn header_count(word: u64) -> u8 {
    (word >> 48) as u8
}

/// The 48 bits.
#[inline]
pub const fn header_low(word: u64) -> u64 {
    word & LOW48
}
