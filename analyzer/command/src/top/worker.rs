//! The thread that follows the run and sends a snapshot when it has grown.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};
use std::{io, sync::Arc, thread};

use urscope_analyzer::analysis::traces;
use urscope_analyzer::questions::{Snapshot, SnapshotFollower};
use urscope_analyzer::{Options, follow::Follower};

/// The longest sleep, so that the thread soon notices the end of a pause.
const MAX_SLEEP: Duration = Duration::from_millis(100);

pub(super) enum Update {
    Snapshot(Box<Snapshot>),
    Quiet,
    /// There are no traces yet. The text is what is missing.
    Waiting(String),
    /// The analysis failed. The text is the reason.
    Failed(String),
}

/// Starts to follow the run. While `paused` is set, no traces are read.
pub(super) fn start(paths: &[PathBuf], options: &Options, paused: &Arc<AtomicBool>) -> io::Result<Receiver<Update>> {
    let (sender, updates) = mpsc::channel();
    let paths = paths.to_vec();
    let options = options.clone();
    let paused = Arc::clone(paused);
    thread::Builder::new().name("analysis".into()).spawn(move || watch(&paths, &options, &paused, &sender))?;
    Ok(updates)
}

fn watch(paths: &[PathBuf], options: &Options, paused: &AtomicBool, sender: &Sender<Update>) {
    let mut follower = Follower::new(paths);
    let mut run = SnapshotFollower::default();
    loop {
        let now = Instant::now();
        let wait = follower.next_poll(now).saturating_duration_since(now);
        if !wait.is_zero() || paused.load(Relaxed) {
            thread::sleep(wait.clamp(Duration::from_millis(1), MAX_SLEEP));
            continue;
        }
        let changed = follower.poll(now);
        let update = match follower.traces() {
            0 => Update::Waiting(waiting(paths)),
            _ if changed => {
                let update = analyze(&mut run, paths, options);
                follower.analyzed(now, Instant::now());
                update
            }
            _ => Update::Quiet,
        };
        if sender.send(update).is_err() {
            return;
        }
    }
}

/// Takes in what is new in the traces, and returns the current state of the run.
pub(super) fn analyze(run: &mut SnapshotFollower, paths: &[PathBuf], options: &Options) -> Update {
    // Missing paths may appear later.
    let existing: Vec<_> = paths.iter().filter(|path| path.exists()).cloned().collect();
    match run.snapshot(&existing, options) {
        Ok(snapshot) => match snapshot.plain() {
            Some(snapshot) => Update::Snapshot(Box::new(snapshot)),
            None => Update::Failed("the snapshot cannot be converted to plain text".into()),
        },
        Err(error) => Update::Failed(urscope_analyzer::plain::plain(&error.to_string())),
    }
}

pub(super) fn waiting(paths: &[PathBuf]) -> String {
    let missing = |path: &&Path| !path.exists();
    match paths.iter().map(PathBuf::as_path).find(missing) {
        Some(path) => urscope_analyzer::plain::plain(&format!("{} does not exist yet", path.display())),
        None if traces(paths).is_ok_and(|traces| !traces.is_empty()) => "reading the traces".into(),
        None => {
            "there are no traces yet: no process has loaded an adapter of Unified Runtime or a driver under urscope"
                .into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_waiting_message_names_a_missing_path() {
        let folder = tempfile::tempdir().unwrap();
        assert!(waiting(&[folder.path().to_owned()]).contains("no traces yet"));
        let full = tempfile::tempdir().unwrap();
        std::fs::write(full.path().join("urscope-a-1-1.json"), "[").unwrap();
        assert_eq!(waiting(&[full.path().to_owned()]), "reading the traces");
        let later = folder.path().join("later\x1b[2J");
        let message = waiting(&[folder.path().to_owned(), later]);
        assert!(message.ends_with("/later\u{fffd}[2J does not exist yet"), "{message}");
    }

    #[test]
    fn a_directory_that_appears_later_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let traces = folder.path().join("later");
        let updates = start(std::slice::from_ref(&traces), &Options::default(), &Arc::default()).unwrap();
        let next = || updates.recv_timeout(Duration::from_secs(20)).unwrap();
        assert!(matches!(next(), Update::Waiting(_)));
        std::fs::create_dir(&traces).unwrap();
        std::fs::write(traces.join("urscope-a-1-1.json"), "[\n").unwrap();
        let snapshot = loop {
            match next() {
                Update::Waiting(_) => {}
                Update::Snapshot(snapshot) => break snapshot,
                _ => panic!("unexpected update"),
            }
        };
        assert_eq!(snapshot.judgement.processes.len(), 0);
        assert_eq!(snapshot.judgement.unseen.len(), 1);
    }
}
