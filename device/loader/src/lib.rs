//! The stand-in loader: the exported symbols of `libze_loader.so.1`.
//!
//! Nothing but the table's names as C symbols, each a jump to its entry point in `urscope-device`. A jump and not a call:
//! so the arguments pass as they are, and no signature is written twice. Nobody depends on this crate.

use std::arch::naked_asm;

use urscope_device::ddi::entry;
use urscope_device::ze_functions;

macro_rules! symbol {
    ($name:ident) => {
        /// Jumps to the entry point of the same name.
        ///
        /// # Safety
        /// As the entry point, with its arguments (ze_api.h and its siblings).
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            #[cfg(target_arch = "x86_64")]
            naked_asm!("jmp {entry}", entry = sym entry::$name);
            #[cfg(target_arch = "aarch64")]
            naked_asm!("b {entry}", entry = sym entry::$name);
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
    };
}

ze_functions!(symbols);
