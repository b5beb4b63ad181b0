//! Tells a tool which commands have accessed memory that processes share, and when.
//!
//! The tool says which of its calls a command comes from, when the command is appended. Must never be told with a lock
//! held, nor after something that the command signals.

use std::ffi::c_void;
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A finished access of a command to memory that processes share: rows of bytes in one file of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Access {
    /// The answer of [`CurrentCall`] when the command was appended; 0 if there was no tool then.
    pub call: u64,
    /// When the command could begin, in nanoseconds of `CLOCK_MONOTONIC`: all that it waits for had happened, but for
    /// copies and fills in front of it in its queue.
    pub begin: u64,
    /// When it had ended; nothing that it signals has been signalled.
    pub end: u64,
    /// The inode of the file, by which all processes know the memory.
    pub memory: u64,
    /// The first byte in the file.
    pub offset: u64,
    /// The bytes of a row.
    pub length: u64,
    /// Bytes from one row to the next, more than a row has unless there is one row only.
    pub pitch: u64,
    /// The number of rows.
    pub rows: u64,
    /// Whether it read the bytes (0) or wrote them (1); of a kernel, whether it may have read any of them (2), or also written (3).
    pub access: u64,
}

/// The number of the tool's call that this thread is in; 0 for none.
pub type CurrentCall = extern "C" fn() -> u64;
/// Takes an access. The thread that has executed the command calls it.
pub type Executed = extern "C" fn(&Access);

static CURRENT_CALL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static EXECUTED: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Registers the functions of a tool. A signal handler may do so.
pub(crate) fn register(current_call: CurrentCall, executed: Executed) {
    EXECUTED.store(executed as *mut c_void, Ordering::Release);
    CURRENT_CALL.store(current_call as *mut c_void, Ordering::Release);
}

/// The call that a command is appended in; 0 if none is known.
pub(super) fn current_call() -> u64 {
    let function = CURRENT_CALL.load(Ordering::Acquire);
    if function.is_null() {
        return 0;
    }
    // SAFETY: only `register` stores here, a function of this type.
    let current_call = unsafe { transmute::<*mut c_void, CurrentCall>(function) };
    current_call()
}

/// Tells of an access.
pub(super) fn tell(access: &Access) {
    let function = EXECUTED.load(Ordering::Acquire);
    if !function.is_null() {
        // SAFETY: as above.
        let executed = unsafe { transmute::<*mut c_void, Executed>(function) };
        executed(access);
    }
}
