//! firn-cli
