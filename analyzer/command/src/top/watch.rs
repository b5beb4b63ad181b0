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
    questions::{self, Standing},
};

/// So long at most it sleeps: it should not look paused longer than it is.
const NAP: Duration = Duration::from_millis(100);

/// Something that is new.
pub(super) enum News {
    /// The run was heard.
    Heard(Box<Standing>),
    /// The run has not grown.
    Quiet,
    /// There are no traces yet.
    Waiting(String),
    /// The run cannot be heard.
    Failed(String),
}

/// Begins to watch. While `paused` is set nothing is heard.
pub(super) fn start(paths: &[PathBuf], options: &Options, paused: &Arc<AtomicBool>) -> io::Result<Receiver<News>> {
    let (tell, news) = mpsc::channel();
    let (paths, options, paused) = (paths.to_vec(), options.clone(), Arc::clone(paused));
    thread::Builder::new().name("hearing".into()).spawn(move || watch(&paths, &options, &paused, &tell))?;
    Ok(news)
}

fn watch(paths: &[PathBuf], options: &Options, paused: &AtomicBool, tell: &Sender<News>) {
    let mut follower = Follower::new(paths);
    loop {
        let now = Instant::now();
        let wait = follower.next_look(now).saturating_duration_since(now);
        if !wait.is_zero() || paused.load(Relaxed) {
            thread::sleep(wait.clamp(Duration::from_millis(1), NAP));
            continue;
        }
        let changed = follower.poll(now);
        let news = match follower.traces() {
            0 => News::Waiting(waiting(paths)),
            _ if changed => {
                let news = hear(paths, options);
                follower.heard(now, Instant::now());
                news
            }
            _ => News::Quiet,
        };
        if tell.send(news).is_err() {
            return;
        }
    }
}

/// Hears the run once.
pub(super) fn hear(paths: &[PathBuf], options: &Options) -> News {
    // What is not there yet may come; the rest is shown.
    let there: Vec<_> = paths.iter().filter(|path| path.exists()).cloned().collect();
    match questions::standing(&there, &options.for_another()) {
        Ok(standing) => match standing.plain() {
            Some(standing) => News::Heard(Box::new(standing)),
            None => News::Failed("what was heard cannot be shown".into()),
        },
        Err(error) => News::Failed(urscope_analyzer::plain::plain(&error.to_string())),
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
        let news = start(std::slice::from_ref(&traces), &Options::default(), &Arc::default()).unwrap();
        let next = || news.recv_timeout(Duration::from_secs(20)).unwrap();
        assert!(matches!(next(), News::Waiting(_)));
        std::fs::create_dir(&traces).unwrap();
        std::fs::write(traces.join("urscope-a-1-1.json"), "[\n").unwrap();
        let heard = loop {
            match next() {
                News::Waiting(_) => {}
                News::Heard(standing) => break standing,
                _ => panic!("something else is told"),
            }
        };
        assert_eq!(heard.judgement.processes.len(), 0);
        assert_eq!(heard.judgement.unseen.len(), 1);
    }
}
