//! Our own backend in place of the adapter's entry points: programs get the same results, but mistakes that the
//! released adapters accept are refused.

use urscope_tests::{Adapter, Outcome, Release, TestRun};

use crate::event::ORDERS;
use crate::on_both_adapters;

fn run(app: &str, release: Release, adapter: Adapter) -> Outcome {
    let outcome = TestRun::new(app, release, adapter).env("URSCOPE_BACKEND", "level_zero").run();
    assert!(outcome.code < 2, "{app} on {release:?} {adapter:?} ended with {}: {}", outcome.code, outcome.stderr);
    outcome
}

fn is_clean(app: &str, release: Release, adapter: Adapter) -> Outcome {
    let outcome = run(app, release, adapter);
    let report = outcome.report();
    assert_eq!((report.verdict(), report.violations()), ("clean", vec![]), "{report:#?}");
    outcome
}

on_both_adapters! {
    fn a_correct_program_is_served_on_every_release(adapter) {
        for release in [Release::R2026_2, Release::R2026_1, Release::R2026_0] {
            for app in ["clean", "ur_sharing direct"] {
                let [ours, theirs] = [is_clean(app, release, adapter), TestRun::new(app, release, adapter).run()];
                assert_eq!(ours.stdout, theirs.stdout, "{app} on {release:?}");
            }
        }
    }

    /// 2025.3 has no IPC entry points; a program that looks them up by name is served all the same.
    fn a_release_without_entry_points_is_served(adapter) {
        for backend in ["auto", "level_zero"] {
            let test_run = || TestRun::new("ur_sharing direct", Release::R2025_3, adapter);
            let outcome = test_run().env("URSCOPE_BACKEND", backend).run();
            assert_eq!((outcome.code, outcome.report().verdict()), (0, "clean"), "{}", outcome.stderr);
            assert_eq!(outcome.stdout, "producer wrote 42\nconsumer read 42\n");
            assert!(!outcome.stderr.contains("cannot watch"), "{}", outcome.stderr);
            let bare = test_run().untraced().run();
            assert_ne!(bare.code, 0, "the runtime alone serves it, too: {}", bare.stdout);
        }
    }

    fn eight_threads_are_served_at_once(adapter) {
        let [ours, theirs] = [run("clean_threads 100", Release::R2026_2, adapter), TestRun::new("clean_threads 100", Release::R2026_2, adapter).run()];
        assert_eq!((ours.report().verdict(), ours.report().violations()), ("clean", theirs.report().violations()));
    }

    /// Every get returns other bytes there.
    fn gets_of_one_allocation_are_counted_together(adapter) {
        let outcome = run("scenario unreturned_gets", Release::R2026_2, adapter);
        let theirs = TestRun::new("scenario unreturned_gets", Release::R2026_2, adapter).run();
        assert_eq!(outcome.report().violations(), theirs.report().violations(), "{}", outcome.stderr);
    }

    /// The handle data have the size of ours, so no call reached the adapter's entry points.
    fn the_handle_data_are_ours(adapter) {
        let traces = is_clean("clean", Release::R2026_2, adapter).traces();
        let sizes: Vec<u64> = traces
            .iter()
            .flat_map(|trace| trace.calls("B").chain(trace.calls("E")))
            .filter(|record| record["name"] != "urDeviceGetInfo")
            .filter_map(|record| record["args"]["data_size"].as_u64())
            .collect();
        assert_eq!(sizes, [128, 128]);
    }

    /// The adapters accept all of these.
    fn what_the_caller_may_not_end_is_refused(adapter) {
        for (app, printed) in [
            ("mistakes double_put", "second put refused"),
            ("scenario put_of_unknown", "p: put unknown may-fail: refused"),
            ("mistakes double_close", "second close refused"),
            ("scenario close_of_unknown", "p: close a may-fail: refused"),
            ("scenario close_interior", "consumer: close m + 4096 may-fail: refused"),
            ("scenario close_wrong_context", "consumer: close m in other may-fail: refused"),
        ] {
            let outcome = run(app, Release::R2026_2, adapter);
            assert!(outcome.stdout.lines().any(|line| line == printed), "{app}: {}", outcome.stdout);
        }
    }

    /// v1 alone returns success for each failed open, and writes into the caller's data.
    fn damaged_data_are_refused_and_whole_ones_left_untouched(adapter) {
        let lines: Vec<String> =
            run("sharing damaged_handle", Release::R2026_2, adapter).stdout.lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 7, "{lines:#?}");
        assert_eq!(lines[1..4], ["opened with a bit changed: 0", "opened when cut short: 0", "with a byte too many refused"]);
        assert_eq!(lines[0].replace("producer wrote", "consumer read"), lines[4]);
        assert_eq!(lines[5..], ["the data are untouched", "after their put refused"]);
    }
}

on_both_adapters! {
    /// v1 alone cannot share physical memory.
    fn physical_memory_is_shared(adapter) {
        is_clean("scenario physical_side_by_side", Release::R2026_2, adapter);
    }

    /// Handle data made by the adapter, as from a producer without urscope.
    fn data_of_an_adapter_are_opened(adapter) {
        let outcome = TestRun::new("sharing other_backend", Release::R2026_2, adapter)
            .env("URSCOPE_BACKEND", "adapter")
            .arg("level_zero")
            .run();
        assert!(outcome.code < 2, "{}", outcome.stderr);
        let lines: Vec<&str> = outcome.stdout.lines().collect();
        let read = lines[0].replace("producer wrote", "consumer read");
        assert_eq!(lines[1..], [read.as_str(), read.as_str(), "third close refused"], "{}", outcome.stderr);
    }
}

/// The v1 adapter cannot signal an event twice, so it has no event to share.
#[test]
fn events_are_shared_where_queues_can_signal_them() {
    for order in ORDERS {
        let [ours, theirs] = ["level_zero", "adapter"]
            .map(|backend| TestRun::new(order, Release::R2026_2, Adapter::V2).env("URSCOPE_BACKEND", backend).run());
        assert_eq!((ours.code, &ours.stdout), (0, &theirs.stdout), "{order}: {}", ours.stderr);
    }
    let printed = run("ipc_refusals", Release::R2026_2, Adapter::V1).stdout;
    assert!(printed.starts_with("memory: yes\nphysical memory: yes\nevent: no\n"), "{printed}");
}

/// An unknown backend is reported, and the default is used.
#[test]
fn an_unknown_backend_is_reported() {
    let outcome = TestRun::new("clean", Release::R2026_2, Adapter::V2).env("URSCOPE_BACKEND", "level0").run();
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let warning = "URSCOPE_BACKEND=\"level0\" is not auto, adapter or level_zero; \"auto\" is used instead";
    assert!(outcome.stderr.contains(warning), "{}", outcome.stderr);
}
