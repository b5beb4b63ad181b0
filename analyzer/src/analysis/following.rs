//! An analysis that goes on: of a run that grows, only what is new is read.
//!
//! Events are taken in for good once no earlier one can come any more: a process writes its record shortly after the moment that the
//! record names, so what is younger than [`HOLD`] waits. A [`snapshot`](Following::snapshot) takes in what waits on a copy, with the
//! ends of the processes that still run, and is what an analysis of the same files would be. What it costs depends on what lives and
//! waits, not on the length of the run.
//!
//! A record may still come too late: its thread was held up for longer than [`HOLD`] while it wrote, a process was killed long after
//! its last record (which is where its end is put), a trace appears that begins before what was taken in. Then, and when a file was
//! cut, replaced or removed, everything is read again from the start. So no answer ever depends on when it was asked for.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashSet, VecDeque, binary_heap::PeekMut},
    io,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use urscope_schema::call::Nanos;

use super::{
    Analysis, AnalysisError, Observer, Options,
    merging::Merger,
    node_report::Locator,
    reading::{Cursor, Growth, Moment, Notes, Opened, TraceEvent, is_alive, stay_open},
    traces,
};

/// How long a record is waited for after the moment that it names.
pub const HOLD: Duration = Duration::from_millis(250);

/// How many events of a file are read at a time.
const BATCH: usize = 2048;

/// How much of each file is buffered, in bytes.
const BUFFER: usize = 1 << 15;

/// A run that is followed, and those who observe it. `O` is cloned for each snapshot.
pub struct Following<O> {
    /// Makes an observer that has seen nothing.
    fresh: Box<dyn Fn() -> O + Send>,
    observer: O,
    merger: Merger,
    /// One for each process, in the same order.
    files: Vec<Followed>,
    known: HashSet<PathBuf>,
    /// The latest event that was taken in for good.
    last: Option<Key>,
    locator: Arc<Mutex<Locator>>,
    symbols: Vec<PathBuf>,
    starts: u64,
}

/// The place of an event among all: its moment on the axis of time, and its process.
type Key = ((u64, u8), usize);

/// A file that is followed.
struct Followed {
    cursor: Box<Cursor>,
    /// What was read and waits.
    events: VecDeque<(Moment, TraceEvent)>,
    /// Its process writes no more.
    ended: bool,
    /// How long the file was at the last look, in bytes.
    size: Option<u64>,
    /// Its end was taken in.
    done: bool,
}

/// What keeps the analysis from going on as it is.
enum Halt {
    /// Everything has to be read again.
    Void,
    /// The files cannot be read.
    Failed(AnalysisError),
}

impl From<AnalysisError> for Halt {
    fn from(error: AnalysisError) -> Self {
        Self::Failed(error)
    }
}

impl<O: Observer + Clone> Following<O> {
    /// Follows nothing yet. `fresh` makes an observer; it is asked again when everything has to be read again.
    pub fn new(fresh: impl Fn() -> O + Send + 'static) -> Self {
        let observer = fresh();
        Self {
            fresh: Box::new(fresh),
            observer,
            merger: Merger::default(),
            files: Vec::new(),
            known: HashSet::new(),
            last: None,
            locator: Arc::new(Mutex::new(Locator::new(&[]))),
            symbols: Vec::new(),
            starts: 1,
        }
    }

    /// Takes in what is new in `paths`: files, or directories of them. Errors are those of [`fn@super::judge`]; after one, the next
    /// call reads everything again.
    pub fn take_in(&mut self, paths: &[PathBuf], options: &Options) -> Result<(), AnalysisError> {
        let _span = tracing::info_span!("following").entered();
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let now = Duration::new(now.tv_sec as u64, now.tv_nsec as u32);
        self.take_in_until(paths, options, now.saturating_sub(HOLD))
    }

    /// The same, where all records of this machine up to a moment of its monotonic clock are known to be written.
    pub fn take_in_until(
        &mut self,
        paths: &[PathBuf],
        options: &Options,
        written: Duration,
    ) -> Result<(), AnalysisError> {
        if self.symbols != options.symbols {
            self.symbols.clone_from(&options.symbols);
            self.reset();
        }
        let written = Nanos(written.as_nanos() as u64);
        let files = traces(paths)?;
        let mut advanced = self.advance(&files, written);
        if let Err(Halt::Void) = advanced {
            self.reset();
            advanced = self.advance(&files, written);
        }
        let Err(halt) = advanced else { return Ok(()) };
        self.reset();
        match halt {
            // It changed while it was read: the next look reads all of it.
            Halt::Void => {
                let path = paths.first().cloned().unwrap_or_default();
                Err(AnalysisError::Unreadable { path, source: io::Error::other("it was replaced while it was read") })
            }
            Halt::Failed(error) => Err(error),
        }
    }

    /// What an analysis of the same files would be now, and what its observer would have seen.
    pub fn snapshot<'a>(&self, paths: &'a [PathBuf], options: &'a Options) -> Result<(Analysis<'a>, O), AnalysisError> {
        let _span = tracing::info_span!("snapshot").entered();
        let (mut merger, mut observer) = (self.merger.clone(), self.observer.clone());
        let mut waiting = Vec::with_capacity(self.files.len());
        for file in &self.files {
            waiting.push(if file.done { (VecDeque::new(), None) } else { file.waiting()? });
        }
        let keys = waiting.iter().enumerate().filter_map(|(index, (events, _))| key(&merger, index, events.front()?));
        let mut queue: BinaryHeap<_> = keys.map(Reverse).collect();
        while let Some(mut first) = queue.peek_mut() {
            let Reverse(((now, _), index)) = *first;
            let Some((events, notes)) = waiting.get_mut(index) else { break };
            if matches!(events.front(), Some((_, TraceEvent::End(_)))) {
                notes.take().into_iter().for_each(|notes| merger.ends(index, Arc::new(notes)));
                if merger.runs_on(index) && now < u64::MAX {
                    *first = Reverse(((u64::MAX, 1), index));
                    continue;
                }
            }
            if let Some((_, event)) = events.pop_front() {
                merger.feed(index, now, &event, &mut observer);
            }
            match events.front().and_then(|next| key(&merger, index, next)) {
                Some(next) => *first = Reverse(next),
                None => drop(PeekMut::pop(first)),
            }
        }
        merger.finish();
        let locator = Arc::clone(&self.locator);
        Ok((Analysis { merger, locator, paths, options }, observer))
    }

    /// How often everything was read from the start: once at least.
    pub fn starts(&self) -> u64 {
        self.starts
    }

    /// Forgets everything.
    fn reset(&mut self) {
        self.observer = (self.fresh)();
        (self.merger, self.last) = (Merger::default(), None);
        self.files.clear();
        self.known.clear();
        self.locator = Arc::new(Mutex::new(Locator::new(&self.symbols)));
        self.starts += 1;
    }

    fn advance(&mut self, files: &[PathBuf], written: Nanos) -> Result<(), Halt> {
        let there: HashSet<&PathBuf> = files.iter().collect();
        if self.known.iter().any(|path| !there.contains(path)) {
            return Err(Halt::Void);
        }
        self.open(files)?;
        let rests = !stay_open(files.len());
        for (file, process) in self.files.iter_mut().zip(&self.merger.processes) {
            if file.ended {
                if file.cursor.size() != file.size {
                    return Err(Halt::Void);
                }
            } else {
                // First, for what it writes in between would be lost.
                file.ended = process.execs || !is_alive(&process.header);
                file.size = file.cursor.size();
                if file.cursor.grow(file.ended)? == Growth::Replaced {
                    return Err(Halt::Void);
                }
            }
        }
        self.merge(written)?;
        if rests {
            self.files.iter_mut().for_each(|file| file.cursor.rest());
        }
        Ok(())
    }

    /// Opens the files that are new. They have to begin behind those that are known.
    fn open(&mut self, files: &[PathBuf]) -> Result<(), Halt> {
        let mut cursors = Vec::new();
        self.merger.empty.clear();
        for path in files.iter().filter(|path| !self.known.contains(*path)) {
            match Cursor::open_growing(path, BUFFER)? {
                Opened::Nothing => self.merger.empty.push(path.clone()),
                Opened::Trace(cursor) => cursors.push(cursor),
            }
        }
        self.known.extend(cursors.iter().map(|cursor| cursor.path().to_owned()));
        if !self.merger.add_behind(cursors.iter().map(|cursor| cursor.header())) {
            return Err(Halt::Void);
        }
        let mut order: Vec<usize> = (self.files.len()..self.merger.processes.len()).collect();
        order.sort_by_cached_key(|index| self.merger.order(*index));
        let first = self.files.len();
        if first > 0 && order.first().is_some_and(|new| self.merger.order(*new) < self.merger.order(first - 1)) {
            return Err(Halt::Void);
        }
        let sorted: Vec<_> = order.iter().filter_map(|index| self.merger.processes.get(*index).cloned()).collect();
        self.merger.processes.truncate(first);
        self.merger.processes.extend(sorted);
        self.merger.find_execs();
        let mut cursors: Vec<_> = cursors.into_iter().map(Some).collect();
        for index in order {
            if let Some(cursor) = cursors.get_mut(index - first).and_then(Option::take) {
                let begin = TraceEvent::Begin(Nanos(cursor.header().clock.monotonic_ns));
                let events = VecDeque::from([(begin.order(Nanos(0)), begin)]);
                self.files.push(Followed { cursor, events, ended: false, size: None, done: false });
            }
        }
        Ok(())
    }

    /// Takes in all events that no other can come before any more.
    fn merge(&mut self, written: Nanos) -> Result<(), Halt> {
        let mut queue = BinaryHeap::new();
        let mut bound = u64::MAX;
        for index in 0..self.files.len() {
            let host = self.merger.processes.get(index).map(|process| process.host).unwrap_or_default();
            let Some(file) = self.files.get_mut(index) else { break };
            file.fill()?;
            queue.extend(file.events.front().and_then(|next| key(&self.merger, index, next)).map(Reverse));
            // Who is there may start others.
            if !file.ended {
                bound = bound.min(self.merger.alignment(host).at(written));
            }
        }
        while let Some(mut first) = queue.peek_mut() {
            let Reverse(here) = *first;
            let ((now, _), index) = here;
            if now >= bound {
                break;
            }
            if self.last.is_some_and(|last| index != last.1 && here < last) {
                return Err(Halt::Void);
            }
            let Some(file) = self.files.get_mut(index) else { break };
            let Some((_, event)) = file.events.pop_front() else { break };
            if matches!(event, TraceEvent::End(_)) {
                file.done = true;
                self.merger.ends(index, Arc::new(std::mem::take(&mut file.cursor.notes)));
            }
            self.merger.feed(index, now, &event, &mut self.observer);
            self.last = self.last.max(Some(here));
            file.fill()?;
            match file.events.front().and_then(|next| key(&self.merger, index, next)) {
                Some(next) => *first = Reverse(next),
                None => drop(PeekMut::pop(first)),
            }
        }
        // What waits is kept, so that a snapshot reads next to nothing.
        self.files.iter_mut().try_for_each(Followed::fill_up)
    }
}

/// The place of an event of a process among all events.
fn key(merger: &Merger, index: usize, (moment, _): &(Moment, TraceEvent)) -> Option<Key> {
    let (time, rank) = *moment;
    Some(((merger.alignment(merger.processes.get(index)?.host).at(time), rank), index))
}

impl Followed {
    /// Reads on where nothing waits.
    fn fill(&mut self) -> Result<(), Halt> {
        if self.events.is_empty() { self.read().map(drop) } else { Ok(()) }
    }

    /// Reads all that is there.
    fn fill_up(&mut self) -> Result<(), Halt> {
        while self.read()? {}
        Ok(())
    }

    fn read(&mut self) -> Result<bool, Halt> {
        let mut events = Vec::new();
        self.cursor.fill(&mut events, BATCH)?;
        self.events.extend(&events);
        if self.cursor.is_misdated() { Err(Halt::Void) } else { Ok(!events.is_empty()) }
    }

    /// What waits, with the end of the file as it is now, and what the process says of itself.
    fn waiting(&self) -> Result<(VecDeque<(Moment, TraceEvent)>, Option<Notes>), AnalysisError> {
        let mut events = self.events.clone();
        if self.cursor.is_over() {
            return Ok((events, Some(self.cursor.notes.clone())));
        }
        let (rest, notes) = self.cursor.rest_of_it()?;
        events.extend(rest);
        Ok((events, Some(notes)))
    }
}
