//! Thread-local variables that two instructions find.
//!
//! In a library, `thread_local!` calls a function for each access (`__tls_get_addr`). These variables have a fixed
//! offset from the thread pointer (the initial-exec model of thread-local storage), for which the C library reserves
//! little space in libraries that are loaded later. They are small.

use std::arch::{asm, global_asm};
use std::{cell::Cell, marker::PhantomData};

use super::thread;
use crate::raw::{call_stacks::stack, trace_file::chunks};

/// The variables, zero when a thread begins and without a destructor: signal handlers and destructors of the
/// program's variables may use them at any time.
#[repr(C)]
pub(crate) struct Variables {
    /// The return address of the call that came through [`note_caller`](crate::note_caller). The first variable.
    pub(crate) caller: Cell<usize>,
    /// The place of that address on the stack. The second variable.
    pub(crate) entry: Cell<usize>,
    pub(crate) thread: thread::Own,
    pub(crate) lane: chunks::Lane,
    pub(crate) stacks: stack::Stacks,
    /// The address of the current call ([`crate::raw::call_stacks::outer`]).
    pub(crate) outer: Cell<usize>,
    /// Not for other threads.
    of_this_thread: PhantomData<*const ()>,
}

const _: () = assert!(size_of::<Variables>() <= 272 && align_of::<Variables>() <= 8, "as declared below");

global_asm!(
    ".pushsection .tbss.urscope_variables, \"awT\", @nobits",
    ".hidden urscope_variables",
    ".globl urscope_variables",
    ".type urscope_variables, @object",
    ".size urscope_variables, 272",
    ".p2align 3",
    "urscope_variables:",
    ".zero 272",
    ".popsection",
);

/// Instructions of a naked function: store the return address and its place. They change r10 and r11.
#[macro_export]
#[doc(hidden)]
macro_rules! store_caller {
    () => {
        "mov r11, qword ptr [rip + urscope_variables@GOTTPOFF]
        mov r10, qword ptr [rsp]
        mov qword ptr fs:[r11], r10
        mov qword ptr fs:[r11 + 8], rsp"
    };
}

/// Instructions of a naked function: store the return address, and jump to `$to`, which must have the signature of
/// the function.
#[macro_export]
#[doc(hidden)]
macro_rules! note_caller {
    ($to:path) => {
        std::arch::naked_asm!(
            $crate::store_caller!(),
            "jmp {to}",
            to = sym $to,
        )
    };
}

/// The variables of this thread.
#[inline]
pub(crate) fn own() -> &'static Variables {
    let address: *const Variables;
    // SAFETY: it computes the address of the variable above, which is constant in a thread.
    unsafe {
        asm!(
            "mov {address}, qword ptr [rip + urscope_variables@GOTTPOFF]",
            "add {address}, qword ptr fs:[0]",
            address = out(reg) address,
            options(pure, nomem, nostack),
        );
    }
    // SAFETY: the storage of this thread, aligned and large enough. All fields are valid as zero bytes: cells of
    // integers, of booleans, and of pointers that may be null. It lives as long as the thread, and no reference to it
    // can reach another thread.
    unsafe { &*address }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_its_own() {
        let here = std::ptr::from_ref(own()).addr();
        assert_eq!(here, std::ptr::from_ref(own()).addr());
        let there = std::thread::spawn(|| std::ptr::from_ref(own()).addr()).join().unwrap();
        assert_ne!(here, there);
    }
}
