//! What is kept and merged between runs: report files, suppressions and baselines.

#![no_main]

#[path = "../checks/report.rs"]
mod report;

libfuzzer_sys::fuzz_target!(|data: &[u8]| report::check(data));
