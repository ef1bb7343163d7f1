//! Functions and application.

use firn_eval::Builtin;

/// The subject's builtins.
pub(crate) const TABLE: &[Builtin] = &[];
