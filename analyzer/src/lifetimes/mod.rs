//! Lifetimes: converts the records and facts of a run to processes, calls and lifetimes.
//!
//! [`LifetimeTracker`] observes an analysis and passes what happens to an [`EventSink`], with times of all hosts since
//! the run began. Timelines, tables and statistics are sinks; none of them reads records. Only the facts of
//! [`urscope_rules::Tracker`] begin and end lifetimes; this module only assigns them to their calls.

mod counts;
mod open;
mod process_index;
mod sink;

use std::collections::HashSet;

use foldhash::{HashMap, HashMapExt as _};
use urscope_rules::tracker::fact::{Exported, Exporting, Fact, Freed, Opened, Opening, Source, What};
use urscope_rules::{ExportId, ProcessId, Tracker, tracker::records::Serial};
use urscope_schema::api::Promise;
use urscope_schema::call::{Enter, Exit, Values};
use urscope_schema::handle::{Handle, Kind};
use urscope_schema::trace::records::Header;

pub use counts::{Counts, LiveCounts, PinnedBytes};
use open::OpenLifetimes;
pub use process_index::ProcessIndex;
pub use sink::{Allocated, Arrow, EndReason, EventSink, FinishedCall, Lifetime, LifetimeKind, ProcessStart};

use crate::analysis::{Ended, Observer, Stacks};

/// Passes the processes, calls and lifetimes of an analysis to a sink.
#[derive(Clone, Debug)]
pub struct LifetimeTracker<S> {
    sink: S,
    processes: Vec<Process>,
    /// The state of each export, as long as the tracker keeps it.
    exports: HashMap<ExportId, Known>,
    /// The number of exports at which those that the tracker has dropped are removed.
    purge_at: usize,
    last: u64,
    /// The time of the analysis, which never decreases. Records of a delayed thread can be older.
    now: u64,
}

/// A process of the run.
#[derive(Clone, Debug, Default)]
struct Process {
    open: OpenLifetimes,
    counts: LiveCounts,
    pending: HashMap<u64, Call>,
    /// The calls inside of others that have begun, with their times, each behind those that it is inside of on its
    /// thread.
    inner: Vec<(Enter, u64)>,
}

/// The state of an export.
#[derive(Clone, Debug, Default)]
struct Known {
    /// The lifetimes of the first and of the latest handle data, and when each began.
    first: Option<(u64, u64)>,
    latest: Option<(u64, u64)>,
    /// The processes that opened it.
    opened_by: HashSet<u32>,
}

/// A call that has begun.
#[derive(Clone, Debug)]
struct Call {
    enter: Enter,
    from: u64,
    /// The lifetime of the handle data that it opens.
    of: Option<u64>,
    /// The lifetime that it has begun, with the tracker's number of the object and that of the memory that it exports.
    made: Option<(Lifetime, Serial, Option<Serial>)>,
    /// The allocation that it gets handle data of.
    allocated: Option<Allocated>,
    /// The lifetimes that it has ended, and the fingerprint of the first that has one.
    ended: Vec<u64>,
    fingerprint: Option<u64>,
}

impl<S: EventSink> LifetimeTracker<S> {
    /// A tracker for one analysis, which passes everything to `sink`.
    pub fn new(sink: S) -> Self {
        Self { sink, processes: Vec::new(), exports: HashMap::new(), purge_at: 1 << 12, last: 0, now: 0 }
    }

    /// The sink, after the analysis.
    pub fn into_sink(self) -> S {
        self.sink
    }

    fn process(&mut self, who: ProcessId) -> Option<&mut Process> {
        self.processes.get_mut(who.0 as usize)
    }

    /// The call that a fact belongs to.
    fn call(&mut self, fact: &Fact<'_>) -> Option<&mut Call> {
        self.process(fact.at.process)?.pending.get_mut(&fact.at.call?.get())
    }

    /// An open begins. It opens the latest handle data that was got before it, and shows the fingerprint of that: its
    /// own may be that of the descriptor that raw handle data names.
    fn opening(&mut self, fact: &Fact<'_>, opening: &Opening<'_>) {
        let shared = opening.export.and_then(|id| fact.tracker.export(id));
        if let Some((shared, call)) = shared.zip(self.call(fact)) {
            call.enter.values.fingerprint = Some(shared.fingerprint);
        }
        let Some(known) = opening.export.and_then(|id| self.exports.get(&id)) else { return };
        let first = known.first;
        let latest = known.latest;
        let Some(call) = self.call(fact) else { return };
        // The record of a delayed thread arrives late. It cannot have opened handle data that was got after the call
        // began.
        let before = |got: &(u64, u64)| got.1 <= call.from;
        call.of = latest.filter(before).or(first.filter(before)).map(|(id, _)| id);
    }

    /// A get begins. The tracker knows the allocation now, and perhaps no more when the get returns.
    fn exporting(&mut self, fact: &Fact<'_>, exporting: &Exporting<'_>, at: u64) {
        let Source::Allocation(_, memory) = exporting.source else { return };
        let Some(born) = memory.born else { return };
        let before = fact.at.time.0.saturating_sub(born.time.0);
        let allocated = Allocated { memory: memory.serial, at: at.saturating_sub(before) };
        if let Some(call) = self.call(fact) {
            call.allocated = Some(allocated);
        }
    }

    fn exported(&mut self, fact: &Fact<'_>, exported: &Exported<'_>, at: u64) {
        let id = self.next();
        if let Some(known) = self.known(fact.tracker, exported.data.export) {
            known.first.get_or_insert((id, at));
            known.latest = Some((id, at));
        }
        let life = self.lifetime(fact, id, exported.handle, exported.data.export, at);
        if let Some(replaced) = exported.replaced {
            let replaced = self.process(fact.at.process).and_then(|process| process.open.take(replaced));
            if let Some(life) = replaced {
                self.died(&life, at, EndReason::Replaced);
            }
        }
        let made = life.map(|life| (life, exported.data.serial, exported.data.exported));
        if let Some(call) = self.call(fact) {
            call.made = made;
        }
    }

    fn opened(&mut self, fact: &Fact<'_>, opened: &Opened, at: u64) {
        let id = self.next();
        let who = fact.at.process.0;
        let first = self.known(fact.tracker, opened.export).is_some_and(|known| known.opened_by.insert(who));
        let life = self.lifetime(fact, id, opened.handle, opened.export, at);
        if let Some(call) = self.call(fact) {
            let of = call.of;
            call.made = life.map(|life| (Lifetime { of, first, ..life }, opened.serial, None));
        }
    }

    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// The state of an export. Removes those that the tracker has dropped from time to time.
    fn known(&mut self, tracker: &Tracker, export: Option<ExportId>) -> Option<&mut Known> {
        let export = export.filter(|id| tracker.export(*id).is_some())?;
        if self.exports.len() >= self.purge_at {
            self.exports.retain(|export, _| tracker.export(*export).is_some());
            self.purge_at = (self.exports.len() * 2).max(1 << 12);
        }
        Some(self.exports.entry(export).or_default())
    }

    /// The lifetime of what a call has created; `None` if the call's enter record is missing.
    fn lifetime(
        &mut self,
        fact: &Fact<'_>,
        id: u64,
        handle: Handle,
        export: Option<ExportId>,
        at: u64,
    ) -> Option<Lifetime> {
        let Call { enter, allocated, .. } = *self.call(fact)?;
        let known = export.and_then(|export| Some((export, fact.tracker.export(export)?)));
        let shared = known.as_ref().map(|(_, shared)| shared);
        Some(Lifetime {
            id,
            process: fact.at.process.0,
            tid: enter.tid,
            lane: if handle.kind.shares().is_some() { LifetimeKind::Handle } else { LifetimeKind::Opening },
            kind: handle.kind,
            address: handle.value,
            bytes: shared.and_then(|shared| shared.size),
            fingerprint: shared.map(|shared| shared.fingerprint),
            export: known.as_ref().map(|(export, _)| export.number()),
            producer: shared.map(|shared| shared.producer.0),
            of: None,
            first: false,
            at,
            call: enter.call,
            stack: enter.values.stack,
            allocated,
        })
    }

    fn born(&mut self, who: ProcessId, life: Lifetime, serial: Serial, of: Option<Serial>) {
        let Some(process) = self.processes.get_mut(who.0 as usize) else { return };
        process.open.put(life, serial, of);
        process.counts.born(&life);
        self.sink.birth(&life);
        self.sink.counts(who.0, self.now, process.counts.counts());
    }

    /// A lifetime ends at `at`.
    fn died(&mut self, life: &Lifetime, at: u64, how: EndReason) {
        let Some(process) = self.processes.get_mut(life.process as usize) else { return };
        process.counts.died(life);
        self.sink.death(life, at, how);
        self.sink.counts(life.process, self.now, process.counts.counts());
    }

    /// A call has ended a lifetime, at its beginning or at its return.
    fn end(&mut self, fact: &Fact<'_>, serial: Serial) {
        let gone = self.process(fact.at.process).and_then(|process| process.open.take(serial));
        let from = self.call(fact).map(|call| call.from);
        if let (Some(life), Some(from)) = (gone, from) {
            self.end_by_call(fact, &life, from);
        }
    }

    /// Memory was freed, or the last reference of an object was released. Where nothing need be put, this ends all
    /// handle data of it.
    fn freed(&mut self, fact: &Fact<'_>, freed: &Freed, at: u64) {
        if freed.what.kind == Kind::Usm {
            self.sink.freed(fact.at.process.0, freed.serial, at);
        } else {
            self.end(fact, freed.serial);
        }
        if !fact.at.promises(Promise::PutIsOptional) {
            return;
        }
        let gone = self.process(fact.at.process).map(|process| process.open.take_of(freed.serial));
        for life in gone.unwrap_or_default() {
            self.end_by_call(fact, &life, at);
        }
    }

    fn end_by_call(&mut self, fact: &Fact<'_>, life: &Lifetime, at: u64) {
        if let Some((function, call)) = fact.at.function.zip(fact.at.call) {
            self.died(life, at, EndReason::By(function, call.get()));
        }
        if let Some(call) = self.call(fact) {
            call.ended.push(life.id);
            call.fingerprint = call.fingerprint.or(life.fingerprint);
        }
    }
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

    fn stacks(&mut self, who: ProcessId, stacks: &Stacks) {
        self.sink.stacks(who.0, stacks);
    }

    fn thread(&mut self, _: &Tracker, who: ProcessId, tid: u32, name: &str) {
        self.sink.thread(who.0, tid, name);
    }

    fn enter(&mut self, _: &Tracker, who: ProcessId, at: u64, enter: &Enter) {
        let Some(process) = self.process(who) else { return };
        let call = Call {
            enter: *enter,
            from: at,
            of: None,
            made: None,
            allocated: None,
            ended: Vec::new(),
            fingerprint: None,
        };
        process.pending.insert(enter.call, call);
    }

    fn fact(&mut self, at: u64, fact: &Fact<'_>) {
        match &fact.what {
            What::Exporting(exporting) => self.exporting(fact, exporting, at),
            What::Opening(opening) => self.opening(fact, opening),
            What::Exported(exported) => self.exported(fact, exported, at),
            What::Opened(opened) => self.opened(fact, opened, at),
            What::Put(put) => self.end(fact, put.serial),
            What::Closed(ended) => self.end(fact, ended.serial),
            What::Freed(freed) => self.freed(fact, freed, at),
            What::Executed(executed, _) => self.sink.executed(fact.at.process.0, at, executed),
            // The end of a process ends all of its lifetimes, in `Observer::end`.
            _ => {}
        }
    }

    fn exit(&mut self, _: &Tracker, who: ProcessId, at: u64, exit: &Exit) {
        let Some(call) = self.process(who).and_then(|process| process.pending.remove(&exit.call)) else { return };
        self.sink.call(&FinishedCall {
            made: call.made.as_ref().map(|(life, ..)| life.id),
            of: call.of.filter(|_| exit.result.is_success()),
            ended: &call.ended,
            fingerprint: exit.values.fingerprint.or(call.enter.values.fingerprint).or(call.fingerprint),
            ..finished(who, &call.enter, call.from, Some((at, exit)))
        });
        if let Some((life, serial, of)) = call.made {
            self.born(who, life, serial, of);
        }
    }

    fn inner_enter(&mut self, _: &Tracker, who: ProcessId, at: u64, enter: &Enter) {
        if let Some(process) = self.process(who) {
            process.inner.push((*enter, at));
        }
    }

    fn inner_exit(&mut self, _: &Tracker, who: ProcessId, at: u64, exit: &Exit) {
        let Some(process) = self.process(who) else { return };
        // The return of one that was left by an exception is missing.
        let is_it =
            |(enter, _): &(Enter, u64)| (enter.tid, enter.call, enter.function) == (exit.tid, exit.call, exit.function);
        let Some(place) = process.inner.iter().rposition(is_it) else { return };
        let (enter, from) = process.inner.remove(place);
        self.sink.inner(&finished(who, &enter, from, Some((at, exit))));
    }

    fn descriptors(&mut self, _: &Tracker, who: ProcessId, at: u64, open: u64) {
        self.sink.descriptors(who.0, at, open);
    }

    fn end(&mut self, _: &Tracker, who: ProcessId, at: u64, ended: Ended) {
        let Some(process) = self.processes.get_mut(who.0 as usize) else { return };
        for (enter, from) in std::mem::take(&mut process.inner) {
            self.sink.inner(&finished(who, &enter, from, None));
        }
        let mut pending: Vec<_> = process.pending.drain().map(|(_, call)| call).collect();
        pending.sort_by_key(|call| call.enter.call);
        for Call { enter, from, of, .. } in pending {
            self.sink.call(&FinishedCall { of, ..finished(who, &enter, from, None) });
        }
        if ended != Ended::Running {
            for life in process.open.take_everything() {
                self.died(&life, at, EndReason::With(ended));
            }
        }
        self.sink.end(who.0, at, ended);
    }
}

/// A call that neither begins nor ends lifetimes, with its return if it has returned.
fn finished<'a>(who: ProcessId, enter: &'a Enter, from: u64, returned: Option<(u64, &'a Exit)>) -> FinishedCall<'a> {
    FinishedCall {
        process: who.0,
        tid: enter.tid,
        number: enter.call,
        function: enter.function,
        from,
        to: returned.map(|(at, _)| at),
        result: returned.map(|(_, exit)| exit.result),
        asked: &enter.values,
        answered: returned.map_or(&Values::NONE, |(_, exit)| &exit.values),
        made: None,
        of: None,
        ended: &[],
        fingerprint: returned.and_then(|(_, exit)| exit.values.fingerprint).or(enter.values.fingerprint),
    }
}
