//! Handlers for the forks of this process, and the time of the fork that made it.
//!
//! A child inherits what its parent did before the fork, and nothing that it did later. So both store when the fork
//! returned: the child does not inherit calls after the earlier of the two times. A page that they share has the
//! parent's time.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use urscope_schema::call::Nanos;

use super::{fork_mark, process};
use crate::raw::{clock, signals::interruptions};

static BEFORE_FORK: AtomicUsize = AtomicUsize::new(0);
static IN_PARENT: AtomicUsize = AtomicUsize::new(0);
static IN_CHILD: AtomicUsize = AtomicUsize::new(0);

/// Calls a handler of [`on_fork`].
fn call(handler: &AtomicUsize) {
    let address = handler.load(Ordering::Acquire);
    if address != 0 {
        // SAFETY: only `on_fork` stores here, and it stores addresses of `fn()`.
        let handler = unsafe { std::mem::transmute::<usize, fn()>(address) };
        handler();
    }
}

/// Calls the handler of [`on_fork`] in a child of an unnoticed fork (`_Fork`, a bare `clone`).
#[inline]
pub fn notice() {
    if fork_mark::is_unnoticed() {
        call_in_unnoticed_child();
    }
}

#[cold]
fn call_in_unnoticed_child() {
    let _held_off = interruptions::hold_off();
    // The time of this fork is unknown.
    OWN_FORK.began.store(0, Ordering::Release);
    process::forget_id();
    call(&IN_CHILD);
}

/// The fork that made a process.
#[derive(Clone, Copy)]
pub struct Fork {
    /// The process that forked.
    pub parent: u32,
    /// When the fork began.
    pub began: Nanos,
    /// When the fork returned in one of the two processes, whichever was first.
    pub returned: Nanos,
}

struct ForkTimes {
    parent: AtomicU32,
    /// 0 if there was no fork.
    began: AtomicU64,
    /// When it returned in the child.
    returned: AtomicU64,
    /// Its slot in the shared page.
    slot: AtomicU64,
}

impl ForkTimes {
    const fn new() -> Self {
        let [began, returned, slot] = [const { AtomicU64::new(0) }; 3];
        Self { parent: AtomicU32::new(0), began, returned, slot }
    }
}

/// The latest fork of this process; in a forked child, of its parent.
static LATEST_FORK: ForkTimes = ForkTimes::new();

/// The fork that made this process.
static OWN_FORK: ForkTimes = ForkTimes::new();

/// The fork that made this process; `None` without a fork, or after an unnoticed one.
pub fn own() -> Option<Fork> {
    let ForkTimes { parent, began, returned, slot } = &OWN_FORK;
    let [began, returned, slot] = [began, returned, slot].map(|value| value.load(Ordering::Acquire));
    let in_parent = returned_in_parent(slot, began).unwrap_or(u64::MAX);
    let parent = parent.load(Ordering::Acquire);
    (began != 0).then(|| Fork { parent, began: Nanos(began), returned: Nanos(returned.min(in_parent)) })
}

unsafe extern "C" {
    // pthread_atfork(3) calls it; glibc before 2.34 has that in `libpthread.so.0`. Handlers without a library's handle
    // are never removed.
    fn __register_atfork(
        before: extern "C" fn(),
        in_parent: extern "C" fn(),
        in_child: extern "C" fn(),
        library: *mut c_void,
    ) -> c_int;
}

/// Registers handlers for every `fork` of the C library.
pub fn on_fork(before: fn(), in_parent: fn(), in_child: fn()) {
    extern "C" fn call_before() {
        call(&BEFORE_FORK);
        // After the handler, whose lock orders threads that fork.
        let began = clock::now().0;
        LATEST_FORK.parent.store(process::id(), Ordering::Release);
        LATEST_FORK.slot.store(new_slot(began), Ordering::Release);
        LATEST_FORK.began.store(began, Ordering::Release);
    }
    extern "C" fn call_in_parent() {
        note_return(LATEST_FORK.slot.load(Ordering::Acquire), LATEST_FORK.began.load(Ordering::Acquire));
        call(&IN_PARENT);
    }
    extern "C" fn call_in_child() {
        OWN_FORK.returned.store(clock::now().0, Ordering::Release);
        OWN_FORK.parent.store(LATEST_FORK.parent.load(Ordering::Acquire), Ordering::Release);
        OWN_FORK.slot.store(LATEST_FORK.slot.load(Ordering::Acquire), Ordering::Release);
        OWN_FORK.began.store(LATEST_FORK.began.load(Ordering::Acquire), Ordering::Release);
        process::forget_id();
        call(&IN_CHILD);
    }

    BEFORE_FORK.store(before as usize, Ordering::Release);
    IN_PARENT.store(in_parent as usize, Ordering::Release);
    IN_CHILD.store(in_child as usize, Ordering::Release);
    // SAFETY: the handlers are `extern "C"` functions of a library that is never unloaded.
    unsafe { __register_atfork(call_before, call_in_parent, call_in_child, null_mut()) };
}

// --- The shared page -----------------------------------------------------------------------------------------

/// The number of slots for forks. A process and its descendants share the page and use the slots in turn.
const SLOTS: usize = 255;

/// The page of this process; null before its first fork.
static SHARED_PAGE: AtomicPtr<SharedPage> = AtomicPtr::new(null_mut());

#[repr(C)]
struct SharedPage {
    /// The number of slots that were used.
    taken: AtomicU64,
    slots: [Slot; SLOTS],
}

struct Slot {
    /// When the fork began, which identifies it.
    began: AtomicU64,
    /// When it returned in the parent; 0 before that.
    returned: AtomicU64,
}

/// The page, if the kernel has mapped one.
fn shared_page() -> Option<&'static SharedPage> {
    // SAFETY: null, or a page that is never unmapped, and of which every value is valid.
    unsafe { SHARED_PAGE.load(Ordering::Acquire).as_ref() }
}

/// The slot number for a fork that began at this time.
fn new_slot(began: u64) -> u64 {
    if shared_page().is_none() {
        // SAFETY: a new anonymous mapping.
        let page = unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
            libc::mmap(null_mut(), size_of::<SharedPage>(), protection, flags, -1, 0)
        };
        if page != libc::MAP_FAILED {
            SHARED_PAGE.store(page.cast(), Ordering::Release);
        }
    }
    let Some(shared_page) = shared_page() else { return 0 };
    let number = shared_page.taken.fetch_add(1, Ordering::AcqRel);
    if let Some(slot) = slot(number) {
        slot.returned.store(0, Ordering::Release);
        slot.began.store(began, Ordering::Release);
    }
    number
}

fn slot(number: u64) -> Option<&'static Slot> {
    shared_page()?.slots.get((number % SLOTS as u64) as usize)
}

/// Stores in the parent when its fork returned.
fn note_return(number: u64, began: u64) {
    if let Some(slot) = slot(number).filter(|slot| slot.began.load(Ordering::Acquire) == began) {
        slot.returned.store(clock::now().0, Ordering::Release);
    }
}

/// When a fork returned in the parent; `None` if it has not yet, or if its slot is reused.
fn returned_in_parent(number: u64, began: u64) -> Option<u64> {
    let slot = slot(number)?;
    let returned = slot.returned.load(Ordering::Acquire);
    (returned != 0 && slot.began.load(Ordering::Acquire) == began).then_some(returned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_tells_when_its_fork_returned_until_it_is_used_again() {
        assert_eq!(size_of::<SharedPage>(), 4088, "one page");
        let first = new_slot(7);
        assert_eq!(returned_in_parent(first, 7), None, "it has not returned");
        note_return(first, 7);
        assert!(returned_in_parent(first, 7).is_some_and(|returned| returned <= clock::now().0));
        for _ in 0..SLOTS {
            new_slot(8);
        }
        assert_eq!(returned_in_parent(first, 7), None, "it is used again");
        note_return(first, 7);
        assert_eq!(returned_in_parent(first, 8), None, "the time belongs to another fork");
    }
}
