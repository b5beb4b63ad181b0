//! The events of a trace.

use urscope_schema::call::{Executed, Nanos, Synchronization};
use urscope_schema::{api::Function, packed::PackedCall, trace::records::Device};

/// An event of a process.
pub(crate) enum Event<'e> {
    Call(PackedCall<'e>),
    Other(&'e Other),
}

/// An event that is not a call.
#[derive(Clone, Debug)]
pub(crate) enum Other {
    Begin(Nanos),
    Thread(u32, Box<str>),
    /// An adapter, by the file name of its library.
    Adapter(Box<str>),
    /// A device, by its handle and its native handle: its index and its name.
    Device((u64, Option<u64>), Option<u32>, Box<str>),
    Descriptors(u64, Nanos),
    /// The device has executed a command of the call with this number.
    Executed(Box<Executed>),
    /// A call orders commands, or shows that some have completed.
    Synchronization(Synchronization),
    /// Records are missing by now.
    Lost(Nanos),
    End(Nanos),
}

/// The time of an event, and its rank among events of several processes at the same time. Events that can explain
/// others come first.
pub(crate) type Moment = (Nanos, u8);

/// The rank of a call.
#[inline]
pub(crate) fn rank_of(call: &PackedCall<'_>) -> u8 {
    match (call.enters(), call.function()) {
        (false, _) => 1,
        (true, Function::urUSMFree) => 3,
        (true, _) => 2,
    }
}

impl Other {
    /// The moment of the event, where `now` is the latest time of its process.
    pub(crate) fn order(&self, now: Nanos) -> Moment {
        match self {
            Self::Begin(time) => (*time, 0),
            Self::Thread(..) | Self::Adapter(_) | Self::Device(..) | Self::Descriptors(..) => (now, 1),
            Self::Executed(executed) => (executed.end.max(now), 1),
            Self::Synchronization(by) => (by.time.max(now), 1),
            Self::Lost(time) | Self::End(time) => ((*time).max(now), 1),
        }
    }

    /// Whether it is a name. Names have no time of their own.
    pub(crate) fn is_name(&self) -> bool {
        matches!(self, Self::Thread(..) | Self::Adapter(_) | Self::Device(..))
    }
}

/// A name as it is kept: cut off after as many bytes as the name of a device has at most.
pub(super) fn label(name: &str) -> Box<str> {
    name.get(..name.floor_char_boundary(Device::NAME_LIMIT)).unwrap_or_default().into()
}

/// Events of one file, in its order. Many wait between the reading threads and the analysis, so a call takes only a few
/// words.
#[derive(Clone, Debug, Default)]
pub(crate) struct Events {
    /// Calls as [`PackedCall`] reads them, and for each other event the word [`OTHER`].
    words: Vec<u64>,
    others: Vec<(Moment, Other)>,
}

/// The word of an event that is not a call. No call begins with it.
const OTHER: u64 = 0;

/// A position in some events.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Position {
    word: usize,
    other: usize,
    /// The latest time of the process before it.
    now: Nanos,
}

impl Position {
    /// The first of the events that follow.
    pub(crate) fn restart(&mut self) {
        (self.word, self.other) = (0, 0);
    }

    /// Moves behind an event.
    #[inline]
    pub(crate) fn step(&mut self, (time, _): Moment, event: &Event<'_>) {
        match event {
            Event::Call(call) => self.word += call.size(),
            Event::Other(_) => (self.word, self.other) = (self.word + 1, self.other + 1),
        }
        if !matches!(event, Event::Other(Other::Begin(_))) {
            self.now = time;
        }
    }
}

impl Events {
    /// Takes all events away and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.words.clear();
        self.others.clear();
    }

    /// Takes the events before a position away.
    pub(crate) fn remove_before(&mut self, position: &mut Position) {
        self.words.drain(..position.word);
        self.others.drain(..position.other);
        position.restart();
    }

    /// Frees the memory that is not needed for the events.
    pub(crate) fn shrink(&mut self) {
        self.words.shrink_to_fit();
        self.others.shrink_to_fit();
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Adds all of others.
    pub(crate) fn append(&mut self, mut others: Self) {
        self.words.append(&mut others.words);
        self.others.append(&mut others.others);
    }

    /// Whether at least half of the events are before a position.
    #[inline]
    pub(crate) fn half_passed(&self, position: Position) -> bool {
        2 * position.word >= self.words.len()
    }

    /// Only an event that is not a call.
    pub(crate) fn only(moment: Moment, other: Other) -> Self {
        Self { words: vec![OTHER], others: vec![(moment, other)] }
    }

    /// Adds an event that is not a call.
    pub(crate) fn push(&mut self, moment: Moment, other: Other) {
        self.words.push(OTHER);
        self.others.push((moment, other));
    }

    /// Where packed calls are added.
    pub(crate) fn calls(&mut self) -> &mut Vec<u64> {
        &mut self.words
    }

    /// The event at a position, with its moment; `None` at the end. A call is at the latest time of its process.
    #[inline]
    pub(crate) fn at(&self, position: Position) -> Option<(Moment, Event<'_>)> {
        if let Some(call) = PackedCall::first_of(self.words.get(position.word..)?) {
            return Some(((position.now.max(call.time()), rank_of(&call)), Event::Call(call)));
        }
        let (moment, other) = self.others.get(position.other)?;
        Some((*moment, Event::Other(other)))
    }

    /// The first event that is not a name, with its moment, where `now` is the latest time of the process before all.
    pub(crate) fn first_but_names(&self, now: Nanos) -> Option<(Moment, Event<'_>)> {
        let mut position = Position { now, ..Position::default() };
        loop {
            match self.at(position)? {
                (moment, event @ Event::Other(other)) if other.is_name() => position.step(moment, &event),
                first => return Some(first),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_truncated_at_a_character() {
        for name in ["", "worker", "fünfzehn Zeich", &"\u{fffd}".repeat(15)] {
            assert_eq!(&*label(name), name);
        }
        assert_eq!(&*label(&format!("{}ü", "x".repeat(63))), "x".repeat(63));
    }
}
