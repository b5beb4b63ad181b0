//! Where work runs: a queue of commands and the thread that carries them out, one after the other.
//!
//! Every command queue and every immediate list has one. The thread begins with the first command and sleeps while there
//! is none. Order: a command waits for its events, does its work, signals. So an event is never signalled before its
//! work is done, a wait for another stream blocks only this one, and what depends on what is up to the application.
//! When its owner goes, a stream finishes what it has and ends; a wait for an event that is destroyed ends too, so
//! nothing is left behind. Must never run work on the thread that appends it.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use crate::commands::work::Work;
use crate::discovery::device::Device;
use crate::events::event::Event;
use crate::events::signal::{Signal, Timestamps};
use crate::ffi::result::{Outcome, ZeResult};
use crate::platform::clock;

/// Enough for a copy loop; the default would reserve 8 MiB for each stream.
const STACK: usize = 256 << 10;

static ALL: Mutex<Vec<Weak<Stream>>> = Mutex::new(Vec::new());

/// A command as it was appended. A regular list keeps it and submits it as often as it is executed.
pub(crate) struct Command {
    /// What to do.
    pub work: Work,
    /// What to wait for first.
    pub waits: Vec<Arc<Event>>,
    /// What to signal afterwards.
    pub signals: Option<Arc<Event>>,
}

/// A queue of commands with its thread.
pub(crate) struct Stream {
    device: Arc<Device>,
    state: Mutex<State>,
    submitted: Condvar,
    finished: Condvar,
}

struct State {
    waiting: VecDeque<Task>,
    /// Commands submitted and done since the beginning: a ticket is done when `done` has reached it.
    accepted: u64,
    done: u64,
    closed: bool,
    worker: Option<JoinHandle<()>>,
}

/// A command in a stream: the values that it waits for and promises are settled.
struct Task {
    command: Arc<Command>,
    waits: Vec<u64>,
    value: u64,
    fence: Option<Arc<Signal>>,
}

/// The number of a submitted command in its stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket(u64);

impl Stream {
    /// A stream without a thread yet.
    pub(crate) fn new(device: Arc<Device>) -> Arc<Self> {
        let state = State { waiting: VecDeque::new(), accepted: 0, done: 0, closed: false, worker: None };
        let stream =
            Arc::new(Self { device, state: Mutex::new(state), submitted: Condvar::new(), finished: Condvar::new() });
        let mut all = ALL.lock();
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&stream));
        stream
    }

    /// Hands commands over, in this order and with nothing of others in between. Returns before they are done.
    /// `fence` is signalled after the last one.
    pub(crate) fn submit(self: &Arc<Self>, commands: &[Arc<Command>], fence: Option<Arc<Signal>>) -> Outcome<Ticket> {
        let mut state = self.state.lock();
        if state.worker.is_none() {
            state.worker = Some(self.start()?);
        }
        let end = fence.map(|fence| Task { command: nothing(), waits: Vec::new(), value: 0, fence: Some(fence) });
        // Values are settled under the lock: the order of promises is the order of the queue.
        for task in commands.iter().map(|command| Task::new(Arc::clone(command))).chain(end) {
            state.waiting.push_back(task);
            state.accepted += 1;
        }
        self.submitted.notify_one();
        Ok(Ticket(state.accepted))
    }

    /// Waits for everything submitted so far. False when the deadline (`None` is never) comes first.
    pub(crate) fn synchronize(&self, deadline: Option<Instant>) -> bool {
        let ticket = Ticket(self.state.lock().accepted);
        self.wait(ticket, deadline)
    }

    /// Waits for one command and all before it.
    pub(crate) fn wait(&self, ticket: Ticket, deadline: Option<Instant>) -> bool {
        let mut state = self.state.lock();
        while state.done < ticket.0 {
            match deadline {
                None => self.finished.wait(&mut state),
                Some(deadline) => {
                    if self.finished.wait_until(&mut state, deadline).timed_out() {
                        return state.done >= ticket.0;
                    }
                }
            }
        }
        true
    }

    /// Lets the thread end when it has done what there is. If that is the case already, the thread is gone afterwards.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        let idle = state.done == state.accepted;
        let worker = state.worker.take();
        self.submitted.notify_one();
        drop(state);
        // A stream that still has work ends by itself: its owner must not wait for events that others signal.
        if idle && let Some(worker) = worker {
            // Work does not panic; if it did, that has been said on stderr.
            let _ = worker.join();
        }
    }

    /// Starts the thread. Signals of the process are none of its business, so it begins with all of them blocked.
    fn start(self: &Arc<Self>) -> Outcome<JoinHandle<()>> {
        let stream = Arc::clone(self);
        let before = block_signals();
        let started = Builder::new().name("ze_soft".into()).stack_size(STACK).spawn(move || stream.run());
        restore_signals(&before);
        started.map_err(|_| ZeResult::OUT_OF_HOST_MEMORY)
    }

    fn run(&self) {
        while let Some(task) = self.next() {
            task.run();
            // What it kept alive goes before anybody is told that it is done.
            drop(task);
            self.state.lock().done += 1;
            self.finished.notify_all();
        }
    }

    fn next(&self) -> Option<Task> {
        let mut state = self.state.lock();
        loop {
            if let Some(task) = state.waiting.pop_front() {
                return Some(task);
            }
            if state.closed {
                return None;
            }
            self.submitted.wait(&mut state);
        }
    }
}

impl Task {
    fn new(command: Arc<Command>) -> Self {
        let waits = command.waits.iter().map(|event| event.signal.wait_value()).collect();
        let value = command.signals.as_ref().map_or(0, |event| event.signal.submit());
        Self { command, waits, value, fence: None }
    }

    fn run(&self) {
        for (event, value) in self.command.waits.iter().zip(&self.waits) {
            // An event that was destroyed instead of signalled is as good as signalled: see `zeEventDestroy`.
            let _ = event.signal.wait(*value, None);
        }
        let start = clock::now();
        self.command.work.perform();
        let timestamps = Timestamps { start, end: clock::now() };
        if let Some(event) = &self.command.signals {
            event.signal.complete(self.value, timestamps);
        }
        if let Some(fence) = &self.fence {
            fence.complete(fence.submit(), timestamps);
        }
    }
}

/// Waits for everything submitted so far to any stream of a device.
pub(crate) fn synchronize_all(device: &Arc<Device>) {
    let streams: Vec<_> = ALL.lock().iter().filter_map(Weak::upgrade).collect();
    for stream in streams.iter().filter(|stream| Arc::ptr_eq(&stream.device, device)) {
        stream.synchronize(None);
    }
}

fn nothing() -> Arc<Command> {
    Arc::new(Command { work: Work::Nothing, waits: Vec::new(), signals: None })
}

/// Blocks all signals of the calling thread, and says which were blocked before.
fn block_signals() -> libc::sigset_t {
    // SAFETY: an all-zero sigset_t is a valid value, and the calls below write into ours only.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        before
    }
}

fn restore_signals(before: &libc::sigset_t) {
    // SAFETY: the set was filled by pthread_sigmask.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
}
