//! The `exec` functions of the C library. The trace has the time of an exec, because what the process has not
//! released then is leaked. The exported symbols are in the preload library.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::chain;
use crate::raw::{errno, late_functions, symbols::real_dlsym};

/// A function of the C library.
pub struct CFunction {
    name: &'static CStr,
    /// Every C library has it.
    is_in_all_versions: bool,
    address: AtomicPtr<c_void>,
}

impl CFunction {
    const fn new(name: &'static CStr, is_in_all_versions: bool) -> Self {
        Self { name, is_in_all_versions, address: AtomicPtr::new(null_mut()) }
    }

    /// The function; null if the C library has none.
    pub fn address(&self) -> *mut c_void {
        let found_before = self.address.load(Ordering::Acquire);
        if !found_before.is_null() {
            return found_before;
        }
        let mut found = null_mut();
        if self.is_in_all_versions && !late_functions::can_look_up() {
            // SAFETY: every C library has it.
            found = unsafe { late_functions::next_without_lookup(self.name) };
        }
        if found.is_null() {
            // SAFETY: `RTLD_NEXT` is always allowed.
            found = unsafe { real_dlsym::real(libc::RTLD_NEXT, self.name) };
        }
        self.address.store(found, Ordering::Release);
        found
    }
}

/// `execv(3)`.
pub static EXECV: CFunction = CFunction::new(c"execv", true);
/// `execve(2)`.
pub static EXECVE: CFunction = CFunction::new(c"execve", true);
/// `execvp(3)`.
pub static EXECVP: CFunction = CFunction::new(c"execvp", true);
/// `execvpe(3)`.
pub static EXECVPE: CFunction = CFunction::new(c"execvpe", true);
/// `execveat(2)`; glibc has it since 2.34.
pub static EXECVEAT: CFunction = CFunction::new(c"execveat", false);
/// `fexecve(3)`.
pub static FEXECVE: CFunction = CFunction::new(c"fexecve", true);

/// Looks all of them up, because a forked child must be able to call them without a lookup.
pub fn resolve() {
    for real in [&EXECV, &EXECVE, &EXECVP, &EXECVPE, &EXECVEAT, &FEXECVE] {
        // An old C library that lacks the function would load a library for the lookup.
        if real.is_in_all_versions || late_functions::can_look_up() {
            real.address();
        }
    }
}

/// Calls an `exec` function and records it. Returns only if it failed.
pub fn record_exec(exec: impl FnOnce() -> c_int) -> c_int {
    chain::exec(false);
    let result = exec();
    errno::preserve(|| chain::exec(true));
    result
}

/// The arguments of `execl`, `execlp` and `execle`.
pub struct ExecArguments {
    /// The arguments, if they fit: a forked child of a program with threads may not be able to allocate.
    inline: [*const c_char; INLINE_LIMIT],
    /// All arguments, if there are more.
    heap: Vec<*const c_char>,
    /// The number of arguments with the null pointer.
    length: usize,
}

const INLINE_LIMIT: usize = 256;

impl ExecArguments {
    /// Collects the arguments up to the null pointer. `argument` returns the one at an index.
    pub fn collect(argument: impl Fn(usize) -> *const c_char) -> Self {
        let mut all = Self { inline: [std::ptr::null(); INLINE_LIMIT], heap: Vec::new(), length: 0 };
        loop {
            let next = argument(all.length);
            if let Some(place) = all.inline.get_mut(all.length) {
                *place = next;
            } else {
                if all.heap.is_empty() {
                    all.heap.extend_from_slice(&all.inline);
                }
                all.heap.push(next);
            }
            all.length += 1;
            if next.is_null() {
                return all;
            }
        }
    }

    /// The array for `execv(3)`.
    pub fn array(&self) -> *const *const c_char {
        if self.heap.is_empty() { self.inline.as_ptr() } else { self.heap.as_ptr() }
    }

    /// The index of the argument after the null pointer.
    pub fn next_index(&self) -> usize {
        self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_collected_up_to_the_null_pointer() {
        for count in [0, 1, INLINE_LIMIT - 1, INLINE_LIMIT, INLINE_LIMIT + 40] {
            let text = c"word".as_ptr();
            let all = ExecArguments::collect(|index| if index < count { text } else { std::ptr::null() });
            // SAFETY: the array has that many elements.
            let array = unsafe { std::slice::from_raw_parts(all.array(), count + 1) };
            assert!(array.iter().take(count).all(|word| *word == text), "{count}");
            assert!(array[count].is_null());
            assert_eq!(all.next_index(), count + 1);
        }
    }
}
