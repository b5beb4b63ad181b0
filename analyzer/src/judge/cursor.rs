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
    JudgeError, SkippedLine,
    act::{Act, Label, Moment},
    shelf::Shelf,
    source::Source,
};

/// How many of a file's unusable lines are told one by one.
const SKIPS_TOLD: usize = 20;

/// How many doors of a process are kept.
const DOORS_KEPT: usize = 64;

/// How many lines of something else are read in search of a header.
const FOREIGN_LINES: usize = 1000;

/// A file.
pub(super) enum Opened {
    /// With a header.
    Trace(Box<Cursor>),
    /// Of a process that was stopped before it had written its header.
    Nothing,
}

/// A trace that is being read.
pub(super) struct Cursor {
    header: Header,
    pub(super) notes: Notes,
    reader: Reader<BufReader<Source>>,
    /// The latest moment so far.
    now: Nanos,
    ahead: Option<Act>,
    over: bool,
}

/// What is left of a trace behind what has been read.
pub(super) enum Left {
    /// More of it.
    Cursor(Box<Cursor>),
    /// It is over, and its file is closed.
    Notes(Box<Notes>),
}

/// What a process says of itself besides its calls, as far as its trace has been read.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) doors: Vec<EntryPoint>,
    pub(super) footer: Option<Footer>,
    pub(super) skipped: Vec<SkippedLine>,
    pub(super) skipped_lines: u64,
    pub(super) torn: bool,
    /// Whether the file was closed, which only an orderly exit does.
    pub(super) closed: bool,
    pub(super) calls: Vec<u64>,
    pub(super) shelf: Shelf,
}

impl Cursor {
    /// Opens a file and reads up to its header.
    ///
    /// `buffer` is how many bytes of it are kept in memory.
    pub(super) fn open(path: &Path, buffer: usize) -> Result<Opened, JudgeError> {
        let unreadable = |source| JudgeError::Unreadable { path: path.to_owned(), source };
        let not_a_trace = |found: String| JudgeError::NotATrace { path: path.to_owned(), found };
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
            return Err(JudgeError::NoHeader { path: path.to_owned(), found });
        }
        match foreign {
            0 => Ok(Opened::Nothing),
            _ => Err(not_a_trace("none of its lines is a record of urscope".into())),
        }
    }

    fn with(path: &Path, header: Header, mut reader: Reader<BufReader<Source>>) -> Result<Box<Self>, JudgeError> {
        let path = path.to_owned();
        if header.format == 0 {
            return Err(JudgeError::NotATrace { path, found: "its header has no format number".into() });
        }
        if header.format > FORMAT_VERSION {
            let Header { format, urscope: writer, .. } = header;
            return Err(JudgeError::Newer { path, format, writer, ours: FORMAT_VERSION });
        }
        let identity = reader.input_mut().get_ref().identity();
        let shelf = Shelf::of(path, identity);
        let notes = Notes { shelf, calls: vec![0; Function::COUNT], ..Notes::default() };
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
    pub(super) fn header(&self) -> &Header {
        &self.header
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.notes.shelf.path
    }

    /// What is left of it: once the last act has been read, nothing but the notes.
    pub(super) fn left(self) -> Left {
        if self.over { Left::Notes(Box::new(self.notes)) } else { Left::Cursor(Box::new(self)) }
    }

    /// How many bytes have been read.
    pub(super) fn offset(&self) -> u64 {
        self.reader.offset()
    }

    /// Gives the file's descriptor back until more is read.
    pub(super) fn rest(&mut self) {
        self.reader.input_mut().get_mut().rest();
    }

    /// Reads on, until there are `limit` acts or the last one is among them.
    pub(super) fn fill(&mut self, acts: &mut Vec<(Moment, Act)>, limit: usize) -> Result<(), JudgeError> {
        while acts.len() < limit && !self.over {
            let ahead = self.ahead.take();
            if ahead.is_none() {
                self.fill_with_calls(acts, limit);
            }
            if acts.len() >= limit {
                break;
            }
            let act = ahead.map_or_else(|| self.read(), Ok)?;
            self.over = matches!(act, Act::End(_));
            acts.push((act.order(self.now), act));
        }
        Ok(())
    }

    /// Reads on as long as there is nothing but calls. Nearly all records are, and each copy of one costs as much as reading it.
    fn fill_with_calls(&mut self, acts: &mut Vec<(Moment, Act)>, limit: usize) {
        while acts.len() < limit {
            let Some(call) = self.reader.next_call() else { return };
            let act = match call {
                Record::Enter(enter) => {
                    self.entered(&enter);
                    Act::Enter(enter)
                }
                Record::Exit(exit) => {
                    self.now = self.now.max(exit.time);
                    Act::Exit(exit)
                }
                _ => return,
            };
            acts.push((act.order(self.now), act));
        }
    }

    #[inline]
    fn entered(&mut self, enter: &Enter) {
        self.now = self.now.max(enter.time);
        if let Some(count) = self.notes.calls.get_mut(enter.function as usize) {
            *count += 1;
        }
    }

    fn read(&mut self) -> Result<Act, JudgeError> {
        loop {
            let offset = self.reader.offset();
            let Some(item) = self.reader.next() else {
                self.notes.closed = self.reader.closed();
                return Ok(Act::End(self.ended()));
            };
            let notes = &mut self.notes;
            let item = item.map_err(|source| JudgeError::Unreadable { path: notes.shelf.path.clone(), source })?;
            match item {
                Ok(Record::Enter(enter)) => {
                    self.entered(&enter);
                    return Ok(Act::Enter(enter));
                }
                Ok(Record::Exit(exit)) => {
                    self.now = self.now.max(exit.time);
                    return Ok(Act::Exit(exit));
                }
                Ok(Record::Descriptors(at, open)) => {
                    self.now = self.now.max(at);
                    return Ok(Act::Descriptors(open, self.now));
                }
                Ok(Record::ThreadName(tid, name)) => return Ok(Act::Thread(tid, Label::of(&name))),
                Ok(Record::EntryPoint(door)) if notes.doors.len() < DOORS_KEPT => notes.doors.push(*door),
                Ok(Record::Module(_)) => notes.shelf.put_module(offset),
                Ok(Record::Stack(stack)) => notes.shelf.put_stack(stack.stack, offset),
                Ok(Record::Footer(footer)) => notes.footer = Some(*footer),
                Ok(_) => {}
                Err(Skipped { why: Why::Torn, .. }) => notes.torn = true,
                Err(Skipped { offset, line, why }) => {
                    notes.skipped_lines += 1;
                    if notes.skipped.len() < SKIPS_TOLD {
                        let (file, why) = (notes.shelf.path.display().to_string(), why.to_string());
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
