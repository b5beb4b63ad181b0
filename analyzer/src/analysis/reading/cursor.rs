//! One trace file, read record by record.
//!
//! The cursor finds the header first, keeps what a process says of itself and hands on its calls, with times that never
//! go back: within a file the order of its lines is the order in which things happened.

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
};

use urscope_schema::{
    api::Function,
    call::{Enter, Nanos},
    trace::{
        FORMAT_VERSION,
        read::{Reader, Record, Skipped, Why},
        records::{EntryPoint, Footer, Header},
    },
};

use super::{
    event::{Label, Moment, TraceEvent},
    source::Source,
    stack_index::StackIndex,
};
use crate::analysis::{AnalysisError, SkippedLine};

/// How many of a file's unusable lines are told one by one.
const SKIPS_TOLD: usize = 20;

/// How many doors of a process are kept.
const DOORS_KEPT: usize = 64;

/// How many lines of something else are read in search of a header.
const FOREIGN_LINES: usize = 1000;

/// A file.
pub(crate) enum Opened {
    /// With a header.
    Trace(Box<Cursor>),
    /// Of a process that was stopped before it had written its header.
    Nothing,
}

/// A trace that is being read.
pub(crate) struct Cursor {
    header: Header,
    pub(crate) notes: Notes,
    reader: Reader<BufReader<Source>>,
    /// The latest moment so far.
    now: Nanos,
    ahead: Option<TraceEvent>,
    over: bool,
}

/// What is left of a trace behind what has been read.
pub(crate) enum Left {
    /// More of it.
    Cursor(Box<Cursor>),
    /// It is over, and its file is closed.
    Notes(Box<Notes>),
}

/// What a process says of itself besides its calls, as far as its trace has been read.
#[derive(Default)]
pub(crate) struct Notes {
    pub(crate) doors: Vec<EntryPoint>,
    pub(crate) footer: Option<Footer>,
    pub(crate) skipped: Vec<SkippedLine>,
    pub(crate) skipped_lines: u64,
    pub(crate) torn: bool,
    /// Whether the file was closed, which only an orderly exit does.
    pub(crate) closed: bool,
    pub(crate) calls: Vec<u64>,
    pub(crate) stack_index: StackIndex,
}

impl Cursor {
    /// Opens a file and reads up to its header.
    ///
    /// `buffer` is how many bytes of it are kept in memory.
    pub(crate) fn open(path: &Path, buffer: usize) -> Result<Opened, AnalysisError> {
        let unreadable = |source| AnalysisError::Unreadable { path: path.to_owned(), source };
        let not_a_trace = |found: String| AnalysisError::NotATrace { path: path.to_owned(), found };
        let mut input = BufReader::with_capacity(buffer, Source::open(path).map_err(unreadable)?);
        let start = input.fill_buf().map_err(unreadable)?.trim_ascii_start();
        match start.first() {
            None | Some(b'[') => {}
            Some(b'{') => return Err(not_a_trace("it begins with { and is JSON of another kind".into())),
            Some(_) => return Err(not_a_trace("it is not JSON".into())),
        }
        let mut reader = Reader::new(input);
        let mut foreign = 0;
        while let Some(item) = reader.next() {
            let found = match item.map_err(unreadable)? {
                Ok(Record::Header(header)) => return Self::with(path, *header, reader).map(Opened::Trace),
                Ok(Record::ProcessName(_) | Record::ThreadName(..) | Record::Note(..) | Record::Finding(..))
                | Err(Skipped { why: Why::Torn, line: 2.., .. }) => continue,
                Ok(Record::Enter(enter)) => format!("a call of {}", enter.function.name()),
                Ok(Record::Exit(exit)) => format!("the return of {}", exit.function.name()),
                Ok(Record::Descriptors(..)) => "a number of descriptors".into(),
                Ok(Record::EntryPoint(_)) => "a door".into(),
                Ok(Record::Module(_) | Record::Stack(_)) => "a call stack".into(),
                Ok(Record::Footer(_)) => "the footer".into(),
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
            0 => Ok(Opened::Nothing),
            _ => Err(not_a_trace("none of its lines is a record of urscope".into())),
        }
    }

    fn with(path: &Path, header: Header, mut reader: Reader<BufReader<Source>>) -> Result<Box<Self>, AnalysisError> {
        let path = path.to_owned();
        if header.format == 0 {
            return Err(AnalysisError::NotATrace { path, found: "its header has no format number".into() });
        }
        if header.format > FORMAT_VERSION {
            let Header { format, urscope: writer, .. } = header;
            return Err(AnalysisError::Newer { path, format, writer, ours: FORMAT_VERSION });
        }
        let identity = reader.input_mut().get_ref().identity();
        let stack_index = StackIndex::of(path, identity);
        let notes = Notes { stack_index, calls: vec![0; Function::COUNT], ..Notes::default() };
        let mut cursor = Self { header, notes, reader, now: Nanos(0), ahead: None, over: false };
        let first = cursor.read()?;
        // The header's own clock is read before the first call begins; where it says otherwise the calls are believed.
        let began = Nanos(cursor.header.clock.monotonic_ns);
        let called = cursor.notes.calls.iter().any(|count| *count > 0);
        let earlier = if called { began.0.saturating_sub(cursor.now.0) } else { 0 };
        let clock = &mut cursor.header.clock;
        for time in [&mut clock.monotonic_ns, &mut clock.boottime_ns, &mut clock.realtime_ns] {
            *time = time.saturating_sub(earlier);
        }
        cursor.ahead = Some(first);
        Ok(Box::new(cursor))
    }

    /// Who wrote it. The moment of its clock is the moment at which the process began.
    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.notes.stack_index.path
    }

    /// What is left of it: once the last act has been read, nothing but the notes.
    pub(crate) fn left(self) -> Left {
        if self.over { Left::Notes(Box::new(self.notes)) } else { Left::Cursor(Box::new(self)) }
    }

    /// How many bytes have been read.
    pub(crate) fn offset(&self) -> u64 {
        self.reader.offset()
    }

    /// Gives the file's descriptor back until more is read.
    pub(crate) fn rest(&mut self) {
        self.reader.input_mut().get_mut().rest();
    }

    /// Reads on, until there are `limit` events or the last one is among them.
    pub(crate) fn fill(&mut self, events: &mut Vec<(Moment, TraceEvent)>, limit: usize) -> Result<(), AnalysisError> {
        while events.len() < limit && !self.over {
            let ahead = self.ahead.take();
            if ahead.is_none() {
                self.fill_with_calls(events, limit);
            }
            if events.len() >= limit {
                break;
            }
            let event = ahead.map_or_else(|| self.read(), Ok)?;
            self.over = matches!(event, TraceEvent::End(_));
            events.push((event.order(self.now), event));
        }
        Ok(())
    }

    /// Reads on as long as there is nothing but calls. Nearly all records are, and each copy of one costs as much as reading it.
    fn fill_with_calls(&mut self, events: &mut Vec<(Moment, TraceEvent)>, limit: usize) {
        while events.len() < limit {
            let Some(call) = self.reader.next_call() else { return };
            let event = match call {
                Record::Enter(enter) => {
                    self.entered(&enter);
                    TraceEvent::Enter(enter)
                }
                Record::Exit(exit) => {
                    self.now = self.now.max(exit.time);
                    TraceEvent::Exit(exit)
                }
                _ => return,
            };
            events.push((event.order(self.now), event));
        }
    }

    #[inline]
    fn entered(&mut self, enter: &Enter) {
        self.now = self.now.max(enter.time);
        if let Some(count) = self.notes.calls.get_mut(enter.function as usize) {
            *count += 1;
        }
    }

    fn read(&mut self) -> Result<TraceEvent, AnalysisError> {
        loop {
            let offset = self.reader.offset();
            let Some(item) = self.reader.next() else {
                self.notes.closed = self.reader.closed();
                return Ok(TraceEvent::End(self.ended()));
            };
            let notes = &mut self.notes;
            let item =
                item.map_err(|source| AnalysisError::Unreadable { path: notes.stack_index.path.clone(), source })?;
            match item {
                Ok(Record::Enter(enter)) => {
                    self.entered(&enter);
                    return Ok(TraceEvent::Enter(enter));
                }
                Ok(Record::Exit(exit)) => {
                    self.now = self.now.max(exit.time);
                    return Ok(TraceEvent::Exit(exit));
                }
                Ok(Record::Descriptors(at, open)) => {
                    self.now = self.now.max(at);
                    return Ok(TraceEvent::Descriptors(open, self.now));
                }
                Ok(Record::ThreadName(tid, name)) => return Ok(TraceEvent::Thread(tid, Label::of(&name))),
                Ok(Record::EntryPoint(door)) if notes.doors.len() < DOORS_KEPT => notes.doors.push(*door),
                Ok(Record::Module(_)) => notes.stack_index.put_module(offset),
                Ok(Record::Stack(stack)) => notes.stack_index.put_stack(stack.stack, offset),
                Ok(Record::Footer(footer)) => notes.footer = Some(*footer),
                Ok(_) => {}
                Err(Skipped { why: Why::Torn, .. }) => notes.torn = true,
                Err(Skipped { offset, line, why }) => {
                    notes.skipped_lines += 1;
                    if notes.skipped.len() < SKIPS_TOLD {
                        let (file, why) = (notes.stack_index.path.display().to_string(), why.to_string());
                        notes.skipped.push(SkippedLine { file, line, offset, why });
                    }
                }
            }
        }
    }

    fn ended(&self) -> Nanos {
        let footer = self.notes.footer.as_ref().map_or(0, |footer| footer.clock.monotonic_ns);
        self.now.max(Nanos(footer)).max(Nanos(self.header.clock.monotonic_ns))
    }
}
