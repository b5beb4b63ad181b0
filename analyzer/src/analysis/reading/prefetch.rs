//! Prefetching: threads read the next events of many files while the rules check the present ones.
//!
//! The number of events that are read ahead is bounded over all files together, and so is the number of open files.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::{io, num::NonZero, thread};

use urscope_schema::call::Nanos;

use super::cursor::{Cursor, Notes};
use super::event::{Event, Events, Moment, Other, Position};
use super::stack_index::Stacks;
use crate::analysis::{AnalysisError, Progress};

/// The number of events that may wait, over all files together.
const EVENTS_AHEAD: usize = 1 << 17;

/// The number of bytes that may be buffered, over all files together.
const BYTES_AHEAD: usize = 1 << 26;

/// With more files than this, no file stays open between two reads, and only so many are read before their processes
/// begin.
const FILES_OPEN: usize = 256;

/// The buffer size of each of `files` files, in bytes.
pub(crate) fn buffer_size(files: usize) -> usize {
    (BYTES_AHEAD / files.max(1)).clamp(1 << 14, 1 << 18)
}

/// Whether each of `files` files may stay open.
pub(crate) fn stay_open(files: usize) -> bool {
    files <= FILES_OPEN
}

/// A request to a thread to read events of a file.
struct Job {
    file: usize,
    cursor: Box<Cursor>,
    /// The buffer to fill.
    events: Events,
}

/// The events that a thread has read.
struct Batch {
    file: usize,
    rest: Rest,
    events: Result<Events, AnalysisError>,
}

/// The queue of events of one file.
struct FileQueue {
    /// Knows the path.
    stacks: Stacks,
    events: Events,
    at: Position,
    rest: Rest,
}

/// What is known of the part of a file behind its events that wait.
enum Rest {
    /// It is to be read on.
    Unread(Box<Cursor>),
    /// A thread reads it.
    Reading,
    /// It was read ahead, or could not be read.
    Ahead(Box<Batch>),
    /// There is nothing more, and these are its notes.
    Over(Arc<Notes>),
}

/// The queues of all files of an analysis.
pub(crate) struct Prefetcher {
    all: Vec<FileQueue>,
    jobs: Sender<Job>,
    batches: Receiver<Box<Batch>>,
    /// Whether there are so few files that each is read ahead all the time. Otherwise a file is read on when half of
    /// its events has been passed.
    few: bool,
    /// Memory for events to be read.
    spare: Vec<Events>,
}

impl Prefetcher {
    /// Starts the threads. Each file comes with its first event, which is not in the file.
    pub(crate) fn start(cursors: Vec<(Other, Box<Cursor>)>, progress: &Arc<Progress>) -> Self {
        let (jobs, waiting) = mpsc::channel();
        let (done, batches) = mpsc::channel();
        let waiting = Arc::new(Mutex::new(waiting));
        let limit = (EVENTS_AHEAD / 2 / cursors.len().max(1)).clamp(16, 2048);
        let release = !stay_open(cursors.len());
        // The calling thread runs the analysis and is one more.
        let threads = thread::available_parallelism().map_or(1, NonZero::get).saturating_sub(1);
        for _ in 0..threads.clamp(1, cursors.len().max(1)) {
            let waiting = waiting.clone();
            let done = done.clone();
            let progress = progress.clone();
            let reader = thread::Builder::new().name("reader".into());
            drop(reader.spawn(move || read(&waiting, &done, &progress, limit, release)));
        }
        let mut all = Vec::with_capacity(cursors.len());
        for (first, cursor) in cursors {
            let stacks = cursor.stacks().clone();
            let events = Events::only(first.order(Nanos(0)), first);
            all.push(FileQueue { stacks, events, at: Position::default(), rest: Rest::Unread(cursor) });
        }
        let mut prefetcher = Self { all, jobs, batches, few: !release, spare: Vec::new() };
        (0..FILES_OPEN).for_each(|file| prefetcher.read_on(file));
        prefetcher
    }

    /// Lets a thread read the next events of a file, unless that has begun or the file is over.
    fn read_on(&mut self, file: usize) {
        let Some(here) = self.all.get_mut(file).filter(|here| matches!(here.rest, Rest::Unread(_))) else { return };
        if let Rest::Unread(cursor) = std::mem::replace(&mut here.rest, Rest::Reading) {
            let events = self.spare.pop().unwrap_or_default();
            drop(self.jobs.send(Job { file, cursor, events }));
        }
    }

    /// The present event of a file, and the position behind it; `None` where the next ones must be received, or after
    /// its end.
    #[inline]
    pub(crate) fn event(&self, file: usize) -> Option<(Position, Event<'_>)> {
        let file = self.all.get(file)?;
        let (moment, event) = file.events.at(file.at)?;
        let mut behind = file.at;
        behind.step(moment, &event);
        Some((behind, event))
    }

    /// The process of a file has begun.
    pub(crate) fn began(&mut self, file: usize) {
        self.read_on(file + FILES_OPEN);
    }

    /// Moves to the position behind the present event of a file, and returns the moment of the next one; `None` after
    /// its end.
    #[inline]
    pub(crate) fn step(&mut self, file: usize, behind: Position) -> Result<Option<Moment>, AnalysisError> {
        let Some(here) = self.all.get_mut(file) else { return Ok(None) };
        here.at = behind;
        if matches!(here.rest, Rest::Unread(_)) && here.events.half_passed(here.at) {
            self.read_on(file);
        }
        self.next_batch(file)
    }

    /// The moment of the present event of a file. Goes on to the events that were read ahead, and waits for them if
    /// necessary.
    #[inline]
    fn next_batch(&mut self, file: usize) -> Result<Option<Moment>, AnalysisError> {
        loop {
            let Some(here) = self.all.get_mut(file) else { return Ok(None) };
            if let Some((moment, _)) = here.events.at(here.at) {
                return Ok(Some(moment));
            }
            match std::mem::replace(&mut here.rest, Rest::Reading) {
                Rest::Over(notes) => {
                    (here.events, here.rest) = (Events::default(), Rest::Over(notes));
                    return Ok(None);
                }
                Rest::Ahead(batch) => {
                    let spent = std::mem::replace(&mut here.events, batch.events?);
                    here.at.restart();
                    here.rest = batch.rest;
                    if self.few {
                        self.keep(spent);
                        self.read_on(file);
                    }
                }
                Rest::Reading => self.receive(file)?,
                rest @ Rest::Unread(_) => {
                    here.rest = rest;
                    self.read_on(file);
                }
            }
        }
    }

    /// Keeps the memory of events for others.
    fn keep(&mut self, mut spent: Events) {
        spent.clear();
        self.spare.push(spent);
    }

    /// The notes of a file whose last events are the present ones.
    pub(crate) fn notes(&self, file: usize) -> Option<&Arc<Notes>> {
        match &self.all.get(file)?.rest {
            Rest::Over(notes) => Some(notes),
            _ => None,
        }
    }

    fn receive(&mut self, file: usize) -> Result<(), AnalysisError> {
        let batch = self.batches.recv().map_err(|_| {
            let path = self.all.get(file).map(|file| file.stacks.path().to_owned()).unwrap_or_default();
            AnalysisError::Unreadable { path, source: io::Error::other("the thread that read it stopped") }
        })?;
        if let Some(here) = self.all.get_mut(batch.file) {
            here.rest = Rest::Ahead(batch);
        }
        Ok(())
    }
}

/// Serves jobs until the prefetcher is dropped.
fn read(waiting: &Mutex<Receiver<Job>>, done: &Sender<Box<Batch>>, progress: &Progress, limit: usize, release: bool) {
    loop {
        let job = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { file, mut cursor, mut events }) = job else { return };
        let before = cursor.offset();
        let read = {
            // The cursor of a file takes more memory than the rest of a short one.
            let limit = if release && cursor.is_new() { 2 * limit } else { limit };
            let span = tracing::info_span!("reading", file, bytes = tracing::field::Empty).entered();
            let read = cursor.fill(&mut events, limit);
            span.record("bytes", cursor.offset() - before);
            read
        };
        progress.add(cursor.offset() - before);
        if release {
            cursor.release();
            events.shrink();
        }
        let rest = if cursor.is_over() { Rest::Over(cursor.into_notes()) } else { Rest::Unread(cursor) };
        if done.send(Box::new(Batch { file, rest, events: read.map(|()| events) })).is_err() {
            return;
        }
    }
}
