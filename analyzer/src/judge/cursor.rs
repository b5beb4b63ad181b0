//! One trace file, read record by record.
//!
//! The cursor finds the header first, keeps what a process says of itself and hands on its calls, with times that never
//! go back: within a file the order of its lines is the order in which things happened.

use std::{
    collections::HashMap,
    fs::File,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
};

use urscope_schema::{
    api::Function,
    call::{Enter, Exit, Nanos},
    trace::{
        FORMAT_VERSION,
        read::{Reader, Record, Skipped, Why},
        records::{Door, Footer, Header, Hex, Module},
    },
};

use super::{JudgeError, SkippedLine};

/// How many of a file's unusable lines are told one by one.
const SKIPS_TOLD: usize = 20;

/// How many doors of a process are kept.
const DOORS_KEPT: usize = 64;

/// How many libraries of a process are kept.
const MODULES_KEPT: usize = 1 << 12;

/// How many call stacks of a process are kept, as many as a writer writes.
const STACKS_KEPT: usize = 1 << 16;

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
    pub(super) path: PathBuf,
    pub(super) header: Header,
    pub(super) doors: Vec<Door>,
    pub(super) footer: Option<Footer>,
    pub(super) skipped: Vec<SkippedLine>,
    pub(super) skipped_lines: u64,
    pub(super) torn: bool,
    pub(super) calls: Vec<u64>,
    pub(super) modules: Vec<Module>,
    pub(super) stacks: HashMap<u64, Vec<Hex>>,
    reader: Reader<BufReader<File>>,
    /// The latest moment so far.
    pub(super) now: Nanos,
    ahead: Option<Act>,
}

/// What a process does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    Begin(Nanos),
    Enter(Enter),
    Exit(Exit),
    End(Nanos),
}

impl Act {
    /// When, and what comes first of things that happen at the same time in several processes: whatever excuses.
    pub(super) fn order(&self, now: Nanos) -> (Nanos, u8) {
        match self {
            Self::Begin(time) => (*time, 0),
            Self::Exit(_) => (now, 1),
            Self::End(time) => ((*time).max(now), 1),
            Self::Enter(enter) => (now, if enter.function == Function::urUSMFree { 3 } else { 2 }),
        }
    }
}

impl Cursor {
    /// Opens a file and reads up to its header.
    pub(super) fn open(path: &Path) -> Result<Opened, JudgeError> {
        let unreadable = |source| JudgeError::Unreadable { path: path.to_owned(), source };
        let not_a_trace = |found: String| JudgeError::NotATrace { path: path.to_owned(), found };
        let mut input = BufReader::with_capacity(1 << 16, File::open(path).map_err(unreadable)?);
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
                Ok(Record::Door(_)) => "a door".into(),
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

    fn with(path: &Path, header: Header, reader: Reader<BufReader<File>>) -> Result<Box<Self>, JudgeError> {
        let path = path.to_owned();
        if header.format == 0 {
            return Err(JudgeError::NotATrace { path, found: "its header has no format number".into() });
        }
        if header.format > FORMAT_VERSION {
            let Header { format, urscope: writer, .. } = header;
            return Err(JudgeError::Newer { path, format, writer, ours: FORMAT_VERSION });
        }
        let mut cursor = Self {
            path,
            now: Nanos(0),
            doors: Vec::new(),
            footer: None,
            skipped: Vec::new(),
            skipped_lines: 0,
            torn: false,
            calls: vec![0; Function::COUNT],
            modules: Vec::new(),
            stacks: HashMap::new(),
            reader,
            ahead: None,
            header,
        };
        let first = cursor.read()?;
        // The header's own clock is read before the first call begins; where it says otherwise the calls are believed.
        let began = Nanos(cursor.header.clock.monotonic_ns);
        let began = if cursor.calls.iter().any(|count| *count > 0) { began.min(cursor.now) } else { began };
        cursor.ahead = Some(first);
        cursor.header.clock.monotonic_ns = began.0;
        Ok(Box::new(cursor))
    }

    /// When the process began.
    pub(super) fn began(&self) -> Nanos {
        Nanos(self.header.clock.monotonic_ns)
    }

    /// The next act.
    pub(super) fn next(&mut self) -> Result<Act, JudgeError> {
        match self.ahead.take() {
            Some(act) => Ok(act),
            None => self.read(),
        }
    }

    fn read(&mut self) -> Result<Act, JudgeError> {
        loop {
            let Some(item) = self.reader.next() else { return Ok(Act::End(self.ended())) };
            let item = item.map_err(|source| JudgeError::Unreadable { path: self.path.clone(), source })?;
            match item {
                Ok(Record::Enter(enter)) => {
                    self.now = self.now.max(enter.time);
                    if let Some(count) = self.calls.get_mut(enter.function as usize) {
                        *count += 1;
                    }
                    return Ok(Act::Enter(enter));
                }
                Ok(Record::Exit(exit)) => {
                    self.now = self.now.max(exit.time);
                    return Ok(Act::Exit(exit));
                }
                Ok(Record::Door(door)) if self.doors.len() < DOORS_KEPT => self.doors.push(*door),
                Ok(Record::Module(module)) if self.modules.len() < MODULES_KEPT => self.modules.push(*module),
                Ok(Record::Stack(stack)) if self.stacks.len() < STACKS_KEPT => {
                    self.stacks.insert(stack.stack, stack.frames);
                }
                Ok(Record::Footer(footer)) => self.footer = Some(*footer),
                Ok(_) => {}
                Err(Skipped { why: Why::Torn, .. }) => self.torn = true,
                Err(Skipped { offset, line, why }) => {
                    self.skipped_lines += 1;
                    if self.skipped.len() < SKIPS_TOLD {
                        let (file, why) = (self.path.display().to_string(), why.to_string());
                        self.skipped.push(SkippedLine { file, line, offset, why });
                    }
                }
            }
        }
    }

    fn ended(&self) -> Nanos {
        let footer = self.footer.as_ref().map_or(0, |footer| footer.clock.monotonic_ns);
        self.now.max(Nanos(footer)).max(self.began())
    }

    /// Whether the file was closed, which only an orderly exit does.
    pub(super) fn closed(&self) -> bool {
        self.reader.closed()
    }
}
