//! The reader of traces: any bytes, in any pieces.

#![no_main]

#[path = "../checks/trace.rs"]
mod trace;

libfuzzer_sys::fuzz_target!(|data: &[u8]| trace::check(data));
