//! The functions of the C library by which a process becomes another program: the trace shows when, because what the
//! process leaves then is left for good. The exported symbols are in the preload library.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    ptr::null_mut,
    sync::atomic::{AtomicPtr, Ordering},
};

use super::dlsym;
use crate::{
    chain,
    raw::{errno, late_functions},
};

/// A function behind ours.
pub struct Real {
    name: &'static CStr,
    /// Every C library has it.
    is_everywhere: bool,
    address: AtomicPtr<c_void>,
}

impl Real {
    const fn new(name: &'static CStr, is_everywhere: bool) -> Self {
        Self { name, is_everywhere, address: AtomicPtr::new(null_mut()) }
    }

    /// The function; null where the C library has none.
    pub fn address(&self) -> *mut c_void {
        let known = self.address.load(Ordering::Acquire);
        if !known.is_null() {
            return known;
        }
        let mut found = null_mut();
        if self.is_everywhere && !late_functions::is_lookup_there() {
            // SAFETY: every C library has it.
            found = unsafe { late_functions::next_without_lookup(self.name) };
        }
        if found.is_null() {
            // SAFETY: `RTLD_NEXT` is always allowed.
            found = unsafe { dlsym::real(libc::RTLD_NEXT, self.name) };
        }
        self.address.store(found, Ordering::Release);
        found
    }
}

/// `execv(3)`.
pub static EXECV: Real = Real::new(c"execv", true);
/// `execve(2)`.
pub static EXECVE: Real = Real::new(c"execve", true);
/// `execvp(3)`.
pub static EXECVP: Real = Real::new(c"execvp", true);
/// `execvpe(3)`.
pub static EXECVPE: Real = Real::new(c"execvpe", true);
/// `execveat(2)`; glibc has it since 2.34.
pub static EXECVEAT: Real = Real::new(c"execveat", false);
/// `fexecve(3)`.
pub static FEXECVE: Real = Real::new(c"fexecve", true);

/// Looks all of them up: a forked child must be able to call them without a lookup.
pub fn resolve() {
    for real in [&EXECV, &EXECVE, &EXECVP, &EXECVPE, &EXECVEAT, &FEXECVE] {
        // What a C library lacks that has no lookup of its own is not worth loading a library.
        if real.is_everywhere || late_functions::is_lookup_there() {
            real.address();
        }
    }
}

/// Calls a function that replaces this process by another program. Returns what it returns, which is only where it
/// failed.
pub fn announced(exec: impl FnOnce() -> c_int) -> c_int {
    chain::exec(false);
    let result = exec();
    errno::keep(|| chain::exec(true));
    result
}

/// The arguments of `execl`, `execlp` and `execle`.
pub struct Arguments {
    /// As many as need no allocation: a forked child of a program with threads may not be able to allocate.
    few: [*const c_char; FEW],
    /// All of them, if there are more.
    many: Vec<*const c_char>,
    /// How many there are, with the null pointer at their end.
    length: usize,
}

const FEW: usize = 256;

impl Arguments {
    /// Collects the arguments up to the null pointer. `argument` gives them by their index.
    pub fn collect(argument: impl Fn(usize) -> *const c_char) -> Self {
        let mut all = Self { few: [std::ptr::null(); FEW], many: Vec::new(), length: 0 };
        loop {
            let next = argument(all.length);
            if let Some(place) = all.few.get_mut(all.length) {
                *place = next;
            } else {
                if all.many.is_empty() {
                    all.many.extend_from_slice(&all.few);
                }
                all.many.push(next);
            }
            all.length += 1;
            if next.is_null() {
                return all;
            }
        }
    }

    /// The array for `execv(3)`.
    pub fn array(&self) -> *const *const c_char {
        if self.many.is_empty() { self.few.as_ptr() } else { self.many.as_ptr() }
    }

    /// The index of the argument behind the null pointer.
    pub fn behind(&self) -> usize {
        self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_collected_up_to_the_null_pointer() {
        for count in [0, 1, FEW - 1, FEW, FEW + 40] {
            let text = c"word".as_ptr();
            let all = Arguments::collect(|index| if index < count { text } else { std::ptr::null() });
            // SAFETY: the array has that many elements.
            let array = unsafe { std::slice::from_raw_parts(all.array(), count + 1) };
            assert!(array.iter().take(count).all(|word| *word == text), "{count}");
            assert!(array[count].is_null());
            assert_eq!(all.behind(), count + 1);
        }
    }
}
