//! firn-builtins
