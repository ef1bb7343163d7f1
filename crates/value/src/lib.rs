//! firn-value
