//! Calls that XPTI's stream `ur.call` shows, on the runtime whose loader is inside libsycl: they are recorded as those
//! that come in by tables, and once.

use std::{collections::BTreeMap, path::Path, process::Command};

use serde_json::Value;
use urscope_tests::{Adapter, Outcome, Release, TestRun, Trace, apps, artefacts, repository, run, trace};

use crate::event::ORDERS;
use crate::{on_both_adapters, programs};

/// The runs of programs in which all calls are observed by XPTI.
fn observed(test_run: TestRun) -> TestRun {
    test_run.env("URSCOPE_ENTRY", "xpti")
}

fn dispatcher() -> std::path::PathBuf {
    Release::R2026_2.library("libxptifw.so")
}

/// XPTI as a user switches it on, with these subscribers.
fn switched_on(test_run: TestRun, subscriber: &Path) -> TestRun {
    test_run
        .env("XPTI_TRACE_ENABLE", "1")
        .env("XPTI_FRAMEWORK_DISPATCHER", dispatcher())
        .env("XPTI_SUBSCRIBERS", subscriber)
        .env("UR_ENABLE_LAYERS", "UR_LAYER_TRACING")
}

/// The kinds of the entry points of adapters in each trace.
fn kinds(outcome: &Outcome) -> Vec<Vec<String>> {
    let of_trace = |trace: &Trace| {
        let entry_points = trace.records.iter().filter(|record| record["name"] == "urscope_entry_point");
        let kinds = entry_points.map(|entry_point| entry_point["args"]["kind"].as_str().unwrap_or_default().to_owned());
        kinds.filter(|kind| kind != "level-zero-driver").collect()
    };
    outcome.traces().iter().map(of_trace).collect()
}

/// The calls of all processes without what differs between two runs: addresses and hashes are numbered in the order in
/// which they come, and a stack is its frames in the program.
fn calls(outcome: &Outcome) -> Vec<Vec<(String, BTreeMap<String, String>)>> {
    let mut traces = outcome.traces();
    // The producer first.
    traces.sort_by_key(|trace| trace.count("B", "urIPCGetMemHandleExp") == 0);
    let mut known = Vec::<String>::new();
    traces
        .iter()
        .map(|trace| trace.calls("B").chain(trace.calls("E")).map(|call| plain(trace, call, &mut known)).collect())
        .collect()
}

fn plain(trace: &Trace, call: &Value, known: &mut Vec<String>) -> (String, BTreeMap<String, String>) {
    let arguments = call["args"].as_object().expect("a call has arguments");
    let mut plain = BTreeMap::new();
    // The checksum of handle data, and what an adapter changes in a copy of it, which XPTI does not make.
    let begins_with = |start: &str| call["name"].as_str().is_some_and(|name| name.starts_with(start));
    // The context of a queue, whose creation is not observed.
    let of_bytes = begins_with("urIPC");
    let is_command = begins_with("urEnqueue");
    let is_left_out = |name: &str| {
        ["call", "via", "exporter"].contains(&name)
            || of_bytes && ["checksum", "changed"].contains(&name)
            || is_command && name == "context"
    };
    for (name, value) in arguments.iter().filter(|(name, _)| !is_left_out(name)) {
        let text = value.to_string();
        let value = if name == "stack" {
            frames(trace, value)
        } else if text.starts_with("\"0x") && text != "\"0x0\"" {
            let place = known.iter().position(|known| *known == text);
            let place = place.unwrap_or_else(|| {
                known.push(text);
                known.len() - 1
            });
            format!("address {place}")
        } else {
            text
        };
        plain.insert(name.clone(), value);
    }
    let [name, phase] = ["name", "ph"].map(|field| call[field].as_str().expect("a call has a name"));
    (format!("{name} {phase}"), plain)
}

/// The frames of a stack that are in the program, as offsets.
fn frames(trace: &Trace, number: &Value) -> String {
    let records = |name: &'static str| trace.records.iter().filter(move |record| record["name"] == name);
    let stack = records("urscope_stack").find(|record| &record["args"]["stack"] == number).expect("a stack");
    let address = |value: &Value| {
        let digits = value.as_str().and_then(|text| text.strip_prefix("0x")).expect("an address");
        u64::from_str_radix(digits, 16).expect("hexadecimal")
    };
    let program = records("urscope_module").map(|record| &record["args"]);
    let program: Vec<_> =
        program.filter(|module| module["path"].as_str().is_some_and(|path| path.ends_with("/clean"))).collect();
    let mut offsets = Vec::new();
    for frame in stack["args"]["frames"].as_array().expect("frames") {
        let frame = address(frame);
        let module =
            program.iter().find(|module| (address(&module["start"])..address(&module["end"])).contains(&frame));
        offsets.extend(module.map(|module| format!("{:#x}", frame - address(&module["bias"]))));
    }
    assert!(!offsets.is_empty(), "{stack}");
    offsets.join(" ")
}

on_both_adapters! {
    /// In both forms of a trace, and also where the layers of the runtime's own validation are there.
    fn the_records_are_those_of_the_tables(adapter) {
        for form in ["chrome", "binary"] {
            let test_run = || TestRun::new("clean", Release::R2026_2, adapter).env("URSCOPE_FORMAT", form);
            let by_tables = test_run().run();
            let by_xpti = observed(test_run()).run();
            assert_eq!((by_xpti.code, &by_xpti.stdout), (0, &by_tables.stdout), "{}", by_xpti.stderr);
            assert_eq!(kinds(&by_tables), [["adapter-table"]; 2]);
            assert_eq!(kinds(&by_xpti), [["xpti"]; 2], "{}", by_xpti.stderr);
            assert_eq!(calls(&by_xpti), calls(&by_tables));
            let hashes = |phase| {
                let traces = by_xpti.traces();
                let name = if phase == "E" { "urIPCGetMemHandleExp" } else { "urIPCOpenMemHandleExp" };
                let calls: Vec<_> = traces.iter().flat_map(|trace| trace.calls(phase)).cloned().collect();
                calls.into_iter().filter(|call| call["name"] == name).map(|call| call["args"]["fingerprint"].clone()).collect::<Vec<_>>()
            };
            assert!(hashes("E")[0].is_string() && hashes("E") == hashes("B"), "{:?}", hashes("E"));
            assert_eq!(by_xpti.report().verdict(), "clean");
        }
    }

    /// A launch is recorded if its kernel gets a pointer into memory that was shared before.
    fn a_launch_with_shared_memory_is_recorded(adapter) {
        let test_run = || TestRun::new("kernels in_use", Release::R2026_2, adapter).with_engine().arg("fixed");
        let launches = |outcome: &Outcome| trace::count(&outcome.traces(), "B", "urEnqueueKernelLaunchWithArgsExp");
        let by_tables = test_run().run();
        let by_xpti = observed(test_run()).run();
        assert!(launches(&by_tables) > 0);
        assert_eq!(launches(&by_xpti), launches(&by_tables), "{}", by_xpti.stderr);
    }

    /// Every program that needs no answer of urscope is judged as without XPTI.
    fn programs_are_judged_alike(adapter) {
        for program in PROGRAMS.into_iter().chain(ORDERS).filter(|program| programs::has_something_on(program, adapter)) {
            for ((name, by_tables), (_, by_xpti)) in programs::ways(program, adapter).into_iter().zip(programs::ways(program, adapter)) {
                let by_tables = by_tables.run();
                let by_xpti = observed(by_xpti).run();
                let judged = |outcome: &Outcome| (outcome.code, outcome.report().verdict().to_owned(), outcome.report().violations());
                assert_eq!(judged(&by_xpti), judged(&by_tables), "{name}: {}", by_xpti.stderr);
                assert!(kinds(&by_xpti).iter().flatten().all(|kind| kind == "xpti"), "{name}: {:?}", kinds(&by_xpti));
            }
        }
    }

    /// XPTI shows all calls; the tables that reach the adapter, too.
    fn a_call_that_two_ways_show_is_recorded_once(adapter) {
        let outcome = switched_on(TestRun::new("clean", Release::R2026_2, adapter), &artefacts::preloaded()).run();
        let bare = TestRun::new("clean", Release::R2026_2, adapter).run();
        assert_eq!((outcome.code, calls(&outcome)), (0, calls(&bare)), "{}", outcome.stderr);
        assert_eq!(kinds(&outcome), [["adapter-table"]; 2]);
    }
}

/// Programs with each kind of object, and with mistakes in one process and between two.
const PROGRAMS: [&str; 11] = [
    "scenario physical_side_by_side",
    "clean_threads",
    "mistakes close_in_use",
    "mistakes double_put",
    "mistakes double_close",
    "scenario event_leaked",
    "sharing fork_child",
    "free_while_open",
    "mistakes leaked_mapping",
    "scenario physical_use_after_put",
    "scenario use_after_free",
];

/// A loader that binds to the C library's `dlsym` asks for tables unseen. XPTI shows its calls nevertheless.
#[test]
fn an_adapter_that_no_table_reaches_is_watched_by_xpti() {
    let folder = tempfile::tempdir().expect("no temporary folder");
    let program = folder.path().join("other_namespace");
    apps::compile_with_headers("other_namespace.cpp", &program, &[]);
    for adapter in [Adapter::V1, Adapter::V2] {
        let test_run = || {
            let loader = Release::R2026_2.library("libur_loader.so.0");
            TestRun::of_program(&program).adapter(adapter).arg("deepbind").arg(loader)
        };
        let unseen = test_run().run();
        assert_eq!((unseen.report().verdict(), kinds(&unseen)), ("not-judged", vec![vec!["unseen-adapter".into()]]));
        let outcome = switched_on(test_run(), &artefacts::preloaded()).run();
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        assert_eq!(
            (outcome.report().verdict(), kinds(&outcome)),
            ("clean", vec![vec!["xpti".into()]]),
            "{}",
            outcome.stderr
        );
        for call in ["urUSMDeviceAlloc", "urIPCGetMemHandleExp", "urIPCPutMemHandleExp", "urUSMFree"] {
            let seen = ["B", "E"].map(|phase| trace::count(&outcome.traces(), phase, call));
            assert_eq!(seen, [1, 1], "{call}: {}", outcome.stderr);
        }
    }
}

/// `UR_RESULT_ERROR_UNKNOWN` (`ur_api.h`).
const UNKNOWN: u64 = 0x7fff_fffe;

/// Its adapter is linked in, and nothing names its functions.
#[test]
fn a_stripped_program_with_an_adapter_of_its_own_is_watched_by_xpti() {
    let folder = tempfile::tempdir().expect("no temporary folder");
    let program = folder.path().join("stripped");
    let libraries = Release::R2026_2.folder().join("lib");
    let search = format!("-L{}", libraries.display());
    let find = format!("-Wl,-rpath,{}", libraries.display());
    let flags = ["-DLINKED", "-DSHOWN", "-O2", "-s", "-Wl,--no-as-needed", &search, &find, "-lxptifw"];
    apps::compile_with_headers("own_adapter.cpp", &program, &flags);
    let traced = |mistake| switched_on(TestRun::of_program(&program).arg(mistake), &artefacts::preloaded()).run();
    let bare = TestRun::of_program(&program).arg("once").untraced().run();
    let outcome = traced("once");
    assert_eq!((outcome.code, &outcome.stdout), (0, &bare.stdout), "{}", outcome.stderr);
    assert_eq!(
        (outcome.report().verdict(), kinds(&outcome)),
        ("clean", vec![vec!["xpti".into()]]),
        "{}",
        outcome.stderr
    );
    for call in apps::CALLS_OF_OWN_ADAPTER {
        let seen = ["B", "E"].map(|phase| trace::count(&outcome.traces(), phase, call));
        assert_eq!(seen, [1, 1], "{call}: {}", outcome.stderr);
    }
    let twice = traced("twice");
    assert_eq!(twice.report().violations(), ["error double-put", "note open-in-producer"], "{}", twice.stderr);

    // The call that an exception left is recorded as one that failed.
    let thrown = traced("throw");
    assert!(thrown.stdout.contains("alloc: 0\nthrown\nget: 0\n"), "{}", thrown.stdout);
    let of_get = |trace: &Trace| {
        let gets = trace.calls("E").filter(|call| call["name"] == "urIPCGetMemHandleExp");
        gets.map(|call| call["args"]["result"].as_u64().unwrap_or(0)).collect::<Vec<_>>()
    };
    let thrown = thrown.traces();
    assert_eq!(of_get(&thrown[0]), [UNKNOWN, 0]);
    assert!(thrown[0].unfinished().is_empty(), "{:?}", thrown[0].unfinished());
}

#[test]
fn a_refusal_that_is_not_possible_is_said() {
    let outcome = observed(TestRun::new("mistakes double_put", Release::R2026_2, Adapter::V2))
        .env("URSCOPE_ON_ERROR", "refuse")
        .run();
    let expected =
        "URSCOPE_ON_ERROR=refuse refuses no call of libur_adapter_level_zero_v2.so.0: XPTI only shows its calls";
    assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("urscope: error: double-put: "), "{}", outcome.stderr);
    assert_eq!(outcome.report().violations(), ["error double-put"]);
    let results: Vec<_> =
        outcome.traces().iter().flat_map(|trace| trace.calls("E")).map(|call| call["args"]["result"].clone()).collect();
    let bare = TestRun::new("mistakes double_put", Release::R2026_2, Adapter::V2).run();
    let of_bare: Vec<_> =
        bare.traces().iter().flat_map(|trace| trace.calls("E")).map(|call| call["args"]["result"].clone()).collect();
    assert_eq!(results, of_bare, "no call was refused");

    let aborted = observed(TestRun::new("mistakes double_put", Release::R2026_2, Adapter::V2))
        .env("URSCOPE_ON_ERROR", "abort")
        .run();
    assert!(aborted.stderr.contains("URSCOPE_ON_ERROR=abort: the program ends here"), "{}", aborted.stderr);
}

/// What the user has set for XPTI has its effect as before.
#[test]
fn the_subscribers_of_the_user_stay() {
    let folder = tempfile::tempdir().expect("no temporary folder");
    let subscriber = folder.path().join("libcounting_subscriber.so");
    let source = repository().join("scripts/benchmarks/peers/counting_subscriber.cpp");
    let mut compiler = Command::new("g++");
    compiler.args(["-std=c++17", "-O2", "-shared", "-fPIC", "-isystem"]).arg(Release::R2026_2.folder().join("include"));
    compiler
        .arg(source)
        .arg("-L")
        .arg(Release::R2026_2.folder().join("lib"))
        .arg("-lxptifw")
        .arg("-o")
        .arg(&subscriber);
    assert!(compiler.status().expect("g++ cannot be started; install it with: apt-get install g++").success());
    let test_run = || switched_on(TestRun::new("clean", Release::R2026_2, Adapter::V2), &subscriber);
    let bare = test_run().run();
    let outcome = observed(test_run()).run();
    let counted = |outcome: &Outcome| -> Vec<String> {
        let mut lines: Vec<_> =
            outcome.stderr.lines().filter(|line| line.starts_with("counted ")).map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert!(counted(&bare).len() == 2 && !counted(&bare).contains(&"counted 0 events".to_owned()), "{}", bare.stderr);
    assert_eq!(counted(&outcome), counted(&bare), "{}", outcome.stderr);
    assert_eq!(
        (kinds(&bare), kinds(&outcome)),
        (vec![vec!["adapter-table".to_owned()]; 2], vec![vec!["xpti".to_owned()]; 2])
    );
}

/// Without `urscope run`, the user sets the variables.
#[test]
fn a_preloaded_library_is_a_subscriber_where_the_user_names_it() {
    let traces = tempfile::tempdir().expect("no temporary folder");
    let library = artefacts::preloaded();
    let test_run = TestRun::new("clean", Release::R2026_2, Adapter::V2).untraced().env("LD_PRELOAD", &library);
    let test_run = observed(switched_on(test_run, &library)).env("URSCOPE_DIR", traces.path());
    let outcome = test_run.run();
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let checked = run::urscope(&["check", "--format", "json", traces.path().to_str().expect("text")]);
    let report = urscope_tests::Report::parse(&checked.stdout);
    assert_eq!((report.verdict(), report.calls("urIPCGetMemHandleExp")), ("clean", 1), "{report:#?}");
    assert_eq!(report.processes()[0]["entry_points"][0]["kind"], "xpti");
}

/// Where the variables of XPTI do not name urscope, nothing is recorded; that is said, and no verdict is made of it.
#[test]
fn a_stream_that_nobody_shows_is_said() {
    let traces = tempfile::tempdir().expect("no temporary folder");
    let test_run =
        TestRun::new("clean", Release::R2026_2, Adapter::V2).untraced().env("LD_PRELOAD", artefacts::preloaded());
    let outcome = observed(test_run).env("URSCOPE_DIR", traces.path()).run();
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let checked = run::urscope(&["check", "--format", "json", traces.path().to_str().expect("text")]);
    let report = urscope_tests::Report::parse(&checked.stdout);
    let reason = report.reason().unwrap_or_default();
    assert!(report.verdict() == "not-judged" && reason.contains("XPTI_SUBSCRIBERS"), "{report:#?}");
}

/// `urscope run` chooses XPTI where no adapter is a library of its own beside libsycl.
#[test]
fn a_run_chooses_xpti_where_no_table_reaches_an_adapter() {
    let runtime = tempfile::tempdir().expect("no temporary folder");
    for name in ["libsycl.so.9", "libxptifw.so.1"] {
        std::os::unix::fs::symlink(Release::R2026_2.library(name), runtime.path().join(name)).expect("a link");
    }
    let variables = |test_run: TestRun| {
        let outcome = test_run.env("LD_LIBRARY_PATH", runtime.path()).option("--no-check").run();
        let lines: Vec<String> = outcome.stdout.lines().map(str::to_owned).collect();
        let value = |name: &str| {
            let begins = format!("{name}=");
            lines.iter().find_map(|line| line.strip_prefix(&begins)).unwrap_or_default().to_owned()
        };
        ["XPTI_TRACE_ENABLE", "XPTI_FRAMEWORK_DISPATCHER", "XPTI_SUBSCRIBERS", "UR_ENABLE_LAYERS"].map(value)
    };
    let env = || TestRun::of_program("env");
    let [enabled, dispatcher, subscribers, layers] = variables(env());
    let expected = runtime.path().join("libxptifw.so.1");
    assert_eq!((enabled.as_str(), Path::new(&dispatcher), layers.as_str()), ("1", &*expected, "UR_LAYER_TRACING"));
    assert!(subscribers.ends_with("/liburscope.so"), "{subscribers}");
    let none = [""; 4].map(str::to_owned);
    assert_eq!(
        variables(env().env("UR_ADAPTERS_FORCE_LOAD", "libur_adapter_cuda.so.0")),
        none,
        "its tables are reached"
    );
    std::fs::write(runtime.path().join("libur_adapter_level_zero_v2.so.0"), "").expect("a file");
    assert_eq!(variables(env()), none, "its tables are reached");

    let refused = TestRun::of_program("env").env("LD_LIBRARY_PATH", "/nowhere").env("URSCOPE_ENTRY", "xpti").run();
    assert!(
        refused.code == 2 && refused.stderr.contains("URSCOPE_ENTRY=xpti needs libxptifw.so"),
        "{}",
        refused.stderr
    );
}
