//! Merges the traces of all processes by time and feeds them to one tracker, the rules and an observer.

use std::collections::{BinaryHeap, HashMap};
use std::path::{Path, PathBuf};
use std::{cmp::Reverse, sync::Arc};

use urscope_rules::tracker::fact::{Fact, FactConsumer, FactKind};
use urscope_rules::tracker::{DeviceError, NotJudged};
use urscope_rules::{Checker, Process, ProcessId, Rights, Tracker};
use urscope_schema::{call::Nanos, packed::PackedCall, trace::records::Header};

use super::traced_process::{clock_of, rights};
use super::{TracedProcess, releases::Releases, spans::MergeSpans};
use crate::analysis::clock::{self, ClockAlignment};
use crate::analysis::reading::{
    Cursor, Event, Moment, Notes, ObservedTimes, Opened, Other, Prefetcher, buffer_size, stay_open,
};
use crate::analysis::{
    AnalysisError, Ended, Observer, Progress,
    findings::{Deduplicator, Repeated},
};

/// The state of an analysis: the processes, the tracker, and the findings.
#[derive(Clone, Default)]
pub(crate) struct Merger {
    pub(crate) processes: Vec<TracedProcess>,
    /// Files without a header.
    pub(crate) empty: Vec<PathBuf>,
    /// Files that are no traces and were found in a directory, with what they contain.
    pub(crate) foreign: Vec<(PathBuf, String)>,
    pub(crate) deduplicator: Deduplicator,
    pub(crate) tracker: Tracker,
    pub(crate) judged: Judged,
    /// The indices of the processes, by their numbers in the tracker.
    by_id: Vec<usize>,
    hosts: HashMap<(String, u64), u64>,
    /// The clock alignment of each host, by host number.
    alignments: Vec<ClockAlignment>,
    /// The time of the latest event, in nanoseconds since the run began.
    now: u64,
    /// How many exports no process has tried to open, by host number.
    pub(crate) unopened: Vec<u64>,
    /// By host: the pairs of commands that were not judged.
    pub(crate) not_judged: Vec<NotJudged>,
    /// The first call of each process that has reported the failure of a device.
    pub(crate) device_errors: Vec<DeviceError>,
    /// Those of the latest process: mostly all have the same.
    rights: Arc<Rights>,
    /// What was observed of the processes from outside.
    pub(crate) times: ObservedTimes,
}

/// What the facts of the tracker say.
#[derive(Clone, Default)]
pub(crate) struct Judged {
    checker: Checker,
    /// What was held for too long.
    pub(crate) releases: Releases,
}

impl Merger {
    /// Opens files, with a buffer of that size each, and returns the cursors of those that have a header. A file that
    /// is no trace is an error if it was `named`. `growing` is that of [`Cursor::open`].
    #[expect(clippy::vec_box, reason = "cursors are large and are moved between threads")]
    pub(crate) fn open<'f>(
        &mut self,
        files: impl Iterator<Item = &'f PathBuf>,
        named: &dyn Fn(&Path) -> bool,
        buffer: usize,
        stays_open: bool,
        growing: Option<Nanos>,
    ) -> Result<Vec<Box<Cursor>>, AnalysisError> {
        let mut cursors = Vec::new();
        for path in files {
            match Cursor::open(path, buffer, growing)? {
                Opened::Nothing => self.empty.push(path.clone()),
                Opened::Foreign(found) if named(path) => {
                    return Err(AnalysisError::NotATrace { path: path.clone(), found });
                }
                Opened::Foreign(found) => self.foreign.push((path.clone(), format!("it is not a trace ({found})"))),
                Opened::Trace(mut cursor) => {
                    if !stays_open {
                        cursor.release();
                    }
                    cursors.push(cursor);
                }
            }
        }
        Ok(cursors)
    }

    /// Adds a process for each header, in the order of the headers.
    pub(crate) fn add<'a>(&mut self, headers: impl Iterator<Item = &'a Arc<Header>>) {
        for header in headers {
            let host = self.host_key(header);
            self.processes.push(TracedProcess::new(header, host));
        }
        self.align();
        self.find_forks();
        self.find_execs();
    }

    /// Adds processes after events were fed. Returns false if this changes the clock alignment of a known host, or when
    /// a known process began.
    pub(crate) fn add_later<'a>(&mut self, headers: impl Iterator<Item = &'a Arc<Header>>) -> bool {
        let before = self.alignments.clone();
        let began: Vec<Nanos> = self.processes.iter().map(|process| process.began).collect();
        self.add(headers);
        self.alignments.starts_with(&before)
            && self.processes.iter().map(|process| process.began).take(began.len()).eq(began)
    }

    /// The sort key by which processes are numbered, as in the verdict over all nodes.
    pub(crate) fn order(&self, index: usize) -> Option<(u64, String, u64, u32)> {
        let process = self.processes.get(index)?;
        let (boot, time_namespace) = clock_of(&process.header);
        let began = self.alignment(process.host).at(process.began);
        Some((began, boot.to_owned(), time_namespace, process.header.pid))
    }

    /// The number of a process's host. Processes of one host share clocks and handles. The boot id identifies a host
    /// better than its name, which differs between containers that share a device.
    fn host_key(&mut self, header: &Header) -> u64 {
        let (boot, time_namespace) = clock_of(header);
        let next = self.hosts.len() as u64;
        *self.hosts.entry((boot.to_owned(), time_namespace)).or_insert(next)
    }

    /// Computes the clock alignment of all hosts.
    fn align(&mut self) {
        let mut began = vec![(Nanos(u64::MAX), u32::MAX, 0); self.hosts.len()];
        for process in &self.processes {
            let Header { pid, clock, .. } = &*process.header;
            let traced = Nanos(clock.monotonic_ns);
            if let Some(first) = began.get_mut(process.host as usize)
                && (traced, *pid) < (first.0, first.1)
            {
                *first = (traced, *pid, clock.realtime_ns);
            }
        }
        let first = clock::first(began.iter().map(|(.., real)| *real));
        let alignment = |(zero, _, real)| ClockAlignment { zero, shift: clock::shift(real, first) };
        self.alignments = began.into_iter().map(alignment).collect();
    }

    /// The clock alignment of a host.
    pub(crate) fn alignment(&self, host: u64) -> ClockAlignment {
        self.alignments.get(host as usize).copied().unwrap_or_default()
    }

    /// A time of a process, in nanoseconds since the run began.
    pub(crate) fn at(&self, who: ProcessId, time: Nanos) -> u64 {
        self.process(who).map(|process| self.alignment(process.host)).unwrap_or_default().at(time)
    }

    /// The process with a number in the tracker.
    pub(crate) fn process(&self, who: ProcessId) -> Option<&TracedProcess> {
        self.processes.get(*self.by_id.get(who.0 as usize)?)
    }

    /// Reads all files to their ends and feeds all events. A file that is no trace is an error if it was `named`.
    pub(crate) fn run(
        &mut self,
        files: Vec<PathBuf>,
        named: &dyn Fn(&Path) -> bool,
        progress: &Arc<Progress>,
        observer: &mut dyn Observer,
    ) -> Result<(), AnalysisError> {
        let opening = tracing::info_span!("opening", files = files.len()).entered();
        let buffer = buffer_size(files.len());
        let stays_open = stay_open(files.len());
        let cursors = self.open(files.iter(), named, buffer, stays_open, None)?;
        let mut cursors: Vec<_> = cursors.into_iter().map(Some).collect();
        drop(files);
        self.add(cursors.iter().flatten().map(|cursor| cursor.header()));
        let mut order: Vec<usize> = (0..cursors.len()).collect();
        order.sort_by_cached_key(|index| self.order(*index));
        let mut found: Vec<_> = std::mem::take(&mut self.processes).into_iter().map(Some).collect();
        self.processes.reserve_exact(order.len());
        self.processes.extend(order.iter().filter_map(|index| found.get_mut(*index)?.take()));
        drop(found);
        self.find_execs();
        let cursors: Vec<_> = order.iter().filter_map(|index| cursors.get_mut(*index)?.take()).collect();
        for (process, cursor) in self.processes.iter_mut().zip(&cursors) {
            process.stacks = cursor.stacks().clone();
        }
        let begin = |(process, cursor): (&TracedProcess, _)| (Other::Begin(process.began), cursor);
        let mut prefetcher = Prefetcher::start(self.processes.iter().zip(cursors).map(begin).collect(), progress);
        // The queue holds only keys. The events stay in the prefetcher.
        let alignments: Vec<_> = self.processes.iter().map(|process| self.alignment(process.host)).collect();
        let key =
            |index: usize, (time, rank): Moment| (alignments.get(index).copied().unwrap_or_default().at(time), rank);
        let mut queue = BinaryHeap::with_capacity(self.processes.len());
        for (index, process) in self.processes.iter().enumerate() {
            queue.push(Reverse((key(index, Other::Begin(process.began).order(Nanos(0))), index)));
        }
        self.by_id.reserve_exact(self.processes.len());
        drop(opening);
        let mut spans = MergeSpans::start();
        while let Some(Reverse((mut first, index))) = queue.pop() {
            let second = queue.peek().map(|Reverse(second)| *second);
            // The events of one process, as long as they come before those of all others.
            while let Some((behind, event)) = prefetcher.event(index) {
                if let Event::Other(Other::End(_)) = event
                    && let Some(notes) = prefetcher.notes(index)
                {
                    self.ends(index, Arc::clone(notes));
                    if first.0 < u64::MAX && self.runs_on(index) {
                        // The process has not ended: all events of the other processes come first.
                        queue.push(Reverse(((u64::MAX, 1), index)));
                        break;
                    }
                }
                spans.checking(|| self.feed(index, first.0, &event, observer));
                if let Event::Other(Other::Begin(_)) = event {
                    prefetcher.began(index);
                }
                let Some(moment) = prefetcher.step(index, behind)? else { break };
                first = key(index, moment);
                if second.is_some_and(|second| (first, index) > second) {
                    queue.push(Reverse((first, index)));
                    break;
                }
            }
        }
        self.finish();
        Ok(())
    }

    /// Ends the analysis: all events were fed. From here on nobody asks the tracker, and its memory is free for the
    /// report.
    pub(crate) fn finish(&mut self) {
        self.tracker.finish(&mut self.judged.checker);
        let failed = self.processes.iter().filter_map(|process| self.tracker.device_error(process.id?).cloned());
        self.device_errors = failed.collect();
        self.not_judged = (0..self.hosts.len() as u64)
            .map(|host| self.tracker.not_judged(host).cloned().unwrap_or_default())
            .collect();
        self.unopened = (0..self.hosts.len() as u64).map(|host| self.tracker.unopened(host)).collect();
        self.deduplicator.add(&mut self.judged.checker.take());
        let is_of_two_commands = |found: &&mut Repeated| found.first.rule.facts.contains(&FactKind::Unordered);
        for found in self.deduplicator.findings.iter_mut().filter(is_of_two_commands) {
            let sides = [Some(found.first.at), found.first.other];
            found.known = sides.map(|side| self.tracker.known_to_be_over(side?));
        }
        (self.tracker, self.judged.checker) = (Tracker::default(), Checker::default());
    }

    /// Sets the notes of a process whose trace was read to its end.
    pub(crate) fn ends(&mut self, index: usize, notes: Arc<Notes>) {
        if let Some(process) = self.processes.get_mut(index) {
            process.notes = notes;
        }
    }

    /// Whether a process whose trace was read to its end still runs.
    pub(crate) fn runs_on(&self, index: usize) -> bool {
        self.processes.get(index).is_some_and(|process| process.how_it_ended().0 == Ended::Running)
    }

    /// Lets forked processes begin with their forks, so that each inherits what its parent had then. A fork from before
    /// the parent's trace inherits nothing, so there the process begins with its own trace.
    fn find_forks(&mut self) {
        let of = |process: &TracedProcess| process.header.forked_ns.zip(process.header.fork_returned_ns);
        let mut forks: Vec<(u64, u64, usize)> = (self.processes.iter().enumerate())
            .filter_map(|(index, process)| of(process).map(|(at, returned)| (at, returned, index)))
            .collect();
        // A process has been forked before it forks.
        forks.sort_unstable();
        let mut of_pid: HashMap<_, Vec<usize>> = HashMap::new();
        for (index, process) in self.processes.iter().enumerate() {
            of_pid.entry((process.host, process.header.pid)).or_default().push(index);
        }
        for (at, returned, index) in forks {
            let Some(child) = self.processes.get(index) else { continue };
            let of_parent = of_pid.get(&(child.host, child.header.parent));
            let mut candidates = of_parent.into_iter().flatten().filter_map(|index| self.processes.get(*index));
            let is_known =
                candidates.any(|other| other.began.0 <= at && other.may_have_forked(&child.header, child.host));
            if let Some(child) = self.processes.get_mut(index).filter(|_| is_known) {
                child.began = child.began.min(Nanos(returned.max(at)));
            }
        }
    }

    /// Marks the processes that became another program by `exec`.
    pub(crate) fn find_execs(&mut self) {
        let mut latest = HashMap::new();
        for index in (0..self.processes.len()).rev() {
            if let Some(process) = self.processes.get_mut(index) {
                let header = &process.header;
                process.execs = latest.insert((process.host, header.pid, header.start), process.began);
            }
        }
    }

    /// Feeds one event. `now` is its time in nanoseconds since the run began, or `u64::MAX` for the end of a running
    /// process.
    #[inline]
    pub(crate) fn feed(&mut self, index: usize, now: u64, event: &Event<'_>, observer: &mut dyn Observer) {
        self.until(now, observer);
        match event {
            Event::Call(call) => self.feed_call(index, call, observer),
            Event::Other(other) => self.feed_other(index, other, observer),
        }
    }

    /// Feeds a call that begins or returns. A call inside of another one is shown to the observer only: the other call
    /// says the same to the tracker and the rules.
    #[inline]
    fn feed_call(&mut self, index: usize, call: &PackedCall<'_>, observer: &mut dyn Observer) {
        let Some((id, alignment)) = self.begun(index) else { return };
        let at = alignment.at(call.time());
        match (call.is_inner(), call.enters()) {
            (true, true) => return observer.inner_enter(&self.tracker, id, at, &call.enter()),
            (true, false) => return observer.inner_exit(&self.tracker, id, at, &call.exit()),
            (false, true) => {
                if observer.observes() {
                    observer.enter(&self.tracker, id, at, &call.enter());
                }
                self.tracker.enter(id, &call.begun(), &mut Facts::new(&mut self.judged, observer, at));
            }
            (false, false) => {
                self.tracker.exit(id, &call.returned(), &mut Facts::new(&mut self.judged, observer, at));
                if observer.observes() {
                    observer.exit(&self.tracker, id, at, &call.exit());
                }
            }
        }
        self.take_findings();
    }

    /// Tells the observer that an event is about to be fed.
    fn until(&mut self, now: u64, observer: &mut dyn Observer) {
        if now != u64::MAX {
            self.now = now;
        }
        observer.until(&self.tracker, self.now);
    }

    /// A process whose beginning was fed: its number in the tracker, and the clock of its host.
    fn begun(&self, index: usize) -> Option<(ProcessId, ClockAlignment)> {
        let process = self.processes.get(index)?;
        Some((process.id?, self.alignment(process.host)))
    }

    fn take_findings(&mut self) {
        if !self.judged.checker.is_silent() {
            self.deduplicator.add(&mut self.judged.checker.take());
        }
    }

    /// Feeds an event that is not a call.
    fn feed_other(&mut self, index: usize, event: &Other, observer: &mut dyn Observer) {
        let parent = self.parent_of(index);
        let host = self.processes.get(index).map_or(0, |process| process.host);
        let alignment = self.alignment(host);
        let Some(process) = self.processes.get_mut(index) else { return };
        match (event, process.id) {
            (Other::Begin(_), _) => {
                let header = &process.header;
                let rights = rights(header);
                if *self.rights != rights {
                    self.rights = Arc::new(rights);
                }
                let id = self.tracker.begin(Process {
                    pid: header.pid,
                    start: header.start,
                    host: process.host,
                    executable: header.executable.as_str().into(),
                    rank: header.rank,
                    parent: Some(header.parent),
                    // What a process has that urscope came into later is unknown, as what a child has of an untraced
                    // parent.
                    forked_from: parent.or(header.late.then_some(ProcessId::UNKNOWN)),
                    started: header.started(),
                    rights: Arc::clone(&self.rights),
                });
                process.id = Some(id);
                observer.begin(&self.tracker, id, alignment.at(process.began), header);
                observer.stacks(id, &process.stacks);
                self.by_id.push(index);
            }
            (Other::Thread(tid, name), Some(id)) => observer.thread(&self.tracker, id, *tid, name),
            (Other::Adapter(library), Some(id)) => self.tracker.adapter(id, library),
            (Other::Device((handle, native), index, name), Some(id)) => {
                self.tracker.device(id, *handle, *native, *index, name);
            }
            (Other::Descriptors(open, at), Some(id)) => {
                let time = *at;
                let at = alignment.at(*at);
                self.tracker.descriptors(id, *open, time, &mut Facts::new(&mut self.judged, observer, at));
                observer.descriptors(&self.tracker, id, at, *open);
            }
            (Other::Executed(executed), Some(id)) => {
                let mut facts = Facts::new(&mut self.judged, observer, alignment.at(executed.end));
                self.tracker.executed(id, executed, &mut facts);
            }
            (Other::Synchronization(by), Some(id)) => {
                let mut facts = Facts::new(&mut self.judged, observer, alignment.at(by.time));
                self.tracker.synchronization(id, by, &mut facts);
            }
            (Other::Lost(at), Some(id)) => self.tracker.records_lost(id, *at),
            (Other::End(at), Some(id)) => {
                process.inside = self.tracker.inside(id);
                let (ended, how) = process.how_it_ended();
                process.ended = ended;
                let time = *at;
                let at = alignment.at(*at);
                observer.end(&self.tracker, id, at, ended);
                self.tracker.missing(id, process.lost(), process.notes.skipped_lines);
                let observed = self.times.get(&process.header);
                // A program that became another one did not end by a signal.
                let is_last = process.execs.or(process.notes.exec).is_none();
                process.signal = observed.filter(|_| is_last).and_then(|times| times.signal);
                let observed = observed.map(|times| (Nanos(times.alive_ns), Nanos(times.gone_ns)));
                let observed = match (process.execs, process.notes.exec) {
                    // What was observed is the whole process, with the programs that it became.
                    (Some(next), _) => Some((time, next)),
                    (None, Some(exec)) => Some((exec, observed.map_or(Nanos(u64::MAX), |(_, gone)| gone))),
                    (None, None) => observed,
                };
                if let Some((alive, gone)) = observed {
                    self.tracker.observed(id, alive, gone);
                }
                process.notes.kept.iter().for_each(|descriptor| self.tracker.keeps(id, *descriptor));
                self.tracker.end(id, how, time, &mut Facts::new(&mut self.judged, observer, at));
            }
            (_, None) => {}
        }
        self.take_findings();
    }

    /// The process that a forked process was copied from: the latest one with its parent's pid and the same program.
    /// [`ProcessId::UNKNOWN`] if that process has no trace; `None` if the process was not forked, or from one that had
    /// not made any call.
    fn parent_of(&self, index: usize) -> Option<ProcessId> {
        let process = self.processes.get(index).filter(|process| process.id.is_none() && process.header.forked)?;
        let header = &process.header;
        let mut begun = self.by_id.iter().rev().filter_map(|index| self.processes.get(*index));
        let parent = begun.find(|other| other.may_have_forked(header, process.host)).and_then(|parent| parent.id);
        // Its trace begins with its first call.
        let is_later = |other: &&TracedProcess| {
            other.id.is_none() && other.may_have_forked(header, process.host) && other.is_older_than(header)
        };
        parent.or_else(|| self.processes.iter().find(is_later).is_none().then_some(ProcessId::UNKNOWN))
    }
}

/// Passes each fact to the rules and to the observer.
struct Facts<'m> {
    judged: &'m mut Judged,
    observer: &'m mut dyn Observer,
    /// Whether the observer takes facts, also those that no rule wants.
    observed: bool,
    /// The time of the facts, in nanoseconds since the run began.
    at: u64,
}

impl<'m> Facts<'m> {
    #[inline]
    fn new(judged: &'m mut Judged, observer: &'m mut dyn Observer, at: u64) -> Self {
        let observed = observer.observes();
        Self { judged, observer, observed, at }
    }
}

impl FactConsumer for Facts<'_> {
    #[inline]
    fn consume(&mut self, fact: &Fact<'_>) {
        self.judged.checker.consume(fact);
        self.judged.releases.consume(fact);
        if self.observed {
            self.observer.fact(self.at, fact);
        }
    }

    #[inline]
    fn wants(&self, kind: FactKind) -> bool {
        self.judged.checker.wants(kind) || self.observed
    }
}
