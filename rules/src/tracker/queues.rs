//! The queues and events of a process: which commands are in front of which, and what a host knows after a wait.
//!
//! Where it is not certain whether one command is in front of another one, it is taken to be: an order that is not
//! there hides a race, and one that is missed would make a false one. Whether something that is not followed has
//! completed is the other way round: only a wait that certainly was for it ends it.

use smallvec::SmallVec;
use urscope_schema::call::{SyncKind, Synchronization};

use super::maps::Map;

/// The default stream, which waits for all other streams that are not non-blocking, as they do for it.
const DEFAULT: u64 = 0;

/// The most queues, or events, of a process that are remembered.
const LIMIT: usize = 4096;

/// How far queues have come.
#[derive(Clone, Debug, Default)]
pub(super) struct Front {
    /// All commands up to this number, of any queue.
    all: u64,
    /// The number of the last command of each queue.
    queues: SmallVec<[(u64, u64); 4]>,
}

impl Front {
    /// Whether a command is among these, or in front of them.
    pub(super) fn covers(&self, at: Position) -> bool {
        at.number <= self.all || self.queues.iter().any(|(queue, last)| *queue == at.queue && at.number <= *last)
    }

    fn add(&mut self, queue: u64, number: u64) {
        match self.queues.iter_mut().find(|(its, _)| *its == queue) {
            Some((_, last)) => *last = number.max(*last),
            None => self.queues.push((queue, number)),
        }
    }

    pub(super) fn join(&mut self, other: &Self) {
        self.all = self.all.max(other.all);
        other.queues.iter().for_each(|(queue, number)| self.add(*queue, *number));
    }
}

/// A queue.
#[derive(Clone, Debug, Default)]
struct Queue {
    /// The number of what was enqueued last.
    last: u64,
    /// What is in front of what is enqueued next, in other queues.
    front: Front,
    is_non_blocking: bool,
    not_followed: Option<NotFollowed>,
}

/// What is not followed in a queue and not known to have completed.
#[derive(Clone, Copy, Debug)]
struct NotFollowed {
    /// The numbers of the first and the last of it.
    first: u64,
    last: u64,
    /// The thread that has enqueued it, if it was one: threads can have default streams of their own.
    tid: Option<u32>,
}

/// An event, as it was signalled last.
#[derive(Clone, Debug)]
struct Event {
    queue: u64,
    number: u64,
    front: Front,
}

/// Of a process.
#[derive(Clone, Debug, Default)]
pub(super) struct Queues {
    by_handle: Map<u64, Queue>,
    events: Map<u64, Event>,
    /// The number of what was enqueued last.
    last: u64,
    /// Of what was enqueued up to this number the order is not known. It is taken to be in front of all else.
    forgotten: u64,
    /// Something that is not followed may be in any queue.
    any_not_followed: bool,
}

/// Where a command is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    pub(super) queue: u64,
    pub(super) number: u64,
}

impl Queues {
    /// From now on it is not known what was enqueued before, and in which order.
    pub(super) fn forget(&mut self) {
        *self = Self { last: self.last, forgotten: self.last, any_not_followed: true, ..Self::default() };
    }

    /// A command is enqueued. Returns where. A later stream may have the handle of one that was destroyed.
    pub(super) fn enqueue_command(&mut self, queue: u64, is_non_blocking: bool) -> Position {
        self.by_handle.entry(queue).or_default().is_non_blocking = is_non_blocking;
        self.enqueue(queue)
    }

    fn enqueue(&mut self, queue: u64) -> Position {
        if self.by_handle.len() >= LIMIT {
            self.forget();
        }
        self.by_handle.entry(queue).or_default();
        self.wait_for_default(queue);
        self.last += 1;
        let number = self.last;
        self.by_handle.entry(queue).or_default().last = number;
        Position { queue, number }
    }

    /// Something that is not followed is enqueued: in this queue, or perhaps in any.
    pub(super) fn not_followed(&mut self, queue: Option<u64>, tid: u32) {
        let Some(queue) = queue else {
            self.any_not_followed = true;
            return;
        };
        let Position { number, .. } = self.enqueue(queue);
        let of = self.by_handle.entry(queue).or_default();
        of.not_followed = Some(match of.not_followed {
            Some(known) => NotFollowed { last: number, tid: known.tid.filter(|its| *its == tid), ..known },
            None => NotFollowed { first: number, last: number, tid: Some(tid) },
        });
    }

    /// Whether a command may have to wait for something that is not followed.
    pub(super) fn is_behind_not_followed(&self, at: Position) -> bool {
        let front = self.front_of(at.queue);
        let is_in_front = |(queue, of): (&u64, &Queue)| {
            of.not_followed.is_some_and(|it| front.covers(Position { queue: *queue, number: it.first }))
        };
        self.any_not_followed || self.by_handle.iter().any(is_in_front)
    }

    /// Whether something that is not followed may be enqueued behind a command.
    pub(super) fn is_in_front_of_not_followed(&self, at: Position) -> bool {
        let is_behind = |(queue, of): (&u64, &Queue)| {
            of.not_followed.is_some_and(|it| it.last > at.number) && (*queue == at.queue || of.front.covers(at))
        };
        self.any_not_followed || self.by_handle.iter().any(is_behind)
    }

    /// Takes a synchronization into account. Returns what the host knows after it to have completed, or may know.
    pub(super) fn synchronize(&mut self, by: &Synchronization) -> Option<Front> {
        match (by.kind, by.queue, by.event) {
            (SyncKind::NotFollowed, queue, _) => {
                self.not_followed(queue, by.tid);
                None
            }
            (SyncKind::Signals, Some(queue), Some(event)) => {
                let Position { number, .. } = self.enqueue(queue);
                let front = self.front_of(queue);
                if self.events.len() >= LIMIT {
                    self.events.clear();
                }
                self.events.insert(event, Event { queue, number, front });
                None
            }
            (SyncKind::WaitsFor, Some(queue), event) => {
                let signalled = event.and_then(|event| self.events.get(&event));
                let front = signalled.map_or_else(|| self.all(), |event| event.front.clone());
                self.by_handle.entry(queue).or_default().front.join(&front);
                None
            }
            // Of a queue or an event that is not known, it may be any.
            (SyncKind::Signals | SyncKind::WaitsFor, ..) => Some(self.all()),
            (kind, Some(queue), _) => {
                self.wait_for_default(queue);
                let end = self.by_handle.get(&queue).map_or(0, |of| of.last);
                if kind == SyncKind::Completed {
                    self.end_not_followed(queue, end, by.tid);
                }
                Some(self.front_of(queue))
            }
            (kind, None, Some(event)) => {
                let Some(signalled) = self.events.get(&event) else { return Some(self.all()) };
                let (front, queue, number) = (signalled.front.clone(), signalled.queue, signalled.number);
                if kind == SyncKind::Completed {
                    self.end_not_followed(queue, number, by.tid);
                }
                Some(front)
            }
            (kind, None, None) => {
                if kind == SyncKind::Completed {
                    self.any_not_followed = false;
                    self.by_handle.values_mut().for_each(|queue| queue.not_followed = None);
                }
                Some(self.all())
            }
        }
    }

    /// What was enqueued in a queue up to this number has completed.
    fn end_not_followed(&mut self, queue: u64, number: u64, tid: u32) {
        let Some(of) = self.by_handle.get_mut(&queue) else { return };
        let Some(known) = &mut of.not_followed else { return };
        if queue == DEFAULT && known.tid != Some(tid) {
            return;
        }
        if known.last <= number {
            of.not_followed = None;
        } else {
            known.first = known.first.max(number + 1);
        }
    }

    /// All that was enqueued in a queue, with what is in front of it.
    pub(super) fn front_of(&self, queue: u64) -> Front {
        let mut front = Front { all: self.forgotten, ..Front::default() };
        if let Some(of) = self.by_handle.get(&queue) {
            front.join(&of.front);
            front.add(queue, of.last);
        }
        front
    }

    /// All that was enqueued.
    fn all(&self) -> Front {
        Front { all: self.last, ..Front::default() }
    }

    /// What is enqueued in a queue next waits for the default stream; in that one, for all streams that wait for it.
    fn wait_for_default(&mut self, queue: u64) {
        let mut front = Front::default();
        let of = |other: u64| other != queue && (queue == DEFAULT || other == DEFAULT);
        for (other, blocking) in self.by_handle.iter().filter(|(other, it)| of(**other) && !it.is_non_blocking) {
            front.join(&blocking.front);
            front.add(*other, blocking.last);
        }
        if let Some(waiting) = self.by_handle.get_mut(&queue).filter(|waiting| !waiting.is_non_blocking) {
            waiting.front.join(&front);
        }
    }
}
