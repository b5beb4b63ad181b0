//! The elements of a timeline that every format can draw.

use std::{io, ops::Range};

use serde::{Serialize, Serializer};

use urscope_analyzer::lifetimes::{Arrow, Lifetime, LifetimeKind};
use urscope_analyzer::plain::plain;
use urscope_schema::trace::records::Hex;

/// The named arguments of an event: parameters and results of a call, or the content of a finding.
///
/// A vector, because an event has few arguments and a timeline has millions of events.
#[derive(Debug, Default)]
pub(super) struct EventArguments(Vec<(&'static str, Argument)>);

impl EventArguments {
    pub(super) fn new(name: &'static str, value: Argument) -> Self {
        Self(vec![(name, value)])
    }

    /// Adds an argument, or replaces the one of the same name.
    pub(super) fn put(&mut self, name: &'static str, value: Argument) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name, value)),
        }
    }

    /// All arguments, in the order in which they were added.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(&'static str, Argument)> {
        self.0.iter()
    }
}

impl Serialize for EventArguments {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(name, value)| (name, value)))
    }
}

/// The value of an argument. Texts contain no control characters any more.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Argument {
    /// A count, a size or another number.
    Number(u64),
    /// An address or a set of bits.
    Bits(Hex),
    Text(String),
    Lines(Vec<String>),
}

/// How many elements were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Written {
    /// The number of calls.
    pub calls: u64,
    /// The number of calls inside of others.
    pub inner: u64,
    /// The number of calls that never returned.
    pub unreturned: u64,
    /// The number of lifetimes of handle data, from get to put.
    pub handles: u64,
    /// The number of openings, from open to close.
    pub openings: u64,
    /// The number of counter values.
    pub counters: u64,
    /// The number of findings.
    pub findings: u64,
}

/// The track of an element: a process and a thread as they are numbered on the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Track {
    pub(super) pid: u32,
    pub(super) tid: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Count,
    Bytes,
}

/// A timeline that is being written. Times are in nanoseconds. Texts must contain no control characters. After an error
/// nothing more is written, and [`end`](Self::end) returns the error.
pub(super) trait Drawing {
    /// Relates the time `at` to the real time of a host. Called once for each host.
    fn clock(&mut self, at: u64, realtime: u64);

    /// Sets the name of a process and its position. Called once, after all elements of the process.
    fn process(&mut self, pid: u32, name: &str, order: usize);

    fn thread(&mut self, on: Track, name: &str);

    /// Draws a call of a category, with its end if it returned.
    fn call(
        &mut self,
        on: Track,
        category: &'static str,
        name: &str,
        span: (u64, Option<u64>),
        args: EventArguments,
        arrow: Option<Arrow>,
    );

    fn birth(&mut self, on: Track, life: &Lifetime, name: &str, args: EventArguments);

    /// Draws the end of a lifetime, with the name of its begin.
    fn death(&mut self, on: Track, life: &Lifetime, name: &str, at: u64, how: &str);

    /// Draws a bar of a category on a track of its own, in a process.
    fn bar(&mut self, pid: u32, category: &'static str, name: &str, span: Range<u64>, args: EventArguments);

    /// Draws new values of counters of a process, each with its name.
    fn counter(&mut self, pid: u32, unit: Unit, name: &str, at: u64, values: &[(&'static str, u64)]);

    /// Draws a finding, at a thread or on the track of all findings, which is of no process.
    fn finding(&mut self, on: Option<Track>, name: &str, at: u64, args: EventArguments);

    /// Writes the end of the timeline, or returns the first error.
    fn end(self) -> io::Result<()>;
}

pub(super) fn category(lane: LifetimeKind) -> &'static str {
    match lane {
        LifetimeKind::Handle => "export",
        LifetimeKind::Opening => "import",
    }
}

/// Removes control characters, and adds a space after a final backslash, after which some importers lose the rest.
pub(super) fn text(text: &str) -> String {
    let mut text = plain(text);
    if text.ends_with('\\') {
        text.push(' ');
    }
    text
}
