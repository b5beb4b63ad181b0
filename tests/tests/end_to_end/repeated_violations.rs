//! A violation that repeats thousands of times is reported a few times, and costs no memory.

use urscope_tests::{Adapter, Release, TestRun};

#[test]
fn thousands_of_mistakes_cost_no_memory_and_few_lines() {
    const TIMES: usize = 2000;
    let test_run = TestRun::new("ur_sharing repeated_violations", Release::R2026_2, Adapter::V2)
        .option("--no-check")
        .arg(TIMES.to_string());
    // mallinfo2(3) would count what is in glibc's caches as used.
    let test_run = test_run.env("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0");
    let outcome = test_run.env("URSCOPE_ON_ERROR", "refuse").run();
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let expected =
        ["opens", "second puts", "closes of nothing", "null handles"].map(|what| format!("{what}: no memory more"));
    assert_eq!(outcome.stdout.lines().collect::<Vec<_>>(), expected);

    // Each violation is in two loops, so at two places.
    let lines = |begins: &str| outcome.stderr.lines().filter(|line| line.starts_with(begins)).count();
    for rule in ["double-put", "close-of-unknown", "invalid-argument"] {
        assert_eq!(lines(&format!("urscope: error: {rule}: ")), 2, "{}", outcome.stderr);
        assert_eq!(
            lines(&format!("urscope: {rule}: found {TIMES} times in all at this call")),
            1,
            "{}",
            outcome.stderr
        );
    }
    assert!(outcome.stderr.lines().count() < 20, "{}", outcome.stderr);
    let traces = outcome.traces();
    let found = traces.iter().flat_map(|trace| &trace.records).filter(|record| record["name"] == "finding");
    // slow-call depends on the machine.
    let found = found.filter(|finding| finding["args"]["rule"] != "slow-call").count();
    assert_eq!(
        found,
        3 * (TIMES + TIMES / 10) + 2,
        "the trace has each of them, the mapping that is left, and that it is of the same process"
    );
}
