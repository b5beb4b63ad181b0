//! Converts a driver's `ze_result_t` and the kernel's errors to a `ur_result_t`.
//!
//! Only a success becomes a success.

use std::io;

use urscope_schema::api::{UrResult, role::Null, role::Role};

use crate::raw::args::Arg;

/// A `ze_result_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct ZeResult(pub(crate) u32);

impl ZeResult {
    /// The `ur_result_t`, as the adapters convert it (`ze2urResult`).
    pub(crate) fn ur(self) -> Result<(), UrResult> {
        Err(match self.0 {
            0 => return Ok(()),
            0x7000_0001 => UrResult::DEVICE_LOST,
            0x7000_0002 => UrResult::OUT_OF_HOST_MEMORY,
            0x7000_0003 => UrResult::OUT_OF_DEVICE_MEMORY,
            0x7001_0000 | 0x7001_0001 => UrResult::INVALID_OPERATION,
            0x7800_0001 => UrResult::UNINITIALIZED,
            0x7800_0003 => UrResult::UNSUPPORTED_FEATURE,
            0x7800_0004 => UrResult::INVALID_ARGUMENT,
            0x7800_000b => UrResult::INVALID_EVENT,
            0x7800_0007..=0x7800_000d => UrResult::INVALID_VALUE,
            _ => UrResult::UNKNOWN,
        })
    }
}

/// The result if a driver refuses to open. An invalid argument means invalid handle data; other errors stay.
pub(crate) fn of_open(refusal: UrResult) -> UrResult {
    if refusal == UrResult::INVALID_ARGUMENT { UrResult::INVALID_VALUE } else { refusal }
}

/// The result if a driver refuses to import physical memory or an event. Intel's driver returns OUT_OF_DEVICE_MEMORY
/// for invalid data.
pub(crate) fn of_import(refusal: UrResult) -> UrResult {
    if refusal == UrResult::OUT_OF_DEVICE_MEMORY { UrResult::INVALID_VALUE } else { of_open(refusal) }
}

/// The result if a driver refuses to make an object, and only the size can be wrong.
pub(crate) fn of_size(refusal: UrResult) -> UrResult {
    if refusal == UrResult::INVALID_VALUE { UrResult::INVALID_SIZE } else { refusal }
}

/// The result if the kernel refuses a descriptor. Missing permission and a lack of descriptors have their own errors.
pub(crate) fn of_kernel(refusal: &io::Error) -> UrResult {
    match refusal.raw_os_error() {
        Some(libc::EPERM) => UrResult::INVALID_ARGUMENT,
        Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM) => UrResult::OUT_OF_HOST_MEMORY,
        _ => UrResult::INVALID_VALUE,
    }
}

/// The result of a call, as a `ur_result_t`.
pub(crate) fn answer(call: impl FnOnce() -> Result<(), UrResult>) -> UrResult {
    match call() {
        Ok(()) => UrResult::SUCCESS,
        Err(result) => result,
    }
}

/// The result of a call to the adapter.
pub(crate) fn done(result: UrResult) -> Result<(), UrResult> {
    if result.is_success() { Ok(()) } else { Err(result) }
}

/// Rejects a null handle or pointer with its own error.
pub(crate) fn not_null<R: Role>(argument: Arg<R>) -> Result<(), UrResult> {
    match argument.null() {
        None => Ok(()),
        Some(Null::Handle) => Err(UrResult::INVALID_NULL_HANDLE),
        Some(_) => Err(UrResult::INVALID_NULL_POINTER),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_success_is_one() {
        assert_eq!(ZeResult(0).ur(), Ok(()));
        for code in [1, 0x7800_0004, 0x7fff_fffe, u32::MAX] {
            assert!(ZeResult(code).ur().is_err_and(|result| !result.is_success()), "{code:#x}");
        }
    }

    #[test]
    fn data_that_a_driver_refuses_are_an_invalid_value() {
        assert_eq!([UrResult::INVALID_ARGUMENT, UrResult::INVALID_VALUE].map(of_open), [UrResult::INVALID_VALUE; 2]);
        assert_eq!(
            [UrResult::INVALID_ARGUMENT, UrResult::OUT_OF_DEVICE_MEMORY].map(of_import),
            [UrResult::INVALID_VALUE; 2]
        );
        for lack in [UrResult::UNSUPPORTED_FEATURE, UrResult::DEVICE_LOST, UrResult::OUT_OF_HOST_MEMORY] {
            assert_eq!((of_open(lack), of_import(lack)), (lack, lack));
        }
        assert_eq!(of_open(UrResult::OUT_OF_DEVICE_MEMORY), UrResult::OUT_OF_DEVICE_MEMORY);
    }
}
