//! Calls of C++ functions whose exceptions must not reach us: `guarded.cpp` catches them.

use std::ffi::{CStr, c_char, c_void};

use crate::sycl::Function;

unsafe extern "C-unwind" {
    fn urscope_ipc_guarded(
        function: *const c_void,
        arguments: *const [usize; ARGUMENTS],
        results: *mut [usize; 2],
        report: unsafe extern "C" fn(*mut c_void, *const c_char),
        message: *mut c_void,
    ) -> bool;
}

/// How many arguments the x86-64 ABI passes in general registers.
const ARGUMENTS: usize = 6;

unsafe extern "C" fn report(message: *mut c_void, what: *const c_char) {
    let text = if what.is_null() {
        "an exception without a text".to_owned()
    } else {
        // SAFETY: the text lives as long as the exception.
        unsafe { CStr::from_ptr(what) }.to_string_lossy().into_owned()
    };
    // SAFETY: `call` passes its message.
    unsafe { *message.cast::<String>() = text };
}

/// Calls a function with up to [`ARGUMENTS`] arguments, each of which is passed in a general register.
/// Returns the two registers in which a result may be, or what the exception that it threw says.
///
/// # Safety
///
/// The function must take these arguments.
pub(crate) unsafe fn call<const N: usize>(function: Function, given: [usize; N]) -> Result<[usize; 2], String> {
    const { assert!(N <= ARGUMENTS) };
    let mut arguments = [0; ARGUMENTS];
    for (place, argument) in arguments.iter_mut().zip(given) {
        *place = argument;
    }
    let mut results = [0; 2];
    let mut message = String::new();
    // SAFETY: the caller's promise; the rest are live variables.
    let returned = unsafe {
        urscope_ipc_guarded(
            function.as_ptr(),
            &raw const arguments,
            &raw mut results,
            report,
            (&raw mut message).cast(),
        )
    };
    if returned { Ok(results) } else { Err(message) }
}
