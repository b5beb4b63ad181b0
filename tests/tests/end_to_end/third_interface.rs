//! An interface is a folder and its lines in the list of interfaces: a third one is added to a copy of the sources, whose
//! calls are then recorded, and judged by the rules, without any other change.

use std::path::{Path, PathBuf};
use std::{fs, process::Command};

use urscope_tests::repository;

/// The list of interfaces.
const LIST: &str = "schema/src/api/mod.rs";

/// The crates that are copied.
const CRATES: [&str; 3] = ["schema", "rules", "shim"];

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else if !entry.path().ends_with(LIST) {
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

/// The copied sources with the third interface, and the lines that were changed for it.
fn sources() -> PathBuf {
    let (repository, copies) = (repository(), repository().join("target/third-interface"));
    for name in CRATES {
        copy(&repository.join(name).join("src"), &copies.join(name).join("src"));
        let manifest = fs::read(repository.join(name).join("Cargo.toml")).unwrap();
        write(&copies.join(name).join("Cargo.toml"), &manifest);
    }
    copy(&repository.join("tests/third_interface/interface"), &copies.join("schema/src/api/third"));
    copy(&repository.join("tests/third_interface/program"), &copies.join("program"));
    let workspace = fs::read_to_string(repository.join("Cargo.toml")).unwrap();
    let (_, rest) = workspace.split_once("\n\n").unwrap();
    let members = "[workspace]\nresolver = \"3\"\nmembers = [\"schema\", \"rules\", \"shim\", \"program\"]\n\n";
    // The profiles of the workspace optimize what many tests run. Nobody looks at this program with a debugger.
    let profile = "[profile.dev]\ndebug = false\n";
    let (rest, profiles) = rest.split_once("\n[profile.").unwrap();
    let (_, lints) = profiles.split_once("\n[workspace.lints.").unwrap();
    write(&copies.join("Cargo.toml"), format!("{members}{profile}{rest}\n[workspace.lints.{lints}").as_bytes());
    fs::copy(repository.join("Cargo.lock"), copies.join("Cargo.lock")).unwrap();
    let mut text = fs::read_to_string(repository.join(LIST)).unwrap();
    for (before, after) in [
        ("#[macro_use]\npub mod level_zero;\n", "#[macro_use]\npub mod level_zero;\n#[macro_use]\npub mod third;\n"),
        ("@rows [ze_functions]", "@rows [ze_functions] @rows [third_functions]"),
        ("@rows [ze_tables]", "@rows [ze_tables] @rows [third_tables]"),
    ] {
        assert_eq!(text.matches(before).count(), 1, "{before}");
        text = text.replace(before, after);
    }
    write(&copies.join(LIST), text.as_bytes());
    copies
}

#[test]
fn a_third_interface_is_a_folder_and_its_lines_in_the_list() {
    let copies = sources();
    let built = Command::new("cargo")
        .args(["build", "--quiet", "--offline", "--package", "third-interface"])
        .current_dir(&copies)
        .env("CARGO_TARGET_DIR", repository().join("target/third-interface/target"))
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let program = copies.join("target/debug/third-interface");
    let place = tempfile::tempdir().unwrap();
    let (traces, handle) = (place.path().join("traces"), place.path().join("handle"));
    let run = |mode: &str| {
        let output = Command::new(&program)
            .arg(mode)
            .arg(&handle)
            .envs([("URSCOPE_DIR", traces.as_path()), ("URSCOPE_VALIDATE", Path::new("off"))])
            .output()
            .unwrap();
        assert!(output.status.success(), "{mode}: {}", String::from_utf8_lossy(&output.stderr));
    };
    run("export");
    run("open");
    let written = fs::read_dir(&traces).unwrap().map(|entry| entry.unwrap().path());
    let judged = Command::new(&program).arg("judge").args(written).output().unwrap();
    let found = String::from_utf8(judged.stdout).unwrap();
    assert!(judged.status.success(), "{}", String::from_utf8_lossy(&judged.stderr));
    let codes: Vec<&str> = found.lines().map(|line| line.split_once(':').unwrap().0).collect();
    assert_eq!(codes, ["error double-close", "note garbage-handle"], "{found}");
    assert!(found.contains("(thirdClose,") && found.contains("THIRD_UNKNOWN_HANDLE (1)"), "{found}");
}
