//! An interface is a folder in two crates and its lines in three lists: HIP is added to a copy of the sources, whose
//! calls are then recorded, and judged by the rules, without any other change. A library of ours stands for AMD's.

use std::path::{Path, PathBuf};
use std::{env, fs, process::Command};

use urscope_tests::repository;

/// The crates that are copied.
const CRATES: [&str; 5] = ["schema", "rules", "device/interface", "shim", "shim/preload"];

/// Where the interfaces are listed, and the lines that add another one: those of the table, those of the shim, and the
/// exported symbols, which not every interface has.
const LISTS: [(&str, &[(&str, &str)]); 3] = [
    (
        "schema/src/api/mod.rs",
        &[
            ("#[macro_use]\npub mod cuda;\n", "#[macro_use]\npub mod cuda;\n#[macro_use]\npub mod hip;\n"),
            ("@rows [cu_functions]", "@rows [cu_functions] @rows [hip_functions]"),
            ("@rows [cu_tables]", "@rows [cu_tables] @rows [hip_tables]"),
            ("pub use super::cuda::roles::*;", "pub use super::cuda::roles::*;\n    pub use super::hip::roles::*;"),
        ],
    ),
    (
        "shim/src/interface/mod.rs",
        &[
            ("pub mod cuda;\n", "pub mod cuda;\nmod hip;\n"),
            ("COUNT: usize = 3;", "COUNT: usize = 4;"),
            ("&cuda::Cuda];", "&cuda::Cuda, &hip::Hip];"),
            ("PREFIXES: [&[u8]; 3] = [", "PREFIXES: [&[u8]; 4] = [b\"hip\", "),
        ],
    ),
    (
        "shim/preload/src/lib.rs",
        &[
            ("use urscope_schema::{cu_functions, ur_functions};", "use urscope_schema::*;"),
            ("cu_functions!(exports);", "cu_functions!(exports);\nhip_functions!(exports);"),
        ],
    ),
];

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else if !LISTS.iter().any(|(list, _)| entry.path().ends_with(list)) {
            write(&target, &fs::read(entry.path()).unwrap());
        }
    }
}

/// Writes a file, unless it has this content: then it is not compiled again.
fn write(path: &Path, content: &[u8]) {
    if fs::read(path).ok().as_deref() != Some(content) {
        fs::write(path, content).unwrap();
    }
}

/// The copied sources with the fourth interface, and the lines that were changed for it.
fn sources() -> PathBuf {
    let copies = repository().join("target/fourth-interface");
    let repository = repository();
    let ours = repository.join("tests/fourth_interface");
    for name in CRATES {
        copy(&repository.join(name).join("src"), &copies.join(name).join("src"));
        let manifest = fs::read(repository.join(name).join("Cargo.toml")).unwrap();
        write(&copies.join(name).join("Cargo.toml"), &manifest);
    }
    write(&copies.join("shim/preload/build.rs"), &fs::read(repository.join("shim/preload/build.rs")).unwrap());
    copy(&ours.join("schema"), &copies.join("schema/src/api/hip"));
    copy(&ours.join("shim"), &copies.join("shim/src/interface/hip"));
    copy(&ours.join("judge"), &copies.join("judge"));
    let workspace = fs::read_to_string(repository.join("Cargo.toml")).unwrap();
    let (_, rest) = workspace.split_once("\n\n").unwrap();
    let members = format!(
        "[workspace]\nresolver = \"3\"\nmembers = [{}]\n\n",
        [&CRATES[..], &["judge"]].concat().iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
    );
    // The profiles of the workspace optimize what many tests run. Nobody looks at this program with a debugger.
    let profile = "[profile.dev]\ndebug = false\n";
    let (rest, profiles) = rest.split_once("\n[profile.").unwrap();
    let (_, lints) = profiles.split_once("\n[workspace.lints.").unwrap();
    write(&copies.join("Cargo.toml"), format!("{members}{profile}{rest}\n[workspace.lints.{lints}").as_bytes());
    fs::copy(repository.join("Cargo.lock"), copies.join("Cargo.lock")).unwrap();
    for (list, changes) in LISTS {
        let mut text = fs::read_to_string(repository.join(list)).unwrap();
        for (before, after) in changes {
            assert_eq!(text.matches(before).count(), 1, "{before}");
            text = text.replace(before, after);
        }
        write(&copies.join(list), text.as_bytes());
    }
    copies
}

/// Runs a command, which must succeed; returns what it prints.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_fourth_interface_is_a_folder_in_two_crates_and_its_lines_in_the_lists() {
    let copies = sources();
    let target = repository().join("target/fourth-interface/target");
    run(Command::new("cargo")
        .args(["build", "--quiet", "--offline", "--package", "fourth-interface", "--package", "urscope-preload"])
        .current_dir(&copies)
        .env("CARGO_TARGET_DIR", &target));
    let place = tempfile::tempdir().unwrap();
    let ours = repository().join("tests/fourth_interface");
    let at = |name: &str| place.path().join(name);
    let compiler = || Command::new(env::var_os("CC").unwrap_or("cc".into()));
    let library = at("libamdhip64.so.7");
    let program = at("program");
    run(compiler().args(["-shared", "-fPIC", "-o"]).args([&library, &ours.join("library.c")]));
    run(compiler().arg("-o").args([&program, &ours.join("program.c"), &library]).arg("-ldl"));
    for way in ["linked", "looked up"] {
        let traces = at(way);
        let handle = at("handle");
        for mode in ["export", "open"] {
            run(Command::new(&program)
                .args([Path::new(mode), &handle])
                .args(Some(&library).filter(|_| way == "looked up"))
                .env("LD_LIBRARY_PATH", place.path())
                .env("LD_PRELOAD", target.join("debug/liburscope.so"))
                .envs([("URSCOPE_DIR", traces.as_path()), ("URSCOPE_VALIDATE", Path::new("off"))]));
        }
        let written = fs::read_dir(&traces).unwrap().map(|entry| entry.unwrap().path());
        let found = run(Command::new(target.join("debug/fourth-interface")).args(written));
        let codes: Vec<&str> = found.lines().map(|line| line.split_once(':').unwrap().0).collect();
        assert_eq!(
            codes,
            ["launch", "error use-after-close", "error double-close", "error altered-handle"],
            "{way}: {found}"
        );
        assert!(found.contains("(hipIpcCloseMemHandle,") && found.contains("hipErrorInvalidHandle (400)"), "{found}");
    }
}
