//! The call stack, as a list of return addresses.
//!
//! Unwinding takes microseconds, so a thread caches its stacks, with the position of each return address. The next
//! call at the same depth only compares: if every position has the same address, it is the same stack, because the
//! return address determines the layout of a frame. A stack with frames of Python also compares these. Must run no
//! code of the program.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering, compiler_fence};
use std::{arch::asm, cell::Cell, ops::Range};

use super::unwound_callers::Frame;
use crate::raw::threads::{thread, variables::Variable, variables::places};
use crate::raw::{processes::process, python, signals::interruptions};

/// The most frames, innermost first.
pub const DEPTH: usize = 24;

/// The most stacks in a thread's cache: a loop of calls has a handful.
const CACHE_LIMIT: usize = 16;

/// The number of frames that are compared at a time.
const GROUP: usize = 4;

struct CachedStack {
    /// The stack pointer at which it was unwound, and its generation; 0 for none.
    at: usize,
    generation: u32,
    id: u32,
    len: usize,
    /// The number of groups, set when it is cached.
    groups: usize,
    /// The position of each return address, and the address. The last one is repeated up to a whole [`GROUP`].
    frames: [[(usize, usize); GROUP]; DEPTH / GROUP],
    /// The frames of Python; `None` if there are none.
    python: Option<Box<python::PythonStack>>,
}

const EMPTY: CachedStack = CachedStack {
    at: 0,
    generation: 0,
    id: 0,
    len: 0,
    groups: 0,
    frames: [[(0, 0); GROUP]; DEPTH / GROUP],
    python: None,
};

/// The result of registering a stack.
pub struct Registered {
    /// Its number; 0 for none.
    pub number: u32,
    /// Its frames of Python. Other frames have another number.
    pub python: Option<Box<python::PythonStack>>,
}

struct Cache {
    /// Made on the heap one by one: all of them would fill a small stack.
    cached: Box<[CachedStack]>,
    /// The index for the next stack.
    next: usize,
    /// The index of the latest call's stack, and of the stack that followed each one the last time: calls come in
    /// loops.
    latest: Cell<usize>,
    successor: [Cell<usize>; CACHE_LIMIT],
}

impl Cache {
    /// The number of the current stack, if it followed the latest one the last time and has no frames of Python.
    #[inline]
    fn expected(&self, at: usize, generation: u32) -> Option<u32> {
        let expected = self.successor.get(self.latest.get() % CACHE_LIMIT)?.get() % CACHE_LIMIT;
        let cached = self.cached.get(expected)?;
        if cached.at != at
            || cached.generation != generation
            || cached.python.is_some()
            || !cached.are_addresses_there()
        {
            return None;
        }
        self.latest.set(expected);
        Some(cached.id)
    }

    /// The number of the current stack, if it is in the cache.
    fn find(&self, at: usize, generation: u32) -> Option<u32> {
        let is_it = |cached: &CachedStack| cached.at == at && cached.generation == generation && cached.is_current();
        let successor = self.successor.get(self.latest.get())?;
        let expected = Some(successor.get()).filter(|expected| self.cached.get(*expected).is_some_and(is_it));
        let found = expected.or_else(|| self.cached.iter().position(is_it))?;
        successor.set(found);
        self.latest.set(found);
        self.cached.get(found).map(|cached| cached.id)
    }
}

/// The cache of a thread. It is on the heap, because every thread of the process has these variables.
pub(crate) struct Stacks {
    /// From a box; null before the first call.
    cache: Cell<*mut Cache>,
    /// Whether a stack is being unwound, or the thread ends. A signal handler gets no stack then.
    busy: Cell<bool>,
}

static GENERATION: AtomicU32 = AtomicU32::new(1);

/// The number of the current call stack, from `register`; 0 for none.
///
/// `register` gets the return addresses, innermost first, without those in `own`: in this library and in libraries
/// that call it for others. It is not called in a signal handler, which may have interrupted malloc(3): such a call
/// has the number 0.
#[inline(never)]
pub fn number(own: impl FnOnce() -> [Range<usize>; 2], register: impl FnOnce(&[usize]) -> Registered) -> u32 {
    let marker = 0_u8;
    let at = (&raw const marker).addr();
    let stacks = Stacks::own();
    if stacks.busy.get() {
        return 0;
    }
    let generation = GENERATION.load(Ordering::Relaxed);
    // SAFETY: null, or the box of this thread, which is changed and freed only while the thread is busy.
    let cache = unsafe { stacks.cache.get().as_ref() };
    match cache.and_then(|cache| cache.expected(at, generation)) {
        Some(id) => id,
        None => stacks.number_of_other(at, generation, own, register),
    }
}

// SAFETY: a pointer that may be null, and a boolean.
unsafe impl Variable for Stacks {
    const PLACE: Range<usize> = places::STACKS;
}

impl Stacks {
    /// The number of a stack that was not expected, or that has frames of Python.
    #[inline(never)]
    fn number_of_other(
        &self,
        at: usize,
        generation: u32,
        own: impl FnOnce() -> [Range<usize>; 2],
        register: impl FnOnce(&[usize]) -> Registered,
    ) -> u32 {
        // SAFETY: as in `number`.
        let cache = unsafe { self.cache.get().as_ref() };
        let cached = cache.and_then(|cache| cache.find(at, generation));
        cached.unwrap_or_else(|| self.number_of_new(at, generation, own, register))
    }

    #[cold]
    #[inline(never)]
    fn number_of_new(
        &self,
        at: usize,
        generation: u32,
        own: impl FnOnce() -> [Range<usize>; 2],
        register: impl FnOnce(&[usize]) -> Registered,
    ) -> u32 {
        self.busy.set(true);
        compiler_fence(Ordering::SeqCst);
        let mut cached = CachedStack { at, generation, ..EMPTY };
        let mut id = 0;
        if !unwind(&own(), &mut cached) {
            let mut addresses = [0; DEPTH];
            for (address, (_, found)) in addresses.iter_mut().zip(cached.frames.as_flattened()) {
                *address = *found;
            }
            let registered = register(addresses.get(..cached.len).unwrap_or_default());
            (cached.id, cached.python) = (registered.number, registered.python);
            id = cached.id;
            self.insert(cached);
        }
        compiler_fence(Ordering::SeqCst);
        self.busy.set(false);
        id
    }

    fn insert(&self, mut cached: CachedStack) {
        let frames = cached.frames.as_flattened_mut();
        let is_comparable = frames.iter().take(cached.len).all(|(place, _)| *place != 0);
        if let Some(last) = cached.len.checked_sub(1).and_then(|last| frames.get(last).copied()) {
            frames.iter_mut().skip(cached.len).for_each(|frame| *frame = last);
        }
        cached.groups = cached.len.div_ceil(GROUP);
        if cached.len == 0 || !is_comparable {
            let _held_off = cached.python.is_some().then(interruptions::hold_off);
            drop(cached);
            return;
        }
        if self.cache.get().is_null() {
            self.cache.set(new_cache());
        }
        // SAFETY: the box of this thread. There is no other reference: the thread is busy, and this is no signal
        // handler, which could have interrupted `find`.
        let cache = unsafe { &mut *self.cache.get() };
        if let Some(slot) = cache.cached.get_mut(cache.next) {
            // Frames of Python are on the heap.
            let _held_off = slot.python.is_some().then(interruptions::hold_off);
            *slot = cached;
            cache.next = (cache.next + 1) % CACHE_LIMIT;
        }
    }
}

fn new_cache() -> *mut Cache {
    let _held_off = interruptions::hold_off();
    thread::at_end(thread::Leaves::Stacks, free_cache);
    let successor = [const { Cell::new(0) }; CACHE_LIMIT];
    let cached = (0..CACHE_LIMIT).map(|_| EMPTY).collect();
    Box::into_raw(Box::new(Cache { cached, next: 0, latest: Cell::new(0), successor }))
}

/// Frees the cache of this thread, which ends. Its later calls have no stack.
fn free_cache() {
    let stacks = Stacks::own();
    stacks.busy.set(true);
    let cache = stacks.cache.replace(std::ptr::null_mut());
    if !cache.is_null() {
        // SAFETY: the box of this thread, without references.
        drop(unsafe { Box::from_raw(cache) });
    }
}

/// Empties the caches of all threads: numbers start again.
pub fn forget() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    // A handler may have forked while this thread was unwinding.
    Stacks::own().busy.set(false);
}

impl CachedStack {
    fn is_current(&self) -> bool {
        let is_main = || thread::id() == process::cached_id();
        self.are_addresses_there() && self.python.as_deref().is_none_or(|stack| stack.is_current(is_main))
    }

    #[expect(
        clippy::inline_always,
        reason = "a call would have the caller save registers that it needs for nothing else"
    )]
    #[inline(always)]
    fn are_addresses_there(&self) -> bool {
        // Not by an iterator's `all`, which compiles to twice as many instructions.
        for [one, two, three, four] in self.frames.iter().take(self.groups) {
            let difference = |(place, address): &(usize, usize)| {
                // SAFETY: the place is above the current stack pointer, in a stack that this thread unwound from the
                // same stack pointer before: up to the thread's first frame the memory is mapped as long as the thread
                // lives.
                unsafe { std::ptr::with_exposed_provenance::<usize>(*place).read_volatile() ^ address }
            };
            if difference(one) | difference(two) | difference(three) | difference(four) != 0 {
                return false;
            }
        }
        true
    }
}

unsafe extern "C" {
    // unwind.h of libgcc_s, which Rust's own library links.
    fn _Unwind_Backtrace(each: extern "C" fn(*mut c_void, *mut c_void) -> c_int, data: *mut c_void) -> c_int;
    fn _Unwind_GetIPInfo(context: *mut c_void, before_instruction: *mut c_int) -> usize;
    fn _Unwind_GetCFA(context: *mut c_void) -> usize;
}

/// Calls `each` with each frame of this stack, innermost first, and whether a signal interrupted it, until it returns
/// false.
fn backtrace<F: FnMut(Frame, bool) -> bool>(mut each: F) {
    extern "C" fn step<F: FnMut(Frame, bool) -> bool>(context: *mut c_void, each: *mut c_void) -> c_int {
        const CONTINUE: c_int = 0;
        const END: c_int = 5;
        // A frame that a signal interrupted has the address of the next instruction.
        let mut interrupted = 0;
        // SAFETY: `_Unwind_Backtrace` passes its data and a context; the variable is filled.
        let (each, address, frame) = unsafe {
            (&mut *each.cast::<F>(), _Unwind_GetIPInfo(context, &raw mut interrupted), _Unwind_GetCFA(context))
        };
        // The return address is below the canonical frame address.
        let frame = (frame.wrapping_sub(size_of::<usize>()), address);
        if each(frame, interrupted != 0) { CONTINUE } else { END }
    }

    // SAFETY: the callback has the signature of `_Unwind_Trace_Fn` and does not unwind; the data outlives the call.
    unsafe { _Unwind_Backtrace(step::<F>, (&raw mut each).cast()) };
}

/// Fills `cached`; true in a signal handler.
fn unwind(own: &[Range<usize>], cached: &mut CachedStack) -> bool {
    let mut in_handler = false;
    backtrace(|(place, address), interrupted| {
        in_handler |= interrupted;
        // The end of the stack, or a jump to address 0 that a signal interrupted.
        if address == 0 {
            return false;
        }
        let is_own = place < cached.at || own.iter().any(|own| own.contains(&address));
        if is_own && cached.len == 0 {
            return true;
        }
        let Some(slot) = cached.frames.as_flattened_mut().get_mut(cached.len) else { return false };
        // SAFETY: the unwinder has read this stack. A signal's frame fails the comparison.
        let there = place != 0_usize.wrapping_sub(size_of::<usize>())
            && unsafe { std::ptr::with_exposed_provenance::<usize>(place).read_volatile() } == address;
        *slot = (if there { place } else { 0 }, address);
        cached.len += 1;
        true
    });
    in_handler
}

/// Whether a place is at most 8 KiB above the end of this stack and has this word: then a stored address in a frame
/// is still valid, and not of a frame that has ended or of another stack.
#[inline]
pub fn is_near_with(place: usize, word: usize) -> bool {
    const NEAR: usize = 1 << 13;
    let here: usize;
    // SAFETY: it reads a register.
    unsafe { asm!("mov {here}, rsp", here = out(reg) here, options(nomem, nostack, preserves_flags)) };
    // SAFETY: the place is a little above the end of this stack, and aligned. Any words of a frame are valid numbers.
    place.wrapping_sub(here) < NEAR
        && unsafe { std::ptr::with_exposed_provenance::<usize>(place).read_volatile() } == word
}

/// The first frame of this stack, innermost first, that is not in `own` (this library) and whose address is `wanted`.
/// Every call unwinds the stack up to that frame. `frames` gets the frames from `from` on, as many as fit.
pub fn first(own: &[Range<usize>], wanted: impl Fn(usize) -> bool, from: Frame, frames: &mut [Frame]) -> Option<Frame> {
    let mut found = None;
    let mut length = 0;
    backtrace(|frame, _| {
        if frame.1 == 0 {
            return false;
        }
        if length > 0 || frame == from {
            if let Some(place) = frames.get_mut(length) {
                *place = frame;
            }
            length += 1;
        }
        let is_it = !own.iter().any(|own| own.contains(&frame.1)) && wanted(frame.1);
        found = is_it.then_some(frame);
        !is_it
    });
    found
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    /// Numbers stacks in order, and counts how often one is unwound.
    struct Register {
        seen: RefCell<Vec<Vec<usize>>>,
        asked: Cell<usize>,
    }

    impl Register {
        fn new() -> Self {
            Self { seen: RefCell::new(Vec::new()), asked: Cell::new(0) }
        }

        #[inline(never)]
        fn here(&self) -> u32 {
            number(
                || [0..0, 0..0],
                |frames| {
                    self.asked.set(self.asked.get() + 1);
                    let mut seen = self.seen.borrow_mut();
                    let place = seen.iter().position(|known| known == frames).unwrap_or_else(|| {
                        seen.push(frames.to_vec());
                        seen.len() - 1
                    });
                    Registered { number: place as u32 + 1, python: None }
                },
            )
        }
    }

    #[inline(never)]
    fn one(register: &Register) -> u32 {
        std::hint::black_box(register.here())
    }

    #[inline(never)]
    fn other(register: &Register) -> u32 {
        std::hint::black_box(register.here())
    }

    /// One test, because forgetting is for all threads at once.
    #[test]
    fn a_stack_has_one_number_and_is_unwound_once() {
        let register = Register::new();
        let numbers: Vec<u32> = (0..100).map(|_| register.here()).collect();
        assert!(numbers.iter().all(|number| *number == numbers[0] && *number > 0), "{numbers:?}");
        assert_eq!(register.asked.get(), 1);
        assert!(register.seen.borrow()[0].len() > 2);

        let turns: Vec<(u32, u32)> = (0..50).map(|_| (one(&register), other(&register))).collect();
        assert_ne!(turns[0].0, turns[0].1, "two callers of one depth");
        assert!(turns.iter().all(|turn| *turn == turns[0]), "{turns:?}");
        assert_eq!(register.asked.get(), 3);
        let first = one(&register);
        let second = one(&register);
        assert_ne!(first, second, "two calls in one line are two places");

        let before = register.asked.get();
        for _ in 0..3 {
            forget();
            register.here();
        }
        assert_eq!(register.asked.get(), before + 3, "what is forgotten is unwound again");
    }
}
