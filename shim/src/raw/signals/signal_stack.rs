//! Ends the process on a large stack if a signal handler with an alternate stack ends it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::{arch::asm, cell::UnsafeCell, ffi::c_int, mem::MaybeUninit};

/// The size in bytes. None of its pages is there before it is used.
const SIZE: usize = 1 << 17;

#[repr(align(16))]
struct Stack(UnsafeCell<[u8; SIZE]>);

// SAFETY: one thread uses it, and never gives it back.
unsafe impl Sync for Stack {}

static STACK: Stack = Stack(UnsafeCell::new([0; SIZE]));

static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Calls `end` with the exit status of the process. In a signal handler with an alternate stack (sigaltstack(2)),
/// which may have 2 KiB left, it is called on another stack.
pub fn on_large_stack(end: extern "C" fn(c_int) -> !, status: c_int) -> ! {
    if is_in_use() && !IS_TAKEN.swap(true, Ordering::Relaxed) {
        let top = STACK.0.get().expose_provenance() + SIZE;
        // SAFETY: the stack is aligned for a call, and unused. The process never returns to the old one.
        unsafe {
            asm!(
                "mov rsp, {top}",
                "xor ebp, ebp",
                "call {end}",
                "ud2",
                top = in(reg) top,
                end = in(reg) end,
                in("edi") status,
                options(noreturn),
            );
        }
    }
    end(status)
}

/// Whether this thread runs on its stack for signals.
fn is_in_use() -> bool {
    let mut stack = MaybeUninit::<libc::stack_t>::zeroed();
    // SAFETY: it changes nothing, and fills the variable; zeroed, it is valid also if that fails.
    let stack = unsafe {
        libc::sigaltstack(std::ptr::null(), stack.as_mut_ptr());
        stack.assume_init()
    };
    stack.ss_flags & libc::SS_ONSTACK != 0
}
