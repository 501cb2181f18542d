//! The programs are linked for a fixed address. Linked for any address, 170,000 pointers are put right when one starts, which takes 1.6 ms
//! and a copy of the 4 MB that they lie in (docs/decisions/0014). The static binary that ships gets this from its code model.

use std::env;

fn main() {
    let is = |variable, value| env::var_os(variable).is_some_and(|it| it == value);
    let features = env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    // A program that holds glibc itself needs the other kind of start.
    let is_static = features.split(',').any(|it| it == "crt-static");
    let is_linux = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    if is_linux && !is_static {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
