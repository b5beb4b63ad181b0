//! An adapter that urscope does not recognise is left alone, and the verdict says why nothing was seen.

use urscope_tests::{TestRun, apps};

#[test]
fn one_that_is_not_recognised_is_left_alone() {
    let folder = tempfile::tempdir().expect("no temporary folder");
    for (fault, reason) in [
        (1, "it uses Unified Runtime 0.13"),
        (2, "not in the writable data of a library"),
        (3, "its IPCExp table was not found in its dispatch table"),
        (4, "its IPCExp table is in its dispatch table more than once"),
    ] {
        let [loader, adapter] = ["loader", "libunknown.so"].map(|name| folder.path().join(name));
        let unknown = format!("-DUNKNOWN={fault}");
        apps::compile_with_headers("own_adapter.cpp", &loader, &["-DLOADER", &unknown]);
        apps::compile_with_headers(
            "own_adapter.cpp",
            &adapter,
            &["-DLIBRARY", "-shared", "-fPIC", "-Wl,-Bsymbolic", &unknown],
        );
        let outcome = TestRun::of_program(loader).arg(adapter).run();
        assert!(outcome.stdout.ends_with("done: 7\n"), "{}{}", outcome.stdout, outcome.stderr);
        assert_eq!(outcome.code, 2, "{}", outcome.stderr);
        let report = outcome.report();
        assert_eq!(report.verdict(), "not-judged");
        assert!(report.reason().is_some_and(|given| given.contains(reason)), "expected {reason:?}: {report:#?}");
        assert!(outcome.stderr.contains(reason), "expected {reason:?}: {}", outcome.stderr);
    }
}
