//! `urscope doctor` recognises each release.

use std::{fs, os::unix::fs::symlink};

use urscope_tests::{Adapter, Release, TestRun, apps, run::urscope};

fn the_runtime_is_found(release: Release, entry_points: &str) {
    let folder = release.folder();
    let runtime = folder.to_str().expect("a path in UTF-8");
    let ended = urscope(&["doctor", "--device", "software", "--runtime", runtime]);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    let adapter = "libur_adapter_level_zero_v2.so.0: Unified Runtime 0.12";
    let expected = [release.version(), entry_points, adapter, "pidfd_getfd"];
    for word in expected {
        assert!(ended.stdout.contains(word), "nothing about {word}:\n{}", ended.stdout);
    }
}

#[test]
fn the_runtime_2026_2_is_found() {
    the_runtime_is_found(Release::R2026_2, "urIPC entry points: 11");
}

#[test]
fn the_runtime_2026_1_is_found() {
    the_runtime_is_found(Release::R2026_1, "urIPC entry points: 4");
}

#[test]
fn the_runtime_2026_0_is_found() {
    the_runtime_is_found(Release::R2026_0, "urIPC entry points: 4");
}

#[test]
fn a_machine_without_a_runtime_gets_advice() {
    let ended = urscope(&["doctor", "--runtime", "/nowhere"]);
    assert_eq!(ended.code, 1, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("-> "), "{}", ended.stdout);
}

/// An adapter whose file is there, but not a library that it needs.
#[test]
fn an_adapter_that_cannot_be_loaded_is_a_problem() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for entry in fs::read_dir(Release::R2026_2.folder().join("lib")).expect("the runtime has libraries") {
        let entry = entry.expect("a folder can be listed");
        if entry.file_name() != "libsvml.so" {
            symlink(entry.path(), folder.path().join(entry.file_name())).expect("a link to a library");
        }
    }
    let runtime = folder.path().to_str().expect("a path in UTF-8");
    let ended = urscope(&["doctor", "--device", "software", "--runtime", runtime]);
    assert_eq!(ended.code, 1, "{}{}", ended.stdout, ended.stderr);
    let problem = ended.stdout.lines().find(|line| line.starts_with("problem  adapter")).unwrap_or_default();
    for word in ["libur_adapter_level_zero.so.0 cannot be loaded: ", "libsvml.so: cannot open shared object file"] {
        assert!(problem.contains(word), "nothing about {word}:\n{}", ended.stdout);
    }
}

/// The program names its runtime itself, so no option and no variable is needed.
#[test]
fn a_program_is_examined_without_being_run() {
    let program = apps::executable("clean", Release::R2026_1);
    let ended = urscope(&["doctor", "--device", "software", "--", program.to_str().expect("a path in UTF-8")]);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    for word in ["urscope can be loaded into it", "functions, files and lines", "2026.1.2", "(from the program)"] {
        assert!(ended.stdout.contains(word), "nothing about {word}:\n{}", ended.stdout);
    }
    assert!(!ended.stdout.contains("producer wrote"), "{}", ended.stdout);
}

/// The figures are those of the calls in the traces.
#[test]
fn calls_are_added_up_by_what_made_them() {
    let outcome = TestRun::new("clean", Release::R2026_2, Adapter::V2).run();
    let folder = outcome.trace_folder();
    let answer = |by: &str| {
        let ended = urscope(&["stats", "--by", by, "--format", "json", folder.to_str().expect("a path in UTF-8")]);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        serde_json::from_str::<serde_json::Value>(&ended.stdout).expect("an answer is JSON")
    };
    let recorded: usize = outcome.traces().iter().map(|trace| trace.calls("B").count()).sum();
    for (by, name) in [("site", "clean.cpp:"), ("process", "clean (pid"), ("rank", "no rank")] {
        let parts = answer(by);
        let sum: u64 = parts["parts"].as_array().expect("parts").iter().filter_map(|part| part["calls"].as_u64()).sum();
        assert_eq!((sum, parts["total"]["calls"].as_u64()), (recorded as u64, Some(recorded as u64)), "{parts:#}");
        assert_eq!(parts["total"]["ipc_calls"], 4, "{parts:#}");
        let mut names = parts["parts"].as_array().expect("parts").iter().filter_map(|part| part["name"].as_str());
        assert!(names.any(|text| text.contains(name)), "{parts:#}");
    }
}
