//! The exported symbols of `libze_loader.so.1`.
//!
//! Each name of the table becomes a C symbol that jumps to the function in its slot: the entry point in
//! `urscope-device`, or what a library that was preloaded has put there ([`connect`]). It is a jump and not a call, so
//! arguments pass unchanged, and no signature is written twice. No other crate may depend on this one.

mod connect;

use std::{arch::naked_asm, ffi::CStr, sync::atomic::AtomicPtr};

use urscope_device::ddi::tracing::{self, Callback, Tracer};
use urscope_device::{Handle, INTERFACE, ZeResult, ddi::entry, interface::Interface, ze_functions};

/// What tools ask of the device (`ze_soft.h`). The device is a driver, too: `zeGet…ProcAddrTable` gives its functions,
/// whoever asks. Libraries that watch drivers and pass over loaders find it by this symbol.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name is that of a C symbol")]
pub static zeSoftInterface: Interface = INTERFACE;

macro_rules! symbol {
    (zeInit) => {
        symbol!(@first zeInit);
    };
    (zeInitDrivers) => {
        symbol!(@first zeInitDrivers);
    };
    // A process calls one of these before anything else.
    (@first $name:ident) => {
        /// Connects the slots, and jumps to the function in that of this name.
        ///
        /// # Safety
        /// The arguments must be those of the function of this name (ze_api.h).
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            #[cfg(target_arch = "x86_64")]
            naked_asm!(
                "push rdi",
                "push rsi",
                "push rdx",
                "call {connect}",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "jmp qword ptr [rip + {slot}]",
                connect = sym connect::once,
                slot = sym slot::$name,
            );
            #[cfg(target_arch = "aarch64")]
            naked_asm!(
                "stp x29, x30, [sp, #-48]!",
                "stp x0, x1, [sp, #16]",
                "str x2, [sp, #32]",
                "bl {connect}",
                "ldr x2, [sp, #32]",
                "ldp x0, x1, [sp, #16]",
                "ldp x29, x30, [sp], #48",
                "adrp x16, {slot}",
                "ldr x16, [x16, :lo12:{slot}]",
                "br x16",
                connect = sym connect::once,
                slot = sym slot::$name,
            );
        }
    };
    ($name:ident) => {
        /// Jumps to the function in the slot of the same name.
        ///
        /// # Safety
        /// The arguments must be those of the function of this name (ze_api.h, zet_api.h, zes_api.h, zer_api.h).
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            #[cfg(target_arch = "x86_64")]
            naked_asm!("jmp qword ptr [rip + {slot}]", slot = sym slot::$name);
            #[cfg(target_arch = "aarch64")]
            naked_asm!(
                "adrp x16, {slot}",
                "ldr x16, [x16, :lo12:{slot}]",
                "br x16",
                slot = sym slot::$name,
            );
        }
    };
}

macro_rules! symbols {
    (
        loader { $($loader:ident => $($loader_path:ident)::+;)* }
        extensions { $($extension:ident => $($extension_path:ident)::+;)* }
        $($getter:ident { $($since:literal $name:ident $(=> $($path:ident)::+)?;)* })*
    ) => {
        $(symbol!($loader);)*
        $(symbol!($getter);)*
        $($(symbol!($name);)*)*

        /// The function that each symbol jumps to.
        #[allow(non_upper_case_globals, reason = "the names are those of the C functions")]
        mod slot {
            use super::*;

            $(pub(super) static $loader: Slot = Slot::new(entry::$loader as *mut ());)*
            // Whoever asks for a table is to get the device's own functions.
            $(pub(super) static $getter: Slot = Slot::new(entry::$getter as *mut ());)*
            $($(pub(super) static $name: Slot = Slot::new(entry::$name as *mut ());)*)*
        }

        /// The slots of each DDI table, in the order of its members.
        static TABLES: &[(&CStr, &[&Slot])] =
            &[$((cstr(concat!(stringify!($getter), "\0")), &[$(&slot::$name,)*]),)*];
    };
}

/// Holds the address of a function.
type Slot = AtomicPtr<()>;

/// A text that ends with NUL as a C string.
const fn cstr(text: &str) -> &CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => c"",
    }
}

ze_functions!(symbols);

macro_rules! tracer {
    ($symbol:ident, $function:literal) => {
        /// Registers a callback of a tracer for one function (zel_tracing_register_cb.h).
        #[unsafe(no_mangle)]
        pub extern "C" fn $symbol(tracer: Handle<Tracer>, kind: u32, callback: Callback) -> ZeResult {
            tracing::register($function, tracer, kind, callback)
        }
    };
}

/// The functions that register callbacks, as the build script has made them of the table.
#[allow(non_snake_case, reason = "the names are those of the C API")]
pub mod tracers {
    use super::{Callback, Handle, Tracer, ZeResult, tracing};

    include!(concat!(env!("OUT_DIR"), "/tracers.rs"));
}
