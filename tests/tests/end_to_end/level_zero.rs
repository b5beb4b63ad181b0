//! Programs that share memory by Level Zero's own functions, as communication libraries do.

use std::fs;

use serde_json::Value;
use urscope_tests::run::urscope;
use urscope_tests::{Adapter, Outcome, Release, TestRun, apps, artefacts, level_zero_loader, record_fields, trace};

/// What is right or wrong with the sharing of memory, and the errors and warnings that follow.
pub(crate) const CASES: [(&str, &[&str]); 83] = [
    ("memory-right", &[]),
    ("memory-without-put", &[]),
    ("memory-of-host-copied", &[]),
    ("memory-free-first", &[]),
    ("memory-one-byte-left", &[]),
    ("memory-left-open", &[]),
    ("memory-by-extension", &[]),
    ("memory-close-twice", &["error double-close"]),
    ("memory-put-twice", &["error double-put"]),
    ("memory-put-after-free", &["error put-after-free"]),
    ("memory-after-put", &["error use-after-put"]),
    ("memory-after-free", &["error use-after-free"]),
    ("memory-close-of-own", &["error close-of-unknown"]),
    ("memory-context-first", &[]),
    ("memory-producers-context-first", &[]),
    ("memory-got-twice", &[]),
    ("memory-copied", &[]),
    ("memory-closed-unproved", &[]),
    ("memory-copied-at-once", &[]),
    ("memory-executed-at-once", &[]),
    ("memory-copied-in-other-context", &[]),
    ("memory-closed-while-copied", &["error closed-while-in-use"]),
    ("memory-freed-while-copied", &["error freed-while-in-use"]),
    ("memory-rows-copied", &[]),
    ("memory-closed-while-rows-copied", &["error closed-while-in-use"]),
    ("memory-executed-again", &[]),
    ("memory-closed-while-executed-again", &["error closed-while-in-use"]),
    ("list-right", &[]),
    ("list-executed-after-close", &["error use-after-close"]),
    ("list-executed-again-after-close", &["error use-after-close"]),
    ("list-reset-after-close", &[]),
    ("list-made-anew-after-close", &[]),
    ("list-executed-after-reopen", &["error use-after-close"]),
    ("list-executed-after-free", &["error use-after-free"]),
    ("race-executed-again", &["error race"]),
    ("race-executed-again-fixed", &[]),
    ("race-physical", &["error race"]),
    ("bytes-right", &[]),
    ("bytes-of-like-process", &[]),
    ("bytes-number-in-use", &[]),
    ("bytes-upper-half-set", &[]),
    ("bytes-after-put", &["error use-after-put"]),
    ("bytes-after-free", &["error use-after-free"]),
    ("bytes-of-pool", &[]),
    ("descriptor-right", &[]),
    ("descriptor-again-and-again", &[]),
    ("descriptor-as-handle", &[]),
    ("descriptor-of-handle", &[]),
    ("descriptor-free-first", &[]),
    ("descriptor-left-open", &[]),
    ("descriptor-closed", &["error open-close-mismatch"]),
    ("descriptor-freed-twice", &["error use-after-close"]),
    ("descriptor-freed-while-copied", &["error closed-while-in-use"]),
    ("physical-right", &[]),
    ("physical-by-handle", &[]),
    ("physical-by-address", &[]),
    ("physical-by-address-exported", &[]),
    ("physical-left-open", &[]),
    ("physical-destroyed-while-mapped", &[]),
    ("physical-copied", &[]),
    ("physical-unmapped-while-copied", &["error closed-while-in-use"]),
    ("physical-destroyed-twice", &["error double-release"]),
    ("physical-without-flag", &["error export-without-flag"]),
    ("pool-right", &[]),
    ("pool-two-pools", &[]),
    ("pool-put-twice", &["error double-put"]),
    ("pool-never-put", &[]),
    ("pool-left-open", &[]),
    ("pool-close-twice", &["error double-release"]),
    ("pool-after-destroy", &["error use-after-free"]),
    ("pool-destroyed-first", &[]),
    ("pool-without-flag", &["error export-without-flag"]),
    ("event-right", &[]),
    ("event-by-extension", &[]),
    ("event-two-events", &[]),
    ("event-left-open", &[]),
    ("event-closed-twice", &["error double-release"]),
    ("event-close-of-own", &["warning close-of-unknown"]),
    ("event-after-destroy", &["error use-after-free"]),
    ("event-destroyed-first", &[]),
    ("event-never-signalled", &[]),
    ("event-signalled-late", &[]),
    ("event-without-flag", &["error export-without-flag"]),
];

fn run(case: &str) -> Outcome {
    let delay = if case.starts_with("race-") { "1s" } else { "0" };
    TestRun::new("ze_sharing", Release::R2026_2, Adapter::V2).env("ZE_SOFT_DELAY", delay).arg(case).run()
}

#[test]
fn what_the_specification_forbids_is_found_and_nothing_else() {
    for (case, expected) in CASES {
        let outcome = run(case);
        assert!(!outcome.stdout.contains("test program:"), "{case}: {}", outcome.stderr);
        assert!(outcome.stdout.contains("producer is done"), "{case}: {}", outcome.stderr);
        let report = outcome.report();
        let violations = report.violations();
        let worse: Vec<_> = violations.iter().filter(|violation| !violation.starts_with("note ")).collect();
        assert_eq!(worse, expected, "{case}: {report:#?}");
        assert_eq!(report.verdict(), if expected.is_empty() { "clean" } else { "findings" }, "{case}");
    }
}

/// The finding is recorded before the process dies in the copy.
#[test]
fn a_copy_after_the_close_is_named_though_the_process_dies_in_it() {
    let report = run("memory-copied-after-close").report();
    assert_eq!(report.violations()[0], "error use-after-close", "{report:#?}");
    let died = report.died_of("SIGSEGV").next().unwrap_or_else(|| panic!("no process died: {report:#?}"));
    assert_eq!(died["inside"], "zeCommandListAppendMemoryCopy", "{report:#?}");
}

/// The specification lets a driver free its memory at once. No driver does while it is open.
#[test]
fn an_event_that_is_destroyed_while_it_is_open_is_noted() {
    for (case, kind) in [("pool-destroyed-first", "event pool"), ("event-destroyed-first", "event")] {
        let report = run(case).report();
        let message = report.finding("freed-while-open")["message"].as_str().unwrap().to_owned();
        assert!(message.contains(&format!(" destroys {kind} 0x")) && message.contains(" has it open as "), "{message}");
    }
}

/// Waits for events of pools, and waits with a limit, are not recorded.
#[test]
fn a_wait_that_nobody_is_left_to_end_is_noted() {
    let report = run("event-never-signalled").report();
    let message = report.finding("never-signalled")["message"].as_str().unwrap().to_owned();
    let parts = ["(zeEventHostSynchronize, ", "which made the event and shared it in call ", " exited"];
    assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    assert_eq!(run("event-signalled-late").report().violations(), [""; 0]);
}

/// Where a handle does not name its exporter, all but the bytes as they were got are opened as before, and judged
/// alike.
#[test]
fn handles_of_older_drivers_are_judged_alike() {
    for (case, expected) in
        CASES.into_iter().filter(|(case, _)| !["bytes-", "race-"].iter().any(|it| case.starts_with(it)))
    {
        let outcome = TestRun::new("ze_sharing", Release::R2026_2, Adapter::V2).env("ZE_SOFT_HANDLES", "descriptor");
        let outcome = outcome.arg(case).run();
        assert!(outcome.stdout.contains("producer is done"), "{case}: {}", outcome.stderr);
        let violations = outcome.report().violations();
        let worse: Vec<_> = violations.iter().filter(|violation| !violation.starts_with("note ")).collect();
        assert_eq!(worse, expected, "{case}: {:#?}", outcome.report());
    }
}

/// The notes show whose the bytes were taken for.
#[test]
fn bytes_as_they_were_got_belong_to_the_get_of_their_exporter() {
    for case in ["bytes-right", "bytes-of-like-process", "bytes-number-in-use", "bytes-of-pool"] {
        let outcome = run(case);
        assert_eq!(outcome.report().violations(), [""; 0], "{case}");
        outcome.traces().iter().for_each(record_fields::assert_as_declared);
    }
    for (case, code) in [("bytes-after-put", "use-after-put"), ("bytes-after-free", "use-after-free")] {
        let report = run(case).report();
        let message = report.finding(code)["message"].as_str().unwrap().to_owned();
        assert!(message.contains("which returned ZE_RESULT_ERROR_INVALID_ARGUMENT"), "{message}");
    }
}

/// The device knows that the copy has completed, and nobody can know whether the program does.
#[test]
fn what_the_device_has_completed_is_not_in_use() {
    for case in ["memory-copied-at-once", "memory-executed-at-once", "memory-closed-unproved"] {
        let report = run(case).report();
        assert_eq!((report.violations(), report.verdict()), (vec![], "clean"), "{case}");
    }
}

/// What is refused because its context is gone is said, with the call that ended the context.
#[test]
fn a_call_in_a_context_that_is_gone_is_a_note() {
    for (case, refused) in [
        ("memory-context-first", &["zeMemCloseIpcHandle"][..]),
        ("memory-producers-context-first", &["zeMemPutIpcHandle", "zeMemFree"]),
    ] {
        let report = run(case).report();
        let notes: Vec<_> = report.findings().iter().filter(|finding| finding["rule"] == "refused-call").collect();
        assert_eq!(notes.len(), refused.len(), "{case}: {report:#?}");
        for (note, function) in notes.iter().zip(refused) {
            assert_eq!((&note["function"], &note["severity"]), (&(*function).into(), &"note".into()), "{note}");
            assert_eq!(note["other"]["function"], "zeContextDestroy", "{note}");
            let message = note["message"].as_str().unwrap();
            assert!(
                message.contains("ZE_RESULT_ERROR_") && message.contains(": its context was released"),
                "{message}"
            );
        }
    }
}

/// Of a closed list, the latest append is named: when it was executed is not recorded.
#[test]
fn the_command_that_still_uses_the_memory_is_named() {
    for (case, command) in [
        ("memory-closed-while-copied", "zeCommandListAppendMemoryCopy,"),
        ("memory-closed-while-rows-copied", "zeCommandListAppendMemoryCopyRegion,"),
        ("memory-closed-while-executed-again", "zeCommandListAppendMemoryCopy,"),
    ] {
        let report = run(case).report();
        let message = report.finding("closed-while-in-use")["message"].as_str().unwrap().to_owned();
        assert!(message.contains("has not completed: call") && message.contains(&format!("({command}")), "{message}");
    }
}

/// The second place is that of the append. The software device keeps the mapping for the list, so a new one has another
/// address.
#[test]
fn a_list_that_is_executed_after_the_end_is_found_with_its_append() {
    for (case, code, ended) in [
        ("list-executed-after-close", "use-after-close", ", closed in call "),
        ("list-executed-again-after-close", "use-after-close", ", closed in call "),
        ("list-executed-after-reopen", "use-after-close", ", closed in call "),
        ("list-executed-after-free", "use-after-free", ", freed in call "),
    ] {
        let outcome = run(case);
        let report = outcome.report();
        let finding = report.finding(code);
        assert_eq!(finding["function"], "zeCommandQueueExecuteCommandLists", "{finding}");
        assert_eq!(finding["other"]["function"], "zeCommandListAppendMemoryCopy", "{finding}");
        assert!(finding["message"].as_str().unwrap().contains(ended), "{finding}");
        let traces = outcome.traces();
        assert_eq!(trace::count(&traces, "B", "zeCommandQueueExecuteCommandLists"), 1, "{case}");
        traces.iter().for_each(record_fields::assert_as_declared);
    }
}

/// The consumer's handle has another descriptor than the producer's, which is that of the same file.
#[test]
fn an_open_belongs_to_the_get_of_the_same_file() {
    let outcome = run("memory-right");
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
    for (case, note) in [
        ("event-left-open", "note leaked-event"),
        ("physical-left-open", "note leaked-physical-memory"),
        ("physical-destroyed-while-mapped", "note released-while-mapped"),
        ("descriptor-free-first", "note freed-while-open"),
        ("memory-copied-in-other-context", "note wrong-context"),
    ] {
        // An event that is left open may outlive its source, or end with its process before that.
        let found = run(case).report().violations();
        let others = found.iter().filter(|it| case != "event-left-open" || *it != "note freed-while-open");
        assert_eq!(others.collect::<Vec<_>>(), [note], "{case}");
    }
}

/// The calls of a run, how often each is in the traces, and the get and the open that belong together.
type Shared = (&'static str, &'static [(&'static str, usize)], [&'static str; 2]);

const SHARED: [Shared; 7] = [
    (
        "event-two-events",
        &[("zeEventCounterBasedCreate", 2), ("zeEventDestroy", 2), ("zeEventCounterBasedCloseIpcHandle", 1)],
        ["zeEventCounterBasedGetIpcHandle", "zeEventCounterBasedOpenIpcHandle"],
    ),
    (
        "event-by-extension",
        &[("zexCounterBasedEventCreate2", 1), ("zeEventDestroy", 1), ("zexCounterBasedEventCloseIpcHandle", 1)],
        ["zexCounterBasedEventGetIpcHandle", "zexCounterBasedEventOpenIpcHandle"],
    ),
    (
        "physical-right",
        &[("zePhysicalMemDestroy", 2), ("zeVirtualMemMap", 2), ("zeVirtualMemUnmap", 2)],
        ["zePhysicalMemGetProperties", "zePhysicalMemCreate"],
    ),
    ("physical-by-handle", &[("zePhysicalMemDestroy", 1)], ["zeMemGetIpcHandle", "zeMemOpenIpcHandle"]),
    ("descriptor-right", &[("zeMemFree", 2)], ["zeMemGetAllocProperties", "zeMemAllocDevice"]),
    (
        "descriptor-as-handle",
        &[("zeMemPutIpcHandle", 1)],
        ["zeMemGetIpcHandleFromFileDescriptorExp", "zeMemOpenIpcHandle"],
    ),
    (
        "descriptor-of-handle",
        &[("zeMemGetFileDescriptorFromIpcHandleExp", 1)],
        ["zeMemGetIpcHandle", "zeMemAllocDevice"],
    ),
];

/// Two events of one file are told apart, and what is imported belongs to what was exported.
#[test]
fn every_way_of_sharing_is_in_the_trace() {
    for (case, calls, [get, open]) in SHARED {
        let outcome = run(case);
        let traces = outcome.traces();
        for (call, count) in calls {
            assert_eq!(trace::count(&traces, "E", call), *count, "{case}: {call}");
        }
        traces.iter().for_each(record_fields::assert_as_declared);
        let got = record_fields::sorted(&traces, "E", get, "fingerprint");
        let mut opened = record_fields::sorted(&traces, "B", open, "fingerprint");
        // The allocations of the producer open nothing.
        opened.retain(|fingerprint| fingerprint != "null");
        assert!(opened.len() == 1 && got.contains(&opened[0]), "{case}: {got:?} {opened:?}");
    }
}

/// The software device is a driver for the loader here, which older and newer programs call through its symbols.
#[test]
fn a_real_loader_and_its_layers_show_each_call_once() {
    let (libraries, _) = artefacts::libraries();
    let folder = tempfile::tempdir().unwrap();
    let driver = folder.path().join("libze_soft_driver.so");
    fs::copy(libraries.join("libze_loader.so"), &driver).unwrap();
    let under_loader = |layer: &str, case| {
        TestRun::of_program("/usr/bin/env")
            .arg(format!("LD_LIBRARY_PATH={}", level_zero_loader().display()))
            .arg(format!("ZE_ENABLE_ALT_DRIVERS={}", driver.display()))
            .arg(layer)
            .arg(apps::executable("ze_sharing", Release::R2026_2))
            .arg(case)
            .run()
    };
    for layer in ["ZE_ENABLE_TRACING_LAYER=0", "ZE_ENABLE_TRACING_LAYER=1", "ZE_ENABLE_VALIDATION_LAYER=1"] {
        for (case, expected, calls) in [("memory-right", "clean", 2), ("memory-close-twice", "findings", 3)] {
            let outcome = under_loader(layer, case);
            assert_eq!(outcome.stdout, "opened\nproducer is done\n", "{layer}: {}", outcome.stderr);
            assert_eq!(outcome.report().verdict(), expected, "{layer}");
            let traces = outcome.traces();
            let counted = |call| trace::count(&traces, "B", call);
            let opens = counted("zeMemOpenIpcHandle") + counted("zeMemCloseIpcHandle");
            assert_eq!((counted("zeMemGetIpcHandle"), opens), (1, calls), "{layer}");
        }
    }
    // What this loader has not got is left out: it is of the API 1.4.
    for (case, expected, once) in [
        ("event-by-extension", "clean", "zexCounterBasedEventOpenIpcHandle"),
        ("physical-by-address", "clean", "zeMemOpenIpcHandle"),
        ("physical-by-handle", "clean", "zePhysicalMemDestroy"),
        ("descriptor-right", "clean", "zeMemGetAllocProperties"),
        ("descriptor-closed", "findings", "zeMemCloseIpcHandle"),
    ] {
        let outcome = under_loader("ZE_ENABLE_TRACING_LAYER=0", case);
        assert!(!outcome.stderr.contains("test program:"), "{case}: {}", outcome.stderr);
        assert_eq!(outcome.report().verdict(), expected, "{case}");
        assert_eq!(trace::count(&outcome.traces(), "B", once), 1, "{case}");
    }
}

/// A loader with several drivers calls through the tables that the handles begin with. No such loader can be had from
/// Debian, so a small program calls as that one does, and a small driver has such handles.
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
            let bare = test_run().untraced().run();
            let traced = test_run().run();
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

/// A device has a handle in Unified Runtime and another one in Level Zero.
#[test]
fn a_device_is_one_in_both_interfaces() {
    for adapter in [Adapter::V1, Adapter::V2] {
        let run = |arguments: &[&str]| {
            let run = TestRun::new("native_device", Release::R2026_2, adapter).env("ZE_SOFT_DEVICES", "2");
            let outcome = arguments.iter().fold(run, |run, argument| run.arg(*argument)).run();
            assert_eq!(outcome.stdout, "done\n", "{}", outcome.stderr);
            outcome.report()
        };
        assert_eq!(run(&[]).violations(), ["note open-in-producer"]);
        let report = run(&["other"]);
        assert_eq!(report.violations(), ["note open-in-producer", "note wrong-device"]);
        let message = report.finding("wrong-device")["message"].as_str().unwrap().to_owned();
        assert!(message.contains("is on device 0 (urscope software device)"), "{message}");
    }
}

/// What the adapters and libumf do for a program is part of its calls of Unified Runtime.
#[test]
fn calls_below_unified_runtime_are_not_recorded() {
    for adapter in [Adapter::V1, Adapter::V2] {
        let outcome = TestRun::new("clean", Release::R2026_2, adapter).run();
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
    let outcome = run("memory-right");
    let folder = outcome.trace_folder();
    let listed = |options: &[&str]| {
        let ended = urscope(&[&["calls"], options, &[folder.to_str().unwrap()]].concat());
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        ended.stdout
    };
    let all = listed(&["--ipc"]);
    let names: Vec<_> = all.lines().map(|line| line.split(['(', ')']).nth(2).unwrap().trim().to_owned()).collect();
    assert_eq!(names, ["zeMemGetIpcHandle", "zeMemOpenIpcHandle", "zeMemCloseIpcHandle", "zeMemPutIpcHandle"], "{all}");
    assert_eq!(listed(&[]).lines().count(), 8);
    assert_eq!(listed(&["--level", "ur"]), "");
    assert_eq!(listed(&["--kind", "event"]), "");
    let as_json = listed(&["--ipc", "--format", "json"]);
    let first: Value = serde_json::from_str(as_json.lines().next().unwrap()).unwrap();
    let fingerprint = first["answers"]["fingerprint"].as_str().unwrap();
    let about = listed(&["--handle", fingerprint]);
    assert_eq!(about.lines().count(), 4, "the get, the open, the close and the put: {about}");
    let pid = first["pid"].to_string();
    assert_eq!(listed(&["--ipc", "--pid", &pid]).lines().count(), 2);
}

#[test]
fn an_open_of_raw_bytes_is_listed_with_the_get_of_its_handle() {
    for case in ["bytes-right", "bytes-of-like-process", "descriptor-of-handle"] {
        let outcome = run(case);
        let folder = outcome.trace_folder();
        let calls = |options: &[&str]| -> Vec<Value> {
            let ended = urscope(&[&["calls", "--format", "json"], options, &[folder.to_str().unwrap()]].concat());
            assert_eq!(ended.code, 0, "{}", ended.stderr);
            ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        let get = &calls(&["--ipc"])[0];
        let of_handle = calls(&["--handle", get["answers"]["fingerprint"].as_str().unwrap()]);
        let ends = |call: &Value| ["zeMemCloseIpcHandle", "zeMemFree"].contains(&call["function"].as_str().unwrap());
        let of_others = of_handle.iter().filter(|call| call["pid"] != get["pid"] && !ends(call)).count();
        assert_eq!(of_others, 1, "{case}: {of_handle:?}");
    }
}
