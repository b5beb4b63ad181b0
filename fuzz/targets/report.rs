//! What is kept and merged between runs: report files, suppressions and baselines. What is done with an input takes a
//! limited amount of memory for each of its bytes.

#![no_main]

#[path = "../checks/report.rs"]
mod report;

/// The most memory that is taken for any input, in bytes, and for each byte of it. The five forms of the report exist
/// at the same time here.
const MOST: u64 = 1 << 20;
const MOST_FOR_A_BYTE: u64 = 150;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let used = allocation_counter::measure(|| report::check(data)).bytes_max;
    let most = MOST + MOST_FOR_A_BYTE * data.len() as u64;
    assert!(used <= most, "{} bytes took {used} bytes of memory, more than {most}", data.len());
});
