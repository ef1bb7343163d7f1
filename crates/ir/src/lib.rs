//! firn-ir
