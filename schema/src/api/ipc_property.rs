//! The role of a property that a device is asked for.

use super::{constants, role::Role};
use crate::values::Values;

/// A `ur_device_info_t`. It is recorded if it asks for IPC support.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpcProperty(pub u32);

impl IpcProperty {
    /// The properties that say what can be shared.
    pub const ASKED: [u32; 3] = [
        constants::UR_DEVICE_INFO_IPC_MEMORY_SUPPORT_EXP,
        constants::UR_DEVICE_INFO_IPC_PHYSICAL_MEMORY_SUPPORT_EXP,
        constants::UR_DEVICE_INFO_IPC_EVENT_SUPPORT_EXP,
    ];
}

impl Role for IpcProperty {
    fn of_word(word: u64) -> Self {
        Self(word as u32)
    }

    #[inline]
    fn enter(self, values: &mut Values) {
        values.property = Some(u64::from(self.0));
    }

    #[inline]
    fn watched(self) -> bool {
        Self::ASKED.contains(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_questions_about_ipc_are_watched() {
        assert!(IpcProperty(constants::UR_DEVICE_INFO_IPC_MEMORY_SUPPORT_EXP).watched());
        assert!(IpcProperty(constants::UR_DEVICE_INFO_IPC_EVENT_SUPPORT_EXP).watched());
        assert!(!IpcProperty(constants::UR_DEVICE_INFO_REUSABLE_EVENTS_SUPPORT_EXP).watched());
        assert!(!IpcProperty(0).watched());
    }
}
