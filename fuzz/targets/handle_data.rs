//! The handle data of our backend: any bytes, and data that a producer of bad will has sealed itself.
//!
//! Bytes that open are those that sealing what they say gives again; a plausible object opens as itself, any other one
//! is refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use urscope_shim::backend::level_zero::handle_data::{HandleData, Kind, NATIVE_SIZE, Refusal, SIZE};

fuzz_target!(|data: &[u8]| {
    if let Ok(sealed) = HandleData::decode(data) {
        assert_eq!(sealed.encode(), data, "two kinds of bytes say the same");
    }
    if let Some(sealed) = said(data) {
        let bytes = sealed.encode();
        assert_eq!(bytes.len(), SIZE);
        match HandleData::decode(&bytes) {
            Ok(opened) => {
                assert_eq!(opened, sealed);
                assert!(sealed.pid > 0 && i32::try_from(sealed.pid).is_ok(), "no process: {sealed:?}");
                assert!(sealed.kind == Kind::Event || sealed.offset < sealed.size, "outside of itself: {sealed:?}");
            }
            Err(refusal) => assert_eq!(refusal, Refusal::Damaged, "{sealed:?}"),
        }
    }
});

/// An object that the input describes, field by field.
fn said(mut data: &[u8]) -> Option<HandleData> {
    let rest = &mut data;
    let [kind] = take(rest)?;
    let kind = [Kind::Memory, Kind::PhysicalMem, Kind::Event][usize::from(kind) % 3];
    let (pid, descriptor) = (u32::from_le_bytes(take(rest)?), i32::from_le_bytes(take(rest)?));
    let [started, serial, size, offset] = [take(rest)?, take(rest)?, take(rest)?, take(rest)?].map(u64::from_le_bytes);
    let mut native = [0; NATIVE_SIZE];
    for (to, from) in native.iter_mut().zip(*rest) {
        *to = *from;
    }
    Some(HandleData { kind, pid, started, serial, size, offset, descriptor, native })
}

fn take<const N: usize>(data: &mut &[u8]) -> Option<[u8; N]> {
    let (field, rest) = data.split_first_chunk::<N>()?;
    *data = rest;
    Some(*field)
}
