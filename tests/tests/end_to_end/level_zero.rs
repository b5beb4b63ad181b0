//! Programs that share memory by Level Zero's own functions, as communication libraries do.

use std::fs;

use serde_json::Value;
use urscope_tests::run::urscope;
use urscope_tests::{Adapter, Outcome, Release, TestRun, apps, artefacts, level_zero_loader, record_fields, trace};

/// What is right or wrong with the sharing of memory, and the errors and warnings that follow.
pub(crate) const MEMORY: [(&str, &[&str]); 16] = [
    ("right", &[]),
    ("without-put", &[]),
    ("free-first", &[]),
    ("one-byte-left", &[]),
    ("left-open", &[]),
    ("by-extension", &[]),
    ("close-twice", &["error double-close"]),
    ("put-twice", &["error double-put"]),
    ("put-after-free", &["error put-after-free"]),
    ("after-put", &["error use-after-put"]),
    ("after-free", &["error use-after-free"]),
    ("close-of-own", &["error close-of-unknown"]),
    ("copied", &[]),
    ("closed-unproved", &[]),
    ("closed-while-copied", &["error closed-while-in-use"]),
    ("freed-while-copied", &["error freed-while-in-use"]),
];

/// The same for event pools.
pub(crate) const POOLS: [(&str, &[&str]); 4] = [
    ("right", &[]),
    ("left-open", &[]),
    ("close-twice", &["error double-release"]),
    ("without-flag", &["error export-without-flag"]),
];

fn run(program: &str, case: &str) -> Outcome {
    TestRun::of(program, Release::R2026_2, Adapter::V2).arg(case).run()
}

#[test]
fn what_the_specification_forbids_is_found_and_nothing_else() {
    let memory = MEMORY.map(|(case, expected)| ("ze_memory", case, expected));
    let pools = POOLS.map(|(case, expected)| ("ze_event_pool", case, expected));
    for (program, case, expected) in memory.into_iter().chain(pools) {
        let outcome = run(program, case);
        assert!(!outcome.stdout.contains("test program:"), "{case}: {}", outcome.stderr);
        assert!(outcome.stdout.contains("producer is done"), "{case}: {}", outcome.stderr);
        let report = outcome.report();
        let violations = report.violations();
        let worse: Vec<_> = violations.iter().filter(|violation| !violation.starts_with("note ")).collect();
        assert_eq!(worse, expected, "{case}: {report:#?}");
        assert_eq!(report.verdict(), if expected.is_empty() { "clean" } else { "findings" }, "{case}");
    }
}

/// The device knows that the copy has completed, and nobody can know whether the program does.
#[test]
fn a_wait_that_no_tool_can_see_is_a_note() {
    let report = run("ze_memory", "closed-unproved").report();
    assert_eq!((report.violations(), report.verdict()), (vec!["note closed-while-in-use".to_owned()], "clean"));
}

/// The consumer's handle has another descriptor than the producer's, which is that of the same file.
#[test]
fn an_open_belongs_to_the_get_of_the_same_file() {
    let outcome = run("ze_memory", "right");
    let traces = outcome.traces();
    let values = |phase, call, field| record_fields::sorted(&traces, phase, call, field);
    let got = values("E", "zeMemGetIpcHandle", "fingerprint");
    assert_eq!(got.len(), 1);
    assert_eq!(got, values("B", "zeMemOpenIpcHandle", "fingerprint"));
    traces.iter().for_each(record_fields::assert_as_declared);
}

/// The software device is a driver for the loader here, which older and newer programs call through its symbols.
#[test]
fn a_real_loader_and_its_layers_show_each_call_once() {
    let (libraries, _) = artefacts::libraries();
    let folder = tempfile::tempdir().unwrap();
    let driver = folder.path().join("libze_soft_driver.so");
    fs::copy(libraries.join("libze_loader.so"), &driver).unwrap();
    let program = apps::executable("ze_memory", Release::R2026_2);
    for layer in ["ZE_ENABLE_TRACING_LAYER=0", "ZE_ENABLE_TRACING_LAYER=1", "ZE_ENABLE_VALIDATION_LAYER=1"] {
        for (case, expected, calls) in [("right", "clean", 2), ("close-twice", "findings", 3)] {
            let outcome = TestRun::of_program("/usr/bin/env")
                .arg(format!("LD_LIBRARY_PATH={}", level_zero_loader().display()))
                .arg(format!("ZE_ENABLE_ALT_DRIVERS={}", driver.display()))
                .arg(layer)
                .arg(&program)
                .arg(case)
                .run();
            assert_eq!(outcome.stdout, "opened\nproducer is done\n", "{layer}: {}", outcome.stderr);
            assert_eq!(outcome.report().verdict(), expected, "{layer}");
            let traces = outcome.traces();
            let counted = |call| trace::count(&traces, "B", call);
            let opens = counted("zeMemOpenIpcHandle") + counted("zeMemCloseIpcHandle");
            assert_eq!((counted("zeMemGetIpcHandle"), opens), (1, calls), "{layer}");
        }
    }
}

/// What the adapters and libumf do for a program is part of its calls of Unified Runtime.
#[test]
fn calls_below_unified_runtime_are_not_recorded() {
    for adapter in [Adapter::V1, Adapter::V2] {
        let outcome = TestRun::of("clean", Release::R2026_2, adapter).run();
        let report = outcome.report();
        assert!(report.calls("urIPCGetMemHandleExp") > 0);
        for trace in outcome.traces() {
            for call in trace.calls("B") {
                assert!(call["name"].as_str().unwrap().starts_with("ur"), "{call}");
            }
        }
    }
}

#[test]
fn calls_are_listed_one_a_line() {
    let outcome = run("ze_memory", "right");
    let folder = outcome.trace_folder();
    let listed = |options: &[&str]| {
        let ended = urscope(&[&["calls"], options, &[folder.to_str().unwrap()]].concat());
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        ended.stdout
    };
    let all = listed(&[]);
    let names: Vec<_> = all.lines().map(|line| line.split(['(', ')']).nth(2).unwrap().trim().to_owned()).collect();
    assert_eq!(names, ["zeMemGetIpcHandle", "zeMemOpenIpcHandle", "zeMemCloseIpcHandle", "zeMemPutIpcHandle"], "{all}");
    assert_eq!(listed(&["--all"]).lines().count(), 6);
    assert_eq!(listed(&["--level", "ur"]), "");
    assert_eq!(listed(&["--kind", "event"]), "");
    let as_json = listed(&["--format", "json"]);
    let first: Value = serde_json::from_str(as_json.lines().next().unwrap()).unwrap();
    let fingerprint = first["answers"]["fingerprint"].as_str().unwrap();
    let about = listed(&["--handle", fingerprint]);
    assert_eq!(about.lines().count(), 2, "the get and the open: {about}");
    let pid = first["pid"].to_string();
    assert_eq!(listed(&["--pid", &pid]).lines().count(), 2);
}
