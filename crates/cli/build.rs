//! How the program is linked.
#![allow(clippy::disallowed_methods)] // Nothing is evaluated here.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // 14,000 addresses are to be set right when the program starts: written as bits, they take 10 KB instead of 340.
    if std::env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "gnu") {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}
