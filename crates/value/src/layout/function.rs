//! Functions: closures, builtins, partial applications.

use super::{Activation, Slot, Value, header, header_address, header_count, header_kind, header_of, heap, kind, word::tag};
use crate::{Lambda, Primop};

/// A function value.
#[derive(Clone, Copy, Debug)]
pub enum Function {
    /// Code with captures.
    Closure(Closure),
    /// A builtin.
    Primop(&'static Primop),
    /// A function that has got some of its arguments.
    Partial(PartialApp),
}

/// Code with captures.
#[derive(Clone, Copy)]
pub struct Closure {
    object: *const u64,
}

/// A closure or builtin with some of its arguments.
#[derive(Clone, Copy)]
pub struct PartialApp {
    object: *const u64,
}

// SAFETY: captures are slots (invariant 4), headers never change (invariant 3).
unsafe impl Send for Closure {}
// SAFETY: as above.
unsafe impl Sync for Closure {}
// SAFETY: as above.
unsafe impl Send for PartialApp {}
// SAFETY: as above.
unsafe impl Sync for PartialApp {}

impl Function {
    #[inline]
    pub(super) fn of(value: Value) -> Function {
        let object = value.ptr();
        // SAFETY: a FUNCTION word points to an object with one of the three headers (invariant 2).
        let head = unsafe { object.read() };
        match header_kind(head) {
            kind::CLOSURE | kind::DELAYED => Function::Closure(Closure { object }),
            kind::PRIMOP => {
                // SAFETY: the header holds the address of a static description.
                Function::Primop(unsafe { &*std::ptr::with_exposed_provenance(header_address(head) as usize) })
            }
            _ => Function::Partial(PartialApp { object }),
        }
    }
}

impl Closure {
    /// A closure whose captures are still unset. `delayed` marks one that stands in a cell where Nix would have a
    /// thunk; only printing of unevaluated values looks at it.
    #[inline]
    pub fn new(lambda: &'static Lambda, delayed: bool) -> Closure {
        let object = heap::alloc(1 + lambda.body.captures.len());
        let code = std::ptr::from_ref(lambda).expose_provenance() as u64;
        // SAFETY: the allocation holds the header and the captures (invariant 1).
        unsafe { object.write(header_of(if delayed { kind::DELAYED } else { kind::CLOSURE }, code) | heap::stamp()) };
        Closure { object }
    }

    /// A closure with what it captures of its surroundings.
    #[inline]
    pub fn capture(lambda: &'static Lambda, delayed: bool, frame: Activation<'_>) -> Value {
        let captures = lambda.body.captures;
        let object = heap::alloc(1 + captures.len());
        let code = std::ptr::from_ref(lambda).expose_provenance() as u64;
        // SAFETY: the allocation holds the header and the captures (invariant 1).
        unsafe {
            object.write(header_of(if delayed { kind::DELAYED } else { kind::CLOSURE }, code) | heap::stamp());
            frame.copy(captures, object.add(1));
        }
        Value::from_ptr(object, tag::FUNCTION)
    }

    /// The code.
    #[inline]
    pub fn lambda(self) -> &'static Lambda {
        // SAFETY: the header holds the address of code, which lives for ever.
        unsafe { &*std::ptr::with_exposed_provenance(header_address(self.object.read()) as usize) }
    }

    /// The captures.
    #[inline]
    pub fn captures(self) -> &'static [Slot] {
        // SAFETY: allocated with as many slots as the code has captures (invariants 1, 3).
        unsafe { std::slice::from_raw_parts(self.object.add(1).cast(), self.lambda().body.captures.len()) }
    }

    /// Where the captures begin.
    #[inline]
    pub(super) fn first_capture(self) -> *const Slot {
        // SAFETY: one word past the header is inside the object or its end (invariant 1).
        unsafe { self.object.add(1).cast() }
    }

    /// Whether it stands where Nix would have a thunk.
    pub fn is_delayed(self) -> bool {
        // SAFETY: the header is the object's first word.
        header_kind(unsafe { self.object.read() }) == kind::DELAYED
    }

    /// The closure as a value.
    #[inline]
    pub fn value(self) -> Value {
        Value::from_ptr(self.object, tag::FUNCTION)
    }
}

impl std::fmt::Debug for Closure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "closure of {:?}", self.lambda().name)
    }
}

impl PartialApp {
    /// `function` with `args`, fewer than it takes.
    pub fn new(function: Value, args: &[Value]) -> Value {
        PartialApp::of(function, args.len(), |i| args[i])
    }

    /// As [`PartialApp::new`] with the arguments given by number.
    #[inline]
    pub fn of(function: Value, count: usize, mut arg: impl FnMut(usize) -> Value) -> Value {
        let object = heap::alloc(2 + count);
        let counted = u8::try_from(count).expect("a function takes fewer than 256 arguments at once");
        // SAFETY: the allocation holds the header, the function and the arguments (invariant 1).
        unsafe {
            object.write(header(kind::PARTIAL, counted, 0) | heap::stamp());
            object.add(1).write(function.0);
            for i in 0..count {
                object.add(2 + i).write(arg(i).0);
            }
        }
        Value::from_ptr(object, tag::FUNCTION)
    }

    /// A partial application whose parts are filled in by [`PartialApp::fill`].
    pub fn blank(count: usize) -> Value {
        PartialApp::of(Value::NULL, count, |_| Value::NULL)
    }

    /// Sets the function and the arguments of a blank one.
    pub fn fill(self, function: Value, mut arg: impl FnMut(usize) -> Value) {
        // SAFETY: laid out by `of`; the word is a slot from now on read after it was written by this thread.
        unsafe { (*self.object.add(1).cast::<Slot>()).set(function) };
        self.args().iter().enumerate().for_each(|(i, slot)| slot.set(arg(i)));
    }

    /// It as a value.
    #[inline]
    pub fn value(self) -> Value {
        Value::from_ptr(self.object, tag::FUNCTION)
    }

    /// The function: a closure or a builtin, never partial itself.
    #[inline]
    pub fn function(self) -> Value {
        // SAFETY: laid out by `new`.
        Value(unsafe { self.object.add(1).read() })
    }

    /// The arguments so far.
    #[inline]
    pub fn args(self) -> &'static [Slot] {
        // SAFETY: laid out by `new` with this count.
        unsafe { std::slice::from_raw_parts(self.object.add(2).cast(), header_count(self.object.read()) as usize) }
    }
}

impl std::fmt::Debug for PartialApp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} with {} arguments", self.function(), self.args().len())
    }
}

impl Value {
    /// A builtin function.
    pub fn primop(primop: &'static Primop) -> Value {
        let object = heap::alloc(1);
        // SAFETY: one word was allocated.
        unsafe { object.write(header_of(kind::PRIMOP, std::ptr::from_ref(primop).expose_provenance() as u64)) };
        Value::from_ptr(object, tag::FUNCTION)
    }
}
