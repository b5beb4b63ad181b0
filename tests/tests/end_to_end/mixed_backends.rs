//! Producers and consumers with different implementations: one without urscope, or each with another backend.

use std::ffi::OsString;

use urscope_tests::{Adapter, Release, TestRun, artefacts};

const ALL: [&str; 3] = ["memory: 0 read 42", "physical memory: 0 read 43", "event: 0 waited"];
const MEMORY_ALONE: [&str; 3] = ["memory: 0 read 42", "physical memory: not shared", "event: not shared"];

/// Runs a producer, and its consumer with one more environment variable.
fn found(test_run: TestRun, of_consumer: impl Into<OsString>, expected: [&str; 3]) {
    let outcome = test_run.option("--no-check").arg(of_consumer).run();
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!((outcome.code, lines.as_slice()), (0, expected.as_slice()), "{}", outcome.stderr);
}

fn test_run(adapter: Adapter) -> TestRun {
    TestRun::new("ur_mixed_backends", Release::R2026_2, adapter)
}

const ADAPTERS: [(Adapter, [&str; 3]); 2] = [(Adapter::V2, ALL), (Adapter::V1, MEMORY_ALONE)];

#[test]
fn a_consumer_without_urscope_opens_what_a_producer_with_it_shares() {
    for (adapter, expected) in ADAPTERS {
        found(test_run(adapter), "LD_PRELOAD=", expected);
    }
}

#[test]
fn a_consumer_with_urscope_opens_what_a_producer_without_it_shares() {
    for (adapter, expected) in ADAPTERS {
        let mut preload = OsString::from("LD_PRELOAD=");
        preload.push(artefacts::preloaded());
        found(test_run(adapter).option("--no-shim"), preload, expected);
    }
}

/// The note on the refusal names both libraries.
#[test]
fn an_adapter_refuses_what_another_one_shares() {
    let outcome = TestRun::new("sharing other_adapter", Release::R2026_2, Adapter::V1).run();
    assert!(outcome.stdout.ends_with("open refused\n"), "{}", outcome.stdout);
    let report = outcome.report();
    let message = report.finding("refused-open")["message"].as_str().expect("a finding has a message");
    let adapters = "; the exporter's adapter is libur_adapter_level_zero.so.0, and that of this process is \
                    libur_adapter_level_zero_v2.so.0";
    assert!(message.ends_with(adapters), "{message}");
}

#[test]
fn an_adapter_refuses_what_our_backend_shares() {
    let found = |adapter, expected| {
        found(test_run(adapter).env("URSCOPE_BACKEND", "level_zero"), "URSCOPE_BACKEND=adapter", expected);
    };
    found(Adapter::V2, ["memory: 4 refused", "physical memory: 4 refused", "event: 4 refused"]);
    found(Adapter::V1, ["memory: 4 refused", "physical memory: 44 refused", "event: not shared"]);
}

/// Handle data of an adapter for physical memory and events do not show where they come from.
#[test]
fn our_backend_opens_memory_of_an_adapter_and_refuses_the_rest() {
    let found = |adapter, expected| {
        found(test_run(adapter).env("URSCOPE_BACKEND", "adapter"), "URSCOPE_BACKEND=level_zero", expected);
    };
    found(Adapter::V2, ["memory: 0 read 42", "physical memory: 4 refused", "event: 4 refused"]);
    found(Adapter::V1, MEMORY_ALONE);
}
