//! Exported functions, for programs that link the CUDA driver: each jumps to the hook of the next function of its name.
//!
//! Only rows and `cuGetProcAddress` are exported. A program that has weak references to the driver, to see whether it is
//! there, asks `cuInit` first, which is not exported; dlsym(3) does not find what only urscope exports. Without a driver, or
//! before it is loaded, an exported function returns `CUDA_ERROR_NOT_INITIALIZED`, as the driver does before `cuInit`.

use std::sync::atomic::{AtomicPtr, Ordering};
use std::{arch::naked_asm, ffi::c_void, path::Path, ptr::null_mut};

use urscope_schema::api::Function;
use urscope_schema::cu_functions;

use super::super::real_dlsym;
use super::{GETTERS, Symbol, hooked, uninitialized};

/// The number of exported functions.
const COUNT: usize = GETTERS.len() + Function::COUNT;

/// The function that each export jumps to; null before its first call.
static TARGETS: [AtomicPtr<c_void>; COUNT] = [const { AtomicPtr::new(null_mut()) }; COUNT];

/// Finds what an export jumps to: the function that is next after urscope's, or that of a driver that was opened with
/// RTLD_LOCAL.
extern "C" fn find(place: usize) -> *mut c_void {
    let function = place.checked_sub(GETTERS.len()).and_then(|place| Function::ALL.get(place));
    let symbol = function.map_or(Symbol::Getter(place), |function| Symbol::Row(*function));
    let name = symbol.name();
    // SAFETY: `RTLD_NEXT` is always allowed.
    let mut next = unsafe { real_dlsym::real(libc::RTLD_NEXT, &name) };
    if next.is_null() {
        next = real_dlsym::in_library(Path::new("libcuda.so.1"), &name);
    }
    if next.is_null() {
        return absent as *mut c_void;
    }
    let target = hooked(symbol, next);
    if let Some(known) = TARGETS.get(place) {
        known.store(target, Ordering::Release);
    }
    target
}

/// Stands for a function that nobody has.
extern "C" fn absent() -> urscope_schema::api::UrResult {
    uninitialized()
}

macro_rules! export {
    ($name:ident, $place:expr) => {
        #[doc = concat!("What our exported `", stringify!($name), "` jumps to.")]
        ///
        /// # Safety
        ///
        /// The arguments are those of the function of this name (`cuda.h`).
        #[unsafe(naked)]
        #[allow(non_snake_case, reason = "the names are those of the C functions")]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                "mov rax, qword ptr [rip + {targets} + 8 * {place}]",
                "test rax, rax",
                "jne 2f",
                "push rdi",
                "push rsi",
                "push rdx",
                "push rcx",
                "push r8",
                "push r9",
                "sub rsp, 8",
                "mov edi, {place}",
                "call {find}",
                "add rsp, 8",
                "pop r9",
                "pop r8",
                "pop rcx",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "2: jmp rax",
                targets = sym TARGETS,
                find = sym find,
                place = const $place,
            )
        }
    };
}

macro_rules! exports {
    ($(#[doc = $doc:literal] fn $name:ident($($param:ident: $role:ident),*) in $table:ident[$slot:literal] $verb:ident $kind:ident;)*) => {
        $(export!($name, GETTERS.len() + Function::$name as usize);)*
    };
}

export!(cuGetProcAddress, 0);
export!(cuGetProcAddress_v2, 1);
cu_functions!(exports);
