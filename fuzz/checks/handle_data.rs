//! The handle data of our backend: any bytes, and data that a hostile producer encoded with a correct checksum.
//!
//! Bytes that decode are those that encoding the result gives again. A plausible object decodes to itself, any other
//! one is refused.

use urscope_shim::backend::Family;
use urscope_shim::backend::level_zero::handle_data::{HandleData, NATIVE_SIZE, Refusal, SIZE};

/// Checks one input.
pub(crate) fn check(data: &[u8]) {
    if let Ok(object) = HandleData::decode(data) {
        assert_eq!(object.encode(), data, "two encodings of the same data");
    }
    if let Some(object) = described(data) {
        let bytes = object.encode();
        assert_eq!(bytes.len(), SIZE);
        match HandleData::decode(&bytes) {
            Ok(opened) => {
                assert_eq!(opened, object);
                assert!(object.pid > 0 && i32::try_from(object.pid).is_ok(), "no process: {object:?}");
                assert!(
                    object.kind == Family::Event || object.offset < object.size,
                    "offset outside of the object: {object:?}"
                );
            }
            Err(refusal) => assert_eq!(refusal, Refusal::Damaged, "{object:?}"),
        }
    }
}

/// An object that the input describes, field by field.
fn described(mut data: &[u8]) -> Option<HandleData> {
    let rest = &mut data;
    let [kind] = take(rest)?;
    let kind = [Family::Memory, Family::PhysicalMem, Family::Event][usize::from(kind) % 3];
    let pid = u32::from_le_bytes(take(rest)?);
    let descriptor = i32::from_le_bytes(take(rest)?);
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
