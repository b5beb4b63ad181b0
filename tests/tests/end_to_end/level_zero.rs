//! Programs that share memory by Level Zero's own functions, as communication libraries do.

use std::fs;

use serde_json::Value;
use urscope_tests::run::urscope;
use urscope_tests::{Adapter, Outcome, Release, TestRun, apps, artefacts, level_zero_loader, record_fields, trace};

/// What is right or wrong with the sharing of memory, and the errors and warnings that follow.
pub(crate) const MEMORY: [(&str, &[&str]); 21] = [
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
    ("got-twice", &[]),
    ("copied", &[]),
    ("closed-unproved", &[]),
    ("closed-while-copied", &["error closed-while-in-use"]),
    ("freed-while-copied", &["error freed-while-in-use"]),
    ("rows-copied", &[]),
    ("closed-while-rows-copied", &["error closed-while-in-use"]),
    ("executed-again", &[]),
    ("closed-while-executed-again", &["error closed-while-in-use"]),
];

/// The same for event pools.
pub(crate) const POOLS: [(&str, &[&str]); 7] = [
    ("right", &[]),
    ("two-pools", &[]),
    ("put-twice", &["error double-put"]),
    ("never-put", &["warning unreturned-gets"]),
    ("left-open", &[]),
    ("close-twice", &["error double-release"]),
    ("without-flag", &["error export-without-flag"]),
];

/// The same for counter-based events.
pub(crate) const EVENTS: [(&str, &[&str]); 8] = [
    ("right", &[]),
    ("by-extension", &[]),
    ("two-events", &[]),
    ("left-open", &[]),
    ("closed-twice", &["error double-release"]),
    ("close-of-own", &["warning close-of-unknown"]),
    ("after-destroy", &["error use-after-free"]),
    ("without-flag", &["error export-without-flag"]),
];

/// The same for physical memory.
pub(crate) const PHYSICAL: [(&str, &[&str]); 8] = [
    ("right", &[]),
    ("by-handle", &[]),
    ("by-address", &[]),
    ("by-address-exported", &[]),
    ("left-open", &[]),
    ("destroyed-while-mapped", &[]),
    ("destroyed-twice", &["error double-release"]),
    ("without-flag", &["error export-without-flag"]),
];

/// The same for memory that is shared by a descriptor.
pub(crate) const DESCRIPTORS: [(&str, &[&str]); 9] = [
    ("right", &[]),
    ("again-and-again", &[]),
    ("as-handle", &[]),
    ("of-handle", &[]),
    ("free-first", &[]),
    ("left-open", &[]),
    ("closed", &["error open-close-mismatch"]),
    ("freed-twice", &["error use-after-close"]),
    ("freed-while-copied", &["error closed-while-in-use"]),
];

/// All programs of this kind.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, &'static str, &'static [&'static str])> {
    let of = |program, cases: &'static [(&'static str, &'static [&'static str])]| {
        cases.iter().map(move |(case, expected)| (program, *case, *expected))
    };
    let shared = of("ze_memory", &MEMORY).chain(of("ze_descriptor", &DESCRIPTORS)).chain(of("ze_physical", &PHYSICAL));
    shared.chain(of("ze_event_pool", &POOLS)).chain(of("ze_event", &EVENTS))
}

fn run(program: &str, case: &str) -> Outcome {
    TestRun::of(program, Release::R2026_2, Adapter::V2).arg(case).run()
}

#[test]
fn what_the_specification_forbids_is_found_and_nothing_else() {
    for (program, case, expected) in all() {
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

/// Of a closed list, the latest append is named: when it was executed is not recorded.
#[test]
fn the_command_that_still_uses_the_memory_is_named() {
    for (case, command) in [
        ("closed-while-copied", "zeCommandListAppendMemoryCopy,"),
        ("closed-while-rows-copied", "zeCommandListAppendMemoryCopyRegion,"),
        ("closed-while-executed-again", "zeCommandListAppendMemoryCopy,"),
    ] {
        let report = run("ze_memory", case).report();
        let message = report.finding("closed-while-in-use")["message"].as_str().unwrap().to_owned();
        assert!(message.contains("has not completed: call") && message.contains(&format!("({command}")), "{message}");
    }
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

/// The device knows these as errors only because the rules say so: what is noted fails no run.
#[test]
fn what_the_specification_allows_is_at_most_a_note() {
    for (program, case, note) in [
        ("ze_event", "left-open", "note leaked-event"),
        ("ze_physical", "left-open", "note leaked-physical-memory"),
        ("ze_physical", "destroyed-while-mapped", "note released-while-mapped"),
        ("ze_descriptor", "free-first", "note freed-while-open"),
    ] {
        assert_eq!(run(program, case).report().violations(), [note], "{program} {case}");
    }
}

/// The calls of a run, how often each is in the traces, and the get and the open that belong together.
type Shared = (&'static str, &'static str, &'static [(&'static str, usize)], [&'static str; 2]);

const SHARED: [Shared; 7] = [
    (
        "ze_event",
        "two-events",
        &[("zeEventCounterBasedCreate", 2), ("zeEventDestroy", 2), ("zeEventCounterBasedCloseIpcHandle", 1)],
        ["zeEventCounterBasedGetIpcHandle", "zeEventCounterBasedOpenIpcHandle"],
    ),
    (
        "ze_event",
        "by-extension",
        &[("zexCounterBasedEventCreate2", 1), ("zeEventDestroy", 1), ("zexCounterBasedEventCloseIpcHandle", 1)],
        ["zexCounterBasedEventGetIpcHandle", "zexCounterBasedEventOpenIpcHandle"],
    ),
    (
        "ze_physical",
        "right",
        &[("zePhysicalMemDestroy", 2), ("zeVirtualMemMap", 2), ("zeVirtualMemUnmap", 2)],
        ["zePhysicalMemGetProperties", "zePhysicalMemCreate"],
    ),
    ("ze_physical", "by-handle", &[("zePhysicalMemDestroy", 1)], ["zeMemGetIpcHandle", "zeMemOpenIpcHandle"]),
    ("ze_descriptor", "right", &[("zeMemFree", 2)], ["zeMemGetAllocProperties", "zeMemAllocDevice"]),
    (
        "ze_descriptor",
        "as-handle",
        &[("zeMemPutIpcHandle", 1)],
        ["zeMemGetIpcHandleFromFileDescriptorExp", "zeMemOpenIpcHandle"],
    ),
    (
        "ze_descriptor",
        "of-handle",
        &[("zeMemGetFileDescriptorFromIpcHandleExp", 1)],
        ["zeMemGetIpcHandle", "zeMemAllocDevice"],
    ),
];

/// Two events of one file are told apart, and what is imported belongs to what was exported.
#[test]
fn every_way_of_sharing_is_in_the_trace() {
    for (program, case, calls, [get, open]) in SHARED {
        let outcome = run(program, case);
        let traces = outcome.traces();
        for (call, count) in calls {
            assert_eq!(trace::count(&traces, "E", call), *count, "{program} {case}: {call}");
        }
        traces.iter().for_each(record_fields::assert_as_declared);
        let got = record_fields::sorted(&traces, "E", get, "fingerprint");
        let mut opened = record_fields::sorted(&traces, "B", open, "fingerprint");
        // The allocations of the producer open nothing.
        opened.retain(|fingerprint| fingerprint != "null");
        assert!(opened.len() == 1 && got.contains(&opened[0]), "{program} {case}: {got:?} {opened:?}");
    }
}

/// The software device is a driver for the loader here, which older and newer programs call through its symbols.
#[test]
fn a_real_loader_and_its_layers_show_each_call_once() {
    let (libraries, _) = artefacts::libraries();
    let folder = tempfile::tempdir().unwrap();
    let driver = folder.path().join("libze_soft_driver.so");
    fs::copy(libraries.join("libze_loader.so"), &driver).unwrap();
    let under_loader = |program, layer: &str, case| {
        TestRun::of_program("/usr/bin/env")
            .arg(format!("LD_LIBRARY_PATH={}", level_zero_loader().display()))
            .arg(format!("ZE_ENABLE_ALT_DRIVERS={}", driver.display()))
            .arg(layer)
            .arg(apps::executable(program, Release::R2026_2))
            .arg(case)
            .run()
    };
    for layer in ["ZE_ENABLE_TRACING_LAYER=0", "ZE_ENABLE_TRACING_LAYER=1", "ZE_ENABLE_VALIDATION_LAYER=1"] {
        for (case, expected, calls) in [("right", "clean", 2), ("close-twice", "findings", 3)] {
            let outcome = under_loader("ze_memory", layer, case);
            assert_eq!(outcome.stdout, "opened\nproducer is done\n", "{layer}: {}", outcome.stderr);
            assert_eq!(outcome.report().verdict(), expected, "{layer}");
            let traces = outcome.traces();
            let counted = |call| trace::count(&traces, "B", call);
            let opens = counted("zeMemOpenIpcHandle") + counted("zeMemCloseIpcHandle");
            assert_eq!((counted("zeMemGetIpcHandle"), opens), (1, calls), "{layer}");
        }
    }
    // What this loader has not got is left out: it is of the API 1.4.
    for (program, case, expected, once) in [
        ("ze_event", "by-extension", "clean", "zexCounterBasedEventOpenIpcHandle"),
        ("ze_physical", "by-address", "clean", "zeMemOpenIpcHandle"),
        ("ze_physical", "by-handle", "clean", "zePhysicalMemDestroy"),
        ("ze_descriptor", "right", "clean", "zeMemGetAllocProperties"),
        ("ze_descriptor", "closed", "findings", "zeMemCloseIpcHandle"),
    ] {
        let outcome = under_loader(program, "ZE_ENABLE_TRACING_LAYER=0", case);
        assert!(!outcome.stderr.contains("test program:"), "{program} {case}: {}", outcome.stderr);
        assert_eq!(outcome.report().verdict(), expected, "{program} {case}");
        assert_eq!(trace::count(&outcome.traces(), "B", once), 1, "{program} {case}");
    }
}

/// A loader with several drivers calls through the tables that the handles begin with. No such loader can be had from Debian, so a small
/// program calls as that one does, and a small driver has such handles.
#[test]
fn a_driver_is_watched_through_the_tables_behind_its_handles() {
    let driver = apps::executable("ze_table_driver.so", Release::R2026_2);
    for way in ["tables", "handles"] {
        for (more, closes, expected) in [(None, 1, "clean"), (Some("close-twice"), 2, "findings")] {
            let test_run = || {
                let loader = TestRun::of_program(apps::executable("ze_table_loader", Release::R2026_2));
                let loader = loader.arg(&driver).arg(way);
                if let Some(more) = more { loader.arg(more) } else { loader }
            };
            let (bare, traced) = (test_run().untraced().run(), test_run().run());
            assert_eq!(bare.stdout, format!("the memory was shared through {way}\n"), "{}", bare.stderr);
            assert_eq!((traced.code == 0, &traced.stdout), (more.is_none(), &bare.stdout), "{}", traced.stderr);
            assert_eq!(traced.report().verdict(), expected, "{way}: {:#?}", traced.report());
            let traces = traced.traces();
            for (call, count) in [
                ("zeMemAllocDevice", 1),
                ("zeMemGetIpcHandle", 1),
                ("zexMemGetIpcHandles", 1),
                ("zeMemOpenIpcHandle", 1),
                ("zeMemCloseIpcHandle", closes),
                ("zeMemPutIpcHandle", 2),
                ("zeMemFree", 1),
            ] {
                assert_eq!(trace::count(&traces, "B", call), count, "{way}: {call}");
            }
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
