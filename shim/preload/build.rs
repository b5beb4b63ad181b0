//! Says how the library is linked.
//!
//! It stays where it is once it is loaded: XPTI closes its subscribers, and functions of adapters, threads and `atexit` lead here until the
//! process ends.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}
