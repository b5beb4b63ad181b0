//! The Python package: programs of `python/tests` under the real runtime, through dpctl.

use std::{env, fs, path::PathBuf, process::Command, time::Duration};

use urscope_tests::{Adapter, Outcome, Release, TestRun, repository, runtime};

use crate::on_both_adapters;

fn folder() -> PathBuf {
    repository().join("python")
}

/// A run of one of the programs in `python/tests`, with the package of this checkout.
fn python(program: &str, adapter: Adapter) -> TestRun {
    TestRun::of_program(Release::R2026_2.python())
        .adapter(adapter)
        .env("PYTHONPATH", folder())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(folder().join("tests").join(program))
}

/// A program that uses `unittest` says at its end how many tests it ran.
fn assert_passed(outcome: &Outcome, tests: usize) {
    let passed = format!("\nRan {tests} test{} in ", if tests == 1 { "" } else { "s" });
    assert!(outcome.stderr.contains(&passed) && outcome.stderr.contains("\nOK\n"), "{}", outcome.stderr);
}

fn assert_finds(mistake: &str, adapter: Adapter, expected: &[&str]) {
    let outcome = python("mistakes.py", adapter).arg(mistake).run();
    assert!(!outcome.stderr.contains("Traceback"), "{}", outcome.stderr);
    assert_eq!(outcome.report().violations(), expected, "{}", outcome.stderr);
}

on_both_adapters! {
    /// In every way of starting a process in which the runtime survives.
    fn an_exchange_between_processes_is_clean(adapter) {
        let outcome = python("test_two_processes.py", adapter).run();
        assert_passed(&outcome, 6);
        let report = outcome.report();
        // The test of an end without clean-up opens its own memory, which is allowed.
        assert_eq!(report.violations(), ["note open-in-producer"], "{}", outcome.stderr);
        assert_eq!(outcome.code, 0);
        let [gets, puts, opens, closes] =
            ["urIPCGetMemHandleExp", "urIPCPutMemHandleExp", "urIPCOpenMemHandleExp", "urIPCCloseMemHandleExp"]
                .map(|call| report.calls(call));
        assert_eq!((gets, opens), (puts, closes));
        assert_eq!((gets, opens), (9, 14));
    }

    /// Types, errors, views, arrays, cycles and threads, and the C interface.
    fn handles_and_mappings_live_as_long_as_they_are_held(adapter) {
        let outcome = python("test_one_process.py", adapter).run();
        assert_passed(&outcome, 26);
        let report = outcome.report();
        assert_eq!(report.violations(), ["note open-in-producer"], "{}", outcome.stderr);
        assert!(report.calls("urIPCOpenMemHandleExp") > 800);
        // The runtime refuses one of the gets, that of a pointer to ordinary memory.
        assert_eq!(report.calls("urIPCGetMemHandleExp"), report.calls("urIPCPutMemHandleExp") + 1);
        assert_eq!(report.calls("urIPCOpenMemHandleExp"), report.calls("urIPCCloseMemHandleExp"));
    }

    /// 100,000 cycles of get, open, close and put.
    fn no_descriptor_and_no_byte_is_lost(adapter) {
        assert_passed(&python("test_cycles.py", adapter).untraced().run(), 1);
    }

    /// The bytes of another length reach the runtime; everything else is refused before.
    fn what_cannot_be_opened_is_an_exception(adapter) {
        let outcome = python("test_refusals.py", adapter).run();
        assert_passed(&outcome, 8);
        assert_eq!(
            outcome.report().violations(),
            ["error size-mismatch", "note leaked-handle", "note open-in-producer", "warning leaked-handle"],
            "{}",
            outcome.stderr
        );
    }

    /// The interpreter is as it is without urscope.
    fn nothing_changes_for_the_program(adapter) {
        for (program, tests) in [("test_two_processes.py", 6), ("test_one_process.py", 26), ("test_refusals.py", 8)] {
            assert_passed(&python(program, adapter).untraced().run(), tests);
        }
    }

    /// The worked example of docs/python.md, with a short stream.
    fn the_example_is_clean(adapter) {
        let ring = python("../examples/ring.py", adapter);
        let outcome = ring.arg("--arrays").arg("50").arg("--nbytes").arg("65536").arg("--slots").arg("3").run();
        let lines: Vec<&str> = outcome.stdout.lines().collect();
        assert_eq!(lines.len(), 2, "{}", outcome.stderr);
        for (line, way) in lines.iter().zip(["through a ring of device memory: ", "through host memory: "]) {
            assert!(line.starts_with(way) && line.contains("50 arrays of 65536 bytes in "), "{line}");
        }
        assert_eq!(outcome.report().violations(), [] as [&str; 0], "{}", outcome.stderr);
        assert_eq!(outcome.report().calls("urIPCOpenMemHandleExp"), 3);
    }

    /// A handle that goes out of scope too early.
    fn a_handle_that_is_put_before_the_consumer_opens_it(adapter) {
        assert_finds("use-after-put", adapter, &["warning use-after-put"]);
    }

    /// Memory that nobody refers to any more in the producer.
    fn memory_that_goes_while_the_consumer_has_it_open(adapter) {
        assert_finds("freed-while-open", adapter, &["error freed-while-open"]);
    }

    /// v1 returns success and no memory, which is an exception in Python, too.
    fn memory_that_is_opened_after_its_end(adapter) {
        let also: &[_] = if adapter == Adapter::V1 { &["error success-without-result"] } else { &[] };
        assert_finds("use-after-free", adapter, &[also, &["error use-after-free"]].concat());
    }

    /// `os._exit` runs no finalizer.
    fn a_process_that_ends_without_its_finalizers(adapter) {
        assert_finds("leaked-mapping", adapter, &["warning leaked-mapping"]);
        assert_finds("leaked-handle", adapter, &["warning leaked-handle"]);
    }

    /// Bytes that were cut short on their way.
    fn bytes_that_are_cut_short(adapter) {
        assert_finds("size-mismatch", adapter, &["error size-mismatch"]);
    }
}

/// The tools of the package's tests, as `scripts/setup` names them.
const PYTEST: &str = "pytest-9.2.0";

/// Where the packages of an environment are.
fn packages(python: &std::path::Path) -> PathBuf {
    let library = python.parent().and_then(|bin| bin.parent()).expect("an environment's folder").join("lib");
    let versions = fs::read_dir(&library).expect("an environment has a lib");
    let names = versions.map(|entry| entry.expect("a folder can be listed").path());
    let found: Vec<PathBuf> = names.map(|version| version.join("site-packages")).filter(|path| path.is_dir()).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found.into_iter().next().expect("there is one")
}

/// `python -m urscope`, `urscope.check`, and pytest with a process under urscope for each test.
#[test]
fn the_command_is_used_from_python() {
    let paths = env::join_paths([folder(), packages(&runtime::python_with(PYTEST))]).expect("paths without colons");
    let run = python("test_tools.py", Adapter::V2).untraced().env("PYTHONPATH", paths);
    assert_passed(&run.limit(Duration::from_mins(5)).run(), 5);
}

#[test]
fn the_types_of_the_package_are_consistent() {
    let cache = tempfile::tempdir().expect("a temporary folder");
    let output = Command::new(runtime::python_with(PYTEST))
        .args(["-m", "mypy", "--cache-dir"])
        .arg(cache.path())
        .current_dir(folder())
        .output()
        .expect("mypy starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.starts_with("Success: no issues found in "), "{said}");
}
