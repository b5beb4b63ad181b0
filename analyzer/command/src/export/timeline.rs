//! Converts the events of a run to the elements of a timeline.

use std::collections::{HashMap, HashSet};

use urscope_schema::call::{Executed, Shape};
use urscope_schema::short_size;
use urscope_schema::trace::{CALL, INNER, NOTE, records::Hex};

use super::drawing::{Argument, Drawing, EventArguments, Track, Unit, Written, text};
use urscope_analyzer::analysis::{
    CallSite, CallSites, FoundFinding, Judgement, Location, Occurrence, Stacks, file_name,
};
use urscope_analyzer::lifetimes::{
    Counts, EndReason, EventSink, FinishedCall, Lifetime, LifetimeKind, ProcessIndex, ProcessStart,
};
use urscope_analyzer::questions::word;

/// The first number for processes whose own number another one has. No kernel assigns numbers this large.
const SUBSTITUTE_PID: u32 = 1 << 30;

pub(super) struct Timeline<D> {
    drawing: D,
    written: Written,
    processes: Vec<Process>,
    process_index: ProcessIndex,
    taken: HashSet<u32>,
    /// The hosts whose clocks have been written.
    clocks: HashSet<u64>,
    sites: CallSites,
    names: HashMap<u64, String>,
}

struct Process {
    shown_as: u32,
    pid: u32,
    executable: String,
    name: String,
    rank: Option<u32>,
    produces: bool,
    consumes: bool,
    counted: Counts,
}

impl Process {
    /// The role of the process in the run, and its rank in the order of processes.
    fn role(&self) -> (u8, &'static str) {
        match (self.produces, self.consumes) {
            (true, false) => (0, ", producer"),
            (true, true) => (1, ", producer and consumer"),
            (false, true) => (2, ", consumer"),
            (false, false) => (3, ""),
        }
    }
}

impl<D: Drawing> Timeline<D> {
    pub(super) fn new(drawing: D, sites: CallSites) -> Self {
        let written = Written::default();
        let processes = Vec::new();
        let process_index = ProcessIndex::default();
        let taken = HashSet::new();
        let clocks = HashSet::new();
        let names = HashMap::new();
        Self { drawing, written, processes, process_index, taken, clocks, sites, names }
    }

    /// Draws the findings, names the processes and orders them by rank, role and program. Ends the timeline.
    pub(super) fn end(mut self, judgement: &Judgement) -> std::io::Result<Written> {
        for finding in &judgement.findings {
            self.finding(finding, &judgement.sentence(finding));
        }
        self.processes.sort_by(|a, b| {
            let order = |process: &Process| (process.rank.unwrap_or(u32::MAX), process.role().0);
            order(a).cmp(&order(b)).then_with(|| a.executable.cmp(&b.executable))
        });
        // Perfetto sorts processes with equally many slices by name, so all ranks have as many digits.
        let digits = self.processes.iter().filter_map(|process| process.rank).max().unwrap_or(0).to_string().len();
        for (order, process) in self.processes.iter().enumerate() {
            let rank = process.rank.map_or_else(String::new, |rank| format!("rank {rank:0digits$}: "));
            let name = format!("{rank}{}{}", process.name, process.role().1);
            self.drawing.process(process.shown_as, &text(&name), order);
        }
        self.drawing.end()?;
        Ok(self.written)
    }

    fn finding(&mut self, found: &FoundFinding, name: &str) {
        // At each thread that made the mistake, and above all processes.
        for side in places(found) {
            let number = self.process_index.number(&side);
            if let Some(on) = number.and_then(|number| self.track(number, side.tid)) {
                self.drawing.finding(Some(on), &text(&found.rule), side.time_ns, content(found));
            }
        }
        self.drawing.finding(None, &text(name), found.time_ns, content(found));
        self.unordered(found);
        self.written.findings += 1;
    }

    /// Draws two commands that nothing orders, each from its enqueue until it was known to be over, and the time in
    /// which nothing can have ordered them. If the end of the second one is not known, its bar ends with that time.
    fn unordered(&mut self, found: &FoundFinding) {
        let Some((first, second, known)) = found.unordered() else { return };
        for side in [first, second] {
            let how =
                if side.known_ns.is_some() { "enqueued until known to be over" } else { "enqueued, end not known" };
            let name = format!("{}: {how}", side.function.as_deref().unwrap_or("command"));
            let mut args = EventArguments::default();
            side.call.into_iter().for_each(|call| args.put("call", Argument::Number(call)));
            args.put("stack", Argument::Lines(stack(side)));
            self.bar(side, &name, side.known_ns.unwrap_or(known), args);
        }
        self.bar(second, "nothing orders the two commands", known, content(found));
    }

    /// Draws a bar of a race on the process of a command, from its enqueue on.
    fn bar(&mut self, side: &Location, name: &str, to: u64, args: EventArguments) {
        let number = self.process_index.number(side);
        if let Some(on) = number.and_then(|number| self.track(number, side.tid)) {
            self.drawing.bar(on.pid, "race", &text(name), side.time_ns..to, args);
        }
    }

    /// The track of a thread; `tid` 0 is the main thread.
    fn track(&self, process: u32, tid: u32) -> Option<Track> {
        Some(self.processes.get(process as usize)?.track(tid))
    }

    fn counter(&mut self, on: Track, unit: Unit, name: &str, at: u64, values: &[(&'static str, u64)]) {
        if !values.is_empty() {
            self.drawing.counter(on.pid, unit, name, at, values);
            self.written.counters += values.len() as u64;
        }
    }
}

/// The places where a finding occurred, as far as they are kept.
fn places(found: &FoundFinding) -> Vec<Location> {
    let place = |it: &Occurrence| Location {
        host: it.host.clone(),
        pid: it.pid,
        executable: it.executable.clone(),
        tid: it.tid,
        time_ns: it.time_ns,
        ..Location::default()
    };
    if found.occurrences.is_empty() {
        vec![found.process.clone()]
    } else {
        found.occurrences.iter().map(place).collect()
    }
}

fn content(found: &FoundFinding) -> EventArguments {
    let mut args = EventArguments::default();
    args.put("rule", Argument::Text(text(&found.rule)));
    args.put("severity", Argument::Text(found.severity.name().into()));
    args.put("message", Argument::Text(text(&found.message)));
    args.put("advice", Argument::Text(text(&found.advice)));
    args.put("count", Argument::Number(found.count));
    if let Some(bytes) = &found.fingerprint {
        args.put(
            "fingerprint",
            word(bytes).map_or_else(|_| Argument::Text(text(bytes)), |bits| Argument::Bits(Hex(bits))),
        );
    }
    args.put("here", Argument::Lines(stack(&found.process)));
    if let Some(other) = &found.other {
        args.put("there", Argument::Lines(stack(other)));
    }
    args
}

impl Process {
    fn track(&self, tid: u32) -> Track {
        let pid = self.shown_as;
        Track { pid, tid: if tid == self.pid || tid == 0 { pid } else { tid } }
    }
}

impl<D: Drawing> EventSink for Timeline<D> {
    fn process(&mut self, began: &ProcessStart<'_>) {
        self.process_index.enter(began);
        let header = began.header;
        let own = self.taken.insert(header.pid);
        let shown_as = if own { header.pid } else { SUBSTITUTE_PID + began.process };
        let file = file_name(&header.executable);
        let name = match (own, began.host) {
            (true, 0) => file.to_owned(),
            _ => format!("{file} (pid {} on {})", header.pid, header.host),
        };
        self.processes.push(Process {
            shown_as,
            pid: header.pid,
            executable: header.executable.clone(),
            name,
            rank: header.rank,
            produces: false,
            consumes: false,
            counted: Counts::default(),
        });
        if self.clocks.insert(began.host) && header.clock.realtime_ns > 0 {
            self.drawing.clock(began.at, header.clock.realtime_ns);
        }
    }

    fn stacks(&mut self, _: u32, stacks: &Stacks) {
        self.sites.add(stacks);
    }

    fn thread(&mut self, process: u32, tid: u32, name: &str) {
        if let Some(track) = self.track(process, tid) {
            self.drawing.thread(track, &text(name));
        }
    }

    fn call(&mut self, call: &FinishedCall<'_>) {
        let Some(track) = self.track(call.process, call.tid) else { return };
        let span = (call.from, call.to);
        let mut args = numbered("call", call);
        if let Some(site) = self.sites.get(call.process, call.asked.stack) {
            put_site(&mut args, &site);
        }
        self.drawing.call(track, CALL, call.function.name(), span, args, call.arrow());
        self.written.calls += 1;
        self.written.unreturned += u64::from(call.to.is_none());
    }

    fn inner(&mut self, call: &FinishedCall<'_>) {
        if let Some(track) = self.track(call.process, call.tid) {
            let args = numbered("inside", call);
            self.drawing.call(track, INNER, call.function.name(), (call.from, call.to), args, None);
            self.written.inner += 1;
            self.written.unreturned += u64::from(call.to.is_none());
        }
    }

    fn birth(&mut self, life: &Lifetime) {
        let Some(track) = self.track(life.process, life.tid) else { return };
        let mut args = EventArguments::default();
        args.put("address", Argument::Bits(Hex(life.address)));
        life.bytes.into_iter().for_each(|bytes| args.put("bytes", Argument::Number(bytes)));
        life.fingerprint.into_iter().for_each(|bytes| args.put("fingerprint", Argument::Bits(Hex(bytes))));
        let site = self.sites.get(life.process, life.stack);
        let size = life.bytes.map_or_else(String::new, |bytes| format!(" ({})", short_size(bytes)));
        let name = match &site {
            Some(site) => {
                args.put("kind", Argument::Text(life.kind.noun().into()));
                put_site(&mut args, site);
                format!("{}{size}", text(&site.name))
            }
            None => format!("{}{size}", life.kind.noun()),
        };
        self.drawing.birth(track, life, &name, args);
        self.names.insert(life.id, name);
        if let Some(process) = self.processes.get_mut(life.process as usize) {
            match life.lane {
                LifetimeKind::Handle => (process.produces, self.written.handles) = (true, self.written.handles + 1),
                LifetimeKind::Opening => (process.consumes, self.written.openings) = (true, self.written.openings + 1),
            }
        }
    }

    fn death(&mut self, life: &Lifetime, at: u64, how: EndReason) {
        if let Some((track, name)) = self.track(life.process, life.tid).zip(self.names.remove(&life.id)) {
            self.drawing.death(track, life, &name, at, how.name());
        }
    }

    /// Draws only values that have changed.
    fn counts(&mut self, process: u32, at: u64, counts: &Counts) {
        let Some(known) = self.processes.get_mut(process as usize) else { return };
        let before = std::mem::replace(&mut known.counted, *counts);
        let track = known.track(0);
        let kinds = before.by_kind().zip(counts.by_kind()).filter(|(before, now)| before != now);
        let lives: Vec<_> = kinds.map(|(_, (kind, count))| (kind.noun(), count)).collect();
        self.counter(track, Unit::Count, "live", at, &lives);
        let pinned = [
            ("exported", before.exported_bytes, counts.exported_bytes),
            ("mapped", before.mapped_bytes, counts.mapped_bytes),
        ];
        let pinned = pinned.into_iter().filter(|(_, before, now)| before != now);
        let bytes: Vec<_> = pinned.map(|(name, _, now)| (name, now)).collect();
        self.counter(track, Unit::Bytes, "pinned bytes", at, &bytes);
    }

    /// Draws a bar on the thread of the device.
    fn executed(&mut self, process: u32, at: u64, executed: &Executed) {
        let Executed { call, tid, begin, end, memory, rows, access } = *executed;
        let Some(track) = self.track(process, tid) else { return };
        let mut args = EventArguments::new("call", Argument::Number(call));
        let shape = [("offset", rows.offset), ("size", rows.length), ("pitch", rows.pitch), ("rows", rows.count)];
        for (name, value) in [("memory", memory)].into_iter().chain(shape) {
            args.put(name, number(value));
        }
        let from = at.saturating_sub(end.0.saturating_sub(begin.0));
        self.drawing.call(track, NOTE, access.name(), (from, Some(at)), args, None);
    }

    fn descriptors(&mut self, process: u32, at: u64, open: u64) {
        if let Some(track) = self.track(process, 0) {
            self.counter(track, Unit::Count, "descriptors", at, &[("open", open)]);
        }
    }
}

/// Adds the place in the program.
fn put_site(args: &mut EventArguments, site: &CallSite) {
    args.put("site", Argument::Text(text(&site.name)));
    site.file.iter().for_each(|file| args.put("file", Argument::Text(text(file))));
    site.line.into_iter().for_each(|line| args.put("line", Argument::Number(line.into())));
}

/// A number. Importers have signed ones of 64 bits.
fn number(value: u64) -> Argument {
    if value < 1 << 63 { Argument::Number(value) } else { Argument::Bits(Hex(value)) }
}

/// The number of a call under that name, and its parameters and results.
fn numbered(key: &'static str, call: &FinishedCall<'_>) -> EventArguments {
    let mut args = EventArguments::default();
    args.put(key, Argument::Number(call.number));
    let mut show = |name: &'static str, shape: Shape, value: u64| {
        let shown = match shape {
            Shape::Number => number(value),
            Shape::Hex => Argument::Bits(Hex(value)),
        };
        args.put(name, shown);
    };
    call.asked.for_each(&mut show);
    call.answered.for_each(&mut show);
    call.result.into_iter().for_each(|result| args.put("result", Argument::Text(result.text_of(call.function))));
    args
}

/// A call stack, one line for each frame.
fn stack(side: &Location) -> Vec<String> {
    side.stack.iter().map(|frame| text(&frame.line())).collect()
}
