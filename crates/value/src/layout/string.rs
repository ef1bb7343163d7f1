//! Strings: a header with the length, an optional context word, the bytes.

use super::{Value, header, header_count, header_low, heap, kind, word::tag};
use crate::Context;
use crate::context::ContextSet;

/// A string value.
#[derive(Clone, Copy)]
pub struct Str {
    object: *const u64,
}

// SAFETY: strings are immutable after creation (invariant 3).
unsafe impl Send for Str {}
// SAFETY: as above.
unsafe impl Sync for Str {}

pub(super) fn lay_out(kind: u8, context: Option<&'static ContextSet>, parts: &[&[u8]]) -> *const u64 {
    let len: usize = parts.iter().map(|p| p.len()).sum();
    let lead = 1 + usize::from(context.is_some());
    let object = heap::alloc(lead + len.div_ceil(8));
    // SAFETY: the allocation holds the header, the context word if any, and `len` bytes (invariant 1).
    unsafe {
        object.write(header(kind, u8::from(context.is_some()), len as u64));
        if let Some(set) = context {
            object.add(1).write(std::ptr::from_ref(set).expose_provenance() as u64);
        }
        let mut at: *mut u8 = object.add(lead).cast();
        for part in parts {
            at.copy_from_nonoverlapping(part.as_ptr(), part.len());
            at = at.add(part.len());
        }
    }
    object
}

impl Value {
    /// A string with its context.
    pub fn string(bytes: &[u8], context: Context) -> Value {
        Value::from_ptr(lay_out(kind::STRING, context.as_set(), &[bytes]), tag::STRING)
    }

    /// A string made of parts, copied once.
    pub fn string_of(parts: &[&[u8]], context: Context) -> Value {
        Value::from_ptr(lay_out(kind::STRING, context.as_set(), parts), tag::STRING)
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
        let lead = 1 + header_count(head) as usize;
        // SAFETY: laid out by `lay_out` with this lead and length (invariants 2, 3).
        unsafe { std::slice::from_raw_parts(self.object.add(lead).cast(), header_low(head) as usize) }
    }

    /// The context.
    #[inline]
    pub fn context(self) -> Context {
        if header_count(self.head()) == 0 {
            return Context::EMPTY;
        }
        // SAFETY: the count says that a context word, the address of a leaked set, follows the header.
        let set = unsafe { &*std::ptr::with_exposed_provenance::<ContextSet>(self.object.add(1).read() as usize) };
        Context::from_set(Some(set))
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
