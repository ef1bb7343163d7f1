//! firn-store
