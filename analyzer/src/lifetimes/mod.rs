//! The account of a run: what a hearing says record by record, told as processes, calls and lives.
//!
//! [`LifetimeTracker`] listens to a hearing and tells a [`EventSink`] what happens, on one axis of time for all hosts. Timelines, tables
//! and figures are scribes: none of them looks at records itself. Nothing is kept here but what lives, and it judges nothing.

mod counts;
mod open;
mod process_index;
mod sink;

use std::collections::{HashMap, HashSet};

use urscope_rules::{ExportId, ProcessId, Tracker};
use urscope_schema::{
    api::{Effect, Function},
    call::{Enter, Exit, Values},
    handle::{Handle, Kind},
    trace::records::Header,
};

pub use counts::{Counts, HANDLES, LiveCounts, OPENINGS, PinnedBytes};
use open::OpenLifetimes;
pub use process_index::ProcessIndex;
pub use sink::{Arrow, EndReason, EventSink, FinishedCall, Lifetime, LifetimeKind, ProcessStart};

use crate::analysis::{Ended, Observer};

/// Tells a sink what a hearing says.
#[derive(Debug, Default)]
pub struct LifetimeTracker<S> {
    sink: S,
    processes: Vec<Process>,
    /// What is known of each export that the law has not forgotten.
    exports: HashMap<ExportId, Known>,
    /// With so many exports it is time to look which of them the law has forgotten.
    many: usize,
    last: u64,
    /// How far the hearing has come: it never goes back, as records do of a thread that had to wait with them.
    now: u64,
}

/// A process of the tracker.
#[derive(Debug, Default)]
struct Process {
    lives: OpenLifetimes,
    census: LiveCounts,
    under_way: HashMap<u64, Call>,
}

/// An export, as far as lives must know it.
#[derive(Debug, Default)]
struct Known {
    /// The lives of the handle data that was got first and last, and when each began.
    first: Option<(u64, u64)>,
    latest: Option<(u64, u64)>,
    /// Who opened it.
    opened_by: HashSet<u32>,
}

/// A call that has begun.
#[derive(Debug)]
struct Call {
    enter: Enter,
    from: u64,
    /// The exports whose memory it frees.
    frees: Vec<ExportId>,
    /// The life of the handle data whose bytes it opens.
    of: Option<u64>,
    /// What it ends. It is out of its process by now, because its address may come again before the call returns.
    ends: Option<Lifetime>,
}

impl<S: EventSink> LifetimeTracker<S> {
    /// An account for a sink, to be given to a analysis.
    pub fn new(sink: S) -> Self {
        Self { sink, processes: Vec::new(), exports: HashMap::new(), many: 1 << 12, last: 0, now: 0 }
    }

    /// The sink, who has written down all that was heard.
    pub fn into_sink(self) -> S {
        self.sink
    }

    /// The sink.
    pub fn sink(&mut self) -> &mut S {
        &mut self.sink
    }

    fn process(&mut self, who: ProcessId) -> Option<&mut Process> {
        self.processes.get_mut(who.0 as usize)
    }

    /// What a call made that has returned.
    fn life(&mut self, tracker: &Tracker, made: &Made, call: &Call, at: u64) -> Lifetime {
        let Made { who, lane, handle, id } = *made;
        let mut export = None;
        let values = Values {
            data: Some(handle.value).filter(|_| lane == LifetimeKind::Handle),
            pointer: Some(handle.value),
            object: Some(handle.value),
            ..Values::NONE
        };
        tracker.about(who, maker(handle.kind), &values, |id| export = Some(id));
        let known = export.and_then(|export| Some((export, tracker.export(export)?)));
        let mut first = false;
        if let Some((export, _)) = known {
            self.make_room(tracker);
            let about = self.exports.entry(export).or_default();
            match lane {
                LifetimeKind::Handle => {
                    about.first.get_or_insert((id, at));
                    about.latest = Some((id, at));
                }
                LifetimeKind::Opening => first = about.opened_by.insert(who.0),
            }
        }
        Lifetime {
            id,
            process: who.0,
            tid: call.enter.tid,
            lane,
            kind: handle.kind,
            address: handle.value,
            bytes: known.as_ref().and_then(|(_, shared)| shared.size),
            fingerprint: known.as_ref().map(|(_, shared)| shared.fingerprint),
            export: known.as_ref().map(|(export, _)| export.number()),
            producer: known.as_ref().map(|(_, shared)| shared.producer.0),
            of: call.of.filter(|_| lane == LifetimeKind::Opening),
            first,
            at,
            call: call.enter.call,
        }
    }

    /// Forgets the exports that the law has forgotten, now and then.
    fn make_room(&mut self, tracker: &Tracker) {
        if self.exports.len() >= self.many {
            self.exports.retain(|export, _| tracker.export(*export).is_some());
            self.many = (self.exports.len() * 2).max(1 << 12);
        }
    }

    fn born(&mut self, who: ProcessId, life: Lifetime) {
        let Some(process) = self.processes.get_mut(who.0 as usize) else { return };
        if let Some(replaced) = process.lives.put(life) {
            process.census.died(&replaced);
            self.sink.death(&replaced, life.at, EndReason::Replaced);
        }
        process.census.born(&life);
        self.sink.birth(&life);
        self.sink.counts(who.0, self.now, process.census.counts());
    }

    /// Something died at a moment.
    fn died(&mut self, life: &Lifetime, at: u64, how: EndReason) {
        let Some(process) = self.processes.get_mut(life.process as usize) else { return };
        process.census.died(life);
        self.sink.death(life, at, how);
        self.sink.counts(life.process, self.now, process.census.counts());
    }

    /// What a call that returned well has ended.
    fn ended(&mut self, tracker: &Tracker, who: ProcessId, call: &mut Call, now: u64) -> Vec<u64> {
        let Call { enter, from, .. } = *call;
        let how = EndReason::By(enter.function, enter.call);
        let mut ended = Vec::new();
        if let Some(life) = call.ends {
            // A release ends what it was opened for with the last reference.
            let counted = matches!(life.kind, Kind::PhysicalMem | Kind::Event);
            if !(counted && tracker.lives(who, Handle { kind: life.kind, value: life.address })) {
                call.ends = None;
                self.died(&life, from, how);
                ended.push(life.id);
            }
        }
        for export in &call.frees {
            let gone = self.process(who).map(|process| process.lives.take_all(export.number())).unwrap_or_default();
            for life in gone {
                self.died(&life, now, how);
                ended.push(life.id);
            }
        }
        ended
    }
}

/// What a call has made.
struct Made {
    who: ProcessId,
    lane: LifetimeKind,
    handle: Handle,
    id: u64,
}

/// The call that makes objects of a kind, for asking the tracker about one.
fn maker(kind: Kind) -> Function {
    match kind {
        Kind::MemHandle => Function::urIPCGetMemHandleExp,
        Kind::PhysicalMemHandle => Function::urIPCGetPhysMemHandleExp,
        Kind::EventHandle => Function::urIPCGetEventHandleExp,
        Kind::PhysicalMem => Function::urIPCOpenPhysMemHandleExp,
        Kind::Event => Function::urIPCOpenEventHandleExp,
        _ => Function::urIPCOpenMemHandleExp,
    }
}

/// What a call that makes or ends something shared is about, once it is known.
fn subject(function: Function, values: &Values) -> Option<(LifetimeKind, Handle)> {
    let (Effect::Makes(kind) | Effect::Ends(kind) | Effect::Releases(kind)) = function.effect() else { return None };
    let (lane, value) = match kind {
        _ if kind.shares().is_some() => (LifetimeKind::Handle, values.data),
        Kind::Mapping => (LifetimeKind::Opening, values.pointer),
        Kind::PhysicalMem | Kind::Event => (LifetimeKind::Opening, values.object),
        _ => return None,
    };
    let value = value.filter(|value| *value != 0)?;
    Some((lane, Handle { kind, value }))
}

impl<S: EventSink> Observer for LifetimeTracker<S> {
    fn until(&mut self, _: &Tracker, at: u64) {
        self.now = at;
    }

    fn begin(&mut self, tracker: &Tracker, who: ProcessId, at: u64, header: &Header) {
        self.processes.push(Process::default());
        let host = tracker.process(who).map_or(0, |process| process.host);
        self.sink.process(&ProcessStart { process: who.0, at, host, header });
    }

    fn thread(&mut self, _: &Tracker, who: ProcessId, tid: u32, name: &str) {
        self.sink.thread(who.0, tid, name);
    }

    fn enter(&mut self, tracker: &Tracker, who: ProcessId, at: u64, enter: &Enter) {
        let (mut frees, mut of) = (Vec::new(), None);
        let effect = enter.function.effect();
        match effect {
            Effect::Ends(Kind::Usm) => tracker.about(who, enter.function, &enter.values, |id| frees.push(id)),
            Effect::Makes(_) if enter.values.fingerprint.is_some() => {
                // A thread that had to wait with its record is heard late: what was got meanwhile is not what it opens.
                let before = |got: &(u64, u64)| got.1 <= at;
                let got = |known: &Known| known.latest.filter(before).or(known.first.filter(before));
                tracker.about(who, enter.function, &enter.values, |id| of = self.exports.get(&id).and_then(got));
            }
            _ => {}
        }
        let Some(process) = self.process(who) else { return };
        let ends = subject(enter.function, &enter.values).filter(|_| !matches!(effect, Effect::Makes(_)));
        let ends = ends.and_then(|(lane, handle)| process.lives.take(lane, handle, at));
        let of = of.map(|(id, _)| id);
        process.under_way.insert(enter.call, Call { enter: *enter, from: at, frees, of, ends });
    }

    fn exit(&mut self, tracker: &Tracker, who: ProcessId, at: u64, exit: &Exit) {
        let Some(mut call) = self.process(who).and_then(|process| process.under_way.remove(&exit.call)) else { return };
        let function = call.enter.function;
        let well = exit.result.is_success();
        let made = subject(function, &exit.values).filter(|_| well && matches!(function.effect(), Effect::Makes(_)));
        // Physical memory and events are also made where they belong.
        let made = made.filter(|(lane, _)| *lane == LifetimeKind::Handle || function.is_ipc()).map(|(lane, handle)| {
            self.last += 1;
            Made { who, lane, handle, id: self.last }
        });
        let ended = if well { self.ended(tracker, who, &mut call, at) } else { Vec::new() };
        if let Some(life) = call.ends.take()
            && let Some(process) = self.process(who)
        {
            process.lives.put(life);
        }
        self.sink.call(&FinishedCall {
            process: who.0,
            tid: call.enter.tid,
            number: call.enter.call,
            function,
            from: call.from,
            to: Some(at),
            result: Some(exit.result),
            asked: &call.enter.values,
            answered: &exit.values,
            made: made.as_ref().map(|made| made.id),
            of: call.of.filter(|_| well),
            ended: &ended,
        });
        if let Some(made) = made {
            let life = self.life(tracker, &made, &call, at);
            self.born(who, life);
        }
    }

    fn descriptors(&mut self, _: &Tracker, who: ProcessId, at: u64, open: u64) {
        self.sink.descriptors(who.0, at, open);
    }

    fn end(&mut self, _: &Tracker, who: ProcessId, at: u64, ended: Ended) {
        let Some(process) = self.processes.get_mut(who.0 as usize) else { return };
        let mut open: Vec<_> = process.under_way.drain().map(|(_, call)| call).collect();
        open.sort_by_key(|call| call.enter.call);
        for Call { enter, from, ends, of, .. } in open {
            if let Some(life) = ends {
                process.lives.put(life);
            }
            self.sink.call(&FinishedCall {
                process: who.0,
                tid: enter.tid,
                number: enter.call,
                function: enter.function,
                from,
                to: None,
                result: None,
                asked: &enter.values,
                answered: &Values::NONE,
                made: None,
                of,
                ended: &[],
            });
        }
        if ended != Ended::Running {
            for life in process.lives.take_everything() {
                self.died(&life, at, EndReason::With(ended));
            }
        }
        self.sink.end(who.0, at, ended);
    }
}
