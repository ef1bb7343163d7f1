//! Integers beyond 61 bits, floats and paths.

use super::{Value, header, header_kind, header_low, heap, kind, string, word::tag};

fn boxed(kind: u8, payload: u64) -> Value {
    let object = heap::alloc(2);
    // SAFETY: two words were allocated (invariant 1).
    unsafe {
        object.write(header(kind, 0, 0) | heap::stamp());
        object.add(1).write(payload);
    }
    Value::from_ptr(object, tag::BOXED)
}

#[cold]
pub(super) fn int(n: i64) -> Value {
    boxed(kind::INT, n as u64)
}

pub(super) fn float(x: f64) -> Value {
    boxed(kind::FLOAT, x.to_bits())
}

#[inline]
pub(super) fn kind_of(value: Value) -> u8 {
    // SAFETY: called on BOXED words only, which point to an object (invariant 2).
    header_kind(unsafe { value.ptr().read() })
}

fn payload(value: Value, kind: u8) -> Option<u64> {
    // SAFETY: a boxed object of kind INT or FLOAT has a second word (invariant 2).
    (kind_of(value) == kind).then(|| unsafe { value.ptr().add(1).read() })
}

pub(super) fn as_int(value: Value) -> Option<i64> {
    payload(value, kind::INT).map(|word| word as i64)
}

pub(super) fn as_float(value: Value) -> Option<f64> {
    payload(value, kind::FLOAT).map(f64::from_bits)
}

pub(super) fn as_path(value: Value) -> Option<&'static [u8]> {
    // SAFETY: BOXED words point to an object (invariant 2).
    let head = unsafe { value.ptr().read() };
    // SAFETY: a PATH object is a header with the length and then that many bytes (made below).
    (header_kind(head) == kind::PATH)
        .then(|| unsafe { std::slice::from_raw_parts(value.ptr().add(1).cast(), header_low(head) as usize) })
}

impl Value {
    /// A path: absolute, canonical.
    pub fn path(path: &[u8]) -> Value {
        let object = string::lay_out(kind::PATH, None, std::iter::once(path));
        Value::from_ptr(object, tag::BOXED)
    }
}
