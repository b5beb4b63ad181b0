//! The handle data of our backend: any bytes, and data that a hostile producer encoded with a correct checksum.
//!
//! Bytes that decode are those that encoding the result gives again. A plausible object decodes to itself, any other
//! one is refused.

#![no_main]

#[path = "../checks/handle_data.rs"]
mod handle_data;

libfuzzer_sys::fuzz_target!(|data: &[u8]| handle_data::check(data));
