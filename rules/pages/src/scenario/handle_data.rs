//! The bytes of handle data in a scenario.

use super::{Call, Verb};

/// Handle data with that fingerprint, as far as a checksum goes.
pub(super) fn made_up(bytes: u64, call: &Call) -> Vec<u8> {
    let of = |(at, byte): (u64, u8)| if call.flipped == Some(at) { byte ^ 1 } else { byte };
    (0..size(call).unwrap_or_default()).zip(bytes.to_le_bytes().into_iter().cycle()).map(of).collect()
}

/// The size of handle data, unless the call says another.
pub(super) fn size(call: &Call) -> Option<u64> {
    call.size.or(match call.verb {
        Verb::Get | Verb::Open => Some(120),
        Verb::GetPhysical | Verb::OpenPhysical => Some(16),
        _ => Some(64),
    })
}
