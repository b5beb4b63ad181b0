//! Says how the library is linked.
//!
//! It is never unloaded: XPTI closes its subscribers, but adapters, threads and `atexit` call functions of the
//! library until the process ends. What runs at the start of a process lies together, as `order.ld` says; it adds to
//! the linker's own script.

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| ".".into());
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-T,{folder}/order.ld");
    println!("cargo::rerun-if-changed=order.ld");
    println!("cargo::rerun-if-changed=build.rs");
}
