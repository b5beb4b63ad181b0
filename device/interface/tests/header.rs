//! The header for C says the same as the definition in Rust.

use std::mem::offset_of;
use std::{fmt::Write as _, fs, process::Command};

use urscope_device_interface::{Access, Interface, SYMBOL, VERSION};

/// C that compiles only if a structure has this size, and only these members, at these offsets.
macro_rules! structure {
    ($c:literal, $type:ident { $($member:ident),* }) => {{
        let mut text = format!("_Static_assert(sizeof({}) == {}, \"size\");\n", $c, size_of::<$type>());
        $(writeln!(text, "_Static_assert(offsetof({}, {name}) == {}, \"{name}\");", $c, offset_of!($type, $member),
            name = stringify!($member)).expect("memory");)*
        // Does not compile if a member is missing above.
        let _ = |it: $type| { let $type { $($member),* } = it; $(let _ = $member;)* };
        text
    }};
}

#[test]
fn the_header_has_the_same_structures_and_version() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let source = folder.path().join("check.c");
    let text = [
        "#include \"ze_soft.h\"\n".to_owned(),
        structure!("ze_soft_access_t", Access { call, begin, end, memory, offset, length, pitch, rows, access }),
        structure!("ze_soft_interface_t", Interface { size, version, unfinished_from, observe_commands }),
        format!("_Static_assert(ZE_SOFT_INTERFACE_VERSION == {VERSION}, \"version\");\n"),
        format!("const void *symbol = &{};\n", SYMBOL.to_str().expect("text")),
    ];
    let compile = |text: &str| {
        fs::write(&source, text).expect("a file can be written");
        let flags = ["-std=c11", "-Wall", "-Werror", "-fsyntax-only", "-I", env!("CARGO_MANIFEST_DIR")];
        let output = Command::new("gcc").args(flags).arg(&source).output().expect("gcc starts");
        String::from_utf8(output.stderr).expect("text")
    };
    assert_eq!(compile(&text.concat()), "");
    let wrong = compile(&text.concat().replace("pitch) == ", "pitch) == 1"));
    assert!(wrong.contains("pitch"), "the check cannot fail: {wrong}");
}
