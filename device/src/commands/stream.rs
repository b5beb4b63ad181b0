//! Streams: each is a queue of commands and the thread that executes them in order.
//!
//! Every command queue and every immediate list has one. The thread starts with the first command, and sleeps while
//! there is none. For each command it waits for its turn (`engine`) and for events, performs the work, and signals. So
//! an event is never signalled before its work has ended, and a wait for another stream blocks this stream only. When
//! its owner is destroyed, a stream completes what was submitted and ends; a wait for a destroyed event ends too, so no
//! thread is left behind. Kernels and functions of the application need a larger stack than copies, so the first one
//! moves the stream to another thread. Must never perform work on the thread that appends it.

use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{collections::VecDeque, iter};

use parking_lot::{Condvar, Mutex};

use crate::commands::engine::{self, Engine, Order, Position, Priority, Queue};
use crate::commands::{fence::Fence, work::Work};
use crate::discovery::device::Device;
use crate::events::event::Event;
use crate::events::signal::{Signal, Timestamps, WaitResult};
use crate::ffi::handles::Object;
use crate::ffi::result::{Outcome, ZeResult};
use crate::kernels::faults;
use crate::platform::{clock, deadline::Deadline, process, settings, settings::Delay, threads};

/// The streams of all devices.
static ALL: Mutex<Vec<Weak<Stream>>> = Mutex::new(Vec::new());

/// With `ZE_SOFT_DELAY=until-wait`: how long a command waits at most until something waits for it, how often it looks,
/// and how long it waits then on memory that processes share. That is the time in which a process may say that a
/// command is done, before it waits for it.
const LONGEST_DELAY: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_micros(200);
const REPRIEVE: Duration = Duration::from_millis(10);

/// A command as it was appended. A regular list submits it each time it is executed.
pub(crate) struct Command {
    pub work: Work,
    /// What to wait for before the work.
    pub waits: Vec<Wait>,
    /// The event to signal after the work.
    pub signals: Option<Arc<Event>>,
}

#[derive(Clone)]
pub(crate) struct Wait {
    pub event: Arc<Event>,
    /// The counter value to wait for, if a graph has recorded it. Without it, the value is taken at submission.
    pub value: Option<u64>,
}

/// A queue of commands, and the thread that executes them.
pub struct Stream {
    device: Arc<Device>,
    engine: Arc<Engine>,
    priority: Priority,
    state: Mutex<StreamState>,
    submitted: Condvar,
    finished: Condvar,
}

#[derive(Default)]
struct StreamState {
    waiting: VecDeque<Task>,
    /// The command that was taken from `waiting`, until its work has ended.
    running: Option<Arc<Command>>,
    /// Number of commands submitted and completed so far. A ticket has completed when `done` has reached it.
    accepted: u64,
    done: u64,
    /// The last ticket that a thread has waited for.
    awaited: u64,
    /// Whether each unfinished command is a copy, a fill or no work, and waits for those in front of it only.
    prompt: bool,
    closed: bool,
    worker: Option<JoinHandle<()>>,
}

/// A command in a stream, with its position in the order of the engine and the signal values that it waits for and
/// completes.
struct Task {
    position: Position,
    command: Arc<Command>,
    waits: Vec<u64>,
    completes: u64,
    fence: Option<Arc<Signal>>,
    /// When nothing but copies and fills in front of it in its stream kept it from beginning, for the observer; `None`
    /// if it has to wait for something else.
    ready: Option<u64>,
}

/// The number of a submitted command in its stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket(u64);

impl Stream {
    /// A stream of the engine of this queue, without a thread yet.
    pub fn new(device: Arc<Device>, queue: Queue, priority: Priority) -> Arc<Self> {
        let engine = Engine::for_queue(&device, queue);
        let state = Mutex::default();
        let submitted = Condvar::new();
        let finished = Condvar::new();
        let stream = Arc::new(Self { device, engine, priority, state, submitted, finished });
        let mut all = ALL.lock();
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&stream));
        stream
    }

    /// Submits commands in this order, with no other command between them, and returns before they complete. `fence` is
    /// signalled after the last one. `OUT_OF_HOST_MEMORY` if the thread cannot be started.
    pub(crate) fn submit(self: &Arc<Self>, commands: &[Arc<Command>], fence: Option<Arc<Signal>>) -> Outcome<Ticket> {
        let mut state = self.state.lock();
        if state.worker.is_none() {
            state.worker = Some(self.start()?);
        }
        // Signals are submitted under the locks, so that their values have the order of the engine.
        let mut order = self.engine.order();
        let was_idle = state.accepted == state.done;
        state.prompt |= was_idle;
        let mut task = |command| Task::new(command, &mut order, self.priority);
        let before = state.waiting.len();
        for command in commands {
            let mut task = task(Arc::clone(command));
            state.prompt = state.prompt && !command.work.runs_foreign_code() && state.waits_for_itself(&task);
            task.ready = (state.prompt && command.work.is_observed()).then(clock::monotonic);
            state.waiting.push_back(task);
        }
        if let Some(fence) = fence {
            state.waiting.push_back(Task { fence: Some(fence), ..task(nothing()) });
        }
        if let Some(first) = state.waiting.get(before).filter(|_| was_idle) {
            order.enter(first.position);
        }
        drop(order);
        state.accepted += (state.waiting.len() - before) as u64;
        self.submitted.notify_one();
        Ok(Ticket(state.accepted))
    }

    /// Submits work: `OUT_OF_HOST_MEMORY` if the thread cannot be started.
    pub fn perform(self: &Arc<Self>, work: Work) -> Outcome {
        self.submit_one(Command { work, waits: Vec::new(), signals: None })
    }

    /// Signals an event once what was submitted so far has completed. The error is that of [`perform`](Self::perform).
    pub fn signal(self: &Arc<Self>, event: Arc<Event>) -> Outcome {
        self.submit_one(Command::signalling(Some(event)))
    }

    /// Lets what is submitted from now on wait for an event, as it is now. The error is that of
    /// [`perform`](Self::perform).
    pub fn wait_for(self: &Arc<Self>, event: Arc<Event>) -> Outcome {
        self.submit_one(Command::waiting(vec![Wait::new(event)]))
    }

    fn submit_one(self: &Arc<Self>, command: Command) -> Outcome {
        self.submit(&[Arc::new(command)], None).map(drop)
    }

    /// Waits for everything submitted so far. False if the deadline passes first.
    pub fn synchronize(&self, deadline: Deadline) -> bool {
        let ticket = Ticket(self.state.lock().accepted);
        self.wait(ticket, deadline)
    }

    /// Waits for one command and all before it. False if the deadline passes first.
    pub(crate) fn wait(&self, ticket: Ticket, deadline: Deadline) -> bool {
        let mut wait = deadline.wait();
        let mut state = self.state.lock();
        state.awaited = state.awaited.max(ticket.0);
        while state.done < ticket.0 && !process::devices_are_lost() {
            if !wait.step(&self.finished, &mut state) {
                return false;
            }
        }
        true
    }

    /// Ends the thread after the commands that were submitted. An idle thread has ended when this returns.
    pub fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        let idle = state.done == state.accepted;
        let worker = state.worker.take();
        self.submitted.notify_one();
        drop(state);
        // A busy thread ends on its own: its owner must not wait for events that others signal.
        if idle && let Some(worker) = worker {
            // Work does not panic. If it did, the panic message is on stderr already.
            let _ = worker.join();
        }
    }

    fn start(self: &Arc<Self>) -> Outcome<JoinHandle<()>> {
        let stream = Arc::clone(self);
        threads::spawn(move || stream.run(false)).map_err(|_| ZeResult::OUT_OF_HOST_MEMORY)
    }

    /// The body of a thread. A thread with a small stack ends at the first kernel or function of the
    /// application, and a thread with a larger one continues.
    fn run(self: &Arc<Self>, has_large_stack: bool) {
        while let Some(task) = self.next() {
            let task = if has_large_stack || !task.command.work.runs_foreign_code() {
                task
            } else {
                let Some(task) = self.hand_over(task) else { return };
                task
            };
            task.run(self);
            let position = task.position;
            // Memory that the command retained is released before the command counts as completed.
            drop(task);
            let mut state = self.state.lock();
            state.done += 1;
            self.engine.end_turn(position, state.waiting.front().map(|next| next.position));
            drop(state);
            self.finished.notify_all();
        }
    }

    /// Whether something waits for the command that runs, or for one behind it.
    fn is_awaited(&self, running: &Task) -> bool {
        let state = self.state.lock();
        state.closed || state.awaited > state.done || iter::once(running).chain(&state.waiting).any(Task::is_awaited)
    }

    /// Wakes all waits, so that they check whether the devices of this process are lost.
    fn wake(&self) {
        // A wait that has checked already is asleep once the lock is free.
        drop(self.state.lock());
        self.finished.notify_all();
    }

    /// Starts a thread with a larger stack, which continues with this task. Returns the task if that fails.
    fn hand_over(self: &Arc<Self>, task: Task) -> Option<Task> {
        faults::when_lost(end_waits);
        let mut state = self.state.lock();
        // None if the owner was destroyed: then nobody waits for the new thread.
        let before = state.worker.take();
        let awaited = before.is_some();
        state.waiting.push_front(task);
        let stream = Arc::clone(self);
        let started = threads::spawn_for_kernels(move || {
            if let Some(before) = before {
                let _ = before.join();
            }
            stream.run(true);
        });
        match started {
            Ok(worker) => {
                state.worker = awaited.then_some(worker);
                None
            }
            Err(_) => state.waiting.pop_front(),
        }
    }

    fn next(&self) -> Option<Task> {
        let mut wait = Deadline::NEVER.wait();
        let mut state = self.state.lock();
        loop {
            if let Some(task) = state.waiting.pop_front() {
                state.running = Some(Arc::clone(&task.command));
                return Some(task);
            }
            if state.closed {
                return None;
            }
            wait.step(&self.submitted, &mut state);
        }
    }
}

impl StreamState {
    /// Whether all that a new command waits for has happened, or is signalled by a command in front of it.
    fn waits_for_itself(&self, task: &Task) -> bool {
        let in_front = || self.waiting.iter().rev().map(|task| &task.command).chain(&self.running);
        let signals = |event: &Arc<Event>| {
            in_front().any(|command| command.signals.as_ref().is_some_and(|it| Arc::ptr_eq(it, event)))
        };
        task.wait_except(Deadline::now(), signals)
    }
}

impl Task {
    fn new(command: Arc<Command>, order: &mut Order, priority: Priority) -> Self {
        let value = |wait: &Wait| wait.value.unwrap_or_else(|| wait.event.signal.submit_wait());
        let waits = command.waits.iter().map(value).collect();
        // One stream may reset what another one waits for: the order is that of their submissions.
        if let Some(event) = command.work.resets() {
            event.signal.submit_reset();
        }
        let completes = command.signals.as_ref().map_or(0, |event| event.signal.submit());
        Self { position: order.next_position(priority), command, waits, completes, fence: None, ready: None }
    }

    /// Waits for the events of the command, at most until the deadline. False if the deadline passes first.
    /// A destroyed event counts as signalled: see `zeEventDestroy`.
    fn wait(&self, deadline: Deadline) -> bool {
        self.wait_except(deadline, |_| false)
    }

    /// As [`wait`](Self::wait), without the events for which `except` is true.
    fn wait_except(&self, deadline: Deadline, except: impl Fn(&Arc<Event>) -> bool) -> bool {
        let mut events = self.command.waits.iter().zip(&self.waits).filter(|(wait, _)| !except(&wait.event));
        events.all(|(wait, value)| wait.event.signal.wait_in_order(*value, deadline) != WaitResult::TimedOut)
    }

    fn run(&self, stream: &Stream) {
        let engine = &stream.engine;
        let ready = if engine.wait_for_turn(self.position) { None } else { self.ready };
        if !self.command.waits.is_empty() && !self.wait(Deadline::now()) {
            engine.end_turn(self.position, None);
            self.wait(Deadline::NEVER);
            engine.step_back(self.position);
            engine.wait_for_turn(self.position);
        }
        let began = self.command.work.is_observed().then(|| ready.unwrap_or_else(clock::monotonic));
        match settings::get().delay {
            Delay::Time(delay) if !delay.is_zero() && self.command.work.accesses_memory() => thread::sleep(delay),
            Delay::UntilWait if self.command.work.accesses_memory() => {
                // What waits may be behind other commands of the engine.
                engine.end_turn(self.position, None);
                self.wait_until_awaited(stream);
                engine.step_back(self.position);
                engine.wait_for_turn(self.position);
            }
            _ => {}
        }
        let start = clock::now();
        if !process::devices_are_lost() {
            self.command.work.perform();
        }
        // Before the command counts as completed.
        stream.state.lock().running = None;
        // Lost work is never signalled, not even to other processes.
        if process::devices_are_lost() {
            return;
        }
        if let Some(began) = began {
            self.command.work.tell(began);
        }
        let timestamps = Timestamps { start, end: clock::now() };
        if let Some(event) = &self.command.signals {
            event.signal.complete(self.completes, timestamps);
        }
        if let Some(fence) = &self.fence {
            fence.complete(fence.submit(), timestamps);
        }
    }
}

impl Task {
    /// Waits until something waits for this command or for one behind it in its stream, [`LONGEST_DELAY`] at most. If
    /// other processes may have the memory, then for [`REPRIEVE`], too.
    fn wait_until_awaited(&self, stream: &Stream) {
        let end = Instant::now() + LONGEST_DELAY;
        while !stream.is_awaited(self) && Instant::now() < end && !process::devices_are_lost() {
            thread::sleep(LOOK_AGAIN);
        }
        if self.command.work.uses_shared_memory() {
            thread::sleep(REPRIEVE);
        }
    }

    fn is_awaited(&self) -> bool {
        let fence = self.fence.as_ref().is_some_and(|fence| fence.is_awaited());
        fence || self.command.signals.as_ref().is_some_and(|event| event.signal.is_awaited())
    }
}

/// Ends all waits of this process for work: its devices are lost.
fn end_waits() {
    for event in Event::all() {
        event.signal.wake();
    }
    for fence in Fence::all() {
        fence.signal.wake();
    }
    engine::wake_all();
    let streams: Vec<_> = ALL.lock().iter().filter_map(Weak::upgrade).collect();
    for stream in streams {
        stream.wake();
    }
}

/// How long a search through the commands of all streams waits for a lock: in a forked child, the copy
/// of a held lock is never released.
const LOCK_TIMEOUT: Duration = Duration::from_millis(10);

/// The distance in bytes from `address` to the first byte that an unfinished copy, fill, query or kernel of this
/// process accesses. `None` if there is none. A stream whose lock stays taken is skipped.
pub(crate) fn unfinished_from(address: usize) -> Option<usize> {
    let streams: Vec<_> = ALL.try_lock_for(LOCK_TIMEOUT)?.iter().filter_map(Weak::upgrade).collect();
    let nearest = |stream: &Arc<Stream>| {
        let state = stream.state.try_lock_for(LOCK_TIMEOUT)?;
        let waiting = state.waiting.iter().map(|task| &task.command);
        let commands = waiting.chain(&state.running);
        let ranges = commands.flat_map(|command| command.work.ranges());
        ranges.filter(|range| range.end > address).map(|range| range.start.max(address) - address).min()
    };
    streams.iter().filter_map(nearest).min()
}

/// Waits for everything submitted so far to any stream of `device` or of its parts, without a timeout.
pub(crate) fn synchronize_device(device: &Device) {
    let streams: Vec<_> = ALL.lock().iter().filter_map(Weak::upgrade).collect();
    for stream in streams.iter().filter(|stream| stream.device.is_of(device)) {
        stream.synchronize(Deadline::NEVER);
    }
}

fn nothing() -> Arc<Command> {
    Arc::new(Command::waiting(Vec::new()))
}

impl Command {
    /// A command without work that waits for events.
    pub(crate) fn waiting(waits: Vec<Wait>) -> Self {
        Self { work: Work::nothing(), waits, signals: None }
    }

    /// A command without work that signals an event, if there is one.
    pub(crate) fn signalling(signals: Option<Arc<Event>>) -> Self {
        Self { work: Work::nothing(), waits: Vec::new(), signals }
    }
}

impl Wait {
    /// Waits for an event, as it is when the command is submitted.
    pub(crate) fn new(event: Arc<Event>) -> Self {
        Self { event, value: None }
    }

    /// Waits for these events, each as [`Self::new`].
    pub(crate) fn all(events: impl IntoIterator<Item = Arc<Event>>) -> Vec<Self> {
        events.into_iter().map(Self::new).collect()
    }
}
