//! The exported surface: an entry point for every function of the table, the DDI tables and the functions that fill
//! them, and a lookup by name.
//!
//! Everything here is made from [`ze_functions!`](crate::ze_functions). Must never write more members of a caller's DDI
//! table than the version that the caller passes has: older callers pass shorter tables.

pub(crate) mod loader;
pub mod tracing;

use std::{arch::naked_asm, ffi::c_char, ptr};

use tracing::TracePoint;

use crate::discovery::driver::{self, Driver};
pub use crate::ffi::layout::API_VERSION;
use crate::ffi::result::{ZeResult, call};
use crate::ffi::{Argument, In, Out, handles::Handle};
use crate::platform::log;

/// One function of the table.
pub struct Function {
    /// Its C name.
    pub name: &'static str,
    /// The minor API version that added it; 0 for a function outside the DDI tables.
    pub since: u32,
    /// Its entry point.
    pub address: *const (),
    /// How callbacks are called around it. None for a function that is not implemented.
    point: Option<&'static TracePoint>,
}

impl Function {
    /// Whether it does more than return `ZE_RESULT_ERROR_UNSUPPORTED_FEATURE`.
    pub fn is_implemented(&self) -> bool {
        self.point.is_some()
    }
}

// SAFETY: the address is that of a function, the same for all threads and never written through.
unsafe impl Sync for Function {}

/// One DDI table.
pub struct Table {
    /// The C name of the function that fills it.
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

/// `zeDriverGetExtensionFunctionAddress` (ze_api.h). `INVALID_ARGUMENT` and a NULL address for an unknown name.
pub extern "C" fn get_extension_function_address(
    driver: Handle<Driver>,
    name: In<c_char>,
    address: Out<*const ()>,
) -> ZeResult {
    call(|| {
        driver::check(driver)?;
        address.check()?;
        let name = name.text()?;
        // The adapters ask for functions of the API, too, and call them if they are implemented.
        let implemented = |function: &&Function| function.is_implemented() && function.name == name;
        let in_tables = || TABLES.iter().flat_map(|table| table.functions).find(implemented);
        let found = address_in(EXTENSIONS, &name).or_else(|| in_tables().map(|function| function.address));
        address.write(found.unwrap_or(ptr::null()))?;
        let missing = || ZeResult::INVALID_ARGUMENT.because(|| format!("there is no extension function {name}"));
        found.map(drop).ok_or_else(missing)
    })
}

fn address_in(functions: &[Function], name: &str) -> Option<*const ()> {
    functions.iter().find(|function| function.name == name).map(|function| function.address)
}

/// Fills a caller's DDI table. A table of version 1.n holds the functions that exist since 1.n or before, packed in
/// order (ze_ddi.h).
fn fill(version: Argument<u32>, table: Out<*const ()>, getter: &str) -> ZeResult {
    let version = version.value();
    let refused = match table.check() {
        Err(null) => Some(null),
        Ok(()) => (version >> 16 != API_VERSION >> 16).then_some(ZeResult::UNSUPPORTED_VERSION),
    };
    if let Some(refused) = refused {
        tracing::say_why(getter, refused.0);
        return refused;
    }
    let minor = version & 0xffff;
    let functions = TABLES.iter().filter(|candidate| candidate.getter == getter).flat_map(|found| found.functions);
    for (index, function) in functions.filter(|function| function.since <= minor).enumerate() {
        // SAFETY: ze_ddi.h promises that the caller's table has the members of the version that it passes.
        unsafe { table.element(index) }.write_optional(function.address);
    }
    ZeResult::SUCCESS
}

/// Logs the name of a function that is not implemented, once.
fn unsupported(name: &'static str) -> ZeResult {
    log::note_once(name, "is not implemented: ZE_RESULT_ERROR_UNSUPPORTED_FEATURE");
    ZeResult::UNSUPPORTED_FEATURE
}

macro_rules! entry_point {
    ($name:ident) => {
        /// Not implemented: returns `ZE_RESULT_ERROR_UNSUPPORTED_FEATURE`.
        pub extern "C" fn $name() -> ZeResult {
            unsupported(stringify!($name))
        }
    };
    ($name:ident => $($path:ident)::+) => {
        /// Jumps to the implementation, unless there is a fault to return or a tracer to call. It is a jump,
        /// and changes no register that holds an argument, so it works for every signature.
        ///
        /// # Safety
        /// The arguments must be those of the function of this name (ze_api.h, zet_api.h, zes_api.h, zer_api.h).
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            #[cfg(target_arch = "x86_64")]
            naked_asm!(
                "cmp qword ptr [rip + {gate}], 0",
                "jne 2f",
                "jmp {function}",
                "2:",
                "lea r11, [rip + {point}]",
                "jmp {slow_path}",
                gate = sym crate::platform::faults::gate::$name,
                function = sym super::implementation::$name,
                point = sym super::trace_point::$name,
                slow_path = sym super::tracing::slow_path,
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
                fault = sym crate::platform::faults::gate::$name,
                function = sym super::implementation::$name,
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

macro_rules! trace_point {
    ($name:ident) => {};
    ($name:ident => $($path:ident)::+) => {
        pub(super) static $name: TracePoint = TracePoint {
            gate: &gate::$name,
            name: stringify!($name),
            function: super::implementation::$name as *const (),
        };
    };
}

macro_rules! point {
    ($name:ident) => {
        None
    };
    ($name:ident => $($path:ident)::+) => {
        Some(&trace_point::$name)
    };
}

macro_rules! row {
    ($since:literal $name:ident $($path:tt)*) => {
        Function {
            name: stringify!($name),
            since: $since,
            address: entry::$name as *const (),
            point: point!($name $($path)*),
        }
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
                /// Fills the DDI table of this name (ze_ddi.h).
                pub extern "C" fn $getter(version: Argument<u32>, table: Out<*const ()>) -> ZeResult {
                    fill(version, table, stringify!($getter))
                }
            )*
        }

        /// The implementations of the functions, under their C names.
        #[allow(non_snake_case, reason = "the names are those of the C API")]
        pub mod implementation {
            $(function!($loader => $($loader_path)::+);)*
            $(function!($extension => $($extension_path)::+);)*
            $($(function!($name $(=> $($path)::+)?);)*)*
        }

        /// What is known about each implemented function, under its C name.
        #[allow(non_upper_case_globals, reason = "the names are those of the C API")]
        mod trace_point {
            use super::tracing::TracePoint;
            use crate::platform::faults::gate;

            $(trace_point!($loader => $($loader_path)::+);)*
            $(trace_point!($extension => $($extension_path)::+);)*
            $($(trace_point!($name $(=> $($path)::+)?);)*)*
        }

        /// All DDI tables of the API.
        pub static TABLES: &[Table] = &[$(Table {
            getter: stringify!($getter),
            address: entry::$getter as *const (),
            functions: &[$(row!($since $name $(=> $($path)::+)?)),*],
        }),*];

        /// The functions of a loader, beyond the API.
        pub static LOADER: &[Function] = &[$(row!(0 $loader => $($loader_path)::+)),*];

        /// The functions that the driver offers by name only.
        pub static EXTENSIONS: &[Function] = &[$(row!(0 $extension => $($extension_path)::+)),*];
    };
}

crate::ze_functions!(expand);
