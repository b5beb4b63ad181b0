//! The cargo feature `frida-gum`: adapters that no table reaches, and processes that urscope comes into while they run.
//! `scripts/with-gum` runs these tests.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "this is test code: a panic is how it reports"
)]

use std::path::{Path, PathBuf};
use std::{env, process::Command};

use urscope_tests::{Adapter, Outcome, Release, Report, TestRun, apps, run, trace};

/// The library that was built with the feature.
fn library() -> PathBuf {
    let named = env::var_os("URSCOPE_GUM_LIBRARY").expect("URSCOPE_GUM_LIBRARY names no library: run scripts/with-gum");
    PathBuf::from(named)
}

/// The program with its adapter linked in, compiled with `flags`.
fn linked(folder: &Path, flags: &[&str]) -> PathBuf {
    let program = folder.join("linked");
    apps::compile_with_headers("own_adapter.cpp", &program, &[&["-DLINKED", "-O2", "-Wl,--build-id"], flags].concat());
    program
}

fn traced(test_run: TestRun) -> Outcome {
    test_run.env("URSCOPE_LIBRARY", library()).run()
}

/// The entry points of the only trace: their kinds and libraries.
fn entry_points(outcome: &Outcome) -> Vec<(String, String)> {
    let [trace] = &outcome.traces()[..] else { panic!("one trace is expected: {}", outcome.stderr) };
    let records = trace.records.iter().filter(|record| record["name"] == "urscope_entry_point");
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    records.map(|record| (text(&record["args"]["kind"]), text(&record["args"]["library"]))).collect()
}

fn assert_seen_once(outcome: &Outcome, library: &str) {
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let traces = outcome.traces();
    for call in apps::CALLS_OF_OWN_ADAPTER {
        let seen = ["B", "E"].map(|phase| trace::count(&traces, phase, call));
        assert_eq!(seen, [1, 1], "{call}: {}", outcome.stderr);
    }
    assert_eq!(trace::count(&traces, "B", "urDeviceGetInfo"), 0, "it is a part of the allocation");
    assert_eq!(entry_points(outcome), [("inline".to_owned(), library.to_owned())]);
    assert_eq!(outcome.report().verdict(), "clean", "{:#?}", outcome.report());
}

#[test]
fn an_adapter_that_is_linked_in_is_watched_in_its_code() {
    let folder = tempfile::tempdir().expect("no temporary folder");
    for (flags, name) in [(&[][..], "linked"), (&["-DNAMESPACE"], "linked (ur::own)")] {
        let program = linked(folder.path(), flags);
        let bare = TestRun::of_program(&program).untraced().run();
        let outcome = traced(TestRun::of_program(&program));
        assert_eq!(bare.stdout, outcome.stdout, "{}", outcome.stderr);
        assert_seen_once(&outcome, name);
    }
}

/// XPTI shows the calls of the adapter whose code was changed, too.
#[test]
fn an_adapter_that_xpti_shows_is_not_watched_twice() {
    let folder = tempfile::tempdir().expect("no temporary folder");
    let libraries = Release::R2026_2.folder().join("lib");
    let search = format!("-L{}", libraries.display());
    let find = format!("-Wl,-rpath,{}", libraries.display());
    let program = linked(folder.path(), &["-DSHOWN", "-Wl,--no-as-needed", &search, &find, "-lxptifw"]);
    let shown = || {
        let test_run = TestRun::of_program(&program).env("XPTI_TRACE_ENABLE", "1").env("XPTI_SUBSCRIBERS", library());
        test_run.env("XPTI_FRAMEWORK_DISPATCHER", libraries.join("libxptifw.so"))
    };
    assert_seen_once(&traced(shown()), "linked");
    let outcome = traced(shown().env("URSCOPE_ENTRY", "xpti"));
    assert_eq!(entry_points(&outcome), [("xpti".to_owned(), "linked".to_owned())], "{}", outcome.stderr);
    for call in apps::CALLS_OF_OWN_ADAPTER {
        assert_eq!(trace::count(&outcome.traces(), "E", call), 1, "{call}: {}", outcome.stderr);
    }
}

/// What a tool of the binutils does to a program.
fn tool(name: &str, arguments: &[&str], program: &Path) {
    let status = Command::new(name).args(arguments).arg(program).current_dir(program.parent().unwrap()).status();
    assert!(status.expect("the binutils are missing; install them with: apt-get install binutils").success(), "{name}");
}

#[test]
fn a_separate_debug_file_names_what_was_stripped() {
    let folder = tempfile::tempdir().expect("no temporary folder");
    let program = linked(folder.path(), &["-g1"]);
    let debug = folder.path().join("linked.debug");
    let copied = Command::new("objcopy").arg("--only-keep-debug").arg(&program).arg(&debug).status();
    assert!(copied.expect("objcopy starts").success());
    tool("strip", &[], &program);
    let outcome = traced(TestRun::of_program(&program));
    assert_eq!((outcome.report().verdict(), outcome.traces().len()), ("not-judged", 0), "nothing names its functions");
    tool("objcopy", &["--add-gnu-debuglink=linked.debug"], &program);
    assert_seen_once(&traced(TestRun::of_program(&program)), "linked");

    // The file of another build would name other places.
    let other = tempfile::tempdir().expect("no temporary folder");
    let other = linked(other.path(), &["-g1", "-O1"]);
    let copied = Command::new("objcopy").arg("--only-keep-debug").arg(&other).arg(&debug).status();
    assert!(copied.expect("objcopy starts").success());
    let outcome = traced(TestRun::of_program(&program));
    assert_eq!((outcome.code, outcome.traces().len()), (2, 0), "{}", outcome.stderr);
}

#[test]
fn a_violation_is_found_and_refused_there_too() {
    let folder = tempfile::tempdir().expect("no temporary folder");
    let program = linked(folder.path(), &[]);
    let twice = || TestRun::of_program(&program).arg("twice");
    let reported = traced(twice());
    assert_eq!(reported.code, 1, "{}", reported.stderr);
    assert!(reported.stdout.ends_with("put: 0\nput: 0\nfree: 0\ndone: 8\n"), "{}", reported.stdout);
    let expected = ["error double-put", "note open-in-producer"];
    assert_eq!(reported.report().violations(), expected, "{:#?}", reported.report());
    // The adapter is not called again.
    let refused = traced(twice().env("URSCOPE_ON_ERROR", "refuse").env("URSCOPE_VALIDATE", "on"));
    assert!(refused.stdout.ends_with("done: 7\n") && !refused.stdout.contains("put: 0\nput: 0"), "{}", refused.stdout);
}

#[test]
fn an_exception_of_the_adapter_reaches_its_loader() {
    let folder = tempfile::tempdir().expect("no temporary folder");
    let outcome = traced(TestRun::of_program(linked(folder.path(), &[])).arg("throw"));
    assert!(
        outcome.stdout.contains("alloc: 0\nthrown\nget: 0\n") && outcome.stdout.ends_with("done: 7\n"),
        "{}",
        outcome.stdout
    );
    let returned = outcome.traces()[0].calls("E").filter(|record| record["name"] == "urIPCGetMemHandleExp").count();
    assert_eq!(returned, 2, "{}", outcome.stderr);
}

/// The loader asks for the tables; the code of the same library is left as it is.
#[test]
fn an_adapter_whose_tables_are_asked_for_is_not_watched_twice() {
    let folder = tempfile::tempdir().expect("no temporary folder");
    let program = folder.path().join("loader");
    let adapter = folder.path().join("libown.so");
    apps::compile_with_headers("own_adapter.cpp", &program, &["-DLOADER", "-O2"]);
    apps::compile_with_headers("own_adapter.cpp", &adapter, &["-DLIBRARY", "-O2", "-shared", "-fPIC"]);
    let outcome = traced(TestRun::of_program(&program).arg(&adapter).arg("once"));
    let entry_points = entry_points(&outcome);
    assert_eq!(entry_points, [("adapter-table".to_owned(), "libown.so".to_owned())]);
    for call in apps::CALLS_OF_OWN_ADAPTER {
        assert_eq!(trace::count(&outcome.traces(), "B", call), 1, "{call}: {}", outcome.stderr);
    }
    for adapter in [Adapter::V1, Adapter::V2] {
        let outcome = traced(TestRun::new("clean", Release::R2026_2, adapter));
        assert_eq!(outcome.report().verdict(), "clean", "{}", outcome.stderr);
        assert_eq!(trace::count(&outcome.traces(), "B", "urIPCGetMemHandleExp"), 1);
    }
}

/// A run without urscope, into which the library comes; and the report about its traces.
fn late(adapter: Adapter, last: &str) -> (Outcome, Report) {
    let traces = tempfile::tempdir().expect("no temporary folder");
    let outcome = TestRun::new("comes_late", Release::R2026_2, adapter)
        .arg(library())
        .arg(last)
        .untraced()
        .env("URSCOPE_DIR", traces.path())
        .run();
    let checked = run::urscope(&["check", "--format", "json", traces.path().to_str().expect("text")]);
    (outcome, Report::parse(&checked.stdout))
}

#[test]
fn a_library_that_comes_late_watches_at_once() {
    for adapter in [Adapter::V1, Adapter::V2] {
        let (outcome, report) = late(adapter, "once");
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        // The first handle was made before: its put is seen, and no mistake.
        assert_eq!([report.calls("urIPCGetMemHandleExp"), report.calls("urIPCPutMemHandleExp")], [1, 2], "{report:#?}");
        assert_eq!((report.violations(), report.verdict()), (Vec::new(), "partly-judged"), "{report:#?}");
        let reason = report.reason().unwrap_or_default();
        assert!(reason.contains("urscope came into comes_late") && reason.contains("while it ran"), "{reason}");
        assert_eq!(report.processes()[0]["late"], true);

        let (outcome, report) = late(adapter, "twice");
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        assert_eq!(
            (report.violations(), report.verdict()),
            (vec!["error double-put".to_owned()], "findings"),
            "{report:#?}"
        );
    }
}
