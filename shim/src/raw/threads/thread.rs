//! The current thread: its number and name, read from the kernel once per thread, the numbers of its calls, and their
//! counts. Calls share no memory between threads here.

use std::ffi::{CStr, c_void};
use std::{borrow::Cow, ops::Range, ptr::null_mut, sync::OnceLock};

use urscope_schema::api::Function;

use super::super::signals::interruptions;
use super::super::signals::sync::{self, AtomicPtr, AtomicU32, AtomicU64, Cell, Ordering, compiler_fence};
use super::recent_data::RecentData;
use super::variables::{Variable, places};

/// The variables of a thread. Signal handlers use them at any instruction. They have no destructor.
pub(crate) struct Own {
    id: Cell<u32>,
    named: Cell<bool>,
    /// Whether the thread is in a call of an adapter with changed code.
    #[cfg(feature = "frida-gum")]
    pub(crate) inside: Cell<bool>,
    /// The number of the next call, and the end of its block.
    next: Cell<usize>,
    end: Cell<usize>,
    /// The number of the recorded call that enqueues a command; 0 for none.
    command: Cell<u64>,
    counts: Cell<Option<&'static Counts>>,
}

// SAFETY: cells of numbers, and of a reference that may be none.
unsafe impl Variable for Own {
    const PLACE: Range<usize> = places::THREAD;
}

#[inline]
pub(super) fn own() -> &'static Own {
    Own::own()
}

/// The kernel's number of the thread.
#[inline]
pub fn id() -> u32 {
    match own().id.get() {
        0 => {
            let id = sync::thread_id();
            own().id.set(id);
            id
        }
        id => id,
    }
}

/// The number of the recorded call of this thread that enqueues a command; 0 for none.
#[inline]
pub fn command() -> u64 {
    own().command.get()
}

/// Sets that number.
#[inline]
pub fn set_command(call: u64) {
    own().command.set(call);
}

/// The size of a block of call numbers.
const BLOCK: u64 = 64;

/// The first number after all blocks.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// A unique number for a call, from 1 on. The numbers of a thread increase.
#[inline]
pub fn next_call() -> u64 {
    let own = own();
    // The end is read first: a handler may begin another block at any instruction, with numbers above this end.
    // Otherwise a number of the old block could pass the check against the new end.
    let end = own.end.get();
    let number = sync::claim(&own.next, 1);
    if number < end { number as u64 } else { first_of_block(own) }
}

#[cold]
fn first_of_block(own: &Own) -> u64 {
    let first = NUMBERS.fetch_add(BLOCK, Ordering::Relaxed);
    // Without an end there is no number.
    own.end.set(0);
    compiler_fence(Ordering::SeqCst);
    own.next.set(first as usize + 1);
    compiler_fence(Ordering::SeqCst);
    own.end.set((first + BLOCK) as usize);
    first
}

/// The counts of a thread's calls. Only the thread changes them.
struct Counts {
    called: [AtomicU64; Function::COUNT],
    returned: AtomicU64,
    /// Used by the same thread.
    data: RecentData,
    /// Whether a thread has them; 0 for none. Other threads reuse those of threads that have ended.
    taken: AtomicU32,
    /// Those that were made before.
    before: Option<&'static Counts>,
}

/// The latest counts of the list of all. It has no lock: the process may end in a signal handler while another thread
/// waits for the lock of malloc(3), to make new counts.
static LATEST: AtomicPtr<Counts> = AtomicPtr::new(null_mut());

fn all() -> impl Iterator<Item = &'static Counts> {
    // SAFETY: only leaked boxes are stored, and none is freed.
    let latest = unsafe { LATEST.load(Ordering::Acquire).as_ref() };
    std::iter::successors(latest, |counts| counts.before)
}

/// Counts a call of a function that begins.
#[inline]
pub fn count_call(function: Function) {
    if let Some(called) = own_counts().called.get(function as usize) {
        sync::add_one(called);
    }
}

/// Counts a call that has returned.
#[inline]
pub fn count_return() {
    sync::add_one(&own_counts().returned);
}

/// This thread's cache of handle data; `None` before its first call.
#[inline]
pub(crate) fn recent_data() -> Option<&'static RecentData> {
    own().counts.get().map(|counts| &counts.data)
}

#[inline]
fn own_counts() -> &'static Counts {
    own().counts.get().unwrap_or_else(take_counts)
}

#[cold]
fn take_counts() -> &'static Counts {
    let _held_off = interruptions::hold_off();
    let is_free = |counts: &&Counts| counts.taken.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok();
    let counts = all().find(is_free).unwrap_or_else(new_counts);
    own().counts.set(Some(counts));
    counts
}

fn new_counts() -> &'static Counts {
    let new = Box::into_raw(Box::new(Counts {
        called: [const { AtomicU64::new(0) }; Function::COUNT],
        returned: AtomicU64::new(0),
        data: RecentData::default(),
        taken: AtomicU32::new(0),
        before: None,
    }));
    // SAFETY: just leaked.
    unsafe { &*new }.taken.store(1, Ordering::Relaxed);
    loop {
        let latest = LATEST.load(Ordering::Acquire);
        // SAFETY: no other thread has the new ones yet, and none are ever freed.
        unsafe { (*new).before = latest.as_ref() };
        if LATEST.compare_exchange(latest, new, Ordering::Release, Ordering::Relaxed).is_ok() {
            // SAFETY: just leaked.
            return unsafe { &*new };
        }
    }
}

/// Releases the counts of this thread, which ends, for another one.
pub fn leave_counts() {
    if let Some(counts) = own().counts.take() {
        counts.taken.store(0, Ordering::Release);
    }
}

/// How many calls of a function have begun, on all threads.
pub fn called(function: Function) -> u64 {
    sum(|counts| counts.called.get(function as usize).map_or(0, |called| called.load(Ordering::Relaxed)))
}

/// How many calls have returned, on all threads.
pub fn returned() -> u64 {
    sum(|counts| counts.returned.load(Ordering::Relaxed))
}

fn sum(of: impl Fn(&Counts) -> u64) -> u64 {
    all().map(of).sum()
}

/// The name of a thread, as the kernel keeps it.
pub struct Name([u8; 16]);

impl Name {
    /// The name as text. Allocates only if it is not UTF-8.
    pub fn text(&self) -> Cow<'_, str> {
        CStr::from_bytes_until_nul(&self.0).unwrap_or_default().to_string_lossy()
    }
}

/// The thread's name on the first call, then `None`.
pub fn name_once() -> Option<Name> {
    if own().named.replace(true) {
        return None;
    }
    let mut name = [0_u8; 16];
    // SAFETY: PR_GET_NAME writes at most 16 bytes, the last of them a NUL (prctl(2)).
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    Some(Name(name))
}

/// What a thread leaves when it ends.
#[derive(Clone, Copy, Debug)]
pub enum Leaves {
    /// Its cache of call stacks.
    Stacks,
    /// Its place in the trace, or its counts.
    Trace,
}

/// The functions of [`at_end`].
static ENDS: [OnceLock<fn()>; 2] = [const { OnceLock::new() }; 2];

/// Calls `end` when this thread ends, after the destructors of its thread-local C++ objects. It is always the same
/// function for that.
pub fn at_end(leaves: Leaves, end: fn()) {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();

    extern "C" fn call_end(_: *mut c_void) {
        ENDS.iter().filter_map(OnceLock::get).for_each(|end| end());
    }

    if let Some(known) = ENDS.get(leaves as usize) {
        known.get_or_init(|| end);
    }

    let key = KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: it fills the variable; the destructor is a function of a library that is never unloaded.
        (unsafe { libc::pthread_key_create(&raw mut key, Some(call_end)) } == 0).then_some(key)
    });
    if let Some(key) = key {
        // Destructors are called for values that are not null; this one does not use the value.
        // SAFETY: the key was created and is never deleted.
        unsafe { libc::pthread_setspecific(*key, std::ptr::without_provenance(1)) };
    }
}

/// Resets the variables after a `fork`, in the only thread of the child.
pub fn forget() {
    let own = own();
    own.id.set(0);
    own.named.set(false);
    own.counts.set(None);
    own.end.set(0);
    // The numbers continue: a handler may have forked inside of a call, which the child finishes with its number.
    LATEST.store(null_mut(), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn numbers_rise_and_are_never_the_same_twice() {
        let take = || (0..1000).map(|_| next_call()).collect::<Vec<_>>();
        let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(take)).collect();
        let taken: Vec<Vec<u64>> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(taken.iter().all(|numbers| numbers.is_sorted()));
        let all: BTreeSet<u64> = taken.into_iter().flatten().collect();
        assert_eq!(all.len(), 4000);
        assert!(!all.contains(&0));
    }

    #[test]
    fn calls_of_threads_that_have_ended_are_counted() {
        let function = Function::urPhysicalMemGetInfo;
        let before = called(Function::urPhysicalMemGetInfo);
        for _ in 0..3 {
            std::thread::spawn(move || {
                count_call(function);
                leave_counts();
            })
            .join()
            .unwrap();
        }
        assert_eq!(called(function), before + 3);
    }
}
