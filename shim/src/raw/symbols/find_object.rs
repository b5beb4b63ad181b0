//! The loaded library that an address lies in.
//!
//! `dl_iterate_phdr` takes a lock that a fork does not reset: a child that is forked while another thread holds it
//! would wait for ever. `_dl_find_object` of glibc 2.35 and later (`dlfcn.h`) takes no lock, so that it can be called
//! in a signal handler, too. Where it does not exist, `dladdr1` takes one that a fork does reset. It also compares the
//! address with every symbol of the library, in pages that nobody else may have read.

use std::ffi::{c_int, c_void};
use std::ptr::{NonNull, null, null_mut, without_provenance};
use std::sync::atomic::{AtomicPtr, Ordering};

use super::namespaces::LinkMap;
use crate::raw::late_functions::dlvsym;

/// `struct dl_find_object` of `dlfcn.h`, as it is on x86-64.
#[repr(C)]
struct Answer {
    flags: u64,
    map_start: *mut c_void,
    map_end: *mut c_void,
    link_map: Option<NonNull<LinkMap>>,
    eh_frame: *mut c_void,
    reserved: [u64; 7],
}

type FindObject = unsafe extern "C" fn(*const c_void, *mut Answer) -> c_int;

unsafe extern "C" {
    // dlfcn.h; the libc crate does not declare it for this target.
    fn dladdr1(
        address: *const c_void,
        info: *mut libc::Dl_info,
        extra: *mut Option<NonNull<LinkMap>>,
        flags: c_int,
    ) -> c_int;
}

/// `RTLD_DL_LINKMAP` of `dlfcn.h`.
const LINK_MAP: c_int = 2;

/// A library, or the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Object {
    /// The address of its first byte.
    pub start: usize,
    /// The dynamic loader's description. It lives as long as the library is loaded.
    pub map: NonNull<LinkMap>,
}

/// The object that `address` lies in, in whichever namespace.
pub(super) fn at(address: usize) -> Option<Object> {
    match function() {
        Some(find) => by(find, address),
        None => by_dladdr1(address),
    }
}

fn by(find: FindObject, address: usize) -> Option<Object> {
    let mut answer = Answer {
        flags: 0,
        map_start: null_mut(),
        map_end: null_mut(),
        link_map: None,
        eh_frame: null_mut(),
        reserved: [0; 7],
    };
    // SAFETY: the function only compares the address, and fills the structure.
    let failed = unsafe { find(without_provenance(address), &raw mut answer) } != 0;
    let map = answer.link_map.filter(|_| !failed)?;
    Some(Object { start: answer.map_start as usize, map })
}

fn by_dladdr1(address: usize) -> Option<Object> {
    let mut info = libc::Dl_info { dli_fname: null(), dli_fbase: null_mut(), dli_sname: null(), dli_saddr: null_mut() };
    let mut map = None;
    // SAFETY: the function only compares the address, and fills both variables when it returns other than 0.
    let found = unsafe { dladdr1(without_provenance(address), &raw mut info, &raw mut map, LINK_MAP) } != 0;
    Some(Object { start: info.dli_fbase as usize, map: map.filter(|_| found)? })
}

/// `_dl_find_object`.
fn function() -> Option<FindObject> {
    /// Null until it was looked for.
    static FOUND: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    /// Marks a function that does not exist. It is never called.
    const ABSENT: *mut c_void = without_provenance::<c_void>(1).cast_mut();

    let mut found = FOUND.load(Ordering::Relaxed);
    if found.is_null() {
        // SAFETY: `RTLD_DEFAULT` is always allowed.
        found = unsafe { dlvsym(libc::RTLD_DEFAULT, c"_dl_find_object", c"GLIBC_2.35") };
        if found.is_null() {
            found = ABSENT;
        }
        FOUND.store(found, Ordering::Relaxed);
    }
    // SAFETY: the function of that name and version has this signature.
    (found != ABSENT).then(|| unsafe { std::mem::transmute::<*mut c_void, FindObject>(found) })
}

#[cfg(test)]
mod tests {
    use std::{sync::Barrier, thread};

    use super::*;

    static DATA: [u8; 4] = [1; 4];

    #[test]
    fn dladdr1_says_the_same() {
        let variable = 0;
        let of_c = libc::malloc as *const c_void as usize;
        let addresses = [of_c, at as *const c_void as usize, DATA.as_ptr() as usize, (&raw const variable) as usize, 1];
        for address in addresses {
            assert_eq!(at(address), by_dladdr1(address), "{address:#x}");
        }
        assert!(at(of_c).is_some());
        assert_eq!(at(1), None);
    }

    /// In the callback of dl_iterate_phdr(3): waits until the child has ended.
    unsafe extern "C" fn wait_twice(_: *mut libc::dl_phdr_info, _: usize, barrier: *mut c_void) -> c_int {
        // SAFETY: the test hands in its barrier, which outlives the call.
        let barrier = unsafe { &*barrier.cast::<Barrier>() };
        barrier.wait();
        barrier.wait();
        1
    }

    #[test]
    fn a_child_that_was_forked_while_a_thread_held_the_loaders_lock_finds_an_object() {
        let of_c = libc::malloc as *const c_void as usize;
        let barrier = Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                // SAFETY: the callback has the function's type, and the barrier outlives the call.
                unsafe { libc::dl_iterate_phdr(Some(wait_twice), (&raw const barrier).cast_mut().cast()) }
            });
            barrier.wait();
            // SAFETY: the child calls what is tested, and ends.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // SAFETY: this ends the child should it wait.
                unsafe { libc::alarm(20) };
                let found = at(of_c).is_some() && by_dladdr1(of_c).is_some();
                // SAFETY: this ends the child.
                unsafe { libc::_exit(i32::from(!found)) };
            }
            let mut status = -1;
            // SAFETY: our child, and a variable for its status.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            barrier.wait();
            assert_eq!(status, 0);
        });
    }
}
