//! The rules of the house, checked: `cargo test -p firn-tidy`. The rules are in `crates/tidy/tests`, nothing is here, and no
//! room depends on it.
