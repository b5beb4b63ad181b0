//! The trace layer: writes every call into one file per process.
//!
//! A record is formatted on the thread's own stack and appended under a short lock, which is never held across the real call. The
//! file is made when there is something to write, so a process without Unified Runtime leaves none. What cannot be written (a full
//! disk, an unwritable directory) is reported once and counted.

use std::{
    cell::Cell,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use urscope_schema::{
    api::{Function, demand::Nulls},
    call::{Enter, Exit},
    trace::{
        records::{Device, EntryPoint, Found, Module, Named, Stack},
        write::{self, End, Line, Totals},
    },
};

use self::file::TraceFile;
use super::{FindingSink, Layer, Verdict};
use crate::{
    raw::{clock, fork_reset::ForkReset, process, thread},
    stacks::StackSink,
};

mod descriptor_sampler;
mod file;
pub mod notices;

/// The layer.
pub struct Trace;

static STATE: ForkReset<Mutex<State>> = ForkReset::new(|| Mutex::new(State::default()));

/// Not under the lock, so that a call is counted even where it cannot be recorded.
static CALLED: [AtomicU64; Function::COUNT] = [const { AtomicU64::new(0) }; Function::COUNT];
static RETURNED: AtomicU64 = AtomicU64::new(0);
static LOST: AtomicU64 = AtomicU64::new(0);

#[derive(Default)]
struct State {
    /// `None` before the first record.
    file: Option<TraceFile>,
    /// The entry points so far: a forked child's file begins with them.
    entry_points: Vec<EntryPoint>,
    forked: bool,
    /// How the process ended; later calls come from the teardown of libraries.
    ended: Option<&'static str>,
}

impl State {
    fn append(&mut self, bytes: &[u8]) {
        let file = self.file.get_or_insert_with(|| TraceFile::begin(self.forked, &self.entry_points));
        if !file.append(bytes, self.ended, footer) {
            LOST.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Layer for Trace {
    #[inline]
    fn enter(&self, enter: &Enter, _: &Nulls) -> Verdict {
        if let Some(called) = CALLED.get(enter.function as usize) {
            called.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(name) = thread::name_once() {
            let name = write::thread_name(pid(), enter.tid, &name);
            STATE.get().lock().append(&name);
        }
        let mut line = Line::default();
        line.enter(pid(), base(), enter);
        append(&line);
        Verdict::Passed
    }

    fn device(&self, device: &Device) {
        record(device);
    }

    #[inline]
    fn exit(&self, exit: &Exit) -> Verdict {
        RETURNED.fetch_add(1, Ordering::Relaxed);
        let mut line = Line::default();
        line.exit(pid(), base(), exit);
        append(&line);
        if exit.function.is_ipc() {
            descriptor_sampler::take(exit);
        }
        Verdict::Passed
    }

    fn end(&self, how: &'static str) {
        end(how);
    }
}

fn append(line: &Line) {
    // A line has room for the longest record, so there always are bytes.
    if let Some(bytes) = line.bytes() {
        STATE.get().lock().append(bytes);
    }
}

/// Records an entry point, and what came of it.
pub fn entry_point(entry_point: EntryPoint) {
    let line = write::record(pid(), &entry_point);
    let mut state = STATE.get().lock();
    state.append(&line);
    state.entry_points.push(entry_point);
}

/// Records what later calls refer to.
fn record<R: Named>(record: &R) {
    let line = write::record(pid(), record);
    STATE.get().lock().append(&line);
}

/// Records a note of urscope, if there is a file.
pub fn note(text: &str) {
    let line = write::note(pid(), thread::id(), clock::now(), base(), text);
    let mut state = STATE.get().lock();
    if state.file.is_some() {
        state.append(&line);
    }
}

impl FindingSink for Trace {
    fn finding(&self, found: &Found) {
        let line = write::finding(pid(), thread::id(), clock::now(), base(), found);
        STATE.get().lock().append(&line);
    }

    fn end(&self, how: &'static str) {
        end(how);
    }
}

impl StackSink for Trace {
    fn module(&self, module: &Module) {
        record(module);
    }

    fn stack(&self, stack: &Stack) {
        record(stack);
    }
}

/// The path of this process's trace, if there is one.
pub fn path() -> Option<std::path::PathBuf> {
    STATE.get().lock().file.as_ref().and_then(TraceFile::path)
}

/// How long the end of a process waits for another thread to finish its record. A signal handler may end the process on
/// the thread that holds the lock: then the file stays open, as that of a killed process.
const END_TIMEOUT: Duration = Duration::from_millis(200);

/// Closes the file at the normal end of the process. Allocates nothing, because a signal handler may end a process.
pub fn end(how: &'static str) {
    // A process without a file has no pid here; a child of `vfork` shares our memory, but its end is not ours.
    if PID.load(Ordering::Relaxed) != u64::from(process::id()) {
        return;
    }
    let Some(mut state) = STATE.get().try_lock_for(END_TIMEOUT) else { return };
    if state.ended.is_none() {
        state.ended = Some(how);
        if let Some(file) = &mut state.file {
            file.end(&footer(how));
        }
    }
}

static PID: AtomicU64 = AtomicU64::new(0);
static BASE: AtomicU64 = AtomicU64::new(0);

fn pid() -> u32 {
    match PID.load(Ordering::Relaxed) {
        0 => {
            let pid = process::id();
            PID.store(u64::from(pid), Ordering::Relaxed);
            pid
        }
        pid => pid as u32,
    }
}

/// The base of all times in this process's file. It changes once in 52 days, so any thread may set it.
fn base() -> u64 {
    match BASE.load(Ordering::Relaxed) {
        0 => {
            // The lowest bit says that it has been set; a base is even.
            let base = clock::snapshot().base_ns;
            BASE.store(base | 1, Ordering::Relaxed);
            base
        }
        base => base & !1,
    }
}

/// The footer of a file, with the counts until now.
fn footer(how: &str) -> End {
    let count = |function: Function| CALLED.get(function as usize).map_or(0, |called| called.load(Ordering::Relaxed));
    let (returned, lost) = (RETURNED.load(Ordering::Relaxed), LOST.load(Ordering::Relaxed));
    End::new(pid(), how, &Totals { returned, lost, called: &count }, &clock::snapshot())
}

thread_local! {
    /// The lock, while this thread forks.
    static HELD: Cell<Option<MutexGuard<'static, State>>> = const { Cell::new(None) };
}

/// Takes the lock, so that the child does not inherit a file with half a record.
pub fn before_fork() {
    HELD.set(Some(STATE.get().lock()));
}

/// Releases the lock.
pub fn after_fork_in_parent() {
    HELD.set(None);
}

/// Starts over: the file belongs to the parent, and so do the threads that may wait for the lock.
pub fn after_fork_in_child() {
    let mut entry_points = Vec::new();
    if let Some(mut parents) = HELD.take() {
        entry_points = std::mem::take(&mut parents.entry_points);
        if let Some(file) = parents.file.take() {
            file.abandon();
        }
        // Unlocking it would wake threads that do not exist here.
        std::mem::forget(parents);
    }
    STATE.reset(Mutex::new(State { entry_points, forked: true, ..State::default() }));
    thread::forget();
    descriptor_sampler::restart();
    PID.store(0, Ordering::Relaxed);
    for count in CALLED.iter().chain([&RETURNED, &LOST]) {
        count.store(0, Ordering::Relaxed);
    }
}
