//! An incremental analysis of a growing run, which reads only what is new.
//!
//! An event is committed once no earlier event can arrive. A process writes a record shortly after the time that the
//! record names, so events younger than [`HOLD`] wait. A [`snapshot`](Following::snapshot) commits the waiting events
//! to a copy, together with the ends of the processes that still run. Its result equals that of a new analysis of the
//! same files. Its cost depends on the number of live objects and waiting events, not on the length of the run.
//!
//! A record can still arrive too late: its thread was delayed by more than [`HOLD`] while writing, a process was killed
//! long after its last record (whose time counts as its end), or a new trace begins before the committed events, as
//! that of a child does whose first call comes long after its fork. In these cases, and if a file was truncated,
//! replaced or removed, the analysis restarts and reads everything again. So no result depends on when it is requested.

use std::collections::{BinaryHeap, HashSet, binary_heap::PeekMut};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::{cmp::Reverse, io, time::Duration};

use urscope_schema::{call::Nanos, trace::records::Header};

use super::merging::{Merger, TracedProcess};
use super::reading::{Cursor, Event, Events, Moment, Notes, ObservedTimes, Other, Position, is_alive, stay_open};
use super::{Analysis, AnalysisError, Ended, Observer, Options, node_report::Locator, traces};

/// How long a record may take to arrive after the time that it names.
pub const HOLD: Duration = Duration::from_millis(250);

/// The number of events that are read from a file at a time.
const BATCH: usize = 2048;

/// The buffer size of each file, in bytes.
const BUFFER: usize = 1 << 15;

/// The incremental analysis of a run, with its observer. Each snapshot clones the observer `O`.
pub struct Following<O> {
    /// Creates an observer in its initial state.
    fresh: Box<dyn Fn() -> O + Send>,
    observer: O,
    merger: Merger,
    /// The file of each process, in the order of [`Merger::processes`].
    files: Vec<Followed>,
    known: HashSet<PathBuf>,
    /// The latest committed event.
    last: Option<Key>,
    locator: Arc<Mutex<Locator>>,
    symbols: Vec<PathBuf>,
    starts: u64,
}

/// The position of an event in the run: its time since the run began, its rank at that time, and its process.
type Key = ((u64, u8), usize);

/// The waiting events of a file, and the notes of its process until the end of the file is committed.
#[derive(Default)]
struct Waiting {
    events: Events,
    at: Position,
    notes: Option<Notes>,
}

/// The trace file of a process.
struct Followed {
    cursor: Box<Cursor>,
    /// Events that were read.
    events: Events,
    /// The first of them that is not committed.
    at: Position,
    /// The process has ended and writes no more.
    ended: bool,
    /// The size of the file when it was last checked, in bytes.
    size: Option<u64>,
    /// The end of the process is committed.
    done: bool,
}

/// Why the analysis cannot continue with its present state.
enum Halt {
    /// The analysis must restart and read everything again.
    Restart,
    /// The files cannot be read.
    Failed(AnalysisError),
}

impl From<AnalysisError> for Halt {
    fn from(error: AnalysisError) -> Self {
        Self::Failed(error)
    }
}

impl<O: Observer + Clone> Following<O> {
    /// An analysis that has read nothing. `fresh` creates the observer; it is called again for each restart.
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

    /// Reads what is new in `paths`: files, or directories of trace files. The errors are those of [`fn@super::judge`];
    /// after an error, the next call reads everything again.
    pub fn take_in(&mut self, paths: &[PathBuf], options: &Options) -> Result<(), AnalysisError> {
        let _span = tracing::info_span!("following").entered();
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let now = Duration::new(now.tv_sec as u64, now.tv_nsec as u32);
        self.take_in_until(paths, options, now.saturating_sub(HOLD))
    }

    /// Like [`Self::take_in`], for callers that know that all records of this machine up to the time `written` of its
    /// monotonic clock are written.
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
        let named = |file: &Path| options.names(file, paths);
        let mut advanced = self.advance(&files, &named, written);
        if let Err(Halt::Restart) = advanced {
            self.reset();
            advanced = self.advance(&files, &named, written);
        }
        let Err(halt) = advanced else { return Ok(()) };
        self.reset();
        match halt {
            // A file changed while it was read: the next call reads everything again.
            Halt::Restart => {
                let path = paths.first().cloned().unwrap_or_default();
                Err(AnalysisError::Unreadable { path, source: io::Error::other("it was replaced while it was read") })
            }
            Halt::Failed(error) => Err(error),
        }
    }

    /// The result that a new analysis of the same files would have now, with its observer.
    pub fn snapshot<'a>(&self, paths: &'a [PathBuf], options: &'a Options) -> Result<(Analysis<'a>, O), AnalysisError> {
        let _span = tracing::info_span!("snapshot").entered();
        let mut merger = self.merger.clone();
        let mut observer = self.observer.clone();
        let mut waiting = Vec::with_capacity(self.files.len());
        for file in &self.files {
            waiting.push(if file.done { Waiting::default() } else { file.waiting()? });
        }
        let keys = waiting.iter().enumerate().filter_map(|(index, file)| key(&merger, index, file.events.at(file.at)?));
        let mut queue: BinaryHeap<_> = keys.map(Reverse).collect();
        while let Some(mut first) = queue.peek_mut() {
            let Reverse(((now, _), index)) = *first;
            let Some(Waiting { events, at, notes }) = waiting.get_mut(index) else { break };
            let Some((moment, event)) = events.at(*at) else { break };
            if let Event::Other(Other::End(_)) = event {
                notes.take().into_iter().for_each(|notes| merger.ends(index, Arc::new(notes)));
                if now < u64::MAX && merger.runs_on(index) {
                    *first = Reverse(((u64::MAX, 1), index));
                    continue;
                }
            }
            merger.feed(index, now, &event, &mut observer);
            at.step(moment, &event);
            match events.at(*at).and_then(|next| key(&merger, index, next)) {
                Some(next) => *first = Reverse(next),
                None => drop(PeekMut::pop(first)),
            }
        }
        merger.finish();
        let locator = Arc::clone(&self.locator);
        Ok((Analysis { merger, locator, paths, options, comparison: None }, observer))
    }

    /// How often the analysis has started, at least once: one more than its number of restarts.
    pub fn starts(&self) -> u64 {
        self.starts
    }

    /// Discards the whole state.
    fn reset(&mut self) {
        self.observer = (self.fresh)();
        (self.merger, self.last) = (Merger::default(), None);
        self.files.clear();
        self.known.clear();
        self.locator = Arc::new(Mutex::new(Locator::new(&self.symbols)));
        self.starts += 1;
    }

    fn advance(&mut self, files: &[PathBuf], named: &dyn Fn(&Path) -> bool, written: Nanos) -> Result<(), Halt> {
        let present: HashSet<&PathBuf> = files.iter().collect();
        if self.known.iter().any(|path| !present.contains(path)) {
            return Err(Halt::Restart);
        }
        let times = ObservedTimes::beside(files);
        let is_new = |header: &Header| times.get(header) != self.merger.times.get(header);
        // The others recorded their ends themselves.
        let killed = |process: &TracedProcess| matches!(process.ended, Ended::Killed | Ended::Incomplete);
        let mut done = self.files.iter().zip(&self.merger.processes).filter(|(file, _)| file.done);
        if done.any(|(file, process)| killed(process) && is_new(file.cursor.header())) {
            return Err(Halt::Restart);
        }
        self.merger.times = times;
        self.open(files, written, named)?;
        let release = !stay_open(files.len());
        for (file, process) in self.files.iter_mut().zip(&self.merger.processes) {
            if file.ended {
                if file.cursor.size() != file.size {
                    return Err(Halt::Restart);
                }
            } else {
                // This check comes before reading the size: otherwise records written in between would be lost.
                file.ended = process.execs.is_some() || !is_alive(&process.header);
                file.size = file.cursor.size();
                if !file.cursor.grow((!file.ended).then_some(written))? {
                    return Err(Halt::Restart);
                }
            }
        }
        self.merge(written)?;
        if release {
            self.files.iter_mut().for_each(|file| file.cursor.release());
        }
        Ok(())
    }

    /// Opens new files. Their processes must have begun after the known ones; otherwise the analysis must restart.
    fn open(&mut self, files: &[PathBuf], written: Nanos, named: &dyn Fn(&Path) -> bool) -> Result<(), Halt> {
        self.merger.empty.clear();
        self.merger.foreign.clear();
        let new = files.iter().filter(|path| !self.known.contains(*path));
        let cursors = self.merger.open(new, named, BUFFER, true, Some(written))?;
        self.known.extend(cursors.iter().map(|cursor| cursor.path().to_owned()));
        if !self.merger.add_later(cursors.iter().map(|cursor| cursor.header())) {
            return Err(Halt::Restart);
        }
        let mut order: Vec<usize> = (self.files.len()..self.merger.processes.len()).collect();
        order.sort_by_cached_key(|index| self.merger.order(*index));
        let first = self.files.len();
        if first > 0 && order.first().is_some_and(|new| self.merger.order(*new) < self.merger.order(first - 1)) {
            return Err(Halt::Restart);
        }
        let sorted: Vec<_> = order.iter().filter_map(|index| self.merger.processes.get(*index).cloned()).collect();
        self.merger.processes.truncate(first);
        self.merger.processes.extend(sorted);
        self.merger.find_execs();
        let mut cursors: Vec<_> = cursors.into_iter().map(Some).collect();
        for index in order {
            if let Some(cursor) = cursors.get_mut(index - first).and_then(Option::take) {
                let Some(process) = self.merger.processes.get_mut(self.files.len()) else { break };
                process.stacks = cursor.stacks().clone();
                let begin = Other::Begin(process.began);
                let events = Events::only(begin.order(Nanos(0)), begin);
                let at = Position::default();
                self.files.push(Followed { cursor, events, at, ended: false, size: None, done: false });
            }
        }
        Ok(())
    }

    /// Commits all events before which no other event can arrive.
    fn merge(&mut self, written: Nanos) -> Result<(), Halt> {
        let mut queue = BinaryHeap::new();
        let mut bound = u64::MAX;
        for index in 0..self.files.len() {
            let host = self.merger.processes.get(index).map(|process| process.host).unwrap_or_default();
            let Some(file) = self.files.get_mut(index) else { break };
            file.fill()?;
            queue.extend(file.events.at(file.at).and_then(|next| key(&self.merger, index, next)).map(Reverse));
            // A process that still runs can write more records and start other processes.
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
                return Err(Halt::Restart);
            }
            let Some(file) = self.files.get_mut(index) else { break };
            let Some((moment, event)) = file.events.at(file.at) else { break };
            if let Event::Other(Other::End(_)) = event {
                file.done = true;
                self.merger.ends(index, Arc::new(std::mem::take(&mut file.cursor.notes)));
            }
            self.merger.feed(index, now, &event, &mut self.observer);
            file.at.step(moment, &event);
            self.last = self.last.max(Some(here));
            file.fill()?;
            match file.events.at(file.at).and_then(|next| key(&self.merger, index, next)) {
                Some(next) => *first = Reverse(next),
                None => drop(PeekMut::pop(first)),
            }
        }
        // The waiting events stay in memory, so that a snapshot reads almost nothing.
        self.files.iter_mut().try_for_each(Followed::fill_up)
    }
}

/// The position of an event of a process in the run.
fn key(merger: &Merger, index: usize, ((time, rank), _): (Moment, Event<'_>)) -> Option<Key> {
    Some(((merger.alignment(merger.processes.get(index)?.host).at(time), rank), index))
}

impl Followed {
    /// Reads more events if none are waiting.
    fn fill(&mut self) -> Result<(), Halt> {
        if self.events.at(self.at).is_none() { self.read().map(drop) } else { Ok(()) }
    }

    /// Reads all complete records of the file.
    fn fill_up(&mut self) -> Result<(), Halt> {
        while self.read()? {}
        Ok(())
    }

    fn read(&mut self) -> Result<bool, Halt> {
        self.events.remove_before(&mut self.at);
        let mut events = Events::default();
        self.cursor.fill(&mut events, BATCH)?;
        let is_more = !events.is_empty();
        self.events.append(events);
        if self.cursor.is_misdated() { Err(Halt::Restart) } else { Ok(is_more) }
    }

    /// The waiting events with the current end of the file, and the notes of the process.
    fn waiting(&self) -> Result<Waiting, AnalysisError> {
        let mut events = self.events.clone();
        let at = self.at;
        if self.cursor.is_over() {
            return Ok(Waiting { events, at, notes: Some(self.cursor.notes.clone()) });
        }
        let (rest, notes) = self.cursor.remainder()?;
        events.append(rest);
        Ok(Waiting { events, at, notes: Some(notes) })
    }
}
