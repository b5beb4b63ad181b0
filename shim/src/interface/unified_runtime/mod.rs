//! Unified Runtime: the tables of its adapters ([`ddi`]), exported functions ([`exports`]), and for adapters that these
//! do not reach, changed code (`inline`, of the cargo feature `frida-gum`) and observation ([`xpti`]).
//! [`untraced_adapters`] reports at the end which adapters nothing reached. [`frequent`] has the hooks of what programs
//! call most often. How its structures are read is in [`structures`].

pub mod ddi;
pub mod exports;
mod frequent;
#[cfg(feature = "frida-gum")]
pub mod inline;
mod observed;
mod structures;
pub mod untraced_adapters;
pub mod xpti;

use std::ffi::{CStr, c_void};

use urscope_schema::api::{Function, ResultCode, Table, UNIFIED_RUNTIME};

use super::{Exported, Interface, Lookup, hooks};
use crate::backend;
use crate::call::{self, Origin};
use crate::raw::args::row::{Call, Frame};

/// The interface.
pub(super) struct UnifiedRuntime;

impl Interface for UnifiedRuntime {
    fn call(&self, via: usize, function: Function, frame: Frame) -> ResultCode {
        if via == hooks::ABSENT {
            return exports::absent(function, frame);
        }
        // SAFETY: the backend has the function for this adapter.
        let mut call = unsafe { Call::new(function, &structures::Structures, frame, backend::callee(function, via)) };
        call::intercept(Origin::Adapter(via), &mut call)
    }

    fn looked_up(&self, name: &CStr, real: &dyn Fn() -> *mut c_void) -> Option<Lookup> {
        let table = Table::of_getter(name.to_bytes()).filter(|table| table.interface() == &UNIFIED_RUNTIME)?;
        // SAFETY: the symbol of a getter is one.
        Some(Lookup::Found(unsafe { ddi::getter(table, real()) }))
    }

    fn exported(&self, function: Function, _: bool) -> Exported {
        Exported { address: exports::target(function), is_final: false }
    }
}
