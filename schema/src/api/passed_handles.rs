//! The roles of handles that C passes by value.

use super::role::Role;
use crate::handle::{descriptor_data, fingerprint};
use crate::values::Values;

/// A `ze_ipc_mem_handle_t` or `ze_ipc_event_pool_handle_t`, which C passes by value. Its first four bytes are a
/// descriptor.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpcHandle {
    words: [u64; 8],
}

impl IpcHandle {
    /// The descriptor.
    pub const fn descriptor(self) -> u32 {
        let [first, ..] = self.words;
        first as u32
    }
}

impl Role for IpcHandle {
    fn of_word(word: u64) -> Self {
        Self { words: [word, 0, 0, 0, 0, 0, 0, 0] }
    }

    #[inline]
    fn enter(self, values: &mut Values) {
        values.data = Some(descriptor_data(self.descriptor()));
    }
}

/// A `ze_ipc_event_counter_based_handle_t`, which C passes by value. Its bytes identify it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventHandle {
    words: [u64; 8],
}

impl Role for EventHandle {
    fn of_word(word: u64) -> Self {
        Self { words: [word, 0, 0, 0, 0, 0, 0, 0] }
    }

    fn enter(self, values: &mut Values) {
        let bytes = self.words.map(u64::to_le_bytes);
        let of_bytes = fingerprint(bytes.as_flattened());
        (values.data, values.fingerprint) = (Some(of_bytes), Some(of_bytes));
    }
}
