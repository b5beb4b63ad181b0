//! What `zeModuleCreate` takes: SPIR-V, and native binaries of the software device.
//!
//! Any bytes are read or refused. With a header in front, they are the instructions of a module. A native binary is
//! made of what was read, and is itself read as the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use urscope_device::native_binary_of;

/// SPIR-V 1.0, with ids up to 1000.
const HEADER: [u32; 5] = [0x0723_0203, 0x1_0000, 0, 1000, 0];

fuzz_target!(|data: &[u8]| {
    read(data);
    let words = HEADER.iter().flat_map(|word| word.to_le_bytes());
    read(&words.chain(data[..data.len() / 4 * 4].iter().copied()).collect::<Vec<_>>());
});

fn read(bytes: &[u8]) {
    if let Some(binary) = native_binary_of(bytes) {
        assert_eq!(native_binary_of(&binary).as_ref(), Some(&binary), "a native binary is not read as it was written");
    }
}
