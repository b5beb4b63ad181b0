//! `liburscope.so`: the library that `LD_PRELOAD` names.
//!
//! It contains only what must be a symbol of this library: the exports of the function table, the trampoline of `dlsym`, `_exit`,
//! and the constructor. What they do is in the shim. No crate may depend on this one.

use std::{
    arch::naked_asm,
    ffi::{c_char, c_int, c_void},
};

#[allow(clippy::wildcard_imports, reason = "a row may name any role")]
use urscope_schema::{
    api::{UrResult, role::*},
    ur_functions,
};
use urscope_shim::{
    chain,
    entry::{
        dlsym::{REAL, intercept},
        exports,
    },
    raw::{args::Arg, process},
};

#[ctor::ctor(unsafe)]
fn start() {
    urscope_shim::start();
}

macro_rules! exports {
    ($(#[doc = $doc:literal] fn $name:ident($($param:ident: $role:ident),*) in $table:ident[$slot:literal] $verb:ident $kind:ident;)*) => {
        $(
            #[doc = $doc]
            // SAFETY: the symbol of a loader that is behind us; it is found and called.
            #[unsafe(no_mangle)]
            pub extern "C" fn $name($($param: Arg<$role>),*) -> UrResult {
                exports::$name()($($param),*)
            }
        )*
    };
}

ur_functions!(exports);

/// `dlsym(3)`: asks the shim for an answer, and otherwise jumps to the real function, so that the return address stays that of the
/// caller, which `RTLD_NEXT` depends on.
///
/// # Safety
///
/// As for dlsym(3).
// SAFETY: the real symbol is behind us and is reached by its version.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {intercept}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "jne 2f",
        "mov rax, [rip + {real}]",
        "jmp rax",
        "2: ret",
        intercept = sym intercept,
        real = sym REAL,
    )
}

fn end_now(status: c_int) -> ! {
    chain::end("_exit");
    process::exit_now(status)
}

/// `_exit(2)`: closes the trace, then ends the process as asked. Forked children usually end this way.
// SAFETY: the real symbol is behind us, and does the same.
#[unsafe(no_mangle)]
pub extern "C" fn _exit(status: c_int) -> ! {
    end_now(status)
}

/// `_Exit(3)`: the same under the name that C gives it.
// SAFETY: as for `_exit`.
#[unsafe(no_mangle)]
pub extern "C" fn _Exit(status: c_int) -> ! {
    end_now(status)
}
