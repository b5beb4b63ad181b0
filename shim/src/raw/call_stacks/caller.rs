//! Finds the caller of a hooked function: the program and its middleware, or the runtime, whose calls of Level Zero
//! are part of a call that is recorded already; and its library.
//!
//! An address is classified by the file name of its library, once for each library. Only for calls that came through
//! [`note_caller`](crate::note_caller).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::{cell::Cell, ops::Range};

use urscope_schema::api::{Calls, INTERFACES};

use super::{stack, unwound_callers};
use crate::raw::threads::{mutex::Mutex, variables::Variable, variables::places};
use crate::raw::{signals::interruptions, symbols::modules};

/// What [`note_caller`](crate::note_caller) stores: of the latest call that came through it.
#[repr(C)]
pub(super) struct Noted {
    /// Its return address.
    pub(super) caller: Cell<usize>,
    /// The place of that address on the stack.
    pub(super) entry: Cell<usize>,
}

// SAFETY: numbers.
unsafe impl Variable for Noted {
    const PLACE: Range<usize> = places::CALLER;
}

/// The owner of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The program, or a library that calls for itself.
    Program,
    /// Unified Runtime, urscope, and the CUDA driver.
    Runtime,
    /// A library that calls for others: the loader of Level Zero, and libumf, which Unified Runtime's adapters and
    /// programs use.
    Forwarder,
}

/// How the file names of urscope's libraries begin.
const OWN: &str = "liburscope";

/// The most libraries in the cache. Others are looked up at every call.
pub const LIBRARY_LIMIT: usize = 64;

/// The address range of a library, and its owner.
#[derive(Debug)]
struct LibraryEntry {
    start: AtomicUsize,
    end: AtomicUsize,
    owner: AtomicUsize,
}

static LIBRARY_CACHE: [LibraryEntry; LIBRARY_LIMIT] =
    [const { LibraryEntry { start: AtomicUsize::new(0), end: AtomicUsize::new(0), owner: AtomicUsize::new(0) } };
        LIBRARY_LIMIT];

static CACHE_LENGTH: Mutex<usize> = Mutex::new(0);

/// The index of the latest library, which is likely to call again.
static LATEST_LIBRARY: AtomicUsize = AtomicUsize::new(0);

/// The return address of the current call, which came through [`note_caller`](crate::note_caller) on this thread.
#[inline]
pub fn address() -> usize {
    entry().1
}

/// The return address of the current call and its place on the stack.
#[inline]
pub fn entry() -> unwound_callers::Frame {
    let own = Noted::own();
    let recorded = (own.entry.get(), own.caller.get());
    // A signal handler may have made other calls since, further down this stack or on another one.
    if stack::is_near_with(recorded.0, recorded.1) { recorded } else { unwound_entry() }
}

/// The first return address outside of this library and its place on the stack, by unwinding.
#[cold]
#[inline(never)]
fn unwound_entry() -> unwound_callers::Frame {
    let _held_off = interruptions::hold_off();
    let own = modules::addresses_around(unwound_entry as *const () as usize);
    stack::first(&[own], |_| true, (0, 0), &mut []).unwrap_or_default()
}

/// The owner of the code at an address. Generated code, which is in no library, is the program's.
#[inline]
pub fn owner(address: usize) -> Owner {
    match LIBRARY_CACHE.get(LATEST_LIBRARY.load(Ordering::Relaxed)) {
        Some(latest) if latest.has(address) => owner_of(latest.owner.load(Ordering::Relaxed)),
        _ => search(address).0,
    }
}

/// The index, below [`LIBRARY_LIMIT`], of the library that contains an address; `None` if the cache is full.
#[inline]
pub fn library(address: usize) -> Option<usize> {
    let latest = LATEST_LIBRARY.load(Ordering::Relaxed);
    if LIBRARY_CACHE.get(latest).is_some_and(|entry| entry.has(address)) { Some(latest) } else { search(address).1 }
}

#[inline(never)]
fn search(address: usize) -> (Owner, Option<usize>) {
    let entry = LIBRARY_CACHE.iter().take_while(|entry| entry.start.load(Ordering::Acquire) != 0);
    for (place, entry) in entry.enumerate() {
        if entry.has(address) {
            LATEST_LIBRARY.store(place, Ordering::Relaxed);
            return (owner_of(entry.owner.load(Ordering::Relaxed)), Some(place));
        }
    }
    look_up(address)
}

impl LibraryEntry {
    /// Whether the library contains an address. An unused entry contains none.
    #[inline]
    fn has(&self, address: usize) -> bool {
        let start = self.start.load(Ordering::Acquire);
        (start..self.end.load(Ordering::Relaxed)).contains(&address)
    }
}

const fn owner_of(number: usize) -> Owner {
    match number {
        1 => Owner::Runtime,
        2 => Owner::Forwarder,
        _ => Owner::Program,
    }
}

#[cold]
#[inline(never)]
fn look_up(address: usize) -> (Owner, Option<usize>) {
    let _held_off = interruptions::hold_off();
    let Some((addresses, name)) = modules::file_around(address) else { return (Owner::Program, None) };
    let owner = of_file(&name);
    let mut place = None;
    if let Some(mut count) = CACHE_LENGTH.try_lock()
        && let Some(free) = LIBRARY_CACHE.get(*count)
    {
        free.owner.store(owner as usize, Ordering::Relaxed);
        free.end.store(addresses.end, Ordering::Relaxed);
        free.start.store(addresses.start, Ordering::Release);
        place = Some(*count);
        *count += 1;
    }
    (owner, place)
}

fn of_file(name: &str) -> Owner {
    if name.starts_with(OWN) {
        return Owner::Runtime;
    }
    let mut libraries = INTERFACES.iter().flat_map(|interface| interface.libraries);
    match libraries.find(|library| name.starts_with(library.begins)).map(|library| library.calls) {
        None => Owner::Program,
        Some(Calls::Own) => Owner::Runtime,
        Some(Calls::Forwarded) => Owner::Forwarder,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_handler_has_noted_is_not_of_this_call() {
        let own = Noted::own();
        let stack = [0x1000, 0];
        own.caller.set(stack[0]);
        own.entry.set(stack.as_ptr().expose_provenance());
        assert_eq!(address(), 0x1000);
        own.entry.set(own.entry.get() - (1 << 16));
        let (place, address) = entry();
        assert_ne!(address, 0x1000, "it is below the end of the stack");
        assert!(place > stack.as_ptr().addr() && owner(address) == Owner::Program);
        own.entry.set(stack.as_ptr().expose_provenance() + size_of::<usize>());
        assert_ne!(entry().1, 0x1000, "the stack has something else there");
    }

    #[test]
    fn a_library_is_known_by_its_name() {
        assert_eq!(of_file("libur_adapter_level_zero_v2.so.0.12.0"), Owner::Runtime);
        assert_eq!(of_file("libumf.so.1.0.2"), Owner::Forwarder);
        assert_eq!(of_file("libze_loader.so.1.28.2"), Owner::Forwarder);
        assert_eq!(of_file("libcuda.so.580.159.04"), Owner::Runtime);
        assert_eq!(of_file("libcudart.so.13"), Owner::Program);
        assert_eq!(of_file("libmpi.so.12"), Owner::Program);
        assert_eq!(of_file("libsyclomatic_helper.so"), Owner::Program);
    }

    #[test]
    fn an_owner_is_remembered() {
        let here = an_owner_is_remembered as *const () as usize;
        assert_eq!([owner(here), owner(here)], [Owner::Program; 2]);
        assert_eq!(owner(1), Owner::Program);
        assert!(library(here).is_some_and(|place| place < LIBRARY_LIMIT) && library(here) == library(here + 1));
        assert_ne!(library(here), library(libc::gnu_get_libc_version as *const () as usize));
        assert_eq!(library(1), None);
        for owner in [Owner::Program, Owner::Runtime, Owner::Forwarder] {
            assert_eq!(owner_of(owner as usize), owner);
        }
    }
}
