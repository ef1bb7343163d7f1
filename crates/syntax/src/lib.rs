//! firn-syntax
