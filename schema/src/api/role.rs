//! The roles of all interfaces.

pub use super::common_roles::*;
pub use super::cuda::roles::*;
pub use super::level_zero::roles::*;
pub use super::unified_runtime::roles::*;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{api::unified_runtime::constants, values::Values};

    #[test]
    fn a_role_is_as_wide_as_what_c_passes() {
        assert_eq!(size_of::<Context>(), size_of::<*mut u8>());
        assert_eq!(size_of::<OutDataSize>(), size_of::<*mut usize>());
        assert_eq!(size_of::<Count>(), size_of::<u32>());
        assert_eq!(size_of::<IpcProperty>(), size_of::<u32>());
        assert_eq!(size_of::<IpcHandle>(), 64, "ZE_MAX_IPC_HANDLE_SIZE");
        assert_eq!(size_of::<HandleBytes>(), 64, "ZE_MAX_IPC_HANDLE_SIZE, CU_IPC_HANDLE_SIZE");
    }

    #[test]
    fn a_role_speaks_for_its_own_side_of_the_call() {
        let (mut values, mut places) = (Values::default(), OutParams::default());
        Pointer(7).enter(&mut values);
        Pointer(7).out(&mut places);
        OutData(9).enter(&mut values);
        OutData(9).out(&mut places);
        assert_eq!(values, Values { pointer: Some(7), ..Values::default() });
        assert_eq!(places, OutParams { data: 9, ..OutParams::default() });
    }

    #[test]
    fn an_answer_is_redirected_only_where_one_is_wanted() {
        let places = OutParams { data: 0x1000, ..OutParams::default() };
        assert_eq!(OutData(9).redirected(&places), OutData(0x1000));
        assert_eq!(OutData(0).redirected(&places), OutData(0), "a null place stays null");
        assert_eq!(OutPointer(9).redirected(&places), OutPointer(9), "no place of ours for it");
        assert_eq!(Pointer(9).redirected(&places), Pointer(9), "not an answer");
    }

    #[test]
    fn only_questions_about_ipc_are_watched() {
        assert!(IpcProperty(constants::UR_DEVICE_INFO_IPC_MEMORY_SUPPORT_EXP).watched());
        assert!(IpcProperty(constants::UR_DEVICE_INFO_IPC_EVENT_SUPPORT_EXP).watched());
        assert!(!IpcProperty(constants::UR_DEVICE_INFO_REUSABLE_EVENTS_SUPPORT_EXP).watched());
        assert!(!IpcProperty(0).watched());
    }
}
