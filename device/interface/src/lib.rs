//! What a tool asks the software device, and what the device tells it: `ze_soft.h` in Rust.
//!
//! The header documents the members and how a tool checks the version. A test compares both. Must depend on nothing:
//! the device is used without urscope, and urscope without the device.

use std::ffi::CStr;

/// The symbol of the device's [`Interface`].
pub const SYMBOL: &CStr = c"zeSoftInterface";

/// `ZE_SOFT_INTERFACE_VERSION`.
pub const VERSION: u32 = 1;

/// `ze_soft_access_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Access {
    /// What [`CurrentCall`] returned when the command was appended; 0 if no tool was registered then.
    pub call: u64,
    /// When the command could begin, in nanoseconds of `CLOCK_MONOTONIC`.
    pub begin: u64,
    /// When it had ended, in the same unit.
    pub end: u64,
    /// The inode of the file.
    pub memory: u64,
    /// The first byte in the file.
    pub offset: u64,
    /// Bytes of a row.
    pub length: u64,
    /// Bytes from one row to the next.
    pub pitch: u64,
    /// The number of rows.
    pub rows: u64,
    /// Read 0, write 1; of a kernel, may read 2, may write 3.
    pub access: u64,
}

/// `ze_soft_current_call_t`.
pub type CurrentCall = extern "C" fn() -> u64;

/// `ze_soft_executed_t`.
pub type Executed = extern "C" fn(&Access);

/// `ze_soft_interface_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Interface {
    /// Of this structure in the device, in bytes.
    pub size: u32,
    /// [`VERSION`] of the device.
    pub version: u32,
    /// The distance in bytes from an address to the first byte that unfinished work accesses; `usize::MAX` for none.
    pub unfinished_from: extern "C" fn(usize) -> usize,
    /// Registers the functions of a tool.
    pub observe_commands: extern "C" fn(CurrentCall, Executed),
}

impl Interface {
    /// Whether a tool that was built with this definition can use a device with this size and version of it.
    pub const fn is_usable(size: u32, version: u32) -> bool {
        version == VERSION && size as usize >= size_of::<Self>()
    }
}
