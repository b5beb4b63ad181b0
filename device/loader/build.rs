//! Sets the soname by which the adapters and libumf load the Level Zero loader.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libze_loader.so.1");
    // A stream's thread may still run when an adapter unloads the library, so its code must stay mapped.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}
