//! Converts a driver's `ze_result_t` and the kernel's errors to a `ur_result_t`.
//!
//! Only a success becomes a success.

use std::io;

use urscope_schema::api::{ResultCode, role::Null, role::Role};

use crate::raw::args::Arg;

/// A `ze_result_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct ZeResult(pub(crate) u32);

impl ZeResult {
    /// The `ur_result_t`, as the adapters convert it (`ze2urResult`).
    pub(crate) fn ur(self) -> Result<(), ResultCode> {
        Err(match self.0 {
            0 => return Ok(()),
            0x7000_0001 => ResultCode::DEVICE_LOST,
            0x7000_0002 => ResultCode::OUT_OF_HOST_MEMORY,
            0x7000_0003 => ResultCode::OUT_OF_DEVICE_MEMORY,
            0x7001_0000 | 0x7001_0001 => ResultCode::INVALID_OPERATION,
            0x7800_0001 => ResultCode::UNINITIALIZED,
            0x7800_0003 => ResultCode::UNSUPPORTED_FEATURE,
            0x7800_0004 => ResultCode::INVALID_ARGUMENT,
            0x7800_000b => ResultCode::INVALID_EVENT,
            0x7800_0007..=0x7800_000d => ResultCode::INVALID_VALUE,
            _ => ResultCode::UNKNOWN,
        })
    }
}

/// The result if a driver refuses to open. An invalid argument means invalid handle data; other errors stay.
pub(crate) fn of_open(refusal: ResultCode) -> ResultCode {
    if refusal == ResultCode::INVALID_ARGUMENT { ResultCode::INVALID_VALUE } else { refusal }
}

/// The result if a driver refuses to import physical memory or an event. Intel's driver returns OUT_OF_DEVICE_MEMORY
/// for invalid data.
pub(crate) fn of_import(refusal: ResultCode) -> ResultCode {
    if refusal == ResultCode::OUT_OF_DEVICE_MEMORY { ResultCode::INVALID_VALUE } else { of_open(refusal) }
}

/// The result if a driver refuses to make an object, and only the size can be wrong.
pub(crate) fn of_size(refusal: ResultCode) -> ResultCode {
    if refusal == ResultCode::INVALID_VALUE { ResultCode::INVALID_SIZE } else { refusal }
}

/// The result if the kernel refuses a descriptor. Missing permission and a lack of descriptors have their own errors.
pub(crate) fn of_kernel(refusal: &io::Error) -> ResultCode {
    match refusal.raw_os_error() {
        Some(libc::EPERM) => ResultCode::INVALID_ARGUMENT,
        Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM) => ResultCode::OUT_OF_HOST_MEMORY,
        _ => ResultCode::INVALID_VALUE,
    }
}

/// The result of a call, as a `ur_result_t`.
pub(crate) fn answer(call: impl FnOnce() -> Result<(), ResultCode>) -> ResultCode {
    match call() {
        Ok(()) => ResultCode::SUCCESS,
        Err(result) => result,
    }
}

/// The result of a call to the adapter.
pub(crate) fn done(result: ResultCode) -> Result<(), ResultCode> {
    if result.is_success() { Ok(()) } else { Err(result) }
}

/// Rejects a null handle or pointer with its own error.
pub(crate) fn not_null<R: Role>(argument: Arg<R>) -> Result<(), ResultCode> {
    match argument.null() {
        None => Ok(()),
        Some(Null::Handle) => Err(ResultCode::INVALID_NULL_HANDLE),
        Some(_) => Err(ResultCode::INVALID_NULL_POINTER),
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
        assert_eq!(
            [ResultCode::INVALID_ARGUMENT, ResultCode::INVALID_VALUE].map(of_open),
            [ResultCode::INVALID_VALUE; 2]
        );
        assert_eq!(
            [ResultCode::INVALID_ARGUMENT, ResultCode::OUT_OF_DEVICE_MEMORY].map(of_import),
            [ResultCode::INVALID_VALUE; 2]
        );
        for lack in [ResultCode::UNSUPPORTED_FEATURE, ResultCode::DEVICE_LOST, ResultCode::OUT_OF_HOST_MEMORY] {
            assert_eq!((of_open(lack), of_import(lack)), (lack, lack));
        }
        assert_eq!(of_open(ResultCode::OUT_OF_DEVICE_MEMORY), ResultCode::OUT_OF_DEVICE_MEMORY);
    }
}
