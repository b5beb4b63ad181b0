//! The queues and events of a process: which commands are in front of which, and what a host knows after a wait.
//!
//! Where it is not certain whether one command is in front of another one, it is taken to be: an order that is not
//! there hides a race, and one that is missed would make a false one. Whether something that is not followed has
//! completed is the other way round: only a wait that certainly was for it ends it.

use smallvec::SmallVec;
use urscope_schema::call::{SyncKind, Synchronization};

use super::{maps::Map, records::Position};

/// The default stream, which waits for all other streams that are not non-blocking, as they do for it.
const DEFAULT: u64 = 0;

/// The most queues, or events, of a process that are remembered.
const LIMIT: usize = 4096;

/// The most commands that a front names apart.
const COMMANDS: usize = 32;

/// How far queues have come.
#[derive(Clone, Debug, Default)]
pub(super) struct Front {
    /// All commands up to this number, of any queue.
    all: u64,
    /// The number of the last command of each queue.
    queues: SmallVec<[(u64, u64); 4]>,
    /// Commands of queues out of order, without those that were enqueued there before.
    commands: SmallVec<[Enqueued; 1]>,
}

/// What a call has enqueued.
#[derive(Clone, Copy, Debug)]
struct Enqueued {
    queue: u64,
    first: u64,
    last: u64,
}

impl Front {
    /// Whether a command is among these, or in front of them.
    pub(super) fn covers(&self, at: Position) -> bool {
        at.number <= self.all
            || self.queues.iter().any(|(queue, last)| *queue == at.queue && at.number <= *last)
            || self.commands.iter().any(|it| (it.first..=it.last).contains(&at.number))
    }

    fn add(&mut self, queue: u64, number: u64) {
        match self.queues.iter_mut().find(|(its, _)| *its == queue) {
            Some((_, last)) => *last = number.max(*last),
            None => self.queues.push((queue, number)),
        }
    }

    /// Adds a command apart. If there are too many, the first one stands for all that was enqueued before it.
    fn add_command(&mut self, it: Enqueued) {
        if self.covers(Position { queue: it.queue, number: it.last }) {
            return;
        }
        if self.commands.len() >= COMMANDS {
            let Enqueued { queue, last, .. } = self.commands.remove(0);
            self.add(queue, last);
        }
        self.commands.push(it);
    }

    pub(super) fn join(&mut self, other: &Self) {
        self.all = self.all.max(other.all);
        other.queues.iter().for_each(|(queue, number)| self.add(*queue, *number));
        other.commands.iter().for_each(|it| self.add_command(*it));
    }
}

/// A queue.
#[derive(Clone, Debug, Default)]
struct Queue {
    /// The number of what was enqueued last.
    last: u64,
    /// The thread that did it; 0 if that is not known.
    last_by: u32,
    /// Whether what was enqueued later may be executed earlier.
    is_out_of_order: bool,
    /// What is in front of what is enqueued next, in other queues.
    front: Front,
    is_non_blocking: bool,
    /// What is not followed and not known to have completed, in the order of its numbers.
    not_followed: SmallVec<[NotFollowed; 1]>,
}

/// Something that is not followed.
#[derive(Clone, Copy, Debug)]
struct NotFollowed {
    number: u64,
    /// The thread that has enqueued it: threads can have default streams of their own.
    tid: u32,
    /// Whether it stands for something before it, too.
    stands_for_more: bool,
}

/// How much that is not followed is remembered of a queue.
const NOT_FOLLOWED: usize = 64;

/// An event, as it was signalled last.
#[derive(Clone, Debug)]
struct Event {
    queue: u64,
    /// The number of what it was signalled behind.
    number: u64,
    /// Whether that is certain: the same thread enqueued it.
    is_certain: bool,
    front: Front,
}

impl Queue {
    /// An event has shown that something has completed: in a queue in order, all that was enqueued before.
    fn end_not_followed(&mut self, signalled: &Event, tid: u32) {
        let is_out_of_order = self.is_out_of_order;
        let is_its_own =
            |it: &NotFollowed| it.number == signalled.number && signalled.is_certain && !it.stands_for_more;
        let has_completed =
            |it: &NotFollowed| if is_out_of_order { is_its_own(it) } else { it.number <= signalled.number };
        self.not_followed.retain(|it| signalled.queue == DEFAULT && it.tid != tid || !has_completed(it));
    }
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
    /// What the host knows to have completed.
    known: Front,
    /// What the current call of each thread has enqueued in a queue out of order.
    in_calls: SmallVec<[(u32, Enqueued); 1]>,
}

impl Queues {
    /// From now on it is not known what was enqueued before, and in which order.
    pub(super) fn forget(&mut self) {
        *self = Self { last: self.last, forgotten: self.last, any_not_followed: true, ..Self::default() };
    }

    /// A command is enqueued. Returns where. A later stream may have the handle of one that was destroyed.
    pub(super) fn enqueue_command(&mut self, queue: u64, is_non_blocking: bool, tid: u32) -> Position {
        self.by_handle.entry(queue).or_default().is_non_blocking = is_non_blocking;
        self.enqueue(queue, tid)
    }

    fn enqueue(&mut self, queue: u64, tid: u32) -> Position {
        if self.by_handle.len() >= LIMIT {
            self.forget();
        }
        self.by_handle.entry(queue).or_default();
        self.wait_for_default(queue);
        self.last += 1;
        let number = self.last;
        let of = self.by_handle.entry(queue).or_default();
        (of.last, of.last_by) = (number, tid);
        Position { queue, number }
    }

    /// The current call of a thread has enqueued a command, and what was enqueued since then.
    pub(super) fn note_call(&mut self, first: Position, tid: u32) {
        self.call_returned(tid);
        if let Some(of) = self.by_handle.get(&first.queue).filter(|of| of.is_out_of_order) {
            self.in_calls.push((tid, Enqueued { queue: first.queue, first: first.number, last: of.last }));
        }
    }

    /// The current call of a thread has returned.
    pub(super) fn call_returned(&mut self, tid: u32) {
        self.in_calls.retain(|(its, _)| *its != tid);
    }

    /// Something that is not followed is enqueued: in this queue, or perhaps in any.
    pub(super) fn not_followed(&mut self, queue: Option<u64>, tid: u32) {
        let Some(queue) = queue else {
            self.any_not_followed = true;
            return;
        };
        let Position { number, .. } = self.enqueue(queue, tid);
        let of = self.by_handle.entry(queue).or_default();
        // Of too many, this one stands for the one before it, too.
        let stands_for_more = of.not_followed.len() >= NOT_FOLLOWED && of.not_followed.pop().is_some();
        of.not_followed.push(NotFollowed { number, tid, stands_for_more });
        self.note_call(Position { queue, number }, tid);
    }

    /// Whether a command may have to wait for something that is not followed.
    pub(super) fn is_behind_not_followed(&self, at: Position) -> bool {
        let front = self.front_of(at.queue);
        let is_in_front = |(queue, of): (&u64, &Queue)| {
            of.not_followed.first().is_some_and(|it| front.covers(Position { queue: *queue, number: it.number }))
        };
        self.any_not_followed || self.by_handle.iter().any(is_in_front)
    }

    /// Whether something that is not followed may be enqueued behind a command.
    pub(super) fn is_in_front_of_not_followed(&self, at: Position) -> bool {
        let is_behind = |(queue, of): (&u64, &Queue)| {
            of.not_followed.last().is_some_and(|it| it.number > at.number)
                && (*queue == at.queue || of.front.covers(at))
        };
        self.any_not_followed || self.by_handle.iter().any(is_behind)
    }

    /// Whether a queue has signalled an event, and it was not reset since.
    pub(super) fn is_signalled(&self, event: u64) -> bool {
        self.events.contains_key(&event)
    }

    /// Where what was enqueued last in a queue is.
    pub(super) fn latest(&self, queue: u64) -> Option<Position> {
        self.by_handle.get(&queue).map(|of| Position { queue, number: of.last })
    }

    /// The host knows that all these have completed.
    pub(super) fn note_known(&mut self, front: &Front) {
        self.known.join(front);
    }

    /// Whether the host knows that a command has completed.
    pub(super) fn is_known(&self, at: Position) -> bool {
        self.known.covers(at)
    }

    /// Whether a host that waits for a queue, an event or all may wait for more than is in front of it: something that
    /// is not followed may depend on any command.
    pub(super) fn may_stand_for_more(&mut self, by: &Synchronization) -> bool {
        let queue = by.queue.or_else(|| self.events.get(&by.event?).map(|event| event.queue));
        if let Some(queue) = queue {
            self.wait_for_default(queue);
        }
        queue.and_then(|queue| self.latest(queue)).is_none_or(|latest| self.is_behind_not_followed(latest))
    }

    /// Takes a synchronization into account. Returns what the host knows after it to have completed, or may know.
    pub(super) fn synchronize(&mut self, by: &Synchronization) -> Option<Front> {
        match (by.kind, by.queue, by.event) {
            (SyncKind::NotFollowed, queue, _) => {
                self.not_followed(queue, by.tid);
                None
            }
            (SyncKind::Barrier, Some(queue), _) => {
                self.call_returned(by.tid);
                self.add_barrier(queue);
                None
            }
            (SyncKind::InOrder | SyncKind::OutOfOrder, Some(queue), _) => {
                self.by_handle.entry(queue).or_default().is_out_of_order = by.kind == SyncKind::OutOfOrder;
                None
            }
            (SyncKind::Resets, _, Some(event)) => {
                self.events.remove(&event);
                None
            }
            (SyncKind::InOrder | SyncKind::OutOfOrder, None, _)
            | (
                SyncKind::Barrier
                | SyncKind::List
                | SyncKind::Executes
                | SyncKind::Shares
                | SyncKind::Resets
                | SyncKind::Limit,
                ..,
            ) => None,
            (SyncKind::Signals, Some(queue), Some(event)) => {
                self.signal(queue, event, by.tid);
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
                if kind == SyncKind::Completed
                    && let Some(of) = self.by_handle.get_mut(&queue)
                {
                    of.not_followed.retain(|it| queue == DEFAULT && it.tid != by.tid);
                }
                Some(self.front_of(queue))
            }
            (kind, None, Some(event)) => {
                let Some(signalled) = self.events.get(&event) else { return Some(self.all()) };
                if kind == SyncKind::Completed
                    && let Some(of) = self.by_handle.get_mut(&signalled.queue)
                {
                    of.end_not_followed(signalled, by.tid);
                }
                Some(signalled.front.clone())
            }
            (kind, None, None) => {
                if kind == SyncKind::Completed {
                    self.any_not_followed = false;
                    self.by_handle.values_mut().for_each(|queue| queue.not_followed.clear());
                }
                Some(self.all())
            }
        }
    }

    /// What is enqueued in a queue next waits for all that was enqueued in it before.
    fn add_barrier(&mut self, queue: u64) {
        let of = self.by_handle.entry(queue).or_default();
        of.front.add(queue, of.last);
    }

    /// A queue signals an event behind what was enqueued in it last; if it is out of order, behind what the call has
    /// enqueued, or a barrier.
    fn signal(&mut self, queue: u64, event: u64, tid: u32) {
        if self.events.len() >= LIMIT {
            self.events.clear();
        }
        self.by_handle.entry(queue).or_default();
        self.wait_for_default(queue);
        let in_call = self.in_calls.iter().find(|(its, enqueued)| *its == tid && enqueued.queue == queue);
        let signalled = if let Some((_, enqueued)) = in_call {
            let mut front = self.in_front_of(queue);
            front.commands.retain(|it| !self.known.covers(Position { queue: it.queue, number: it.last }));
            front.add_command(*enqueued);
            Event { queue, number: enqueued.last, is_certain: true, front }
        } else {
            self.add_barrier(queue);
            let of = self.by_handle.entry(queue).or_default();
            Event { queue, number: of.last, is_certain: of.last_by == tid, front: self.front_of(queue) }
        };
        self.events.insert(event, signalled);
    }

    /// What is in front of what is enqueued in a queue next, but for the order of the queue itself.
    fn in_front_of(&self, queue: u64) -> Front {
        let mut front = Front { all: self.forgotten, ..Front::default() };
        if let Some(of) = self.by_handle.get(&queue) {
            front.join(&of.front);
        }
        front
    }

    /// All that was enqueued in a queue, with what is in front of it.
    pub(super) fn front_of(&self, queue: u64) -> Front {
        let mut front = self.in_front_of(queue);
        if let Some(of) = self.by_handle.get(&queue) {
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
