//! The thread that hears the run again whenever it has grown, and tells what it heard.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use urscope_analyzer::{
    Options,
    follow::Follower,
    questions::{Snapshot, SnapshotFollower},
};

/// So long at most it sleeps: it should not look paused longer than it is.
const NAP: Duration = Duration::from_millis(100);

/// Something that is new.
pub(super) enum Update {
    /// The run was heard.
    Heard(Box<Snapshot>),
    /// The run has not grown.
    Quiet,
    /// There are no traces yet.
    Waiting(String),
    /// The run cannot be heard.
    Failed(String),
}

/// Begins to watch. While `paused` is set nothing is heard.
pub(super) fn start(paths: &[PathBuf], options: &Options, paused: &Arc<AtomicBool>) -> io::Result<Receiver<Update>> {
    let (tell, updates) = mpsc::channel();
    let (paths, options, paused) = (paths.to_vec(), options.clone(), Arc::clone(paused));
    thread::Builder::new().name("hearing".into()).spawn(move || watch(&paths, &options, &paused, &tell))?;
    Ok(updates)
}

fn watch(paths: &[PathBuf], options: &Options, paused: &AtomicBool, tell: &Sender<Update>) {
    let mut follower = Follower::new(paths);
    let mut run = SnapshotFollower::default();
    loop {
        let now = Instant::now();
        let wait = follower.next_look(now).saturating_duration_since(now);
        if !wait.is_zero() || paused.load(Relaxed) {
            thread::sleep(wait.clamp(Duration::from_millis(1), NAP));
            continue;
        }
        let changed = follower.poll(now);
        let updates = match follower.traces() {
            0 => Update::Waiting(waiting(paths)),
            _ if changed => {
                let updates = analyze(&mut run, paths, options);
                follower.heard(now, Instant::now());
                updates
            }
            _ => Update::Quiet,
        };
        if tell.send(updates).is_err() {
            return;
        }
    }
}

/// Hears the run once.
pub(super) fn analyze(run: &mut SnapshotFollower, paths: &[PathBuf], options: &Options) -> Update {
    // What is not there yet may come; the rest is shown.
    let there: Vec<_> = paths.iter().filter(|path| path.exists()).cloned().collect();
    match run.snapshot(&there, options) {
        Ok(snapshot) => match snapshot.plain() {
            Some(snapshot) => Update::Heard(Box::new(snapshot)),
            None => Update::Failed("what was heard cannot be shown".into()),
        },
        Err(error) => Update::Failed(urscope_analyzer::plain::plain(&error.to_string())),
    }
}

/// What is waited for.
pub(super) fn waiting(paths: &[PathBuf]) -> String {
    let missing = |path: &&Path| !path.exists();
    match paths.iter().map(PathBuf::as_path).find(missing) {
        Some(path) => urscope_analyzer::plain::plain(&format!("{} does not exist yet", path.display())),
        None => "there are no traces yet: no process has loaded a Unified Runtime adapter under urscope".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_waited_for_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        assert!(waiting(&[folder.path().to_owned()]).contains("no traces yet"));
        let later = folder.path().join("later\x1b[2J");
        let said = waiting(&[folder.path().to_owned(), later]);
        assert!(said.ends_with("/later\u{fffd}[2J does not exist yet"), "{said}");
    }

    #[test]
    fn a_directory_that_comes_later_is_told_of() {
        let folder = tempfile::tempdir().unwrap();
        let traces = folder.path().join("later");
        let updates = start(std::slice::from_ref(&traces), &Options::default(), &Arc::default()).unwrap();
        let next = || updates.recv_timeout(Duration::from_secs(20)).unwrap();
        assert!(matches!(next(), Update::Waiting(_)));
        std::fs::create_dir(&traces).unwrap();
        std::fs::write(traces.join("urscope-a-1-1.json"), "[\n").unwrap();
        let heard = loop {
            match next() {
                Update::Waiting(_) => {}
                Update::Heard(snapshot) => break snapshot,
                _ => panic!("something else is told"),
            }
        };
        assert_eq!(heard.judgement.processes.len(), 0);
        assert_eq!(heard.judgement.unseen.len(), 1);
    }
}
