//! Compiles `guarded.cpp`, and links the C++ library that libsycl uses, `libstdc++.so.6`.

use std::{error::Error, path::Path, process::Command};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=src/guarded.cpp");
    let mut compiler = cc::Build::new();
    // Without debug information, which would hold paths of this machine.
    compiler
        .cpp(true)
        .std("c++17")
        .debug(false)
        .cpp_link_stdlib(None)
        .file("src/guarded.cpp")
        .try_compile("guarded")?;
    // By its path, because a linker with a C++ library of its own, as zig has, takes that one for `-lstdc++`.
    let asked = Command::new("c++").arg("-print-file-name=libstdc++.so").output()?;
    let library = String::from_utf8(asked.stdout)?;
    if !Path::new(library.trim()).is_absolute() {
        return Err("c++ has no libstdc++.so; on Debian, install it with: apt-get install g++".into());
    }
    println!("cargo::rustc-link-arg={}", library.trim());
    Ok(())
}
