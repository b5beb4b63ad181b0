//! An adapter that urscope does not recognise is left alone, and the verdict says why nothing was seen.

use std::path::{Path, PathBuf};
use std::process::Command;

use urscope_tests::{TestRun, apps};

fn compile(to: PathBuf, flags: &[&str]) -> PathBuf {
    let source = apps::source("unknown_adapter.cpp");
    let mut compiler = Command::new("g++");
    compiler.args(["-std=c++17", "-Wall", "-Wextra"]).args(flags).arg(source).arg("-o").arg(&to);
    let status = compiler.status().expect("g++ cannot be started; install it with: apt-get install g++");
    assert!(status.success(), "unknown_adapter.cpp does not compile with {flags:?}");
    to
}

fn assert_left_alone(folder: &Path, fault: u32, reason: &str) {
    let loader = compile(folder.join("loader"), &[]);
    let define = format!("-DUNKNOWN={fault}");
    let adapter = compile(folder.join("libunknown.so"), &["-shared", "-fPIC", &define]);
    let outcome = TestRun::of_program(loader).arg(adapter).run();
    assert_eq!(outcome.stdout, "result 0, 16 bytes\n", "{}", outcome.stderr);
    assert_eq!(outcome.code, 2, "{}", outcome.stderr);
    let report = outcome.report();
    assert_eq!(report.verdict(), "not-judged");
    assert!(report.reason().is_some_and(|given| given.contains(reason)), "expected {reason:?}: {report:#?}");
    assert!(outcome.stderr.contains(reason), "expected {reason:?}: {}", outcome.stderr);
}

#[test]
fn one_that_is_not_recognised_is_left_alone() {
    for (fault, reason) in [
        (1, "it uses Unified Runtime 0.13"),
        (2, "not in the writable data of a library"),
        (3, "its IPCExp table was not found in its dispatch table"),
        (4, "its IPCExp table is in its dispatch table more than once"),
    ] {
        assert_left_alone(tempfile::tempdir().expect("no temporary folder").path(), fault, reason);
    }
}
