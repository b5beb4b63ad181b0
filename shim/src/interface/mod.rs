//! The interfaces whose functions are hooked. Each has a folder, with the name of the one in `schema/src/api`: how its
//! calls reach urscope, and how its structures are read.
//!
//! [`hooks`] are the hooks of all functions, and [`dispatch`] is what they call; [`known`] makes those of frequent
//! ones. [`driver`] is the path of a call of a driver, and [`libraries`] finds libraries whose functions programs look
//! up or link. An interface must reject what it does not recognize, report that, and not change the program.

pub mod cuda;
mod driver;
pub(crate) mod hooks;
mod known;
mod level_zero;
mod libraries;
pub mod unified_runtime;

use std::ffi::{CStr, c_void};

use urscope_schema::api::{Function, ResultCode};

use crate::raw::args::row::Frame;

/// An interface whose functions are hooked.
pub(crate) trait Interface: Sync {
    /// Takes a call of the hook of a function of library `via`.
    fn call(&self, via: usize, function: Function, frame: Frame) -> ResultCode;

    /// The result of a lookup of `name` in a library, if this is a function of the interface that is hooked or leads to
    /// hooks. `real` does the lookup.
    fn looked_up(&self, name: &CStr, real: &dyn Fn() -> *mut c_void) -> Option<Lookup>;

    /// What an exported function, or its twin ([`Function::twin`]), which has noted its caller, jumps to.
    fn exported(&self, _function: Function, _is_twin: bool) -> Exported {
        Exported { address: nothing as *mut c_void, is_final: true }
    }

    /// What an exported function jumps to that returns others.
    fn exported_getter(&self, _version: usize) -> Exported {
        Exported { address: nothing as *mut c_void, is_final: true }
    }
}

/// The result of a lookup by dlsym(3).
pub(crate) enum Lookup {
    /// This is found.
    Found(*mut c_void),
    /// No library but urscope has the function.
    Missing,
}

/// What an exported function jumps to.
pub(crate) struct Exported {
    pub(crate) address: *mut c_void,
    /// Whether it is the same for all callers from now on.
    pub(crate) is_final: bool,
}

/// Stands for an exported function of an interface without any.
extern "C" fn nothing() -> ResultCode {
    ResultCode::UNSUPPORTED_FEATURE
}

/// The number of interfaces.
pub const COUNT: usize = 3;

/// The interfaces, in the order of their numbers ([`Function::interface_number`]).
static INTERFACES: [&dyn Interface; COUNT] = [&unified_runtime::UnifiedRuntime, &level_zero::LevelZero, &cuda::Cuda];

/// What the names begin with that lead to hooks: almost all other lookups need not be looked into.
pub(crate) const PREFIXES: [&[u8]; 3] = [b"urGet", b"zeGet", b"cu"];

/// All interfaces.
pub(crate) fn all() -> impl Iterator<Item = &'static dyn Interface> {
    INTERFACES.iter().copied()
}

/// What an exported function jumps to.
pub(crate) fn exported(function: Function, is_twin: bool) -> Exported {
    let of = INTERFACES.get(function.interface_number()).copied().unwrap_or(&level_zero::LevelZero);
    of.exported(function, is_twin)
}

/// What an exported function of an interface jumps to that returns others.
pub(crate) fn exported_getter(interface: usize, version: usize) -> Exported {
    INTERFACES.get(interface).copied().unwrap_or(&level_zero::LevelZero).exported_getter(version)
}

/// Takes the call of a hook.
unsafe extern "C-unwind" fn dispatch(number: u32, registers: *const u64, stack: *const u64) -> ResultCode {
    let Some((via, function)) = hooks::numbered(number) else { return ResultCode::UNKNOWN };
    // SAFETY: the hook of this function was called, and has stored the registers; the other words are behind its return
    // address.
    let frame = unsafe { Frame::new(registers, stack) };
    INTERFACES.get(function.interface_number()).map_or(ResultCode::UNKNOWN, |of| of.call(via, function, frame))
}
