//! Says how the library is linked.
//!
//! It is never unloaded: XPTI closes its subscribers, but adapters, threads and `atexit` call functions of the
//! library until the process ends.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}
