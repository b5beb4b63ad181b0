//! The reader of binary traces, and the judge behind it.

#![no_main]

#[path = "../checks/binary.rs"]
mod binary;
#[path = "../checks/judgement.rs"]
mod judgement;

libfuzzer_sys::fuzz_target!(|data: &[u8]| binary::check(data));
