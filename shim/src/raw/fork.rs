//! The forks of this process: handlers for them, and when the one happened that the process comes from.
//!
//! A child has all that its parent did before the fork, and nothing of what it did later. So both note when the fork
//! returned: what happened after the earlier of the two times happened in the parent only. A page that they share has
//! the parent's time.

use std::{
    ffi::{c_int, c_void},
    ptr::null_mut,
    sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering},
};

use urscope_schema::call::Nanos;

use super::{clock, fork_mark, interruptions, process};

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

/// In a child of a fork that the C library did not notice (`_Fork`, a bare `clone`), calls what [`on_fork`] arranged
/// for a child.
#[inline]
pub fn notice() {
    if fork_mark::is_unnoticed() {
        call_in_unnoticed_child();
    }
}

#[cold]
fn call_in_unnoticed_child() {
    let _held_off = interruptions::hold_off();
    // Nobody read the clock before this fork.
    OWN_FORK.began.store(0, Ordering::Release);
    process::forget_id();
    call(&IN_CHILD);
}

/// The fork that a process comes from.
#[derive(Clone, Copy)]
pub struct Fork {
    /// The process that forked.
    pub parent: u32,
    /// When that began to.
    pub began: Nanos,
    /// When the fork returned in one of the two processes, whichever was first.
    pub returned: Nanos,
}

/// What is known of a fork.
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

/// The latest fork of this process. A forked child has its parent's in here.
static LATEST_FORK: ForkTimes = ForkTimes::new();

/// The fork that this process comes from.
static OWN_FORK: ForkTimes = ForkTimes::new();

/// The fork that this process comes from; `None` if it comes from none, or from one without handlers.
pub fn own() -> Option<Fork> {
    let ForkTimes { parent, began, returned, slot } = &OWN_FORK;
    let [began, returned, slot] = [began, returned, slot].map(|value| value.load(Ordering::Acquire));
    let in_parent = returned_in_parent(slot, began).unwrap_or(u64::MAX);
    let parent = parent.load(Ordering::Acquire);
    (began != 0).then(|| Fork { parent, began: Nanos(began), returned: Nanos(returned.min(in_parent)) })
}

unsafe extern "C" {
    // What pthread_atfork(3) calls, which glibc before 2.34 has in `libpthread.so.0`. Handlers without a library's
    // handle stay.
    fn __register_atfork(
        before: extern "C" fn(),
        in_parent: extern "C" fn(),
        in_child: extern "C" fn(),
        library: *mut c_void,
    ) -> c_int;
}

/// Has the three called around every `fork` of the C library.
pub fn on_fork(before: fn(), in_parent: fn(), in_child: fn()) {
    extern "C" fn call_before() {
        call(&BEFORE_FORK);
        // Behind the handler, which takes a lock: of two threads that fork, one comes after the other.
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

/// How many forks the page holds. A process and all that come from it by forks share it, and use the slots in turn.
const SLOTS: usize = 255;

/// The page of this process; null before its first fork.
static SHARED_PAGE: AtomicPtr<SharedPage> = AtomicPtr::new(null_mut());

#[repr(C)]
struct SharedPage {
    /// How many slots were taken.
    taken: AtomicU64,
    slots: [Slot; SLOTS],
}

struct Slot {
    /// When the fork began: tells whose slot it is.
    began: AtomicU64,
    /// When it returned in the parent; 0 before that.
    returned: AtomicU64,
}

/// The page, where the kernel has given one.
fn shared_page() -> Option<&'static SharedPage> {
    // SAFETY: null, or a page that is never unmapped, and of which every value is valid.
    unsafe { SHARED_PAGE.load(Ordering::Acquire).as_ref() }
}

/// A slot for a fork that began at that time.
fn new_slot(began: u64) -> u64 {
    if shared_page().is_none() {
        // SAFETY: a new anonymous mapping.
        let page = unsafe {
            let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
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

/// Notes in the parent that its fork has returned.
fn note_return(number: u64, began: u64) {
    if let Some(slot) = slot(number).filter(|slot| slot.began.load(Ordering::Acquire) == began) {
        slot.returned.store(clock::now().0, Ordering::Release);
    }
}

/// When that fork returned in the parent; `None` if it has not yet, or if its slot is used again.
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
