//! Gives the library the name under which the adapters and libumf look for a Level Zero loader.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libze_loader.so.1");
    // Streams may still be ending when an adapter unloads us: their code must stay.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}
