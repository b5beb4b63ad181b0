//! Many files at once: each is a lane whose next acts other threads read ahead while the law hears the present ones.
//!
//! What is read ahead is bounded over all lanes together, and so is the number of files that are open.

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
    JudgeError, Progress,
    act::{Act, Moment},
    cursor::{Cursor, Left, Notes},
};

/// How many acts may wait in all lanes together.
const ACTS_AHEAD: usize = 1 << 17;

/// How many bytes may be buffered for all lanes together.
const BYTES_AHEAD: usize = 1 << 26;

/// With more lanes than this, no file stays open between two reads.
const FILES_OPEN: usize = 256;

/// How much of each of `files` files is to be buffered, in bytes.
pub(super) fn buffer_size(files: usize) -> usize {
    (BYTES_AHEAD / files.max(1)).clamp(1 << 14, 1 << 18)
}

/// Whether each of `files` files may stay open.
pub(super) fn stay_open(files: usize) -> bool {
    files <= FILES_OPEN
}

/// What one file does, in its own order.
type Acts = Vec<(Moment, Act)>;

/// What a thread is to read.
struct Job {
    lane: usize,
    cursor: Box<Cursor>,
    /// To be filled.
    acts: Acts,
}

/// What it has read.
struct Batch {
    lane: usize,
    left: Left,
    acts: Result<Acts, JudgeError>,
}

/// One file.
struct Lane {
    path: PathBuf,
    acts: Acts,
    at: usize,
    ahead: Option<Batch>,
    /// Whether the file has been read to its end.
    over: bool,
    /// Then present until they are taken.
    notes: Option<Box<Notes>>,
}

/// All files of a hearing.
pub(super) struct Lanes {
    all: Vec<Lane>,
    jobs: Sender<Job>,
    batches: Receiver<Batch>,
}

impl Lanes {
    /// Starts to read all of them, each behind its first act, which is not in the file.
    pub(super) fn start(cursors: Vec<(Act, Box<Cursor>)>, progress: &Arc<Progress>) -> Self {
        let (jobs, waiting) = mpsc::channel();
        let (done, batches) = mpsc::channel();
        let waiting = Arc::new(Mutex::new(waiting));
        let limit = (ACTS_AHEAD / 2 / cursors.len().max(1)).clamp(16, 2048);
        let rests = !stay_open(cursors.len());
        // One more thread hears what they read.
        let threads = thread::available_parallelism().map_or(1, NonZero::get).saturating_sub(1);
        for _ in 0..threads.clamp(1, cursors.len().max(1)) {
            let (waiting, done, progress) = (waiting.clone(), done.clone(), progress.clone());
            thread::spawn(move || read(&waiting, &done, &progress, limit, rests));
        }
        let mut lanes = Vec::with_capacity(cursors.len());
        for (lane, (first, cursor)) in cursors.into_iter().enumerate() {
            let path = cursor.path().to_owned();
            let acts = vec![(first.order(Nanos(0)), first)];
            lanes.push(Lane { path, acts, at: 0, ahead: None, over: false, notes: None });
            drop(jobs.send(Job { lane, cursor, acts: Vec::new() }));
        }
        Self { all: lanes, jobs, batches }
    }

    /// What a lane is at; nothing behind its end.
    pub(super) fn act(&self, lane: usize) -> Option<&Act> {
        let lane = self.all.get(lane)?;
        lane.acts.get(lane.at).map(|(_, act)| act)
    }

    /// Goes on to the next act of a lane, and says its moment; nothing behind its end.
    pub(super) fn step(&mut self, lane: usize) -> Result<Option<Moment>, JudgeError> {
        if let Some(here) = self.all.get_mut(lane) {
            here.at += 1;
        }
        loop {
            let Some(here) = self.all.get_mut(lane) else { return Ok(None) };
            if let Some((moment, _)) = here.acts.get(here.at) {
                return Ok(Some(*moment));
            }
            if here.over {
                here.acts = Vec::new();
                return Ok(None);
            }
            match here.ahead.take() {
                Some(batch) => {
                    let mut spent = std::mem::replace(&mut here.acts, batch.acts?);
                    here.at = 0;
                    match batch.left {
                        Left::Notes(notes) => (here.over, here.notes) = (true, Some(notes)),
                        Left::Cursor(cursor) => {
                            spent.clear();
                            drop(self.jobs.send(Job { lane, cursor, acts: spent }));
                        }
                    }
                }
                None => self.receive(lane)?,
            }
        }
    }

    /// What was noted of a file, when its lane is at its end; once.
    pub(super) fn notes_at_end(&mut self, lane: usize) -> Option<Box<Notes>> {
        let here = self.all.get_mut(lane)?;
        match here.acts.get(here.at) {
            Some((_, Act::End(_))) => here.notes.take(),
            _ => None,
        }
    }

    fn receive(&mut self, lane: usize) -> Result<(), JudgeError> {
        let batch = self.batches.recv().map_err(|_| {
            let path = self.all.get(lane).map(|lane| lane.path.clone()).unwrap_or_default();
            JudgeError::Unreadable { path, source: io::Error::other("the thread that read it stopped") }
        })?;
        if let Some(lane) = self.all.get_mut(batch.lane) {
            lane.ahead = Some(batch);
        }
        Ok(())
    }
}

/// Reads what is waiting until nobody will ask again.
fn read(waiting: &Mutex<Receiver<Job>>, done: &Sender<Batch>, progress: &Progress, limit: usize, rests: bool) {
    loop {
        let job = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { lane, mut cursor, mut acts }) = job else { return };
        let before = cursor.offset();
        let read = cursor.fill(&mut acts, limit);
        progress.add(cursor.offset() - before);
        if rests {
            cursor.rest();
        }
        if done.send(Batch { lane, left: cursor.left(), acts: read.map(|()| acts) }).is_err() {
            return;
        }
    }
}
