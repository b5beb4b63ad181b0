//! What our backend answers: the codes of `ur_result_t`, and what a driver's `ze_result_t` becomes among them.
//!
//! Must never make a success of anything but a success.

use std::io;

use urscope_schema::api::UrResult;

/// Made with a value that it cannot have.
pub(crate) const INVALID_VALUE: UrResult = UrResult(4);
/// In another context than this one.
pub(crate) const INVALID_CONTEXT: UrResult = UrResult(5);
/// An event that cannot be shared.
pub(crate) const INVALID_EVENT: UrResult = UrResult(12);
/// A handle or pointer that is none of ours, or a process that may not be touched.
pub(crate) const INVALID_ARGUMENT: UrResult = UrResult(45);
/// A handle that must not be null is null.
pub(crate) const INVALID_NULL_HANDLE: UrResult = UrResult(46);
/// A pointer that must not be null is null.
pub(crate) const INVALID_NULL_POINTER: UrResult = UrResult(48);
/// A place that is too small for the answer.
pub(crate) const INVALID_SIZE: UrResult = UrResult(49);
/// Flags that do not exist.
pub(crate) const INVALID_ENUMERATION: UrResult = UrResult(53);
/// A question that nobody knows the answer to.
pub(crate) const UNSUPPORTED_ENUMERATION: UrResult = UrResult(54);
/// What has no code of its own.
pub(crate) const UNKNOWN: UrResult = UrResult(0x7fff_fffe);

const INVALID_OPERATION: UrResult = UrResult(1);
const DEVICE_LOST: UrResult = UrResult(20);
const UNINITIALIZED: UrResult = UrResult(37);
const OUT_OF_HOST_MEMORY: UrResult = UrResult(38);
const OUT_OF_DEVICE_MEMORY: UrResult = UrResult(39);

/// A `ze_result_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct ZeResult(pub(crate) u32);

impl ZeResult {
    /// As the adapters translate it (`ze2urResult`).
    pub(crate) fn ur(self) -> Result<(), UrResult> {
        Err(match self.0 {
            0 => return Ok(()),
            0x7000_0001 => DEVICE_LOST,
            0x7000_0002 => OUT_OF_HOST_MEMORY,
            0x7000_0003 => OUT_OF_DEVICE_MEMORY,
            0x7001_0000 | 0x7001_0001 => INVALID_OPERATION,
            0x7800_0001 => UNINITIALIZED,
            0x7800_0003 => UrResult::UNSUPPORTED_FEATURE,
            0x7800_0004 => INVALID_ARGUMENT,
            0x7800_000b => INVALID_EVENT,
            0x7800_0007..=0x7800_000d => INVALID_VALUE,
            _ => UNKNOWN,
        })
    }
}

/// What a driver's refusal to open means: an argument that it finds wrong are the data; all else stays what it is.
pub(crate) fn of_open(refusal: UrResult) -> UrResult {
    if refusal == INVALID_ARGUMENT { INVALID_VALUE } else { refusal }
}

/// The same of physical memory and events, where Intel's driver answers OUT_OF_DEVICE_MEMORY to data that are wrong.
pub(crate) fn of_import(refusal: UrResult) -> UrResult {
    if refusal == OUT_OF_DEVICE_MEMORY { INVALID_VALUE } else { of_open(refusal) }
}

/// What a driver's refusal to make something of a size means, where only the size can be wrong.
pub(crate) fn of_size(refusal: UrResult) -> UrResult {
    if refusal == INVALID_VALUE { INVALID_SIZE } else { refusal }
}

/// What the kernel's refusal of a descriptor means. A lack of descriptors is no fault of anybody's data, and neither is
/// the want of a permission, which is told apart.
pub(crate) fn of_kernel(refusal: &io::Error) -> UrResult {
    match refusal.raw_os_error() {
        Some(libc::EPERM) => INVALID_ARGUMENT,
        Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM) => OUT_OF_HOST_MEMORY,
        _ => INVALID_VALUE,
    }
}

/// The answer of a call that is done by steps.
pub(crate) fn answer(call: impl FnOnce() -> Result<(), UrResult>) -> UrResult {
    match call() {
        Ok(()) => UrResult::SUCCESS,
        Err(result) => result,
    }
}

/// The outcome of a call that the adapter did.
pub(crate) fn done(result: UrResult) -> Result<(), UrResult> {
    if result.is_success() { Ok(()) } else { Err(result) }
}

/// Refuses a null handle.
pub(crate) fn handle(word: usize) -> Result<(), UrResult> {
    if word == 0 { Err(INVALID_NULL_HANDLE) } else { Ok(()) }
}

/// Refuses a null pointer.
pub(crate) fn pointer(word: usize) -> Result<(), UrResult> {
    if word == 0 { Err(INVALID_NULL_POINTER) } else { Ok(()) }
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
        assert_eq!([INVALID_ARGUMENT, INVALID_VALUE].map(of_open), [INVALID_VALUE; 2]);
        assert_eq!([INVALID_ARGUMENT, OUT_OF_DEVICE_MEMORY].map(of_import), [INVALID_VALUE; 2]);
        for lack in [UrResult::UNSUPPORTED_FEATURE, DEVICE_LOST, OUT_OF_HOST_MEMORY] {
            assert_eq!((of_open(lack), of_import(lack)), (lack, lack));
        }
        assert_eq!(of_open(OUT_OF_DEVICE_MEMORY), OUT_OF_DEVICE_MEMORY);
    }
}
