//! The header word of a heap object: kind, the stamp of the instance it was made in, and 44 bits that are the address of
//! code or of a shape, or a small count and a length or number.
//! Free of other modules, because `crates/value/tests/thunk_protocol.rs` compiles it a second time.

/// Header kinds, in the top five bits of an object's first word.
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
    /// A closure that stands in a cell where Nix would have a thunk.
    pub const DELAYED: u8 = 12;
    /// A set whose names nobody counts as seen yet, before the set itself.
    pub const GUARDED: u8 = 13;
    /// A list of such names, or made of them one by one, before the list itself.
    pub const GUARDED_LIST: u8 = 14;
    pub const SUSPENDED: u8 = 16;
    pub const APPLY: u8 = 17;
    pub const CLAIMED: u8 = 18;
    pub const FORCED: u8 = 19;
    /// Failed outside all instances, or made so. The number is the label.
    pub const FAILED: u8 = 20;
    /// Forced; producing the value did something that a second production would do again. The slot leads to the value and to what
    /// the thunk had to do.
    pub const NOISY: u8 = 21;
    /// Forced on behalf of another instance before its own needed it. The number is the label.
    pub const AHEAD: u8 = 22;
    /// Stands for a cell of another instance.
    pub const TRANSPORT: u8 = 23;
    /// Forced; producing the value observed something. The number is the label.
    pub const LABELLED: u8 = 24;
    /// Failed in an instance: the slot leads to the error and to what the thunk had to do.
    pub const FAILED_HERE: u8 = 25;
    /// One of many applications of a function.
    pub const ITEM: u8 = 28;
}

/// Bits of a stamp.
pub const STAMP_BITS: u32 = 15;
const STAMP_AT: u32 = 44;
/// Where the stamp is in a header.
pub const STAMP: u64 = ((1 << STAMP_BITS) - 1) << STAMP_AT;
const KIND_AT: u32 = STAMP_AT + STAMP_BITS;
const PAYLOAD: u64 = (1 << STAMP_AT) - 1;
const COUNT_AT: u32 = 36;
const LOW: u64 = (1 << COUNT_AT) - 1;
/// The count of a header whose number is that of an item. No code has an address that looks so (`firn_ir::FORBIDDEN`).
#[allow(dead_code, reason = "the model of the protocol has no items")]
pub const ITEMS: u8 = 0xC0;

/// A header of kind, small count and 36 bits of length or number, without a stamp.
#[inline]
pub const fn header(kind: u8, count: u8, low: u64) -> u64 {
    (kind as u64) << KIND_AT | (count as u64) << COUNT_AT | (low & LOW)
}

/// A header of kind and an address that is a multiple of 16, without a stamp.
#[inline]
#[allow(dead_code, reason = "the model of the protocol has no code")]
pub const fn header_of(kind: u8, address: u64) -> u64 {
    (kind as u64) << KIND_AT | address >> 4
}

/// The kind.
#[inline]
pub const fn header_kind(word: u64) -> u8 {
    (word >> KIND_AT) as u8
}

/// The count.
#[inline]
pub const fn header_count(word: u64) -> u8 {
    (word >> COUNT_AT) as u8
}

/// The length or number.
#[inline]
pub const fn header_low(word: u64) -> u64 {
    word & LOW
}

/// The address.
#[inline]
#[allow(dead_code, reason = "the model of the protocol has no code")]
pub const fn header_address(word: u64) -> u64 {
    (word & PAYLOAD) << 4
}

/// The stamp in its place, everything else zero.
#[inline]
pub const fn header_stamp(word: u64) -> u64 {
    word & STAMP
}

/// Kind and stamp alone, as a number.
#[inline]
#[allow(dead_code, reason = "the model of the protocol has no instances")]
pub const fn kind_and_stamp(word: u64) -> u64 {
    word >> STAMP_AT
}

/// What a header says besides its kind and stamp: an address, or count and number.
#[inline]
#[allow(dead_code, reason = "the model of the protocol has no code")]
pub const fn header_payload(word: u64) -> u64 {
    word & PAYLOAD
}

/// The same header with another kind.
#[inline]
#[allow(dead_code, reason = "the model of the protocol has no code")]
pub const fn with_kind(word: u64, kind: u8) -> u64 {
    (kind as u64) << KIND_AT | word & (STAMP | PAYLOAD)
}

/// A stamp's number as it stands in headers.
#[inline]
#[allow(dead_code, reason = "the model of the protocol has no instances")]
pub const fn stamp_bits(stamp: u16) -> u64 {
    (stamp as u64) << STAMP_AT & STAMP
}

/// The number of a stamp as it stands in headers.
#[inline]
#[allow(dead_code, reason = "the model of the protocol has no instances")]
pub const fn stamp_number(bits: u64) -> u16 {
    ((bits & STAMP) >> STAMP_AT) as u16
}
