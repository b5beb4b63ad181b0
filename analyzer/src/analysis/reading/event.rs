//! The events of a trace.

use urscope_schema::{
    api::Function,
    call::{Enter, Exit, Nanos},
    packed::{PackedCall, pack},
    trace::{read::Record, records::Device},
};

use super::packed_other::{self, PackedOther};

/// An event of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TraceEvent {
    Enter(Enter),
    Exit(Exit),
    /// A call inside of the one with its number, which nothing judges.
    InnerEnter(Enter),
    InnerExit(Exit),
    Other(Other),
}

/// An event that is not a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Other {
    Begin(Nanos),
    Thread(u32, Label),
    /// An adapter, by the file name of its library.
    Adapter(Label),
    /// A device, by its handle: its index and its name.
    Device(u64, Option<u32>, Label),
    Descriptors(u64, Nanos),
    End(Nanos),
}

/// The time of an event, and its rank among events of several processes at the same time. Events that can explain others come
/// first.
pub(crate) type Moment = (Nanos, u8);

/// The rank of the return of a call.
pub(crate) const RETURN: u8 = 1;

/// The rank of the beginning of a call.
#[inline]
pub(crate) fn rank_of_enter(function: Function) -> u8 {
    if function == Function::urUSMFree { 3 } else { 2 }
}

/// The rank of a call.
#[inline]
pub(crate) fn rank_of(call: &PackedCall<'_>) -> u8 {
    if call.enters() { rank_of_enter(call.function()) } else { RETURN }
}

impl TraceEvent {
    /// The moment of the event, where `now` is the latest time of its process.
    pub(crate) fn order(&self, now: Nanos) -> Moment {
        match self {
            Self::Exit(_) | Self::InnerExit(_) => (now, RETURN),
            Self::Enter(enter) | Self::InnerEnter(enter) => (now, rank_of_enter(enter.function)),
            Self::Other(other) => other.order(now),
        }
    }
}

impl Other {
    /// The moment of the event, where `now` is the latest time of its process.
    pub(crate) fn order(&self, now: Nanos) -> Moment {
        match self {
            Self::Begin(time) => (*time, 0),
            Self::Thread(..) | Self::Adapter(_) | Self::Device(..) | Self::Descriptors(..) => (now, 1),
            Self::End(time) => ((*time).max(now), 1),
        }
    }

    /// Whether it is a name. Names have no time of their own.
    pub(crate) fn is_name(&self) -> bool {
        matches!(self, Self::Thread(..) | Self::Adapter(_) | Self::Device(..))
    }
}

/// Events of one file, in its order. Many wait between the reading threads and the analysis, so a call takes only a few words.
#[derive(Clone, Debug, Default)]
pub(crate) struct Events {
    /// Calls as [`PackedCall`] reads them, and other events as [`PackedOther`] does.
    words: Vec<u64>,
    count: usize,
}

/// An event that waits.
pub(crate) enum Waiting<'e> {
    Call(PackedCall<'e>),
    Other(PackedOther<'e>),
}

/// A position in some events.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Position {
    word: usize,
    /// The latest time of the process before it.
    now: Nanos,
}

impl Position {
    /// The first of some events, where `now` is the latest time of the process before them.
    pub(crate) fn first(now: Nanos) -> Self {
        Self { word: 0, now }
    }

    /// The first of the events that follow.
    pub(crate) fn restart(&mut self) {
        self.word = 0;
    }
}

impl Events {
    /// The number of events.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Takes all events away and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.words.clear();
        self.count = 0;
    }

    /// Frees the memory that is not needed for the events.
    pub(crate) fn shrink(&mut self) {
        self.words.shrink_to_fit();
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Adds all of others.
    pub(crate) fn append(&mut self, others: &Self) {
        self.words.extend_from_slice(&others.words);
        self.count += others.count;
    }

    /// Whether at least half of the events are before a position.
    #[inline]
    pub(crate) fn half_passed(&self, position: Position) -> bool {
        2 * position.word >= self.words.len()
    }

    /// Only an event that is not a call.
    pub(crate) fn only(moment: Moment, other: Other) -> Self {
        let mut only = Self::default();
        only.push_other(moment, &other);
        only
    }

    /// Adds an event that is not a call.
    pub(crate) fn push_other(&mut self, moment: Moment, other: &Other) {
        packed_other::pack(moment, other, &mut self.words);
        self.count += 1;
    }

    /// Adds an event. A call is at the latest time of its process.
    pub(crate) fn push(&mut self, moment: Moment, event: &TraceEvent) {
        let record = match event {
            TraceEvent::Enter(enter) => Record::Enter(*enter),
            TraceEvent::Exit(exit) => Record::Exit(*exit),
            TraceEvent::InnerEnter(enter) => Record::InnerEnter(*enter),
            TraceEvent::InnerExit(exit) => Record::InnerExit(*exit),
            TraceEvent::Other(other) => return self.push_other(moment, other),
        };
        self.extend(|words| usize::from(pack(&record, words)));
    }

    /// Lets `add` add packed calls, the number of which it returns.
    pub(crate) fn extend(&mut self, add: impl FnOnce(&mut Vec<u64>) -> usize) {
        self.count += add(&mut self.words);
    }

    /// Whether the end of the process is among them.
    pub(crate) fn end(&self) -> bool {
        self.iter(Nanos(0)).any(|(_, event)| matches!(event, TraceEvent::Other(Other::End(_))))
    }

    /// The event at a position, with its moment; `None` at the end.
    #[inline]
    pub(crate) fn at(&self, position: Position) -> Option<(Moment, Waiting<'_>)> {
        let rest = self.words.get(position.word..)?;
        if let Some(call) = PackedCall::first_of(rest) {
            return Some(((position.now.max(call.time()), rank_of(&call)), Waiting::Call(call)));
        }
        let other = PackedOther::first_of(rest)?;
        Some((other.moment(), Waiting::Other(other)))
    }

    /// Moves to the position after that of an event.
    #[inline]
    pub(crate) fn step(position: &mut Position, (time, _): Moment, event: &Waiting<'_>) {
        match event {
            Waiting::Call(call) => (position.word, position.now) = (position.word + call.size(), time),
            Waiting::Other(other) if other.begins() => position.word += other.size(),
            Waiting::Other(other) => (position.word, position.now) = (position.word + other.size(), time),
        }
    }

    /// All events, where `now` is the latest time of the process before them.
    pub(crate) fn iter(&self, now: Nanos) -> impl Iterator<Item = (Moment, TraceEvent)> {
        let mut position = Position::first(now);
        std::iter::from_fn(move || {
            let (moment, event) = self.at(position)?;
            Self::step(&mut position, moment, &event);
            let event = match event {
                Waiting::Call(call) => match (call.enters(), call.is_inner()) {
                    (true, false) => TraceEvent::Enter(call.enter()),
                    (false, false) => TraceEvent::Exit(call.exit()),
                    (true, true) => TraceEvent::InnerEnter(call.enter()),
                    (false, true) => TraceEvent::InnerExit(call.exit()),
                },
                Waiting::Other(other) => TraceEvent::Other(other.other()),
            };
            Some((moment, event))
        })
    }
}

/// The name of a thread, of which the kernel keeps 15 bytes, each of which may be replaced by a replacement character of 3 bytes; of
/// a library, or of a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Label {
    bytes: [u8; Self::CAPACITY],
    length: u8,
}

impl Label {
    pub(super) const CAPACITY: usize = Device::NAME_LIMIT;

    /// A name, truncated to the capacity.
    pub(crate) fn of(name: &str) -> Self {
        let name = name.get(..name.floor_char_boundary(Self::CAPACITY)).unwrap_or_default();
        let mut bytes = [0; Self::CAPACITY];
        for (to, from) in bytes.iter_mut().zip(name.as_bytes()) {
            *to = *from;
        }
        Self { bytes, length: name.len() as u8 }
    }

    /// The name.
    pub(crate) fn text(&self) -> &str {
        self.bytes.get(..usize::from(self.length)).and_then(|bytes| str::from_utf8(bytes).ok()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_truncated_at_a_character() {
        for name in ["", "worker", "fünfzehn Zeich", &"\u{fffd}".repeat(15)] {
            assert_eq!(Label::of(name).text(), name);
        }
        assert_eq!(Label::of(&format!("{}ü", "x".repeat(63))).text(), "x".repeat(63));
    }
}
