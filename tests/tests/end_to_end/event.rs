//! Events shared between processes, in every order of signal and wait: real SYCL programs, their data and their records.

use urscope_tests::{Adapter, Release, TestRun, record_fields, trace};

use crate::complete_traces::{assert_counts, complete_traces};

const GET: &str = "urIPCGetEventHandleExp";
const PUT: &str = "urIPCPutEventHandleExp";
const OPEN: &str = "urIPCOpenEventHandleExp";

/// Each order, and what the program prints in it. `@1` is the first pattern; `@2` and `@3` are the patterns written before the
/// first and the second signal.
///
/// "pending" is expected where the signal is certain to wait for the next step of the other side.
pub(crate) const ORDERS: [(&str, &[&str]); 8] = [
    ("signalled_before_get", &["producer writes @2", "consumer finds the event complete", "consumer read @2"]),
    ("signalled_after_get", &["producer writes @2", "consumer finds the event complete", "consumer read @2"]),
    ("signalled_after_open", ONE_SIGNAL),
    ("waited_in_queue", &["producer writes @2", "consumer finds its copy pending", "consumer read @2"]),
    (
        "consumer_signals",
        &[
            "consumer writes @2",
            "producer finds the event pending",
            "producer finds the event complete",
            "producer read @2",
        ],
    ),
    (
        "two_signals",
        &[
            "producer writes @2",
            "consumer finds the event pending",
            "consumer finds the event complete",
            "consumer read @2",
            "producer writes @3",
            "consumer finds the event pending",
            "consumer finds the event complete",
            "consumer read @3",
        ],
    ),
    ("put_before_wait", ONE_SIGNAL),
    (
        "import_outlives",
        &[
            "producer writes @2",
            "consumer finds the event complete",
            "consumer read @2",
            "consumer writes @3",
            "consumer finds the event complete",
            "consumer read @3",
        ],
    ),
];

const ONE_SIGNAL: &[&str] = &[
    "producer writes @2",
    "consumer finds the event pending",
    "consumer finds the event complete",
    "consumer read @2",
];

fn test_run(order: &str) -> TestRun {
    TestRun::of("clean_event", Release::R2026_2, Adapter::V2).arg(order)
}

/// What the program printed, with the numbers of the patterns in place of their checksums.
fn printed(stdout: &str) -> Vec<String> {
    let mut sums: Vec<&str> = Vec::new();
    let mut lines: Vec<String> = stdout.lines().map(String::from).collect();
    for written in stdout.lines() {
        if let Some((_, sum)) = written.split_once(" wrote ").or_else(|| written.split_once(" writes ")) {
            assert!(!sums.contains(&sum), "two patterns look the same: {stdout}");
            sums.push(sum);
        }
    }
    for line in &mut lines {
        for (number, sum) in sums.iter().enumerate() {
            *line = line.replace(sum, &format!("@{}", number + 1));
        }
    }
    lines
}

#[test]
fn every_order_of_signal_and_wait_is_clean() {
    for (order, expected) in ORDERS {
        let outcome = test_run(order).run();
        assert_eq!(outcome.code, 0, "{order}: {}", outcome.stderr);
        let before = ["producer wrote @1", "consumer read @1"];
        assert_eq!(printed(&outcome.stdout), [&before[..], expected].concat(), "{order}");

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
    let traces = complete_traces(&test_run("two_signals").run());
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
    let outcome = TestRun::of("scenario event_leaked_handle", Release::R2026_2, Adapter::V2).run();
    assert_counts(&outcome, &complete_traces(&outcome), [(GET, 1), (PUT, 0), (OPEN, 0)]);
}

#[test]
fn an_opened_event_that_is_never_released_is_recorded_whole() {
    let outcome = TestRun::of("scenario event_leaked", Release::R2026_2, Adapter::V2).run();
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
        let test_run = || TestRun::of("ipc_refusals", Release::R2026_2, adapter).option("--no-check");
        for outcome in [test_run().run(), test_run().option("--no-shim").run()] {
            assert_eq!((outcome.code, outcome.stdout), (0, refused(aspects)), "{adapter:?}: {}", outcome.stderr);
        }
    }
}
