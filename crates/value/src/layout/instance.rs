//! Which instance the running code belongs to. Everything made meanwhile carries its stamp (decision 0011): cells of one
//! instance of a call are told from those of another, and from what is outside.

use super::header::{STAMP_BITS, kind_and_stamp, stamp_bits, stamp_number};
use super::thunk::end_unevenly;
use super::{Thunk, Value, header_stamp, heap, word::tag};

/// The number of an instance. Zero is what no instance made: constants, globals, the program itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(u16);

impl Stamp {
    /// Outside all instances.
    pub const NONE: Stamp = Stamp(0);
    /// The largest number.
    pub const MAX: u16 = (1 << STAMP_BITS) - 1;

    /// The stamp of a number.
    ///
    /// # Panics
    /// When the number is larger than [`Stamp::MAX`].
    pub fn new(number: u16) -> Stamp {
        assert!(number <= Stamp::MAX);
        Stamp(number)
    }

    /// The stamp in a header.
    #[inline]
    pub(super) fn of_header(head: u64) -> Stamp {
        Stamp(stamp_number(head))
    }

    /// The number.
    #[inline]
    pub fn number(self) -> u16 {
        self.0
    }
}

/// What a production observed of the outside: the number of a set of observations, zero for none (`memo::kept::Sets`).
pub type Label = u32;

/// The state of the thread's running production: for which instance it runs, what it has observed, and whether it was
/// noisy, that is, did what a second production would do again (print).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Production(u64);

const NOISE: u64 = 1;
/// Is there with noise or a label. No stamp has it, and where it is in a header every thunk has a bit of its kind: one comparison
/// tells whether a thunk is of this production and that is quiet ([`Production::differs`]).
const MARKED: u64 = 1 << 63;
const LABEL_AT: u32 = 8;
const LABEL: u64 = (Label::MAX as u64) << LABEL_AT;

impl Production {
    /// One that did nothing to be kept, outside all instances.
    pub const NONE: Production = Production(0);

    /// The running one.
    #[inline]
    pub fn current() -> Production {
        Production(heap::production())
    }

    /// Begins a quiet production of an instance and gives the one around it, to be passed to [`Production::end`].
    #[inline]
    pub fn begin(stamp: Stamp) -> Production {
        Production(heap::set_production(stamp_bits(stamp.0)))
    }

    /// As [`Production::begin`] for the instance that made a thunk.
    #[inline]
    pub(crate) fn begin_of(head: u64) -> Production {
        Production(heap::set_production(header_stamp(head)))
    }

    /// Ends the running production, goes back to the one around it and gives the ended one.
    #[inline]
    pub fn end(outer: Production) -> Production {
        Production(heap::set_production(outer.0))
    }

    /// Whether it was noisy.
    #[inline]
    pub fn is_noisy(self) -> bool {
        self.0 & NOISE != 0
    }

    /// Whether more than the value must be kept of it: it was noisy or observed something.
    #[inline]
    pub fn is_marked(self) -> bool {
        self.0 & MARKED != 0
    }

    /// What it has observed.
    #[inline]
    pub fn label(self) -> Label {
        (self.0 >> LABEL_AT) as Label
    }

    /// Says what the running production has observed.
    #[inline]
    pub fn set_label(label: Label) {
        let rest = heap::production() & !(LABEL | MARKED);
        let marked = if label != 0 || rest & NOISE != 0 { MARKED } else { 0 };
        if marked != 0 {
            end_unevenly();
        }
        heap::set_production(rest | marked | u64::from(label) << LABEL_AT);
    }

    /// The instance.
    #[inline]
    pub fn stamp(self) -> Stamp {
        Stamp(stamp_number(self.0))
    }

    /// Whether it runs for the instance in a header.
    #[inline]
    pub(super) fn is_of(self, head: u64) -> bool {
        header_stamp(self.0) == header_stamp(head)
    }

    /// In which kind and stamp it differs from a header: exactly the header's kind if the header is of this production's instance and
    /// the production is quiet.
    #[inline(always)]
    pub(super) fn differs(self, head: u64) -> u64 {
        kind_and_stamp(head ^ self.0)
    }

    /// All of it: the stamp in its place, and nothing else if it is quiet.
    #[inline(always)]
    pub(super) fn word(self) -> u64 {
        self.0
    }

    /// Makes the running production noisy.
    pub fn make_noise() {
        end_unevenly();
        heap::set_production(heap::production() | NOISE | MARKED);
    }
}

impl std::fmt::Debug for Production {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "production of {:?}, noisy: {}", self.stamp(), self.is_noisy())
    }
}

impl Value {
    /// The instance that made the object: thunks, functions, sets, lists and floats carry it. Other values are of none.
    pub fn stamp(self) -> Stamp {
        match self.tag() {
            // SAFETY: words with these tags point to an object that begins with its header (invariant 2).
            tag::ATTRS | tag::LIST | tag::FUNCTION | tag::BOXED => Stamp(stamp_number(unsafe { self.ptr().read() })),
            tag::THUNK => self.as_thunk().map_or(Stamp::NONE, Thunk::stamp),
            _ => Stamp::NONE,
        }
    }
}
