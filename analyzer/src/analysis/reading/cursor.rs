//! One trace file, read record by record.
//!
//! The cursor finds the header first, collects notes about the process, and returns its events with times that never
//! decrease: the order of the lines in a file is the order of the events.

use std::{collections::BTreeMap, io, path::Path, sync::Arc};

use urscope_schema::call::{Executed, Fields as _, Nanos, SyncKind};
use urscope_schema::packed::{PackedCall, pack};
use urscope_schema::trace::records::{EntryPoint, Footer, Header};
use urscope_schema::trace::{Record, Skipped, Why};
use urscope_schema::{api::Function, operation::Operation, trace::FORMAT_VERSION};

use super::event::{Event, Events, Moment, Other, label, rank_of};
use super::input::{Input, Kind};
use super::{callers::Callers, numbers::Numbers, source::Source, stack_index::Stacks};
use crate::analysis::{AnalysisError, SkippedLine};

/// The number of unusable lines of a file that are listed; others are only counted.
const SKIPS_LISTED: usize = 20;

/// The number of entry points of a process that are kept.
const ENTRY_POINTS_KEPT: usize = 64;

/// The size of the buffer that reads a header, in bytes.
const HEADER_BUFFER: usize = 1 << 14;

/// The number of foreign lines that are read in search of a header.
const FOREIGN_LINES: usize = 1000;

/// The header of the trace at a path; `None` if there is no trace with a header.
pub fn header_of(path: &Path) -> Option<Header> {
    match Cursor::open(path, HEADER_BUFFER, None) {
        Ok(Opened::Trace(cursor)) => Some(Arc::unwrap_or_clone(cursor.header)),
        _ => None,
    }
}

/// An opened file.
pub(crate) enum Opened {
    /// A trace with a header.
    Trace(Box<Cursor>),
    /// The file of a process that was stopped before it had written its header.
    Nothing,
    /// No trace, but a file of another program; with what it contains.
    Foreign(String),
}

/// A trace that is being read.
pub(crate) struct Cursor {
    header: Arc<Header>,
    pub(crate) notes: Notes,
    input: Input,
    numbers: Numbers,
    /// The time of the latest event.
    now: Nanos,
    /// What was read at the opening: the first event, with the names that precede it.
    ahead: Events,
    /// Names of threads, adapters and devices, which are returned before the next event: they are named before their
    /// first call, and names have no time.
    names: Vec<Other>,
    over: bool,
    /// Whether an event has been read.
    begun: bool,
    /// The first call began before the time of the header, which was used as the beginning of the process.
    misdated: bool,
}

/// What the footer of a trace says about the end of its process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closing {
    /// When it ended.
    pub(crate) at: Nanos,
    /// The number of call records that could not be written.
    pub(crate) lost: u64,
    /// The validation layer aborted it.
    pub(crate) aborted: bool,
}

/// What a trace says about its process besides the calls, as far as it has been read.
#[derive(Clone, Default)]
pub(crate) struct Notes {
    pub(crate) entry_points: Vec<EntryPoint>,
    pub(crate) closing: Option<Closing>,
    /// The exported descriptors that it still had when it ended.
    pub(crate) kept: Vec<u32>,
    /// The number of records that were lost before the latest gap.
    pub(crate) lost: u64,
    /// When it was about to become another program, unless that has failed.
    pub(crate) exec: Option<Nanos>,
    /// When not all commands were recorded any more.
    pub(crate) limit: Option<Nanos>,
    pub(crate) skipped: Vec<SkippedLine>,
    pub(crate) skipped_lines: u64,
    pub(crate) torn: bool,
    /// Whether the file has its closing bracket or its footer, which only a normal exit writes.
    pub(crate) closed: bool,
    /// How often it has called each function.
    pub(crate) calls: BTreeMap<Function, u64>,
    /// How many of the calls share something.
    pub(crate) ipc_calls: u64,
    /// How often each has enqueued commands whose accesses are not known.
    pub(crate) unexamined: BTreeMap<Function, u64>,
    /// From which call stacks.
    pub(crate) callers: Callers,
    pub(crate) stacks: Stacks,
}

impl From<&Footer> for Closing {
    fn from(footer: &Footer) -> Self {
        Self { at: Nanos(footer.clock.monotonic_ns), lost: footer.lost, aborted: footer.how == "abort" }
    }
}

impl Notes {
    /// Counts a call, where `now` is the time of the latest event.
    #[inline]
    fn count(&mut self, call: &PackedCall<'_>, now: &mut Nanos) {
        *now = (*now).max(call.time());
        if call.enters() && !call.is_inner() {
            *self.calls.entry(call.function()).or_default() += 1;
            self.callers.note(call.function(), call.stack());
            let function = call.function();
            // Some functions import memory, or allocate it, as their arguments say.
            if function.is_ipc() || function.may_import() && call.begun().is_ipc() {
                self.ipc_calls += 1;
            }
            if function.effect().submits()
                || function.effect().launches() && call.begun().operation == Operation::Submit
            {
                *self.unexamined.entry(function).or_default() += 1;
            }
        }
    }

    /// Frees the memory that is not needed for what was read. A run may have very many processes.
    fn shrink(&mut self) {
        self.entry_points.shrink_to_fit();
        self.kept.shrink_to_fit();
        self.skipped.shrink_to_fit();
        self.stacks.shrink();
        self.callers.shrink();
    }
}

impl Cursor {
    /// Opens a file and reads up to its header. `buffer` is the size of its buffer in bytes. A file that is still being
    /// written has a time `growing`, before which all records have arrived: it is read up to that time, or up to its
    /// last complete line. [`Self::grow`] moves this limit.
    pub(crate) fn open(path: &Path, buffer: usize, growing: Option<Nanos>) -> Result<Opened, AnalysisError> {
        let unreadable = |source| AnalysisError::Unreadable { path: path.to_owned(), source };
        let not_a_trace = |found: String| AnalysisError::NotATrace { path: path.to_owned(), found };
        let source = Source::open(path).map_err(unreadable)?;
        let mut input = match Input::open(source, buffer, growing).map_err(unreadable)? {
            Kind::Trace(input) => input,
            // What a file system leaves of a file that it lost a part of. It may have been a trace.
            Kind::Lost => return Err(not_a_trace("its beginning is lost, and is zeros now".into())),
            Kind::NotATrace(_) if path.file_name().is_some_and(|name| name == "merged.json") => {
                let found =
                    "it is the timeline of a run, for https://ui.perfetto.dev; give the directory that it is in";
                return Ok(Opened::Foreign(found.into()));
            }
            Kind::NotATrace(found) => return Ok(Opened::Foreign(found.into())),
        };
        let mut foreign = 0;
        while let Some(item) = input.next() {
            let found = match item.map_err(unreadable)?.1 {
                Ok(Record::Header(header)) => return Self::with(*header, input).map(Opened::Trace),
                Ok(Record::ProcessName(_) | Record::ThreadName(..) | Record::Note(..) | Record::Finding(..))
                | Err(Skipped { why: Why::Torn, line: 2.., .. }) => continue,
                Ok(Record::Enter(enter) | Record::InnerEnter(enter)) => format!("a call of {}", enter.function.name()),
                Ok(Record::Exit(exit) | Record::InnerExit(exit)) => {
                    format!("the return of {}", exit.function.name())
                }
                Ok(Record::Descriptors(..)) => "a descriptor count".into(),
                Ok(Record::Executed(_)) => "the execution of a command".into(),
                Ok(Record::Synchronization(_)) => "an order of commands".into(),
                Ok(Record::EntryPoint(_)) => "an entry point".into(),
                Ok(Record::Device(_)) => "a device".into(),
                Ok(Record::Module(_) | Record::Stack(_)) => "a call stack".into(),
                Ok(Record::Footer(_)) => "the footer".into(),
                Ok(Record::Gap(_)) => "a gap".into(),
                Ok(Record::Exec(_)) => "an exec".into(),
                Ok(Record::Foreign) | Err(_) => {
                    foreign += 1;
                    if foreign < FOREIGN_LINES {
                        continue;
                    }
                    break;
                }
            };
            return Err(AnalysisError::NoHeader { path: path.to_owned(), found });
        }
        match foreign {
            // An incomplete header may be completed later. A foreign file is an error now.
            0 if input.has_part_of_a_line() => Self::open(path, buffer, None).map(|opened| match opened {
                Opened::Foreign(found) => Opened::Foreign(found),
                _ => Opened::Nothing,
            }),
            0 => Ok(Opened::Nothing),
            _ => Ok(Opened::Foreign("none of its lines is a urscope record".into())),
        }
    }

    fn with(header: Header, mut input: Input) -> Result<Box<Self>, AnalysisError> {
        let path = input.source().path().to_owned();
        if header.format == 0 {
            return Err(AnalysisError::NotATrace { path, found: "its header has no format number".into() });
        }
        if header.format > FORMAT_VERSION {
            let Header { format, urscope: writer, .. } = header;
            return Err(AnalysisError::Newer { path, format, writer, ours: FORMAT_VERSION });
        }
        let identity = input.source().identity();
        let stacks = Stacks::new(&path, identity, input.strings());
        let notes = Notes { stacks, ..Notes::default() };
        let mut cursor = Self {
            header: Arc::new(header),
            notes,
            input,
            numbers: Numbers::default(),
            now: Nanos(0),
            ahead: Events::default(),
            names: Vec::new(),
            over: false,
            begun: false,
            misdated: false,
        };
        let mut ahead = Events::default();
        cursor.read(&mut ahead)?;
        ahead.shrink();
        cursor.ahead = ahead;
        // The header's clock is read before the first call begins. If the first call is earlier, its time is used
        // instead.
        let began = Nanos(cursor.header.clock.monotonic_ns);
        let called = !cursor.notes.calls.is_empty();
        let earlier = if called { began.0.saturating_sub(cursor.now.0) } else { 0 };
        let clock = &mut Arc::make_mut(&mut cursor.header).clock;
        for time in [&mut clock.monotonic_ns, &mut clock.boottime_ns, &mut clock.realtime_ns] {
            *time = time.saturating_sub(earlier);
        }
        cursor.begun = !cursor.ahead.is_empty();
        Ok(Box::new(cursor))
    }

    /// The header of the process. The time of its clock is the time at which the process began.
    pub(crate) fn header(&self) -> &Arc<Header> {
        &self.header
    }

    /// The path of the file.
    pub(crate) fn path(&self) -> &Path {
        self.notes.stacks.path()
    }

    /// Its call stacks, as far as it was read.
    pub(crate) fn stacks(&self) -> &Stacks {
        &self.notes.stacks
    }

    /// What the trace said, once the last event has been read.
    pub(crate) fn into_notes(mut self) -> Arc<Notes> {
        self.notes.shrink();
        Arc::new(self.notes)
    }

    /// The number of bytes that have been read.
    pub(crate) fn offset(&self) -> u64 {
        self.input.offset()
    }

    /// Closes the file's descriptor until the next read.
    pub(crate) fn release(&mut self) {
        self.input.release();
    }

    /// Checks how much more can be read: before the time `written` all records have arrived. Without one, the process
    /// has ended, and its file is read to the end. False if the file was truncated or replaced: what was read of it is
    /// no longer valid.
    pub(crate) fn grow(&mut self, written: Option<Nanos>) -> Result<bool, AnalysisError> {
        self.input.grow(written).map_err(|source| self.unreadable(source))
    }

    /// The size of the file in bytes; `None` if it was removed or replaced.
    pub(crate) fn size(&mut self) -> Option<u64> {
        self.input.source().size()
    }

    /// Whether an event contradicts what was returned before: the first call was written after the header was read and
    /// began before the time of the header, or a record arrived after later ones had been returned.
    pub(crate) fn is_misdated(&self) -> bool {
        self.misdated || self.input.is_late()
    }

    /// Whether nothing was read of it since it was opened.
    pub(crate) fn is_new(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// Whether the last event has been read.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    /// The rest of a file that is still being written, as if its process had ended now: the text after the last
    /// complete line, and the end of the process.
    pub(crate) fn remainder(&self) -> Result<(Events, Notes), AnalysisError> {
        let input = self.input.remainder(|| Source::open(self.path()));
        let mut events = Events::default();
        let Some(input) = input.map_err(|source| self.unreadable(source))? else {
            let end = Other::End(self.ended());
            let moment = end.order(self.now);
            self.names.iter().cloned().chain([end]).for_each(|event| events.push(moment, event));
            return Ok((events, self.notes.clone()));
        };
        let header = self.header.clone();
        let notes = self.notes.clone();
        let names = self.names.clone();
        let numbers = self.numbers.clone();
        let mut rest = Self { header, notes, input, numbers, ahead: Events::default(), names, ..*self };
        rest.fill(&mut events, usize::MAX)?;
        Ok((events, rest.notes))
    }

    /// Reads about `limit` events into `events`, which is empty, or fewer where the trace ends or a growing file has no
    /// more complete lines.
    pub(crate) fn fill(&mut self, events: &mut Events, limit: usize) -> Result<(), AnalysisError> {
        let before = self.now;
        events.append(std::mem::take(&mut self.ahead));
        let mut count = 0;
        while !self.over {
            count += self.fill_with_calls(events, limit - count);
            if count >= limit || !self.read(events)? {
                break;
            }
            count += 1;
        }
        if !self.begun
            && let Some((moment, event)) = events.first_but_names(before)
        {
            self.begun = true;
            let enters = matches!(event, Event::Call(call) if call.enters() && !call.is_inner());
            self.misdated = enters && moment.0 < Nanos(self.header.clock.monotonic_ns);
        }
        Ok(())
    }

    /// Adds the names that precede an event.
    fn push_names(&mut self, moment: Moment, events: &mut Events) {
        // Most names come at the beginning: no room is kept for others.
        for name in std::mem::take(&mut self.names) {
            events.push(moment, name);
        }
    }

    /// Adds an event that is not a call, after the names that precede it.
    fn push(&mut self, event: Other, events: &mut Events) {
        let moment = event.order(self.now);
        self.push_names(moment, events);
        events.push(moment, event);
    }

    /// Adds events as long as the records are calls, at most `limit`, and returns their number. Nearly all records are
    /// calls.
    fn fill_with_calls(&mut self, events: &mut Events, limit: usize) -> usize {
        let Self { input, numbers, notes, now, .. } = self;
        let words = events.calls();
        let start = words.len();
        let count = input.next_calls(words, limit, |call| notes.count(call, now));
        numbers.apply(words.get_mut(start..).unwrap_or_default());
        count
    }

    /// Adds the next event, after the names that precede it. False if there is none yet.
    fn read(&mut self, events: &mut Events) -> Result<bool, AnalysisError> {
        loop {
            let Some(found) = self.input.next() else {
                self.notes.closed = self.input.closed();
                self.over = self.input.is_complete();
                if self.over {
                    self.push(Other::End(self.ended()), events);
                }
                return Ok(self.over);
            };
            let (offset, item) = found.map_err(|source| self.unreadable(source))?;
            let notes = &mut self.notes;
            match item {
                Ok(Record::Descriptors(at, open)) => {
                    self.now = self.now.max(at);
                    self.push(Other::Descriptors(open, self.now), events);
                    return Ok(true);
                }
                Ok(Record::Executed(executed)) => {
                    // The call may be one of so many commands ago that it is forgotten, or not recorded.
                    let call = Some(0).filter(|call| *call == executed.call);
                    if let Some(call) = call.or_else(|| self.numbers.command(executed.call)) {
                        self.now = self.now.max(executed.end);
                        self.push(Other::Executed(Box::new(Executed { call, ..executed })), events);
                        return Ok(true);
                    }
                }
                Ok(Record::Synchronization(by)) => {
                    self.now = self.now.max(by.time);
                    if by.kind == SyncKind::Limit {
                        notes.limit = Some(by.time);
                    }
                    self.push(Other::Synchronization(by), events);
                    return Ok(true);
                }
                Ok(Record::ThreadName(tid, name)) => {
                    self.names.push(Other::Thread(tid, label(&name)));
                }
                Ok(Record::EntryPoint(entry_point)) if notes.entry_points.len() < ENTRY_POINTS_KEPT => {
                    self.names.push(Other::Adapter(label(&entry_point.library)));
                    notes.entry_points.reserve_exact(1);
                    notes.entry_points.push(*entry_point);
                }
                Ok(Record::Device(device)) => {
                    let name = label(&device.name);
                    let handles = (device.device.0, device.native.map(|native| native.0));
                    self.names.push(Other::Device(handles, device.index, name));
                }
                Ok(Record::Module(_)) => notes.stacks.put_module(offset),
                Ok(Record::Stack(stack)) => notes.stacks.put_stack(stack.stack, offset),
                Ok(Record::Footer(footer)) => {
                    // A call in the teardown of libraries adds a footer to a binary trace.
                    let closing = Closing::from(&*footer);
                    if notes.closing.is_none_or(|known| known.at <= closing.at) {
                        notes.closing = Some(closing);
                        notes.kept = footer.kept;
                    }
                }
                Ok(Record::Gap(gap)) => {
                    if gap.lost > notes.lost {
                        notes.lost = gap.lost;
                        self.push(Other::Lost(self.now), events);
                    }
                }
                Ok(Record::Exec(exec)) => notes.exec = (!exec.failed).then_some(Nanos(exec.at_ns)),
                Ok(record) => {
                    let mut words = Vec::new();
                    pack(&record, &mut words);
                    if let Some(call) = PackedCall::first_of(&words) {
                        notes.count(&call, &mut self.now);
                        let rank = rank_of(&call);
                        self.numbers.apply(&mut words);
                        self.push_names((self.now, rank), events);
                        events.calls().append(&mut words);
                        return Ok(true);
                    }
                }
                Err(Skipped { why: Why::Torn, .. }) => notes.torn = true,
                Err(Skipped { offset, line, why }) => {
                    notes.skipped_lines += 1;
                    if notes.skipped.len() < SKIPS_LISTED {
                        let file = notes.stacks.path().display().to_string();
                        let why = why.to_string();
                        notes.skipped.push(SkippedLine { file, line, offset, why });
                    }
                }
            }
        }
    }

    fn unreadable(&self, source: io::Error) -> AnalysisError {
        AnalysisError::Unreadable { path: self.path().to_owned(), source }
    }

    fn ended(&self) -> Nanos {
        let closed = self.notes.closing.map_or(Nanos(0), |closing| closing.at);
        self.now.max(closed).max(self.notes.exec.unwrap_or_default()).max(Nanos(self.header.clock.monotonic_ns))
    }
}
