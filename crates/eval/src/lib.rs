//! firn-eval
