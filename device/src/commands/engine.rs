//! Engines. An engine executes the commands of all queues and immediate lists of a device with the same
//! ordinal and index.
//!
//! An engine executes one command at a time, in submission order across its queues and lists. The
//! adapters rely on this order, as they do with Intel's driver: they reset events in one list and
//! signal them in another. A command of higher priority overtakes those that have not begun. A command
//! that waits for an event holds up its own queue only (ze_api.h): the queue steps aside until the
//! event is signalled, and then returns to its position in the order. So queues that wait for each
//! other, for the host or for another process never wait longer than with an engine for each queue.
//!
//! Must never let a command wait for an event while it has the turn.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::discovery::device::{Device, Numbers};
use crate::platform::process;

/// The engines that are in use, by the numbers of their device.
static ENGINES: Mutex<BTreeMap<(Numbers, Queue), Arc<Engine>>> = Mutex::new(BTreeMap::new());

/// A queue of a device: each has an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Queue {
    /// The number of its group.
    pub ordinal: u32,
    /// Its number in the group.
    pub index: u32,
}

pub(super) struct Engine {
    state: Mutex<Order>,
    changed: Condvar,
}

/// The order of the commands of an engine.
#[derive(Default)]
pub(super) struct Order {
    next: u64,
    /// The next command of each stream, in order. Streams that are idle or have stepped aside have none here.
    heads: Vec<Position>,
    /// Whether a command has the turn.
    busy: bool,
}

/// The position of a command in the order of its engine: by priority, then by submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    priority: Priority,
    number: u64,
}

/// The priority of a queue or list (`ze_command_queue_priority_t`), the highest one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// `ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH`.
    High,
    /// `ZE_COMMAND_QUEUE_PRIORITY_NORMAL`.
    Normal,
    /// `ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_LOW`.
    Low,
}

impl Priority {
    /// All, by their numbers in ze_api.h.
    const NUMBERED: [Self; 3] = [Self::Normal, Self::Low, Self::High];

    pub(crate) fn from_number(number: u32) -> Option<Self> {
        Self::NUMBERED.get(number as usize).copied()
    }

    pub(crate) fn number(self) -> u32 {
        Self::NUMBERED.iter().take_while(|other| **other != self).count() as u32
    }
}

impl Engine {
    /// The engine of a queue of a device. Sub-devices have engines of their own.
    pub(super) fn for_queue(device: &Device, queue: Queue) -> Arc<Self> {
        let new = || Arc::new(Self { state: Mutex::default(), changed: Condvar::new() });
        Arc::clone(ENGINES.lock().entry((device.numbers(), queue)).or_insert_with(new))
    }

    /// Locks the order, so that commands which are submitted meanwhile come later.
    pub(super) fn order(&self) -> MutexGuard<'_, Order> {
        self.state.lock()
    }

    /// Waits until the next command of a stream has its turn, or the devices of this process are lost. False if it had
    /// its turn already.
    pub(super) fn wait_for_turn(&self, position: Position) -> bool {
        let mut order = self.state.lock();
        let mut waited = false;
        while (order.busy || order.heads.first() != Some(&position)) && !process::devices_are_lost() {
            self.changed.wait(&mut order);
            waited = true;
        }
        order.busy = true;
        waited
    }

    /// Returns a command that stepped aside to its position.
    pub(super) fn step_back(&self, position: Position) {
        self.state.lock().enter(position);
    }

    /// Ends the turn of a command, and lets other streams go on. `next` is the next command of its stream, if
    /// there is one; none, too, for a command that steps aside before it runs.
    pub(super) fn end_turn(&self, position: Position, next: Option<Position>) {
        let mut order = self.state.lock();
        order.heads.retain(|head| *head != position);
        if let Some(next) = next {
            order.enter(next);
        }
        order.busy = false;
        drop(order);
        self.changed.notify_all();
    }
}

impl Order {
    /// The position of a command that is submitted now.
    pub(super) fn next_position(&mut self, priority: Priority) -> Position {
        self.next += 1;
        Position { priority, number: self.next }
    }

    /// Adds the next command of a stream that has none there.
    pub(super) fn enter(&mut self, head: Position) {
        let at = self.heads.partition_point(|other| *other < head);
        self.heads.insert(at, head);
    }
}

/// Wakes all waits for a turn, so that they check whether the devices of this process are lost.
pub(super) fn wake_all() {
    for engine in ENGINES.lock().values() {
        // A wait that has checked already is asleep once the lock is free.
        drop(engine.state.lock());
        engine.changed.notify_all();
    }
}
