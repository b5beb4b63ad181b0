//! An adapter that urscope does not recognise is left alone, and the verdict says why nothing was seen.

use std::path::Path;

use urscope_tests::{Outcome, TestRun, apps};

/// Runs a program with an adapter that has something unknown.
fn run_with(folder: &Path, unknown: u32) -> Outcome {
    let [loader, adapter] = ["loader", "libunknown.so"].map(|name| folder.join(name));
    let unknown = format!("-DUNKNOWN={unknown}");
    apps::compile_with_headers("own_adapter.cpp", &loader, &["-DLOADER", &unknown]);
    let library = ["-DLIBRARY", "-shared", "-fPIC", "-Wl,-Bsymbolic", &unknown];
    apps::compile_with_headers("own_adapter.cpp", &adapter, &library);
    let outcome = TestRun::of_program(loader).arg(adapter).run();
    assert!(outcome.stdout.ends_with("done: 7\n"), "{}{}", outcome.stdout, outcome.stderr);
    outcome
}

#[test]
fn one_that_is_not_recognised_is_left_alone() {
    let folder = tempfile::tempdir().expect("no temporary folder");
    for (fault, reason) in [
        (1, "it uses Unified Runtime 0.13"),
        (2, "not in the writable data of a library"),
        (3, "its IPCExp table was not found in its dispatch table"),
        (4, "its IPCExp table is in its dispatch table more than once"),
        (5, "it uses Unified Runtime 0.13"),
        (7, "its table of IPC functions is longer than that of any known release"),
        (8, "it uses Unified Runtime 0.13"),
    ] {
        let outcome = run_with(folder.path(), fault);
        assert_eq!(outcome.code, 2, "{}", outcome.stderr);
        let report = outcome.report();
        assert_eq!(report.verdict(), "not-judged");
        assert!(report.reason().is_some_and(|given| given.contains(reason)), "expected {reason:?}: {report:#?}");
        assert!(outcome.stderr.contains(reason), "expected {reason:?}: {}", outcome.stderr);
    }
}

/// Its functions are found by what they are, wherever they stand in the table.
#[test]
fn one_whose_table_has_grown_is_traced() {
    let folder = tempfile::tempdir().expect("no temporary folder");
    let outcome = run_with(folder.path(), 6);
    let report = outcome.report();
    assert_eq!((outcome.code, report.verdict()), (0, "clean"), "{}{report:#?}", outcome.stderr);
    let calls = report.calls("urIPCOpenMemHandleExp");
    assert_eq!(calls, 1, "{report:#?}");
}
