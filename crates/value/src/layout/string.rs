//! Strings: a header with the length, an optional context word, then the bytes, or the address of bytes in another
//! string. The header's count says which of the two optional parts there are.

use super::{Value, header, header_count, header_low, heap, kind, word::tag};
use crate::Context;
use crate::context::ContextSet;
use firn_source::Symbol;
use std::cell::Cell;

/// A string value.
#[derive(Clone, Copy)]
pub struct Str {
    object: *const u64,
}

// SAFETY: strings are immutable after creation (invariant 3).
unsafe impl Send for Str {}
// SAFETY: as above.
unsafe impl Sync for Str {}

/// The header's count: a context word follows.
const HAS_CONTEXT: u8 = 1;
/// The header's count: the address of the bytes stands in their place.
const SHARED: u8 = 2;
/// The header's count: the number of the symbol of these bytes follows, where other strings have their context.
const NAMED: u8 = 4;
/// Shorter parts of strings are copied: that takes no more memory and keeps them close.
const SHARE_FROM: usize = 24;

pub(super) fn lay_out<'a>(
    kind: u8,
    context: Option<&'static ContextSet>,
    parts: impl Iterator<Item = &'a [u8]> + Clone,
) -> *const u64 {
    let len: usize = parts.clone().map(<[u8]>::len).sum();
    if len <= 8 && kind == kind::STRING && context.is_none() {
        return short(len, parts);
    }
    let lead = 1 + usize::from(context.is_some());
    let object = heap::alloc(lead + len.div_ceil(8));
    // SAFETY: the allocation holds the header, the context word if any, and `len` bytes (invariant 1).
    unsafe {
        object.write(header(kind, if context.is_some() { HAS_CONTEXT } else { 0 }, len as u64));
        if let Some(set) = context {
            object.add(1).write(std::ptr::from_ref(set).expose_provenance() as u64);
        }
        let mut at: *mut u8 = object.add(lead).cast();
        let end = at.add(len);
        for part in parts {
            // An iterator that gives more the second time must not write past the end.
            assert!(part.len() <= end.offset_from_unsigned(at));
            copy(part, at);
            at = at.add(part.len());
        }
    }
    object
}

/// Copies bytes to `to`, which must have room for them.
// PERF: most parts of strings are short, where a call of `memcpy` costs more than the copying.
#[inline(always)]
unsafe fn copy(from: &[u8], to: *mut u8) {
    let (source, len) = (from.as_ptr(), from.len());
    // SAFETY: both ends of a part of at least 8 (4) bytes can be moved as words, which may overlap; otherwise bytes.
    unsafe {
        match len {
            8..=16 => {
                let (first, last) = (source.cast::<u64>().read_unaligned(), source.add(len - 8).cast::<u64>().read_unaligned());
                to.cast::<u64>().write_unaligned(first);
                to.add(len - 8).cast::<u64>().write_unaligned(last);
            }
            4..8 => {
                let (first, last) = (source.cast::<u32>().read_unaligned(), source.add(len - 4).cast::<u32>().read_unaligned());
                to.cast::<u32>().write_unaligned(first);
                to.add(len - 4).cast::<u32>().write_unaligned(last);
            }
            1..4 => {
                to.write(source.read());
                to.add(len / 2).write(source.add(len / 2).read());
                to.add(len - 1).write(source.add(len - 1).read());
            }
            _ => to.copy_from_nonoverlapping(source, len),
        }
    }
}

type Short = (u64, usize, *const u64);

thread_local! {
    /// Short strings without context that were made lately: their bytes, how many, and the object. Direct mapped.
    static SHORT: [Cell<Short>; SHORTS] = const { [const { Cell::new((0, 0, std::ptr::null())) }; SHORTS] };
}

const SHORTS: usize = 1 << 11;

/// At most eight bytes as a word, the first lowest.
#[inline]
fn word_of(bytes: &[u8]) -> u64 {
    if let Some(all) = bytes.first_chunk::<8>() {
        return u64::from_le_bytes(*all);
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        return u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << (8 * (bytes.len() - 4));
    }
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

/// A string of at most eight bytes without context; where it was made lately, the same one.
// PERF: texts are taken apart into such, and put together of them.
fn short<'a>(len: usize, parts: impl Iterator<Item = &'a [u8]>) -> *const u64 {
    let (mut word, mut at) = (0, 0);
    for part in parts.filter(|part| !part.is_empty()) {
        // An iterator that gives more the second time must not shift past the end.
        assert!(part.len() <= len - at);
        word |= word_of(part) << (8 * at);
        at += part.len();
    }
    let place = (word ^ len as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 53;
    SHORT.with(|known| {
        let known = &known[place as usize % SHORTS];
        let (known_word, known_len, object) = known.get();
        if known_word == word && known_len == len && !object.is_null() {
            return object;
        }
        let object = heap::alloc(1 + usize::from(len > 0));
        // SAFETY: the allocation holds the header and the bytes if there are any (invariant 1).
        unsafe {
            object.write(header(kind::STRING, 0, len as u64));
            if len > 0 {
                object.add(1).write(word.to_le());
            }
        }
        known.set((word, len, object));
        object
    })
}

impl Value {
    /// A string with its context.
    pub fn string(bytes: &[u8], context: Context) -> Value {
        Value::from_ptr(lay_out(kind::STRING, context.as_set(), std::iter::once(bytes)), tag::STRING)
    }

    /// A string made of parts, copied once.
    pub fn string_of<'a>(parts: impl Iterator<Item = &'a [u8]> + Clone, context: Context) -> Value {
        Value::from_ptr(lay_out(kind::STRING, context.as_set(), parts), tag::STRING)
    }
}

impl Value {
    /// The string of a symbol's name, which remembers the symbol.
    pub(crate) fn named(symbol: Symbol) -> Value {
        let bytes = symbol.as_bytes();
        let object = heap::alloc(2 + bytes.len().div_ceil(8));
        // SAFETY: the allocation holds the header, the symbol's number and the bytes (invariant 1).
        unsafe {
            object.write(header(kind::STRING, NAMED, bytes.len() as u64));
            object.add(1).write(u64::from(symbol.id()));
            copy(bytes, object.add(2).cast());
        }
        Value::from_ptr(object, tag::STRING)
    }
}

impl Str {
    #[inline]
    pub(super) fn of(value: Value) -> Str {
        Str { object: value.ptr() }
    }

    #[inline]
    fn head(self) -> u64 {
        // SAFETY: a string object begins with its header (invariant 2).
        unsafe { self.object.read() }
    }

    /// The bytes.
    #[inline]
    pub fn bytes(self) -> &'static [u8] {
        let head = self.head();
        let count = header_count(head);
        let lead = 1 + usize::from(count & (HAS_CONTEXT | NAMED) != 0);
        // SAFETY: laid out by `lay_out` with this lead and length, or by `slice` with the address of as many bytes that
        // live for ever (invariants 1, 2, 3).
        unsafe {
            let mut first = self.object.add(lead);
            if count & SHARED != 0 {
                first = std::ptr::with_exposed_provenance(first.read() as usize);
            }
            std::slice::from_raw_parts(first.cast(), header_low(head) as usize)
        }
    }

    /// The bytes of a string without context.
    #[inline]
    pub fn plain_bytes(self) -> Option<&'static [u8]> {
        (header_count(self.head()) & HAS_CONTEXT == 0).then(|| self.bytes())
    }

    /// The symbol of the bytes.
    // PERF: names that came out of a set (`attrNames`, `mapAttrs`) know their symbol: no hashing, no search.
    #[inline]
    pub fn symbol(self) -> Symbol {
        if header_count(self.head()) & NAMED == 0 {
            return Symbol::intern(self.bytes());
        }
        // SAFETY: the count says that a word with the symbol's number follows the header.
        Symbol::of_id(unsafe { self.object.add(1).read() } as u32)
    }

    /// The context.
    #[inline]
    pub fn context(self) -> Context {
        if header_count(self.head()) & HAS_CONTEXT == 0 {
            return Context::EMPTY;
        }
        // SAFETY: the count says that a context word, the address of a leaked set, follows the header.
        let set = unsafe { &*std::ptr::with_exposed_provenance::<ContextSet>(self.object.add(1).read() as usize) };
        Context::from_set(Some(set))
    }

    /// A part of the string with a context of its own. Long parts share the bytes.
    ///
    /// # Panics
    /// When the range is not inside the string.
    pub fn slice(self, range: std::ops::Range<usize>, context: Context) -> Value {
        let bytes = &self.bytes()[range];
        if bytes.len() == self.bytes().len() && context == self.context() {
            return self.value();
        }
        if bytes.len() < SHARE_FROM {
            return Value::string(bytes, context);
        }
        let set = context.as_set();
        let lead = 1 + usize::from(set.is_some());
        let object = heap::alloc(lead + 1);
        // SAFETY: the allocation holds the header, the context word if any, and the address (invariant 1).
        unsafe {
            object.write(header(
                kind::STRING,
                SHARED | if set.is_some() { HAS_CONTEXT } else { 0 },
                bytes.len() as u64,
            ));
            if let Some(set) = set {
                object.add(1).write(std::ptr::from_ref(set).expose_provenance() as u64);
            }
            object.add(lead).write(bytes.as_ptr().expose_provenance() as u64);
        }
        Value::from_ptr(object, tag::STRING)
    }

    /// The string as a value.
    #[inline]
    pub fn value(self) -> Value {
        Value::from_ptr(self.object, tag::STRING)
    }
}

impl std::fmt::Debug for Str {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(self.bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_strings_keep_their_bytes_however_they_are_put_together() {
        let text = b"a\0b\xffcdefg";
        let string = |v: Value| v.as_str().expect("a string");
        for _ in 0..2 {
            for len in 0..=text.len() {
                for middle in 0..=len {
                    let parts = [&text[..middle], &[], &text[middle..len]];
                    assert_eq!(string(Value::string_of(parts.into_iter(), Context::EMPTY)).bytes(), &text[..len]);
                }
                let zeros = vec![0; len];
                assert_eq!(string(Value::string(&zeros, Context::EMPTY)).bytes(), zeros);
                let context = Context::single(Symbol::from("x"));
                assert!(string(Value::string(&text[..len], context)).context() == context);
            }
        }
    }

    #[test]
    fn slices_of_slices_keep_bytes_and_contexts() {
        let context = Context::single(Symbol::from("x"));
        let text: Vec<u8> = (0..200).collect();
        let string = |v: Value| v.as_str().expect("a string");
        let whole = string(Value::string(&text, context));
        for from in [0, 1, 50] {
            for len in [0, 1, 23, 24, 25, 100] {
                let part = string(whole.slice(from..from + len, Context::EMPTY));
                assert_eq!(part.bytes(), &text[from..from + len]);
                assert!(part.context().is_empty());
                let inner = string(part.slice(len / 2..len, context));
                assert_eq!(inner.bytes(), &text[from + len / 2..from + len]);
                assert!(inner.context() == context);
            }
        }
        assert_eq!(whole.slice(0..200, context), whole.value());
        let joined = string(Value::string_of([&b"ab"[..], b"", b"c"].into_iter(), context));
        assert_eq!((joined.bytes(), joined.context()), (&b"abc"[..], context));
    }
}
