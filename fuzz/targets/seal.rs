//! The handle data of our backend: any bytes, and data that a producer of bad will has sealed itself.
//!
//! Bytes that open are those that sealing what they say gives again; a plausible object opens as itself, any other one
//! is refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use urscope_shim::backend::level_zero::seal::{Kind, NATIVE_SIZE, Refusal, SIZE, Sealed};

fuzz_target!(|data: &[u8]| {
    if let Ok(sealed) = Sealed::open(data) {
        assert_eq!(sealed.seal(), data, "two kinds of bytes say the same");
    }
    if let Some(sealed) = said(data) {
        let bytes = sealed.seal();
        assert_eq!(bytes.len(), SIZE);
        match Sealed::open(&bytes) {
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
fn said(mut data: &[u8]) -> Option<Sealed> {
    let rest = &mut data;
    let [kind] = take(rest)?;
    let kind = [Kind::Memory, Kind::PhysicalMem, Kind::Event][usize::from(kind) % 3];
    let (pid, descriptor) = (u32::from_le_bytes(take(rest)?), i32::from_le_bytes(take(rest)?));
    let [started, serial, size, offset] = [take(rest)?, take(rest)?, take(rest)?, take(rest)?].map(u64::from_le_bytes);
    let mut native = [0; NATIVE_SIZE];
    for (to, from) in native.iter_mut().zip(*rest) {
        *to = *from;
    }
    Some(Sealed { kind, pid, started, serial, size, offset, descriptor, native })
}

fn take<const N: usize>(data: &mut &[u8]) -> Option<[u8; N]> {
    let (field, rest) = data.split_first_chunk::<N>()?;
    *data = rest;
    Some(*field)
}
