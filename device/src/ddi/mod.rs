//! What the table becomes: an entry point for every function, the DDI tables with the functions that hand them out,
//! and a lookup by name.
//!
//! Stands between the table and everybody who calls the device. Must never write past the table of the version that a
//! caller asks for: older callers hand in shorter tables.

pub(crate) mod loader;

use std::arch::naked_asm;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::ffi::Out;
use crate::ffi::result::ZeResult;
use crate::platform::log;

/// The API version that this device speaks: 1.17 (`ze_api_version_t`, major in the upper half).
pub const API_VERSION: u32 = (1 << 16) + 17;

/// One function: a function of a DDI table, or a name outside of them.
pub struct Function {
    /// The C name.
    pub name: &'static str,
    /// The minor API version since which the function exists.
    pub since: u32,
    /// Whether there is more behind it than an error code.
    pub implemented: bool,
    /// The entry point.
    pub address: *const (),
    /// What it answers instead of doing anything, unless it is 0. Without one, it cannot be made to fail.
    fault: Option<&'static AtomicU32>,
}

// SAFETY: the address is that of a function, which is the same for all threads and is never written through.
unsafe impl Sync for Function {}

/// One DDI table.
pub struct Table {
    /// The C name of the function that hands it out.
    pub getter: &'static str,
    /// The entry point of that function.
    pub address: *const (),
    /// Its members, in memory order.
    pub functions: &'static [Function],
}

// SAFETY: as for Function.
unsafe impl Sync for Table {}

/// The entry point with this C name: an API function, a table getter or a loader function.
pub fn lookup(name: &str) -> Option<*const ()> {
    let in_tables = TABLES
        .iter()
        .find_map(|table| if table.getter == name { Some(table.address) } else { address_in(table.functions, name) });
    in_tables.or_else(|| address_in(LOADER, name))
}

/// The entry point of a driver extension function, which has no exported symbol.
pub(crate) fn lookup_extension(name: &str) -> Option<*const ()> {
    address_in(EXTENSIONS, name)
}

fn address_in(functions: &[Function], name: &str) -> Option<*const ()> {
    functions.iter().find(|function| function.name == name).map(|function| function.address)
}

/// What answers something else than a `ze_result_t`.
const ANSWER_NO_RESULT: [&str; 4] = [
    "zeDriverGetDefaultContext",
    "zerGetDefaultContext",
    "zerTranslateDeviceHandleToIdentifier",
    "zerTranslateIdentifierToDeviceHandle",
];

/// Where the code stands that a function is made to answer: nowhere for one that is not implemented, is not of the API,
/// or answers no `ze_result_t`.
fn fault_of(name: &str) -> Option<&'static AtomicU32> {
    let functions = TABLES.iter().flat_map(|table| table.functions).chain(EXTENSIONS);
    functions
        .filter(|function| !ANSWER_NO_RESULT.contains(&function.name))
        .find(|function| function.name == name)?
        .fault
}

/// Whether there is a function of that name that can be made to fail.
pub(crate) fn can_fail(name: &str) -> bool {
    fault_of(name).is_some()
}

/// Makes a function answer this code from now on, without doing anything.
pub(crate) fn fail(name: &str, code: u32) {
    if let Some(fault) = fault_of(name) {
        fault.store(code, Ordering::Relaxed);
    }
}

/// Fills a caller's DDI table. A table of version 1.n holds the functions that exist since 1.n or before, packed in order;
/// ze_ddi.h promises that what a caller hands in is a table of the version that it asks for.
fn fill(version: u32, table: Out<*const ()>, getter: &str) -> ZeResult {
    if table.is_null() {
        return ZeResult::INVALID_NULL_POINTER;
    }
    if version >> 16 != API_VERSION >> 16 {
        return ZeResult::UNSUPPORTED_VERSION;
    }
    let minor = version & 0xffff;
    let functions = TABLES.iter().filter(|candidate| candidate.getter == getter).flat_map(|found| found.functions);
    for (index, function) in functions.filter(|function| function.since <= minor).enumerate() {
        table.element(index).write_optional(function.address);
    }
    ZeResult::SUCCESS
}

macro_rules! entry_point {
    ($name:ident) => {
        /// Not implemented.
        pub extern "C" fn $name() -> ZeResult {
            log::unsupported(stringify!($name))
        }
    };
    ($name:ident => $($path:ident)::+) => {
        /// Answers the code that it is made to fail with, if any; else it goes on to the function of its row. A jump and
        /// not a call, and no register of an argument is touched: so it serves every signature.
        ///
        /// # Safety
        /// As the function of its row, with its arguments (ze_api.h and its siblings).
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            #[cfg(target_arch = "x86_64")]
            naked_asm!(
                "mov eax, dword ptr [rip + {fault}]",
                "test eax, eax",
                "jnz 2f",
                "jmp {function}",
                "2:",
                "ret",
                fault = sym super::fault::$name,
                function = sym super::function::$name,
            );
            #[cfg(target_arch = "aarch64")]
            naked_asm!(
                "adrp x16, {fault}",
                "ldr w16, [x16, :lo12:{fault}]",
                "cbnz w16, 2f",
                "b {function}",
                "2:",
                "mov w0, w16",
                "ret",
                fault = sym super::fault::$name,
                function = sym super::function::$name,
            );
        }
    };
}

macro_rules! function {
    ($name:ident) => {};
    ($name:ident => $($path:ident)::+) => {
        pub use crate::$($path)::+ as $name;
    };
}

macro_rules! fault {
    ($name:ident) => {};
    ($name:ident => $($path:ident)::+) => {
        pub(super) static $name: AtomicU32 = AtomicU32::new(0);
    };
}

macro_rules! fault_place {
    ($name:ident) => {
        None
    };
    ($name:ident => $($path:ident)::+) => {
        Some(&fault::$name)
    };
}

macro_rules! is_implemented {
    () => {
        false
    };
    ($($path:ident)::+) => {
        true
    };
}

macro_rules! expand {
    (
        loader { $($loader:ident => $($loader_path:ident)::+;)* }
        extensions { $($extension:ident => $($extension_path:ident)::+;)* }
        $($getter:ident { $($since:literal $name:ident $(=> $($path:ident)::+)?;)* })*
    ) => {
        /// Every entry point under its C name.
        #[allow(non_snake_case, reason = "the names are those of the C API")]
        pub mod entry {
            use super::*;

            $(entry_point!($loader => $($loader_path)::+);)*
            $(entry_point!($extension => $($extension_path)::+);)*
            $($(entry_point!($name $(=> $($path)::+)?);)*)*
            $(
                /// Hands out the DDI table of this name (ze_ddi.h).
                pub extern "C" fn $getter(version: u32, table: Out<*const ()>) -> ZeResult {
                    fill(version, table, stringify!($getter))
                }
            )*
        }

        /// What implements the functions, under their C names: the rows' paths.
        #[allow(non_snake_case, reason = "the names are those of the C API")]
        pub mod function {
            $(function!($loader => $($loader_path)::+);)*
            $(function!($extension => $($extension_path)::+);)*
            $($(function!($name $(=> $($path)::+)?);)*)*
        }

        /// The codes that the functions are made to fail with; 0 for none.
        #[allow(non_upper_case_globals, reason = "the names are those of the C API")]
        mod fault {
            use super::AtomicU32;

            $(fault!($loader => $($loader_path)::+);)*
            $(fault!($extension => $($extension_path)::+);)*
            $($(fault!($name $(=> $($path)::+)?);)*)*
        }

        /// All DDI tables of the API.
        pub static TABLES: &[Table] = &[$(Table {
            getter: stringify!($getter),
            address: entry::$getter as *const (),
            functions: &[$(Function {
                name: stringify!($name),
                since: $since,
                implemented: is_implemented!($($($path)::+)?),
                address: entry::$name as *const (),
                fault: fault_place!($name $(=> $($path)::+)?),
            }),*],
        }),*];

        /// What a loader has beside the API.
        pub static LOADER: &[Function] = &[$(Function {
            name: stringify!($loader),
            since: 0,
            implemented: true,
            address: entry::$loader as *const (),
            fault: Some(&fault::$loader),
        }),*];

        /// What the driver hands out by name only.
        pub static EXTENSIONS: &[Function] = &[$(Function {
            name: stringify!($extension),
            since: 0,
            implemented: true,
            address: entry::$extension as *const (),
            fault: Some(&fault::$extension),
        }),*];
    };
}

crate::ze_functions!(expand);
