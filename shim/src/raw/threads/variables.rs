//! Thread-local variables that two instructions find.
//!
//! In a library, `thread_local!` calls a function for each access (`__tls_get_addr`). These variables have a fixed
//! offset from the thread pointer (the initial-exec model of thread-local storage), for which the C library reserves
//! little space in libraries that are loaded later. They are small.

use std::arch::{asm, global_asm};
use std::ops::Range;

/// A variable of each thread. It is zero when the thread begins, and has no destructor: signal handlers and destructors
/// of the program's variables may use it at any time.
///
/// # Safety
///
/// Zero bytes are a valid value, no other type has the same place, and threads cannot share it.
pub(crate) unsafe trait Variable: Sized + 'static {
    /// Where it is: one of [`places`].
    const PLACE: Range<usize>;

    /// That of this thread.
    #[inline]
    fn own() -> &'static Self {
        const {
            let Range { start, end } = Self::PLACE;
            assert!(size_of::<Self>() <= end - start && end <= SIZE, "it fits into its place");
            assert!(align_of::<Self>() <= 8 && start % 8 == 0, "it is aligned");
        }
        // SAFETY: the storage of this thread, aligned, large enough and of this type only. It lives as long as the
        // thread, and no reference to it can reach another thread.
        unsafe { &*address().add(Self::PLACE.start).cast() }
    }
}

/// The size of all variables in bytes, as declared below.
const SIZE: usize = 272;

/// The places of the variables, none of which overlap, in bytes from the first one on.
pub(crate) mod places {
    use std::ops::Range;

    /// Where [`note_caller`](crate::note_caller) stores: the return address, and its place on the stack.
    pub(crate) const CALLER: Range<usize> = 0..16;
    pub(crate) const THREAD: Range<usize> = 16..56;
    pub(crate) const LANE: Range<usize> = 56..248;
    pub(crate) const STACKS: Range<usize> = 248..264;
    pub(crate) const OUTER: Range<usize> = 264..272;
}

global_asm!(
    ".pushsection .tbss.urscope_variables, \"awT\", @nobits",
    ".hidden urscope_variables",
    ".globl urscope_variables",
    ".type urscope_variables, @object",
    ".size urscope_variables, {size}",
    ".p2align 3",
    "urscope_variables:",
    ".zero {size}",
    ".popsection",
    size = const SIZE,
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

/// The address of the variables of this thread.
#[inline]
pub(crate) fn address() -> *const u8 {
    let address: *const u8;
    // SAFETY: it computes the address of the variable above, which is constant in a thread.
    unsafe {
        asm!(
            "mov {address}, qword ptr [rip + urscope_variables@GOTTPOFF]",
            "add {address}, qword ptr fs:[0]",
            address = out(reg) address,
            options(pure, nomem, nostack),
        );
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_its_own() {
        let here = address().addr();
        assert_eq!(here, address().addr());
        let there = std::thread::spawn(|| address().addr()).join().unwrap();
        assert_ne!(here, there);
    }
}
