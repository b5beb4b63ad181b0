//! Writes a timeline in Perfetto's own format: protocol buffer packets with track events.
//!
//! Times, counts and addresses are full 64-bit numbers. Slices of one track nest, so each process has as many tracks
//! for a kind of object as objects of this kind are alive at once. Arrows are legacy flows, as in the Chrome format:
//! the newer flows would lead from open to open, not from the get to each open. Field numbers are those of
//! `protos/perfetto/trace/` in Perfetto.

mod wire;

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::ops::Range;

use self::wire::Message;
use super::drawing::{Argument, Drawing, EventArguments, Track, Unit, category};
use urscope_analyzer::lifetimes::{Arrow, Lifetime};

/// Ids of clocks in a clock snapshot.
const REALTIME: u64 = 1;
const MONOTONIC: u64 = 3;
const BOOTTIME: u64 = 6;

/// Types of a track event.
const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;

pub(super) struct Perfetto<'w> {
    out: &'w mut dyn Write,
    failed: Option<io::Error>,
    first: bool,
    /// The uuid of the latest track.
    last: u64,
    processes: HashMap<u32, u64>,
    threads: HashMap<Track, u64>,
    counters: HashMap<(u32, String), u64>,
    findings: Option<u64>,
    /// The unused tracks of each process and kind of object.
    free: BTreeMap<(u32, &'static str), Vec<u64>>,
    /// The track of each live object, by the id of its lifetime.
    lives: HashMap<u64, u64>,
}

impl<'w> Perfetto<'w> {
    pub(super) fn begin(out: &'w mut dyn Write) -> Self {
        Self {
            out,
            failed: None,
            first: true,
            last: 0,
            processes: HashMap::new(),
            threads: HashMap::new(),
            counters: HashMap::new(),
            findings: None,
            free: BTreeMap::new(),
            lives: HashMap::new(),
        }
    }

    fn packet(&mut self, packet: Message) {
        // All packets belong to one sequence. The first clears the incremental state.
        let packet = packet.number(10, 1);
        let packet = if std::mem::take(&mut self.first) { packet.number(13, 1) } else { packet };
        if self.failed.is_none() {
            let framed = Message::default().message(1, &packet);
            self.failed = self.out.write_all(framed.as_bytes()).err();
        }
    }

    fn event(&mut self, at: u64, event: &Message) {
        self.packet(Message::default().number(8, at).message(11, event));
    }

    fn describe(&mut self, track: &Message) {
        self.packet(Message::default().message(60, track));
    }

    fn fresh(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn of_process(&mut self, pid: u32) -> u64 {
        if let Some(known) = self.processes.get(&pid) {
            return *known;
        }
        let uuid = self.fresh();
        self.processes.insert(pid, uuid);
        uuid
    }

    fn of_thread(&mut self, on: Track, name: Option<&str>) -> u64 {
        let known = self.threads.get(&on).copied();
        let uuid = known.unwrap_or_else(|| self.fresh());
        if known.is_none() || name.is_some() {
            self.threads.insert(on, uuid);
            let thread = Message::default().number(1, u64::from(on.pid)).number(2, u64::from(on.tid));
            let thread = name.map_or_else(Message::default, |name| Message::default().text(5, name)).join(thread);
            self.describe(&Message::default().number(1, uuid).message(4, &thread));
        }
        uuid
    }

    fn of_findings(&mut self) -> u64 {
        if let Some(known) = self.findings {
            return known;
        }
        let uuid = self.fresh();
        self.describe(&Message::default().number(1, uuid).text(2, "findings"));
        *self.findings.insert(uuid)
    }

    /// Creates a track of a process that is not a thread.
    fn beside(&mut self, pid: u32, name: &str, counter: Option<&Message>) -> u64 {
        let parent = self.of_process(pid);
        let uuid = self.fresh();
        let track = Message::default().number(1, uuid).text(2, name).number(5, parent);
        let track = counter.map_or_else(Message::default, |counter| Message::default().message(8, counter)).join(track);
        self.describe(&track);
        uuid
    }
}

fn track_event(kind: u64, track: u64) -> Message {
    Message::default().number(9, kind).number(11, track)
}

fn named(event: Message, category: &str, name: &str, args: &EventArguments) -> Message {
    let event = event.text(22, category).text(23, name);
    args.iter().fold(event, |event, (name, value)| event.message(4, &annotation(name, value)))
}

fn annotation(name: &str, value: &Argument) -> Message {
    let annotation = Message::default().text(10, name);
    match value {
        Argument::Number(number) => annotation.number(3, *number),
        Argument::Bits(bits) => annotation.number(7, bits.0),
        Argument::Text(text) => annotation.text(6, text),
        Argument::Lines(lines) => {
            lines.iter().fold(annotation, |all, line| all.message(12, &Message::default().text(6, line)))
        }
    }
}

fn bound(event: Message, arrow: Option<Arrow>) -> Message {
    let (id, direction) = match arrow {
        None => return event,
        Some(Arrow::To(id)) => (id, 1),
        Some(Arrow::From(id)) => (id, 2),
    };
    event.message(6, &Message::default().number(8, id).number(13, direction))
}

impl Drawing for Perfetto<'_> {
    fn clock(&mut self, at: u64, realtime: u64) {
        let clock = |id, time| Message::default().number(1, id).number(2, time);
        let clocks = [(BOOTTIME, at), (MONOTONIC, at), (REALTIME, realtime)];
        let snapshot = clocks.into_iter().fold(Message::default(), |all, (id, time)| all.message(1, &clock(id, time)));
        self.packet(Message::default().number(8, at).message(6, &snapshot));
    }

    fn process(&mut self, pid: u32, name: &str, order: usize) {
        let uuid = self.of_process(pid);
        let process = Message::default().number(1, u64::from(pid)).number(3, order as u64).text(6, name);
        self.describe(&Message::default().number(1, uuid).message(3, &process));
    }

    fn thread(&mut self, on: Track, name: &str) {
        self.of_thread(on, Some(name));
    }

    fn call(
        &mut self,
        on: Track,
        category: &'static str,
        name: &str,
        (from, to): (u64, Option<u64>),
        args: EventArguments,
        arrow: Option<Arrow>,
    ) {
        let track = self.of_thread(on, None);
        self.event(from, &bound(named(track_event(BEGIN, track), category, name, &args), arrow));
        if let Some(to) = to {
            self.event(to, &track_event(END, track));
        }
    }

    fn birth(&mut self, on: Track, life: &Lifetime, name: &str, args: EventArguments) {
        let noun = life.kind.noun();
        let free = self.free.get_mut(&(on.pid, noun)).and_then(Vec::pop);
        let track = free.unwrap_or_else(|| self.beside(on.pid, noun, None));
        self.lives.insert(life.id, track);
        let event = named(track_event(BEGIN, track), category(life.lane), name, &args);
        self.event(life.at, &bound(event, life.arrow()));
    }

    fn death(&mut self, on: Track, life: &Lifetime, _: &str, at: u64, how: &str) {
        let Some(track) = self.lives.remove(&life.id) else { return };
        self.free.entry((on.pid, life.kind.noun())).or_default().push(track);
        let how = annotation("ended_by", &Argument::Text(how.into()));
        self.event(at, &track_event(END, track).message(4, &how));
    }

    fn bar(&mut self, pid: u32, category: &'static str, name: &str, span: Range<u64>, args: EventArguments) {
        let track = self.beside(pid, name, None);
        self.event(span.start, &named(track_event(BEGIN, track), category, name, &args));
        self.event(span.end, &track_event(END, track));
    }

    fn counter(&mut self, pid: u32, unit: Unit, name: &str, at: u64, values: &[(&'static str, u64)]) {
        for (key, value) in values {
            let name = format!("{name} {key}");
            let known = self.counters.get(&(pid, name.clone())).copied();
            let track = known.unwrap_or_else(|| {
                let unit = match unit {
                    Unit::Count => 2,
                    Unit::Bytes => 3,
                };
                let track = self.beside(pid, &name, Some(&Message::default().number(3, unit)));
                self.counters.insert((pid, name), track);
                track
            });
            self.event(at, &track_event(COUNTER, track).number(30, *value));
        }
    }

    fn finding(&mut self, on: Option<Track>, name: &str, at: u64, args: EventArguments) {
        let track = match on {
            Some(on) => self.of_thread(on, None),
            None => self.of_findings(),
        };
        self.event(at, &named(track_event(INSTANT, track), "finding", name, &args));
    }

    fn end(self) -> io::Result<()> {
        match self.failed {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }
}
