//! Events shared between processes, in every order of signal and wait: real SYCL programs, their data and their
//! records.

use urscope_tests::{Adapter, Release, TestRun, record_fields, trace};

use crate::complete_traces::{assert_counts, complete_traces};

const GET: &str = "urIPCGetEventHandleExp";
const PUT: &str = "urIPCPutEventHandleExp";
const OPEN: &str = "urIPCOpenEventHandleExp";

/// The scenarios with each order of signal and wait. They compare the bytes that were written before each signal, and
/// the state of the event where the signal is certain to wait for a later step.
pub(crate) const ORDERS: [&str; 8] = [
    "scenario event_signalled_before_get",
    "scenario event_signalled_after_get",
    "scenario event_signalled_after_open",
    "scenario event_waited_in_queue",
    "scenario event_consumer_signals",
    "scenario event_two_signals",
    "scenario event_put_before_wait",
    "scenario event_import_outlives",
];

fn test_run(order: &str) -> TestRun {
    TestRun::new(order, Release::R2026_2, Adapter::V2)
}

#[test]
fn every_order_of_signal_and_wait_is_clean() {
    for order in ORDERS {
        let outcome = test_run(order).run();
        assert_eq!(outcome.code, 0, "{order}: {}", outcome.stderr);
        let report = outcome.report();
        assert_eq!((report.verdict(), report.violations()), ("clean", vec![]), "{order}: {report:#?}");
        let traces = complete_traces(&outcome);
        assert_eq!((traces.len(), report.processes().len()), (2, 2), "{order}");
        assert_counts(&outcome, &traces, [(GET, 1), (PUT, 1), (OPEN, 1)]);
    }
}

/// All records of an event and of its handle agree.
#[test]
fn the_records_agree() {
    let traces = complete_traces(&test_run("scenario event_two_signals").run());
    let values = |phase, call, field| record_fields::values(&traces, phase, call, field);
    assert_eq!(values("E", GET, "fingerprint"), values("B", OPEN, "fingerprint"), "other bytes than were got");
    assert_eq!(values("E", GET, "data_size"), [64]);
    assert_eq!(values("B", OPEN, "data_size"), [64]);
    assert_eq!(values("E", GET, "data"), values("B", PUT, "data"), "put is what was got");
    assert_eq!(values("B", "urEventCreateExp", "flags"), ["0x2"], "the IPC flag");
    assert_eq!(values("E", "urEventCreateExp", "object"), values("B", GET, "object"), "got is what was created");

    // Both ends of the event are released, each by its own process.
    let mut ends = values("E", "urEventCreateExp", "object");
    ends.extend(values("E", OPEN, "object"));
    let mut released = values("B", "urEventRelease", "object");
    ends.sort_by_key(ToString::to_string);
    released.sort_by_key(ToString::to_string);
    assert_eq!(released, ends);
    assert_eq!(trace::count(&traces, "E", "urEventWait"), 2, "one for each signal");
}

#[test]
fn a_handle_that_is_never_put_is_recorded_whole() {
    let outcome = test_run("scenario event_leaked_handle").run();
    assert_counts(&outcome, &complete_traces(&outcome), [(GET, 1), (PUT, 0), (OPEN, 0)]);
}

#[test]
fn an_opened_event_that_is_never_released_is_recorded_whole() {
    let outcome = test_run("scenario event_leaked").run();
    let traces = complete_traces(&outcome);
    assert_counts(&outcome, &traces, [(GET, 1), (PUT, 1), (OPEN, 1)]);
    let released = record_fields::values(&traces, "B", "urEventRelease", "object");
    assert_eq!(
        released,
        record_fields::values(&traces, "E", "urEventCreateExp", "object"),
        "only the producer's is released"
    );
}

/// SYCL refuses with an exception what no adapter may share, and what the v1 adapter cannot.
#[test]
fn what_cannot_be_shared_is_refused() {
    let refused = |aspects: [&str; 3]| {
        let [memory, physical, event] = aspects;
        let what = [
            "get of physical memory that is not shared",
            "open of physical memory from seven bytes",
            "open of physical memory from zeros",
            "get of an event that is not shared",
            "get of an event of a command",
            "open of an event from seven bytes",
            "a shared event with profiling",
            "get of an imported event",
        ];
        let aspects = format!("memory: {memory}\nphysical memory: {physical}\nevent: {event}\n");
        what.iter().fold(aspects, |lines, line| lines + line + ": refused\n")
    };
    for (adapter, aspects) in [(Adapter::V2, ["yes", "yes", "yes"]), (Adapter::V1, ["yes", "no", "no"])] {
        let test_run = || TestRun::new("ipc_refusals", Release::R2026_2, adapter).option("--no-check");
        for outcome in [test_run().run(), test_run().option("--no-shim").run()] {
            assert_eq!((outcome.code, outcome.stdout), (0, refused(aspects)), "{adapter:?}: {}", outcome.stderr);
        }
    }
}
