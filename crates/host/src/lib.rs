//! firn-host
