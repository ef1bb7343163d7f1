//! Random Nix programs: a stream of choices, the grammar that turns choices into text, and shrinking over choices.
//! Used by the `random` test. Invariant: the same choices give the same program, and choice 0 is always the simplest.

pub mod choices;
pub mod grammar;
pub mod shrink;

mod terms;
