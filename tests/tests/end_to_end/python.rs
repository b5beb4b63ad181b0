//! The Python package: programs of `python/tests` under the real runtime, through dpctl.

use std::path::{Path, PathBuf};
use std::{collections::BTreeMap, env, fs, process::Command, time::Duration};

use serde_json::Value;
use urscope_tests::{Adapter, Outcome, Release, TestRun, repository, run, runtime};

use crate::on_both_adapters;

fn folder() -> PathBuf {
    repository().join("python")
}

/// A run of one of the programs in `python/tests`, with the package of this checkout.
fn python(program: &str, adapter: Adapter) -> TestRun {
    python_by(Release::R2026_2.python(), program, adapter)
}

fn python_by(interpreter: PathBuf, program: &str, adapter: Adapter) -> TestRun {
    TestRun::of_program(interpreter)
        .adapter(adapter)
        .env("PYTHONPATH", folder())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(folder().join("tests").join(program))
}

/// dpctl's last release for the runtime 2025.3, as `scripts/setup` names it.
const OLDER_DPCTL: &str = "dpctl-0.21.1";

/// The same with the runtime 2025.3, which has no functions of its own for this.
fn python_on_2025_3(program: &str, adapter: Adapter) -> TestRun {
    python_by(runtime::python_with(OLDER_DPCTL), program, adapter)
        .env("LD_LIBRARY_PATH", Release::R2025_3.folder().join("lib"))
}

/// A program that uses `unittest` says at its end how many tests it ran.
fn assert_passed(outcome: &Outcome, tests: usize) {
    let passed = format!("\nRan {tests} test{} in ", if tests == 1 { "" } else { "s" });
    assert!(outcome.stderr.contains(&passed) && outcome.stderr.contains("\nOK\n"), "{}", outcome.stderr);
}

/// The frames of the programs in a place of a report, innermost first.
fn own_frames(side: &Value) -> impl Iterator<Item = &Value> {
    let frames = side["stack"].as_array().map_or(&[][..], Vec::as_slice);
    let tests = folder().join("tests");
    frames.iter().filter(move |frame| {
        let file = frame["file"].as_str().map(Path::new);
        file.is_some_and(|file| file.starts_with(&tests) || file.starts_with("/generated"))
    })
}

/// The source line of the innermost of them, without the space around it.
fn line(side: &Value) -> String {
    let frame = own_frames(side).next().unwrap_or_else(|| panic!("no frame of the program: {side:#}"));
    let number = frame["line"].as_u64().unwrap_or_else(|| panic!("no line: {frame:#}"));
    let source = frame["file"].as_str().map(fs::read_to_string).expect("a file").expect("it is there");
    source.lines().nth(number as usize - 1).expect("it has that line").trim().to_owned()
}

/// The program has these findings, and the one with the rule's name is at that line of Python, and with the other side
/// at that one.
fn assert_finds(rule: &str, adapter: Adapter, expected: &[&str], here: &str, there: Option<&str>) {
    assert_mistake(rule, rule, adapter, expected, (here, there));
}

/// The same for a mistake that has another name than the rule.
fn assert_mistake(mistake: &str, rule: &str, adapter: Adapter, expected: &[&str], (here, there): (&str, Option<&str>)) {
    let validations: &[&str] = if adapter == Adapter::V2 { &["on", "off"] } else { &["on"] };
    for validation in validations {
        let outcome = python("mistakes.py", adapter).env("URSCOPE_VALIDATE", *validation).arg(mistake).run();
        assert!(!outcome.stderr.contains("Traceback"), "{}", outcome.stderr);
        let report = outcome.report();
        assert_eq!(report.violations(), expected, "{}", outcome.stderr);
        let finding = report.finding(rule);
        assert_eq!(line(&finding["process"]), here, "{}", outcome.stderr);
        if let Some(there) = there {
            assert_eq!(line(&finding["other"]), there, "{}", outcome.stderr);
        }
    }
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
        assert_eq!(report.violations(), ["note open-in-producer", "note refused-call"], "{}", outcome.stderr);
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

    /// All of this over urscope's own backend, without and with urscope in the processes; two processes on v1, and the
    /// rest on v2.
    fn the_runtime_2025_3_shares_memory_too(adapter) {
        let all = [
            ("test_two_processes.py", 6, &["note open-in-producer"][..]),
            ("test_one_process.py", 26, &["note open-in-producer", "note refused-call"]),
            (
                "test_refusals.py",
                8,
                // Bytes of another size, and garbage, are refused by our backend and not before.
                &[
                    "error altered-handle",
                    "error size-mismatch",
                    "note garbage-handle",
                    "note leaked-handle",
                    "note open-in-producer",
                    "warning leaked-handle",
                ],
            ),
        ];
        let (first, others) = all.split_at(1);
        for (program, tests, expected) in if adapter == Adapter::V1 { first } else { others } {
            let program = *program;
            let tests = *tests;
            assert_passed(&python_on_2025_3(program, adapter).untraced().run(), tests);
            let outcome = python_on_2025_3(program, adapter).run();
            assert_passed(&outcome, tests);
            let report = outcome.report();
            assert_eq!(report.violations(), *expected, "{}", outcome.stderr);
            assert!(report.calls("urIPCGetMemHandleExp") >= 9, "{}", outcome.stderr);
        }
        assert_passed(&python_on_2025_3("test_cycles.py", adapter).untraced().run(), 1);
        // Only this dpctl has arrays.
        assert_passed(&python_on_2025_3("test_arrays.py", adapter).run(), 3);
        let outcome = python_on_2025_3("mistakes.py", adapter).arg("use-after-put").run();
        let report = outcome.report();
        assert_eq!(report.violations(), ["error use-after-put"], "{}", outcome.stderr);
        let finding = report.finding("use-after-put");
        assert_eq!(line(&finding["process"]), "pipe.recv().map().close()");
        assert_eq!(line(&finding["other"]), "handle.close()");
    }

    /// By its UUID. Bytes alone do not tell the device: a peer opens them, as a note of urscope says, and a device that
    /// is none refuses.
    fn memory_is_opened_on_the_device_that_it_is_on(adapter) {
        let outcome = python("test_devices.py", adapter).env("ZE_SOFT_DEVICES", "2").run();
        assert_passed(&outcome, 6);
        let report = outcome.report();
        // One handle is only refused. The v1 adapter answers success where the driver has refused.
        let expected = match adapter {
            Adapter::V1 => [
                "error success-without-result",
                "note get-without-open",
                "note open-in-producer",
                "note wrong-device",
            ],
            Adapter::V2 => ["note get-without-open", "note open-in-producer", "note refused-open", "note wrong-device"],
        };
        assert_eq!(report.violations(), expected, "{}", outcome.stderr);
        let call = "with IPCMemoryHandle.open(self.handle.to_bytes(), self.one, len(BYTES)) as mapped:";
        assert_eq!(line(&report.finding("wrong-device")["process"]), call);
    }

    /// The worked example of docs/python.md, with a short stream.
    fn the_example_is_clean(adapter) {
        let outcome = ring(adapter, "3");
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
        let lines = ("pipe.recv().map().close()", Some("handle.close()"));
        assert_finds("use-after-put", adapter, &["warning use-after-put"], lines.0, lines.1);
    }

    /// Memory that nobody refers to any more in the producer.
    fn memory_that_goes_while_the_consumer_has_it_open(adapter) {
        let lines = ("handle.close()", Some("mapped = pipe.recv().map()"));
        assert_finds("freed-while-open", adapter, &["error freed-while-open"], lines.0, lines.1);
    }

    /// v1 returns success and no memory, which is an exception in Python, too.
    fn memory_that_is_opened_after_its_end(adapter) {
        let also: &[_] = if adapter == Adapter::V1 { &["error success-without-result"] } else { &[] };
        let lines = ("pipe.recv().map().close()", Some("handle.close()"));
        assert_finds("use-after-free", adapter, &[also, &["error use-after-free"]].concat(), lines.0, lines.1);
    }

    /// `os._exit` runs no finalizer.
    fn a_process_that_ends_without_its_finalizers(adapter) {
        assert_finds("leaked-mapping", adapter, &["warning leaked-mapping"], "mapped = pipe.recv().map()", None);
        assert_finds("leaked-handle", adapter, &["warning leaked-handle"], "handle = IPCMemoryHandle(memory)", None);
    }

    /// Bytes that were cut short on their way.
    fn bytes_that_are_cut_short(adapter) {
        let line = "IPCMemoryHandle.open(handle.to_bytes()[:-8], dpctl.SyclDevice(), 4096)";
        assert_finds("size-mismatch", adapter, &["error size-mismatch"], line, None);
    }

    /// In loops, generators, threads, recursion, generated code, and where native code calls Python.
    fn every_line_of_python_is_told_from_the_others(adapter) {
        let outcome = python("places.py", adapter).run();
        assert!(!outcome.stderr.contains("Traceback"), "{}", outcome.stderr);
        let source = fs::read_to_string(folder().join("tests/places.py")).expect("the program");
        let mut expected: BTreeMap<(String, u64), u64> = (0..4).map(|n| (("<module>".into(), n + 1), 1)).collect();
        for (number, line) in (1..).zip(source.lines()) {
            if let Some((_, comment)) = line.split_once("  # ")
                && let Some((function, times)) = comment.split_once(": ")
            {
                expected.insert((function.into(), number), times.parse().expect("a number"));
            }
        }
        let mut found: BTreeMap<(String, u64), u64> = BTreeMap::new();
        for finding in outcome.report().findings().iter().filter(|finding| finding["rule"] == "leaked-handle") {
            let caller = own_frames(&finding["process"]).nth(1).unwrap_or_else(|| panic!("no caller: {finding:#}"));
            let function = caller["function"].as_str().and_then(|name| name.rsplit('.').next()).expect("a function");
            let key = (function.to_owned(), caller["line"].as_u64().expect("a line"));
            *found.entry(key).or_default() += finding["count"].as_u64().expect("a count");
        }
        assert_eq!(found, expected, "{}", outcome.stderr);
        // A person sees them first, and only them.
        let folder = outcome.trace_folder();
        let text = run::urscope(&["check", folder.to_str().expect("a path")]).stdout;
        let shown: Vec<&str> = text.lines().filter(|line| line.trim_start().starts_with("--> ")).collect();
        assert!(shown.len() >= outcome.report().findings().len() / 2, "{text}");
        assert!(shown.iter().all(|line| line.contains("/tests/places.py:") || line.contains("/generated/")), "{text}");
    }
}

/// In two processes and in one; 20,000 cycles of each lose no descriptor and no byte.
#[test]
fn physical_memory_and_events_are_shared() {
    let run_of = |tests: &str| python("test_physical_and_events.py", Adapter::V2).arg(tests);
    assert_passed(&run_of("available").untraced().run(), 15);
    assert_passed(&run_of("cycles").untraced().run(), 2);
    let exchange = run_of("exchange").run();
    assert_passed(&exchange, 2);
    assert_eq!(exchange.report().verdict(), "clean", "{}", exchange.stderr);
    assert_eq!(exchange.report().violations(), [] as [&str; 0], "{}", exchange.stderr);
    let outcome = run_of("available").run();
    assert_passed(&outcome, 15);
    let report = outcome.report();
    // What is no handle, and the producers that die.
    let expected = [
        "error altered-handle",
        "error size-mismatch",
        "note garbage-handle",
        "note leaked-handle",
        "note refused-open",
        "warning leaked-handle",
    ];
    assert_eq!(report.violations(), expected, "{}", outcome.stderr);
    for kind in ["Event", "PhysMem"] {
        let [gets, puts] = ["Get", "Put"].map(|verb| report.calls(&format!("urIPC{verb}{kind}HandleExp")));
        assert!(gets >= 4, "{gets}");
        // One is refused, or its process died before its put.
        assert!(gets - puts <= 1, "{gets} {puts}");
    }
    assert_passed(&python("test_physical_and_events.py", Adapter::V1).arg("unavailable").run(), 1);
    let older = python_on_2025_3("test_physical_and_events.py", Adapter::V2).arg("unavailable");
    assert_passed(&older.run(), 1);
}

/// With the line of the consumer and that of the producer.
#[test]
fn mistakes_with_physical_memory_and_events_are_found() {
    let lines = ("pipe.recv().receive()", Some("handle.close()"));
    let expected = &["error use-after-put"];
    assert_mistake("physical-use-after-put", "use-after-put", Adapter::V2, expected, lines);
    assert_mistake("event-use-after-put", "use-after-put", Adapter::V2, expected, lines);
    let line = "IPCEventHandle.open(handle.to_bytes()[:-8], dpctl.SyclDevice())";
    assert_mistake("event-size-mismatch", "size-mismatch", Adapter::V2, &["error size-mismatch"], (line, None));
}

/// The worked example of docs/python.md, with a short stream through a ring of so many slots.
pub(crate) fn ring(adapter: Adapter, slots: &str) -> Outcome {
    let ring = python("../examples/ring.py", adapter);
    ring.arg("--arrays").arg("50").arg("--nbytes").arg("65536").arg("--slots").arg(slots).run()
}

/// The tools of the package's tests, as `scripts/setup` names them.
pub(crate) const PYTEST: &str = "pytest-9.2.0";

/// Where the packages of an environment are.
pub(crate) fn packages(python: &Path) -> PathBuf {
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
    assert_passed(&run.limit(Duration::from_mins(5)).run(), 7);
}

/// What `scripts/packages/make_packages.py` makes, from small files in the place of the programs, and the recipes for
/// other tools.
#[test]
fn the_packages_are_the_same_each_time_and_leave_nothing_behind() {
    let test = folder().join("tests/test_packages.py");
    let run =
        TestRun::of_program(runtime::python_with(PYTEST)).untraced().env("PYTHONDONTWRITEBYTECODE", "1").arg(test);
    assert_passed(&run.run(), 14);
}

/// For mypy in its strict mode and for pyright, as `python/pyproject.toml` sets them up.
#[test]
fn the_types_of_the_package_are_consistent() {
    let python = runtime::python_with(PYTEST);
    let cache = tempfile::tempdir().expect("a temporary folder");
    let mypy = Command::new(&python)
        .args(["-m", "mypy", "--cache-dir"])
        .arg(cache.path())
        .current_dir(folder())
        .output()
        .expect("mypy starts");
    let said = String::from_utf8_lossy(&mypy.stdout);
    assert!(mypy.status.success() && said.starts_with("Success: no issues found in "), "{said}");

    let pyright = Command::new("node")
        .arg(runtime::pyright())
        .args(["--outputjson", "--pythonpath"])
        .arg(&python)
        .current_dir(folder())
        .output()
        .expect("node cannot be started: apt-get install nodejs");
    let said = String::from_utf8_lossy(&pyright.stdout);
    let report: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    let modules = fs::read_dir(folder().join("urscope")).expect("the package").flatten();
    let modules = modules.filter(|entry| entry.path().extension().is_some_and(|end| end == "py")).count();
    assert_eq!(report["summary"]["filesAnalyzed"], modules, "{said}");
    assert!(pyright.status.success() && report["summary"]["errorCount"] == 0, "{said}");
}
