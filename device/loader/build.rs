//! Gives the library the name under which the adapters and libumf look for a Level Zero loader.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libze_loader.so.1");
    println!("cargo::rerun-if-changed=build.rs");
}
