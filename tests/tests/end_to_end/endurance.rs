//! Our own backend under load: many cycles, many threads, and handle data that was tampered with. It loses no resource,
//! and harms neither process.

use urscope_tests::{Adapter, Outcome, Release, TestRun, apps};

use crate::on_both_adapters;

fn kinds(adapter: Adapter) -> &'static [&'static str] {
    match adapter {
        Adapter::V2 => &["memory", "physical memory", "event"],
        // It cannot signal an event twice.
        Adapter::V1 => &["memory", "physical memory"],
    }
}

/// Runs on our backend, without validation. mallinfo2(3), which the programs ask, would count what is in glibc's caches
/// as used.
fn ours(test_run: TestRun) -> Outcome {
    let test_run = test_run.env("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0");
    let test_run = test_run.env("URSCOPE_BACKEND", "level_zero").env("URSCOPE_VALIDATE", "off");
    let outcome = test_run.option("--no-check").run();
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    outcome
}

/// Runs without a trace, which would be gigabytes.
fn untraced(app: &str, adapter: Adapter) -> TestRun {
    let program = apps::executable(app, Release::R2026_2);
    TestRun::of_program("/usr/bin/env").adapter(adapter).arg("URSCOPE_DIR=/dev/null/none").arg(program)
}

const NOTHING: &str = "0 descriptors, 0 mappings and no memory more";

on_both_adapters! {
    /// Neither where the driver exports a new descriptor each time, nor where it exports the same one; on releases
    /// without these functions, through those that urscope exports.
    fn no_descriptor_and_no_memory_is_lost(adapter) {
        for release in [Release::R2026_2, Release::R2026_1, Release::R2026_0, Release::R2025_3] {
            for exports in ["each", "one"] {
                let outcome = ours(TestRun::new("backend_cycles", release, adapter).env("ZE_SOFT_EXPORT_FD", exports));
                let expected = kinds(adapter).iter().map(|kind| format!("{kind}: {NOTHING}"));
                let said: Vec<&str> = outcome.stdout.lines().collect();
                assert_eq!(said, expected.collect::<Vec<_>>(), "{release:?}, {exports}");
            }
        }
    }

    fn many_cycles_leave_nothing_behind(adapter) {
        let outcome = ours(untraced("backend_cycles", adapter).arg("20000"));
        let expected = kinds(adapter).iter().map(|kind| format!("{kind}: {NOTHING}"));
        assert_eq!(outcome.stdout.lines().collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }

    fn eight_threads_with_all_kinds_leave_nothing_behind(adapter) {
        let outcome = ours(untraced("backend_cycles", adapter).arg("3000").arg("8"));
        assert_eq!(outcome.stdout, format!("8 threads: {NOTHING}\n"));
    }

    /// Data that were altered by accident are refused. Data with a new checksum are opened if they still describe what
    /// is there.
    fn tampered_data_harm_neither_process(adapter) {
        let outcome = ours(TestRun::new("hostile_data", Release::R2026_2, adapter));
        let refused = "0 altered accepted, 0 answered otherwise";
        let mut expected: Vec<String> =
            kinds(adapter).iter().map(|kind| format!("{kind}: {refused}; {NOTHING}")).collect();
        expected.push(format!("producer: {NOTHING}"));
        assert_eq!(outcome.stdout.lines().collect::<Vec<_>>(), expected, "{}", outcome.stderr);
        // Refused data did not reach libumf, which would have printed an error.
        assert!(!outcome.stderr.contains("UMF"), "{}", outcome.stderr);
    }
}
