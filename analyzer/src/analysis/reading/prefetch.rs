//! Many files at once: each is a file whose next events other threads read ahead while the law hears the present ones.
//!
//! What is read ahead is bounded over all files together, and so is the number of files that are open.

use std::{
    io,
    num::NonZero,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, Sender},
    },
    thread,
};

use urscope_schema::call::Nanos;

use super::{
    cursor::{Cursor, Left, Notes},
    event::{Moment, TraceEvent},
};
use crate::analysis::{AnalysisError, Progress};

/// How many events may wait in all files together.
const EVENTS_AHEAD: usize = 1 << 17;

/// How many bytes may be buffered for all files together.
const BYTES_AHEAD: usize = 1 << 26;

/// With more files than this, no file stays open between two reads.
const FILES_OPEN: usize = 256;

/// How much of each of `files` files is to be buffered, in bytes.
pub(crate) fn buffer_size(files: usize) -> usize {
    (BYTES_AHEAD / files.max(1)).clamp(1 << 14, 1 << 18)
}

/// Whether each of `files` files may stay open.
pub(crate) fn stay_open(files: usize) -> bool {
    files <= FILES_OPEN
}

/// What one file does, in its own order.
type Events = Vec<(Moment, TraceEvent)>;

/// What a thread is to read.
struct Job {
    file: usize,
    cursor: Box<Cursor>,
    /// To be filled.
    events: Events,
}

/// What it has read.
struct Batch {
    file: usize,
    left: Left,
    events: Result<Events, AnalysisError>,
}

/// One file.
struct FileQueue {
    path: PathBuf,
    events: Events,
    at: usize,
    ahead: Option<Batch>,
    /// Whether the file has been read to its end.
    over: bool,
    /// Then present until they are taken.
    notes: Option<Box<Notes>>,
}

/// All files of a analysis.
pub(crate) struct Prefetcher {
    all: Vec<FileQueue>,
    jobs: Sender<Job>,
    batches: Receiver<Batch>,
}

impl Prefetcher {
    /// Starts to read all of them, each behind its first event, which is not in the file.
    pub(crate) fn start(cursors: Vec<(TraceEvent, Box<Cursor>)>, progress: &Arc<Progress>) -> Self {
        let (jobs, waiting) = mpsc::channel();
        let (done, batches) = mpsc::channel();
        let waiting = Arc::new(Mutex::new(waiting));
        let limit = (EVENTS_AHEAD / 2 / cursors.len().max(1)).clamp(16, 2048);
        let rests = !stay_open(cursors.len());
        // One more thread hears what they read.
        let threads = thread::available_parallelism().map_or(1, NonZero::get).saturating_sub(1);
        for _ in 0..threads.clamp(1, cursors.len().max(1)) {
            let (waiting, done, progress) = (waiting.clone(), done.clone(), progress.clone());
            let reader = thread::Builder::new().name("reader".into());
            drop(reader.spawn(move || read(&waiting, &done, &progress, limit, rests)));
        }
        let mut prefetcher = Vec::with_capacity(cursors.len());
        for (file, (first, cursor)) in cursors.into_iter().enumerate() {
            let path = cursor.path().to_owned();
            let events = vec![(first.order(Nanos(0)), first)];
            prefetcher.push(FileQueue { path, events, at: 0, ahead: None, over: false, notes: None });
            drop(jobs.send(Job { file, cursor, events: Vec::new() }));
        }
        Self { all: prefetcher, jobs, batches }
    }

    /// What a file is at; nothing behind its end.
    pub(crate) fn act(&self, file: usize) -> Option<&TraceEvent> {
        let file = self.all.get(file)?;
        file.events.get(file.at).map(|(_, event)| event)
    }

    /// Goes on to the next act of a file, and says its moment; nothing behind its end.
    pub(crate) fn step(&mut self, file: usize) -> Result<Option<Moment>, AnalysisError> {
        if let Some(here) = self.all.get_mut(file) {
            here.at += 1;
        }
        loop {
            let Some(here) = self.all.get_mut(file) else { return Ok(None) };
            if let Some((moment, _)) = here.events.get(here.at) {
                return Ok(Some(*moment));
            }
            if here.over {
                here.events = Vec::new();
                return Ok(None);
            }
            match here.ahead.take() {
                Some(batch) => {
                    let mut spent = std::mem::replace(&mut here.events, batch.events?);
                    here.at = 0;
                    match batch.left {
                        Left::Notes(notes) => (here.over, here.notes) = (true, Some(notes)),
                        Left::Cursor(cursor) => {
                            spent.clear();
                            drop(self.jobs.send(Job { file, cursor, events: spent }));
                        }
                    }
                }
                None => self.receive(file)?,
            }
        }
    }

    /// What was noted of a file, when its file is at its end; once.
    pub(crate) fn notes_at_end(&mut self, file: usize) -> Option<Box<Notes>> {
        let here = self.all.get_mut(file)?;
        match here.events.get(here.at) {
            Some((_, TraceEvent::End(_))) => here.notes.take(),
            _ => None,
        }
    }

    fn receive(&mut self, file: usize) -> Result<(), AnalysisError> {
        let batch = self.batches.recv().map_err(|_| {
            let path = self.all.get(file).map(|file| file.path.clone()).unwrap_or_default();
            AnalysisError::Unreadable { path, source: io::Error::other("the thread that read it stopped") }
        })?;
        if let Some(file) = self.all.get_mut(batch.file) {
            file.ahead = Some(batch);
        }
        Ok(())
    }
}

/// Reads what is waiting until nobody will ask again.
fn read(waiting: &Mutex<Receiver<Job>>, done: &Sender<Batch>, progress: &Progress, limit: usize, rests: bool) {
    loop {
        let job = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { file, mut cursor, mut events }) = job else { return };
        let before = cursor.offset();
        let read = {
            let span = tracing::info_span!("reading", file, bytes = tracing::field::Empty).entered();
            let read = cursor.fill(&mut events, limit);
            span.record("bytes", cursor.offset() - before);
            read
        };
        progress.add(cursor.offset() - before);
        if rests {
            cursor.rest();
        }
        if done.send(Batch { file, left: cursor.left(), events: read.map(|()| events) }).is_err() {
            return;
        }
    }
}
