//! The value word, its tags, and the slots that hold words.

use super::{Attrs, Function, List, Str, Thunk, boxed, kind};
use std::sync::atomic::{AtomicU64, Ordering};

/// A Nix value in one word. It may be a thunk: `force` in the machine gives the value in weak head normal form.
///
/// Two words are equal exactly when they are the same immediate or the same heap object, that is, the same *cell* in
/// Nix's sense (M7).
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Value(pub(super) u64);

const _: () = assert!(size_of::<Value>() == 8);
const _: () = assert!(size_of::<Result<Value, Box<u8>>>() == 16);

pub(super) mod tag {
    pub const IMMEDIATE: u64 = 0;
    pub const INT: u64 = 1;
    pub const THUNK: u64 = 2;
    pub const ATTRS: u64 = 3;
    pub const LIST: u64 = 4;
    pub const STRING: u64 = 5;
    pub const FUNCTION: u64 = 6;
    pub const BOXED: u64 = 7;
    pub const MASK: u64 = 7;
}

/// Types of values in weak head normal form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Type {
    Null,
    Bool,
    Int,
    Float,
    String,
    Path,
    List,
    Attrs,
    Function,
}

const SMALL_MIN: i64 = -(1 << 60);
const SMALL_MAX: i64 = (1 << 60) - 1;

impl Value {
    /// `null`, also what an unset slot holds.
    pub const NULL: Value = Value(0);
    /// `false`
    pub const FALSE: Value = Value(1 << 3);
    /// `true`
    pub const TRUE: Value = Value(2 << 3);

    /// A Boolean.
    #[inline]
    pub fn bool(b: bool) -> Value {
        if b { Value::TRUE } else { Value::FALSE }
    }

    /// An integer.
    #[inline]
    pub fn int(n: i64) -> Value {
        if (SMALL_MIN..=SMALL_MAX).contains(&n) { Value((n as u64) << 3 | tag::INT) } else { boxed::int(n) }
    }

    /// A float.
    pub fn float(x: f64) -> Value {
        boxed::float(x)
    }

    #[inline]
    pub(super) fn from_ptr(ptr: *const u64, tag: u64) -> Value {
        Value(ptr.expose_provenance() as u64 | tag)
    }

    #[inline]
    pub(super) fn ptr(self) -> *const u64 {
        std::ptr::with_exposed_provenance((self.0 & !tag::MASK) as usize)
    }

    #[inline]
    pub(super) fn tag(self) -> u64 {
        self.0 & tag::MASK
    }

    /// Whether equality asks which cell the value is in: functions, and NaN, which equals nothing else.
    #[inline]
    pub fn is_told_apart_by_cell(self) -> bool {
        const _: () = assert!(tag::FUNCTION == 6 && tag::BOXED == 7);
        self.tag() >= tag::FUNCTION && (self.tag() == tag::FUNCTION || self.as_float().is_some_and(f64::is_nan))
    }

    /// Whether it may be [told apart by its cell](Value::is_told_apart_by_cell), at a glance.
    #[inline]
    pub fn is_perhaps_told_apart(self) -> bool {
        self.tag() >= tag::FUNCTION
    }

    /// Whether the word is not a thunk (a thunk that has been forced still is one).
    #[inline]
    pub fn is_whnf(self) -> bool {
        self.tag() != tag::THUNK
    }

    /// The thunk this word is, if it is one.
    #[inline]
    pub fn as_thunk(self) -> Option<&'static Thunk> {
        // SAFETY: invariant 2: the tag says that the address is a thunk's.
        (self.tag() == tag::THUNK).then(|| unsafe { &*self.ptr().cast::<Thunk>() })
    }

    /// The integer, if it is one.
    #[inline]
    pub fn as_int(self) -> Option<i64> {
        if self.tag() == tag::INT {
            return Some(self.0 as i64 >> 3);
        }
        if self.tag() == tag::BOXED { boxed::as_int(self) } else { None }
    }

    /// Whether it is null or a Boolean.
    #[inline]
    pub fn is_immediate(self) -> bool {
        self.tag() == tag::IMMEDIATE
    }

    /// The integer, if it is a small one: a single test on the common path.
    #[inline]
    pub fn as_small_int(self) -> Option<i64> {
        (self.tag() == tag::INT).then_some(self.0 as i64 >> 3)
    }

    /// Two small integers as numbers that compare as they do.
    #[inline(always)]
    pub fn small_ints(a: Value, b: Value) -> Option<(i64, i64)> {
        // PERF: the tags are equal, so the words compare as what is above the tags.
        ((a.0 ^ tag::INT | b.0 ^ tag::INT) & tag::MASK == 0).then_some((a.0 as i64, b.0 as i64))
    }

    /// The sum of two small integers that is one too.
    #[inline(always)]
    pub fn small_sum(a: Value, b: Value) -> Option<Value> {
        let (a, b) = Value::small_ints(a, b)?;
        // Words overflow exactly where small integers do; one of the two tags stays.
        a.checked_add(b - tag::INT as i64).map(|sum| Value(sum as u64))
    }

    /// The difference of two small integers that is one too.
    #[inline(always)]
    pub fn small_difference(a: Value, b: Value) -> Option<Value> {
        let (a, b) = Value::small_ints(a, b)?;
        a.checked_sub(b - tag::INT as i64).map(|difference| Value(difference as u64))
    }

    /// The Boolean, if it is one.
    #[inline]
    pub fn as_bool(self) -> Option<bool> {
        match self {
            Value::TRUE => Some(true),
            Value::FALSE => Some(false),
            _ => None,
        }
    }

    /// The float, if it is one.
    #[inline]
    pub fn as_float(self) -> Option<f64> {
        if self.tag() == tag::BOXED { boxed::as_float(self) } else { None }
    }

    /// The path's bytes, if it is one.
    #[inline]
    pub fn as_path(self) -> Option<&'static [u8]> {
        if self.tag() == tag::BOXED { boxed::as_path(self) } else { None }
    }

    /// The string, if it is one.
    #[inline]
    pub fn as_str(self) -> Option<Str> {
        (self.tag() == tag::STRING).then(|| Str::of(self))
    }

    /// The list, if it is one.
    #[inline]
    pub fn as_list(self) -> Option<List> {
        (self.tag() == tag::LIST).then(|| List::of(self))
    }

    /// The attribute set, if it is one.
    #[inline]
    pub fn as_attrs(self) -> Option<Attrs> {
        (self.tag() == tag::ATTRS).then(|| Attrs::of(self))
    }

    /// The function, if it is one.
    #[inline]
    pub fn as_function(self) -> Option<Function> {
        (self.tag() == tag::FUNCTION).then(|| Function::of(self))
    }

    /// The type; `None` for a thunk.
    pub fn get_type(self) -> Option<Type> {
        Some(match self.tag() {
            tag::IMMEDIATE if self == Value::NULL => Type::Null,
            tag::IMMEDIATE => Type::Bool,
            tag::INT => Type::Int,
            tag::ATTRS => Type::Attrs,
            tag::LIST => Type::List,
            tag::STRING => Type::String,
            tag::FUNCTION => Type::Function,
            tag::BOXED => match boxed::kind_of(self) {
                kind::INT => Type::Int,
                kind::FLOAT => Type::Float,
                _ => Type::Path,
            },
            _ => return None,
        })
    }

    /// The word as a number: equal numbers are equal cells. Meaningful only inside this process.
    #[inline]
    pub fn identity(self) -> u64 {
        self.0
    }

    /// Has the processor fetch what the word refers to, for who is about to look there.
    #[inline]
    pub fn fetch_ahead(self) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: fetching ahead is allowed of any address, and changes nothing that can be seen.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(self.ptr().cast());
        }
    }
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.get_type() {
            None => write!(f, "thunk"),
            Some(Type::Int) => write!(f, "{}", self.as_int().unwrap_or_default()),
            Some(Type::String) => {
                write!(f, "{:?}", self.as_str().map(|s| String::from_utf8_lossy(s.bytes())))
            }
            Some(t) => write!(f, "{t:?}"),
        }
    }
}

/// A cell for a value word that threads may share. Unset, it reads as `null`.
#[derive(Default)]
#[repr(transparent)]
pub struct Slot(AtomicU64);

impl Slot {
    /// A slot holding `null`.
    pub const fn new() -> Slot {
        Slot(AtomicU64::new(0))
    }

    /// The word in it.
    #[inline]
    pub fn get(&self) -> Value {
        // Invariant 4: only whole valid words are stored.
        Value(self.0.load(Ordering::Relaxed))
    }

    /// Stores a word.
    #[inline]
    pub fn set(&self, value: Value) {
        self.0.store(value.0, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}
