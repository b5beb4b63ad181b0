//! Exported functions of interfaces, for programs that link a library with these symbols. The symbols are in the
//! preload library.
//!
//! An exported function jumps to what its interface finds for it: the function of the library behind urscope, or a
//! hook.

use std::arch::naked_asm;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::{ffi::c_void, ptr::null_mut};

use urscope_schema::api::Function;

use crate::interface::{self, Exported};

/// The most functions of an interface that have no row, and return others.
const GETTERS: usize = 2;

/// What each exported function jumps to, where that is the same for all callers; null before the first call.
static TARGETS: [AtomicPtr<c_void>; ALL] = [const { AtomicPtr::new(null_mut()) }; ALL];

/// All functions, their twins, and the functions that return others.
const ALL: usize = 2 * Function::COUNT + GETTERS * interface::COUNT;

/// The number of a function.
pub const fn number(function: Function) -> usize {
    function as usize
}

/// The number of a function's twin ([`Function::twin`]).
pub const fn twin(function: Function) -> usize {
    Function::COUNT + function as usize
}

/// The number of a function that returns others, by the number of its interface ([`Function::interface_number`]).
pub const fn getter(interface: usize, version: usize) -> usize {
    2 * Function::COUNT + GETTERS * interface + version
}

/// Finds what the exported function with this number jumps to.
extern "C" fn target(number: usize) -> *mut c_void {
    let is_twin = number >= Function::COUNT;
    let function = Function::ALL.get(number - if is_twin { Function::COUNT } else { 0 });
    let Exported { address, is_final } = if let Some(function) = function {
        interface::exported(*function, is_twin)
    } else {
        let getter = number - 2 * Function::COUNT;
        interface::exported_getter(getter / GETTERS, getter % GETTERS)
    };
    if is_final && let Some(known) = TARGETS.get(number) {
        known.store(address, Ordering::Release);
    }
    address
}

/// The exported function with this [`number`].
///
/// # Safety
///
/// The arguments are those of the function.
#[unsafe(naked)]
pub unsafe extern "C" fn function<const NUMBER: usize>() {
    naked_asm!(
        "mov rax, qword ptr [rip + {targets} + 8 * {number}]",
        "test rax, rax",
        "jz 2f",
        "jmp rax",
        "2:",
        "mov eax, {number}",
        "jmp {find}",
        targets = sym TARGETS,
        number = const NUMBER,
        find = sym find,
    )
}

/// Stores the caller, and jumps to the target of the function with the number in eax.
#[unsafe(naked)]
unsafe extern "C" fn find() {
    naked_asm!(
        crate::store_caller!(),
        "push r9",
        "push r8",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        "sub rsp, 8",
        "mov edi, eax",
        "call {target}",
        "add rsp, 8",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop rcx",
        "pop r8",
        "pop r9",
        "jmp rax",
        target = sym target,
    )
}
