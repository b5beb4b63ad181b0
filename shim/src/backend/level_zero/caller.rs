//! The caller's memory: what it hands in is copied once, and what it asked for is written once.
//!
//! Nothing of the caller's is kept, and nothing that it handed in is ever written to.

use urscope_schema::api::UrResult;

/// Longer than any adapter's handle data.
const LARGEST_DATA: usize = 256;

/// A copy of the handle data that a caller hands in.
pub(crate) fn copy(data: usize, size: usize) -> Result<Vec<u8>, UrResult> {
    if size > LARGEST_DATA {
        return Err(UrResult::INVALID_VALUE);
    }
    // SAFETY: the caller says that `size` bytes of handle data stand there (`urIPCOpenMemHandleExp` and its like).
    Ok(unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(data), size) }.to_vec())
}

/// Leaves a word at the caller's place, if there is one.
pub(crate) fn give(place: usize, word: usize) {
    if place != 0 {
        // SAFETY: the caller says that a place for a word of this size is there (an `[out]` parameter of the function).
        unsafe { std::ptr::with_exposed_provenance_mut::<usize>(place).write_unaligned(word) };
    }
}

/// Answers a question for a property, as all `ur…GetInfo` do.
pub(crate) fn inform(bytes: &[u8], size: usize, value: usize, size_ret: usize) -> Result<(), UrResult> {
    if value != 0 {
        if size < bytes.len() {
            return Err(UrResult::INVALID_SIZE);
        }
        let place = std::ptr::with_exposed_provenance_mut::<u8>(value);
        // SAFETY: the caller says that `size` bytes, no fewer than these, are there (`propSize` of the function).
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
    }
    give(size_ret, bytes.len());
    Ok(())
}
