//! The trace layer: writes every call into one file per process, in one of two forms.
//!
//! In the binary form a thread writes into its own chunk of the file, without a lock ([`binary`]). In the Chrome form
//! a record is formatted on the stack and appended under a lock ([`chrome`]), which is never held across the real
//! call. The file is created with the first record, so a process without Unified Runtime has none. Records that
//! cannot be written (a full disk, an unwritable directory, a call in a signal handler that interrupted a write) are
//! counted as lost.

#![expect(clippy::inline_always, reason = "the row of a function decides which values there are")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::{path::Path, sync::Arc};

use urscope_schema::api::{Function, ResultCode, demand::Nulls};
use urscope_schema::call::{Enter, Executed, Exit, Nanos, Synchronization, Values};
use urscope_schema::trace::chrome::write::{self, End, Totals};
use urscope_schema::trace::fxt;
use urscope_schema::trace::records::{Device, EntryPoint, Exec, Found, Module, Named, Stack};

use self::{binary::BinaryFile, chrome::ChromeFile, file::Growth};
use super::{FindingSink, Layer, Verdict};
use crate::knobs::{self, Hot};
use crate::raw::files::{kept_descriptors, named_file::NamedFile};
use crate::raw::processes::{fork, fork_mark, fork_reset::ForkReset, process};
use crate::raw::threads::{fork_lock::ForkLock, lock::Lock, lock::LockGuard, thread};
use crate::raw::{clock, signals::interruptions, trace_file::loss_count::LossCount};
use crate::stacks::StackSink;

mod binary;
mod chrome;
mod descriptor_sampler;
mod file;
pub mod notices;

/// The layer.
pub struct Trace;

/// The end of the process waits for this lock, also in a signal handler that interrupted malloc(3). So nothing
/// allocates under it.
static PROCESS_TRACE: ForkReset<Lock<ProcessTrace>> = ForkReset::new(Lock::default);

/// Held while a thread creates the file.
static CREATION: ForkReset<Lock<()>> = ForkReset::new(Lock::default);

/// The entry points so far, with which a forked child's file begins.
static ENTRY_POINTS: Lock<Vec<EntryPoint>> = Lock::new(Vec::new());

/// The size of the file in bytes.
static SIZE: AtomicU64 = AtomicU64::new(0);

static LOST: LossCount = LossCount::none();

#[derive(Default)]
struct ProcessTrace {
    /// `None` before the first record.
    file: Option<File>,
    forked: bool,
    /// How the process ended; later calls come from the teardown of libraries.
    ended: Option<&'static str>,
}

/// The trace file in its form.
enum File {
    Chrome(ChromeFile),
    Binary(Box<BinaryFile>),
}

impl File {
    /// Its name, if it could be created.
    fn name(&self) -> Option<&NamedFile> {
        match self {
            Self::Chrome(file) => Some(&file.pages.as_ref()?.name),
            Self::Binary(file) => Some(&file.chunks.as_ref()?.name),
        }
    }

    fn growth(&mut self) -> &mut Growth {
        match self {
            Self::Chrome(file) => &mut file.growth,
            Self::Binary(file) => &mut file.growth,
        }
    }
}

impl ProcessTrace {
    #[inline]
    fn chrome(&mut self) -> Option<&mut ChromeFile> {
        match &mut self.file {
            Some(File::Chrome(file)) => Some(file),
            _ => None,
        }
    }

    fn binary(&mut self) -> Option<&mut BinaryFile> {
        match &mut self.file {
            Some(File::Binary(file)) => Some(file),
            _ => None,
        }
    }
}

/// Locks the state, with a file.
#[inline]
fn with_file() -> Option<LockGuard<'static, ProcessTrace>> {
    let state = PROCESS_TRACE.get().get()?;
    if state.file.is_some() {
        return Some(state);
    }
    drop(state);
    make_file();
    PROCESS_TRACE.get().get()
}

/// Creates the file, which begins with the entry points so far; false if it exists.
#[cold]
fn make_file() -> bool {
    let _held_off = interruptions::hold_off();
    let Some(_alone) = CREATION.get().get() else { return false };
    let state = PROCESS_TRACE.get().get().map(|state| (state.file.is_some(), state.forked));
    let Some((false, forked)) = state else { return false };
    let file = if is_binary() {
        File::Binary(Box::new(BinaryFile::begin(forked)))
    } else {
        File::Chrome(ChromeFile::begin(forked))
    };
    PROCESS_TRACE.get().get().map(|mut state| state.file = Some(file)).is_some()
}

/// Whether the trace is written in the binary form.
#[inline]
fn is_binary() -> bool {
    knobs::hot().is_binary()
}

/// Records a call that begins, without a lock; false if the layer ([`Trace`]) must do it.
#[inline(always)]
pub fn record_enter<const KNOWN: bool>(hot: Hot, function: Function, call: u64, time: Nanos, values: &Values) -> bool {
    // Also if the call cannot be recorded.
    thread::count_call(function);
    hot.is_binary()
        && if KNOWN {
            binary::append_short_enter(function, call, time, values)
        } else {
            binary::append_any_enter(function, call, time, values)
        }
}

/// Records a call that has returned, without a lock; false if the layer must do it.
#[inline(always)]
pub fn record_exit<const KNOWN: bool>(
    hot: Hot,
    function: Function,
    call: u64,
    time: Nanos,
    result: ResultCode,
    values: Option<&Values>,
) -> bool {
    thread::count_return();
    let append = if KNOWN { binary::append_short_exit } else { binary::append_any_exit };
    if !hot.is_binary() || !result.is_success() || !append(function, call, time, values) {
        return false;
    }
    if function.is_ipc() {
        descriptor_sampler::take(thread::id(), time);
    }
    true
}

/// Records an inner call that begins. It is not counted.
pub fn record_inner_enter(enter: &Enter) {
    if is_binary() {
        binary::append_call(0, |to| fxt::write::inner_enter(enter, to));
    } else {
        chrome::append_line(|line| line.inner_enter(pid(), base(), enter));
    }
}

/// Records an inner call that has returned.
pub fn record_inner_exit(exit: &Exit) {
    if is_binary() {
        binary::append_call(0, |to| fxt::write::inner_exit(exit, to));
    } else {
        chrome::append_line(|line| line.inner_exit(pid(), base(), exit));
    }
}

/// Records an access of a command that the device has executed.
pub fn record_executed(executed: &Executed) {
    if is_binary() {
        binary::append_call(0, |to| fxt::write::executed(executed, to));
    } else {
        name_thread_in_chrome(executed.tid);
        chrome::append_line(|line| line.executed(pid(), base(), executed));
    }
}

/// Records the name of this thread in the Chrome form, once; false if it was recorded before.
fn name_thread_in_chrome(tid: u32) -> bool {
    let Some(name) = thread::name_once() else { return false };
    chrome::append(&write::thread_name(pid(), tid, &name.text()));
    true
}

impl Layer for Trace {
    fn enter(&self, enter: &Enter, _: &Nulls) -> Verdict {
        if is_binary() {
            binary::append_call(enter.call, |to| fxt::write::enter(enter, to));
        } else {
            if name_thread_in_chrome(enter.tid) {
                thread::at_end(thread::Leaves::Trace, thread::leave_counts);
            }
            chrome::append_line(|line| line.enter(pid(), base(), enter));
        }
        Verdict::Passed
    }

    fn device(&self, device: &Device) {
        record(device);
    }

    #[inline]
    fn exit(&self, exit: &Exit) -> Verdict {
        if is_binary() {
            binary::append_call(exit.call, |to| fxt::write::exit(exit, to));
        } else {
            chrome::append_line(|line| line.exit(pid(), base(), exit));
        }
        if exit.function.is_ipc() {
            descriptor_sampler::take(exit.tid, exit.time);
        }
        Verdict::Passed
    }

    fn synchronization(&self, by: &Synchronization) {
        if is_binary() {
            binary::append_call(0, |to| fxt::write::synchronization(by, to));
        } else {
            chrome::append_line(|line| line.synchronization(pid(), base(), by));
        }
    }

    fn exec(&self, failed: bool) {
        exec(failed);
    }

    fn end(&self, how: &'static str) {
        end(how);
    }
}

/// Counts a record that could not be written. The first time, it says why.
#[cold]
fn count_lost() {
    LOST.add();
    let complaint = |mut state: LockGuard<'_, ProcessTrace>| {
        let file = state.file.as_mut()?;
        let error = file.growth().take_complaint()?;
        Some((Arc::clone(file.name()?.path()), error))
    };
    let _held_off = interruptions::hold_off();
    if let Some((path, error)) = PROCESS_TRACE.get().try_get().and_then(complaint) {
        file::say_lost(&path, &error);
    }
}

/// Records an entry point and its result.
pub fn entry_point(entry_point: &EntryPoint) {
    // An exported function may be looked up in a child before its first call.
    fork::notice();
    let _held_off = interruptions::hold_off();
    if let Some(mut known) = ENTRY_POINTS.get() {
        known.push(entry_point.clone());
    }
    if !make_file() {
        record(entry_point);
    }
}

/// Records a device, an entry point, a module or a stack.
fn record<R: Named>(record: &R) {
    if is_binary() {
        binary::append_words(&fxt::write::record(record).unwrap_or_default());
    } else {
        chrome::append(&write::record(pid(), record));
    }
}

/// Records a note of urscope, if there is a file.
pub fn note(text: &str) {
    fork::notice();
    if path().is_none() {
        return;
    }
    let now = clock::now();
    if is_binary() {
        binary::append_remark(&fxt::write::note(now, text));
    } else {
        chrome::append_remark(&write::note(pid(), thread::id(), now, base(), text));
    }
}

fn descriptors(tid: u32, now: Nanos, open: u64) {
    if is_binary() {
        binary::append_words(&fxt::write::descriptors(now, open));
    } else {
        chrome::append_line(|line| line.descriptors(pid(), tid, now, base(), open));
    }
}

impl FindingSink for Trace {
    fn finding(&self, found: &Found) {
        let now = clock::now();
        // The analysis finds it again. A handler that interrupted a record may end the process, with what it has left.
        if is_binary() {
            binary::append_remark(&fxt::write::finding(now, found));
        } else {
            chrome::append_remark(&write::finding(pid(), thread::id(), now, base(), found));
        }
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

/// The size of this process's trace in bytes, to within a mebibyte.
#[inline]
pub fn size() -> u64 {
    SIZE.load(Ordering::Relaxed)
}

/// The path of this process's trace, if there is one.
pub fn path() -> Option<Arc<Path>> {
    let state = PROCESS_TRACE.get().get()?;
    Some(Arc::clone(state.file.as_ref()?.name()?.path()))
}

/// Closes the file at the normal end of the process. Does not allocate, because a signal handler may end a process.
/// If the handler interrupted a write, or another thread does not finish its own, the file stays open, as that of a
/// killed process.
pub fn end(how: &'static str) {
    // A process without a file has no pid here. A child of `vfork` shares the memory, but not the end of this process.
    if PID.load(Ordering::Relaxed) != u64::from(process::id()) {
        return;
    }
    let Some(mut state) = PROCESS_TRACE.get().get() else { return };
    if state.ended.is_none() {
        state.ended = Some(how);
        match &mut state.file {
            Some(File::Chrome(file)) => file.end(&footer(how)),
            Some(File::Binary(file)) => file.end(&footer(how)),
            None => {}
        }
    }
}

/// Records an `exec`, before it or after its failure. In a signal handler, which may have interrupted an allocation,
/// nothing is recorded, and the trace ends like that of a killed process.
fn exec(failed: bool) {
    // As in `end`: a child of `vfork` becomes another program, but this process does not.
    if PID.load(Ordering::Relaxed) != u64::from(process::id()) || process::may_be_in_signal_handler() {
        return;
    }
    let _held_off = interruptions::hold_off();
    record(&Exec { at_ns: clock::now().0, failed });
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
            // The lowest bit marks it as set; a base is even.
            let base = clock::snapshot().base_ns;
            BASE.store(base | 1, Ordering::Relaxed);
            base
        }
        base => base & !1,
    }
}

/// The footer of a file, with the counts until now, and what is open now.
fn footer(how: &str) -> End {
    let returned = thread::returned();
    let lost = LOST.get();
    let kept = kept_descriptors::still_open();
    End::new(pid(), how, &Totals { returned, lost, called: &thread::called, kept: kept.numbers() }, &clock::snapshot())
}

/// Holds the lock while a thread forks.
static FORK_LOCK: ForkLock<ProcessTrace> = ForkLock::new();

/// Takes the lock, so that the child does not inherit an incomplete record.
pub fn before_fork() {
    if let Some(held) = PROCESS_TRACE.get().get() {
        FORK_LOCK.put(held);
    }
}

/// Releases the lock.
pub fn after_fork_in_parent() {
    drop(FORK_LOCK.take());
}

/// Resets the trace in a forked child: the file belongs to the parent.
pub fn after_fork_in_child() {
    // An unnoticed fork took no lock.
    if let Some(mut parents) = FORK_LOCK.take_in_child().or_else(|| PROCESS_TRACE.get().try_get()) {
        if let Some(File::Chrome(file)) = parents.file.take() {
            file.abandon();
        }
        // The lock belongs to the parent's state, which is never used again.
        std::mem::forget(parents);
    }
    CREATION.reset(Lock::default());
    PROCESS_TRACE.reset(Lock::new(ProcessTrace { forked: true, ..ProcessTrace::default() }));
    binary::after_fork_in_child();
    thread::forget();
    fork_mark::note();
    descriptor_sampler::restart();
    PID.store(0, Ordering::Relaxed);
    SIZE.store(0, Ordering::Relaxed);
    LOST.reset();
}
