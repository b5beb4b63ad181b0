//! The exported symbols of `libze_loader.so.1`.
//!
//! Each name of the table becomes a C symbol that jumps to the entry point in `urscope-device`. It is a jump and not a
//! call, so arguments pass unchanged, and no signature is written twice. No other crate may depend on this one.

use std::arch::naked_asm;

use urscope_device::ddi::entry;
use urscope_device::ze_functions;

macro_rules! symbol {
    ($name:ident) => {
        /// Jumps to the entry point of the same name.
        ///
        /// # Safety
        /// The arguments must be those of the function of this name (ze_api.h, zet_api.h, zes_api.h, zer_api.h).
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
