//! Code that somebody wants to hear of when it is evaluated (decision 0022).

use crate::expr::Expr;

/// An expression of a text that is watched: a leaf ([`firn_syntax::Leaves`]), or what the text's last selection begins from.
#[derive(Debug)]
pub struct Watched<V: 'static> {
    /// Strict.
    pub inner: Expr<V>,
    /// The number of the leaf, or [`Watched::ROOT`].
    pub number: u32,
}

impl<V> Watched<V> {
    /// What the last selection begins from.
    pub const ROOT: u32 = u32::MAX;
}
