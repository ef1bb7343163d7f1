//! firn-source
