//! What a timeline is drawn with: the marks that every form of it has.

use std::io;

use serde::{Serialize, Serializer};

use urscope_analyzer::{
    lifetimes::{Arrow, Lifetime, LifetimeKind},
    plain::plain,
};

/// What a call was asked and answered, what a finding says: by name. There are few of them, and millions of calls.
#[derive(Debug, Default)]
pub(super) struct Arguments(Vec<(&'static str, Argument)>);

impl Arguments {
    /// One alone.
    pub(super) fn of(name: &'static str, value: Argument) -> Self {
        Self(vec![(name, value)])
    }

    /// Adds one, or says the latest of a name that is there.
    pub(super) fn put(&mut self, name: &'static str, value: Argument) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name, value)),
        }
    }

    /// All of them, in the order in which they came.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(&'static str, Argument)> {
        self.0.iter()
    }
}

impl Serialize for Arguments {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(name, value)| (name, value)))
    }
}

/// What is said of an event under a name. Texts are clean by now.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Argument {
    /// A number.
    Number(u64),
    /// An address, or other bits.
    Bits(Bits),
    /// A text.
    Text(String),
    /// A text of several lines.
    Lines(Vec<String>),
}

/// Bits: a text of hexadecimal digits in JSON.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bits(pub(super) u64);

impl Serialize for Bits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:#x}", self.0))
    }
}

/// How much was drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Written {
    /// Calls.
    pub calls: u64,
    /// Those of them that never returned.
    pub unreturned: u64,
    /// Lives of handle data, from get to put.
    pub handles: u64,
    /// Openings, from open to close.
    pub openings: u64,
    /// Values of counters.
    pub counters: u64,
    /// Findings.
    pub findings: u64,
}

/// Where something is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Track {
    pub(super) pid: u32,
    pub(super) tid: u32,
}

/// What a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Count,
    Bytes,
}

/// A timeline that is being written, times in nanoseconds. Texts are clean by now. After the first failure nothing more is
/// written, and the end tells it.
pub(super) trait Drawing {
    /// At a moment it was so late by the real time of a host that the timeline sees for the first time.
    fn clock(&mut self, at: u64, realtime: u64);

    /// Names a process, once, behind everything that is drawn of it, and says in which order it is shown.
    fn process(&mut self, pid: u32, name: &str, order: usize);

    /// Names a thread.
    fn thread(&mut self, on: Track, name: &str);

    /// A call, to its return if it did.
    fn call(&mut self, on: Track, name: &str, span: (u64, Option<u64>), args: Arguments, arrow: Option<Arrow>);

    /// A life begins.
    fn birth(&mut self, on: Track, life: &Lifetime, args: Arguments);

    /// It ends.
    fn death(&mut self, on: Track, life: &Lifetime, at: u64, how: &str);

    /// Values of a process's counters, by the name of each.
    fn counter(&mut self, pid: u32, unit: Unit, name: &str, at: u64, values: &[(&'static str, u64)]);

    /// A finding.
    fn finding(&mut self, on: Track, name: &str, at: u64, args: Arguments);

    /// All is drawn.
    fn end(self) -> io::Result<()>;
}

/// What a life is filed under.
pub(super) fn category(lane: LifetimeKind) -> &'static str {
    match lane {
        LifetimeKind::Handle => "export",
        LifetimeKind::Opening => "import",
    }
}

/// Text without control characters, and without a backslash at its end, behind which some importers lose the rest.
pub(super) fn text(text: &str) -> String {
    let mut text = plain(text);
    if text.ends_with('\\') {
        text.push(' ');
    }
    text
}
