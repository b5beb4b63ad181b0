//! Calls of C++ functions whose exceptions must not reach us.
//!
//! A C++ compiler would write `try { … } catch (const std::exception &) { … }`. This file holds what it
//! would make of that: a function in assembly, the table that says where a thrown exception lands, and
//! the four symbols of the C++ library that both need. These are looked up when the first call is made,
//! so this library needs no C++ compiler to build and no C++ library to load: it uses the one that
//! libsycl uses.
//!
//! All exceptions of SYCL are derived from `std::exception`. Another one is not caught; it ends the
//! process where it would leave an `extern "C"` function, and so never reaches a caller in C.

use std::{
    arch::global_asm,
    ffi::{CStr, c_char, c_void},
    mem,
    sync::atomic::{AtomicPtr, Ordering},
};

use crate::library::Library;

global_asm!(
    // void *urscope_ipc_guarded(function, const uintptr_t arguments[6], uintptr_t results[2])
    ".pushsection .text.urscope_ipc_guarded,\"ax\",@progbits",
    ".p2align 4",
    ".globl urscope_ipc_guarded",
    ".hidden urscope_ipc_guarded",
    ".type urscope_ipc_guarded,@function",
    "urscope_ipc_guarded:",
    ".cfi_startproc",
    // Both are addresses relative to the place where they stand; that of the personality is one of a word
    // that holds it.
    ".cfi_personality 0x9b, urscope_ipc_personality",
    ".cfi_lsda 0x1b, .Lurscope_ipc_table",
    "push rbx",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbx, -16",
    "mov rbx, rdx",
    "mov rax, rdi",
    "mov r11, rsi",
    "mov rdi, [r11]",
    "mov rsi, [r11 + 8]",
    "mov rdx, [r11 + 16]",
    "mov rcx, [r11 + 24]",
    "mov r8, [r11 + 32]",
    "mov r9, [r11 + 40]",
    ".Lurscope_ipc_call:",
    "call rax",
    ".Lurscope_ipc_called:",
    "mov [rbx], rax",
    "mov [rbx + 8], rdx",
    "xor eax, eax",
    // An exception lands here, with its address in rax.
    ".Lurscope_ipc_caught:",
    "pop rbx",
    ".cfi_def_cfa_offset 8",
    "ret",
    ".cfi_endproc",
    ".size urscope_ipc_guarded, . - urscope_ipc_guarded",
    ".popsection",
    // The table in the form of the Itanium C++ ABI: one place that calls, which catches one type.
    ".pushsection .gcc_except_table,\"a\",@progbits",
    ".p2align 2",
    ".Lurscope_ipc_table:",
    ".byte 0xff",
    ".byte 0x9b",
    ".uleb128 .Lurscope_ipc_types - .Lurscope_ipc_sites_follow",
    ".Lurscope_ipc_sites_follow:",
    ".byte 0x01",
    ".uleb128 .Lurscope_ipc_sites_end - .Lurscope_ipc_sites",
    ".Lurscope_ipc_sites:",
    ".uleb128 .Lurscope_ipc_call - urscope_ipc_guarded",
    ".uleb128 .Lurscope_ipc_called - .Lurscope_ipc_call",
    ".uleb128 .Lurscope_ipc_caught - urscope_ipc_guarded",
    ".uleb128 1",
    ".Lurscope_ipc_sites_end:",
    ".byte 1",
    ".byte 0",
    ".p2align 2",
    ".long urscope_ipc_exception_type - .",
    ".Lurscope_ipc_types:",
    ".popsection",
    // The words that hold the two addresses. They are filled in before the first call.
    ".pushsection .data.urscope_ipc,\"aw\",@progbits",
    ".p2align 3",
    ".globl urscope_ipc_personality",
    ".hidden urscope_ipc_personality",
    "urscope_ipc_personality: .quad 0",
    ".globl urscope_ipc_exception_type",
    ".hidden urscope_ipc_exception_type",
    "urscope_ipc_exception_type: .quad 0",
    ".popsection",
);

unsafe extern "C-unwind" {
    fn urscope_ipc_guarded(function: *const c_void, arguments: *const usize, results: *mut usize) -> *mut c_void;
}

unsafe extern "C" {
    static urscope_ipc_personality: AtomicPtr<c_void>;
    static urscope_ipc_exception_type: AtomicPtr<c_void>;
}

/// How many arguments the x86-64 ABI passes in general registers.
const ARGUMENTS: usize = 6;

type BeginCatch = unsafe extern "C" fn(*mut c_void) -> *mut StdException;
type EndCatch = unsafe extern "C" fn();

/// The first word of a `std::exception`: its virtual functions, of which the first two are the destructors.
#[repr(C)]
struct StdException {
    functions: *const Functions,
}

#[repr(C)]
struct Functions {
    destructors: [*const c_void; 2],
    what: unsafe extern "C" fn(*const StdException) -> *const c_char,
}

/// The functions of the C++ library that a call needs.
pub(crate) struct Guard {
    begin_catch: BeginCatch,
    end_catch: EndCatch,
}

impl Guard {
    /// With the C++ library that `library` depends on; `None` if it depends on none.
    pub(crate) fn of(library: &Library) -> Option<Self> {
        let personality = library.symbol(c"__gxx_personality_v0")?;
        let exception = library.symbol(c"_ZTISt9exception")?;
        let (begin, end) = (library.symbol(c"__cxa_begin_catch")?, library.symbol(c"__cxa_end_catch")?);
        // SAFETY: the words are ours, and all writers write the same: a process has one C++ library.
        unsafe {
            urscope_ipc_personality.store(personality.as_ptr(), Ordering::Relaxed);
            urscope_ipc_exception_type.store(exception.as_ptr(), Ordering::Relaxed);
        }
        // SAFETY: the Itanium C++ ABI gives these functions these signatures.
        let (begin_catch, end_catch) = unsafe {
            (
                mem::transmute::<*mut c_void, BeginCatch>(begin.as_ptr()),
                mem::transmute::<*mut c_void, EndCatch>(end.as_ptr()),
            )
        };
        Some(Self { begin_catch, end_catch })
    }

    /// Calls a function with up to [`ARGUMENTS`] arguments, each of which is passed in a general register.
    /// Returns the two registers in which a result may be, or what the exception that it threw says.
    ///
    /// # Safety
    ///
    /// The function must take these arguments.
    pub(crate) unsafe fn call<const N: usize>(
        &self,
        function: *const c_void,
        given: [usize; N],
    ) -> Result<[usize; 2], String> {
        const { assert!(N <= ARGUMENTS) };
        let mut arguments = [0; ARGUMENTS];
        for (place, argument) in arguments.iter_mut().zip(given) {
            *place = argument;
        }
        let mut results = [0; 2];
        // SAFETY: the words of the table were filled in by `of`; the rest is the caller's promise.
        let thrown = unsafe { urscope_ipc_guarded(function, arguments.as_ptr(), results.as_mut_ptr()) };
        if thrown.is_null() {
            return Ok(results);
        }
        // SAFETY: the table only lets exceptions through that are derived from `std::exception`;
        // `__cxa_begin_catch` then returns the address of that part, and it lives until `__cxa_end_catch`.
        unsafe {
            let exception = (self.begin_catch)(thrown);
            let what = ((*(*exception).functions).what)(exception);
            let message = if what.is_null() {
                "an exception without a text".to_owned()
            } else {
                CStr::from_ptr(what).to_string_lossy().into_owned()
            };
            (self.end_catch)();
            Err(message)
        }
    }
}
