//! Physical memory shared between processes: real SYCL programs, their data, their records and their verdict.

use urscope_tests::hunt::Stage;
use urscope_tests::{Adapter, Outcome, Release, TestRun, discovery, record_fields, trace};

use crate::complete_traces::{assert_counts, complete_traces};

const CREATE: &str = "urPhysicalMemCreate";
const GET: &str = "urIPCGetPhysMemHandleExp";
const PUT: &str = "urIPCPutPhysMemHandleExp";
const OPEN: &str = "urIPCOpenPhysMemHandleExp";
const CLOSE: &str = "urIPCClosePhysMemHandleExp";

fn run(app: &str) -> Outcome {
    TestRun::new(app, Release::R2026_2, Adapter::V2).run()
}

#[test]
fn three_pieces_side_by_side_are_clean() {
    let outcome = run("scenario physical_side_by_side");
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let report = outcome.report();
    assert_eq!((report.verdict(), report.violations()), ("clean", vec![]), "{report:#?}");
    let traces = complete_traces(&outcome);
    assert_eq!((traces.len(), report.processes().len()), (2, 2));
    assert_counts(&outcome, &traces, [(GET, 3), (PUT, 3), (OPEN, 3), (CLOSE, 3)]);
}

/// All records of an object and of its handle agree.
#[test]
fn the_records_agree() {
    let traces = complete_traces(&run("scenario physical_side_by_side"));
    let sorted = |phase, call, field| record_fields::sorted(&traces, phase, call, field);
    assert_eq!(sorted("E", GET, "fingerprint"), sorted("B", OPEN, "fingerprint"), "other bytes than were got");
    assert_eq!(sorted("E", GET, "data_size"), sorted("B", OPEN, "data_size"));
    assert_eq!(sorted("E", GET, "data_size"), ["16", "16", "16"]);
    assert_eq!(sorted("E", GET, "data"), sorted("B", PUT, "data"), "put is what was got");
    assert_eq!(sorted("E", CREATE, "object"), sorted("B", GET, "object"), "got is what was created");
    assert_eq!(sorted("E", OPEN, "object"), sorted("B", CLOSE, "object"), "closed is what was opened");
    assert_eq!(sorted("B", CREATE, "flags"), [r#""0x2""#; 3], "the IPC flag");

    let mut fingerprints = sorted("E", GET, "fingerprint");
    fingerprints.dedup();
    assert_eq!(fingerprints.len(), 3, "three handles look the same");

    // The consumer maps the last piece in two parts, one of them from its middle.
    let mut offsets = sorted("B", "urVirtualMemMap", "offset");
    offsets.retain(|offset| offset != "0");
    assert_eq!((offsets.len(), trace::count(&traces, "B", "urVirtualMemMap")), (1, 7));
    assert_eq!(trace::count(&traces, "E", "urVirtualMemUnmap"), 7);
}

#[test]
fn a_handle_that_is_never_put_is_recorded_whole() {
    let outcome = run("scenario physical_leaked_handle");
    let traces = complete_traces(&outcome);
    assert_counts(&outcome, &traces, [(GET, 1), (PUT, 0), (OPEN, 0), (CLOSE, 0)]);
}

#[test]
fn opened_memory_that_is_never_closed_is_recorded_whole() {
    let outcome = run("scenario physical_leaked_memory");
    let traces = complete_traces(&outcome);
    assert_counts(&outcome, &traces, [(GET, 1), (PUT, 1), (OPEN, 1), (CLOSE, 0)]);
}

#[test]
fn an_unmap_that_comes_too_early_is_found_and_a_wait_prevents_it() {
    for backend in ["adapter", "level_zero"] {
        let run = |how: &str| {
            let run = TestRun::new("unmap_in_use", Release::R2026_2, Adapter::V2).env("URSCOPE_BACKEND", backend);
            run.arg(how).run()
        };
        let found = run("forgotten").report();
        assert_eq!(found.violations(), ["error closed-while-in-use"], "{backend}: {found:#?}");
        let message = found.finding("closed-while-in-use")["message"].as_str().unwrap().to_owned();
        assert!(message.contains(" unmaps physical memory ") && message.contains("(urEnqueueUSMMemcpy,"), "{message}");
        let fixed = run("fixed");
        assert_eq!(fixed.report().violations(), [""; 0], "{backend}: {}", fixed.stderr);
        assert_eq!(fixed.stdout.lines().last(), Some("consumer has what was sent"));
    }
}

#[test]
fn memory_that_is_released_while_another_has_it_open_stays_as_it_was() {
    let outcome = run("scenario physical_released_while_open");
    assert!(outcome.stdout.contains("consumer: compare w seed 4\n"), "{}", outcome.stderr);
    let traces = complete_traces(&outcome);
    assert_counts(&outcome, &traces, [(GET, 1), (PUT, 1), (OPEN, 1), (CLOSE, 1)]);
}

/// The process dies of the copy, at the latest when it waits for it. Before, it has mapped the memory at the address a
/// second time.
#[test]
fn a_copy_to_what_was_unmapped_is_found() {
    let scenario = "p: physical a ipc\np: get-physical a -> h\nc: open-physical h -> m\nc: map m -> v\nc: unmap v\n\
                    c: map m -> v\nc: copy v sized 64\nc: host-waits\nc: unmap v\nc: copy v sized 64\n\
                    c: host-waits\n";
    for stage in [Stage::V2, Stage::OursOnV2] {
        let report = discovery::play(scenario, stage).report();
        assert_eq!(report.violations()[0], "error use-after-close", "{stage}: {report:#?}");
        assert_eq!(report.died_of("SIGSEGV").count(), 1, "{stage}: {report:#?}");
    }
}
