//! The thread that observes the processes of a run, as long as the run goes on.

use std::os::fd::OwnedFd;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};
use std::{io, path::Path, thread};

use rustix::event::{EventfdFlags, eventfd};
use urscope_analyzer::files::Folder;
use urscope_schema::trace::process_times::ProcessTimes;

use super::{book::Book, looks::Looks, notices::Notices, observation::Observation, traces::Traces};
use crate::view;

/// How often it is checked at least that the processes still run. Their ends are seen at once.
const PERIOD: Duration = Duration::from_millis(500);

/// How long the file system may take for the last lines.
const WRITTEN_WITHIN: Duration = Duration::from_secs(10);

/// Observes the processes that write traces into a directory.
pub(super) struct ProcessObserver {
    run: String,
    /// The name of the socket by which processes tell of their traces; empty if there is none.
    pub(super) address: String,
    stop: OwnedFd,
    program: Sender<ProcessTimes>,
    ended: Receiver<Observation>,
}

impl ProcessObserver {
    /// Begins to observe. Processes of earlier runs that have ended are ignored. Also looks for processes that do not
    /// have `library`. What is known of a run that cannot be observed is the error.
    pub(super) fn start(traces: &Traces, library: Option<&Path>) -> Result<Self, Observation> {
        let folder = traces.folder.clone();
        let run = &traces.run;
        let failed = |error| Observation::none(run, format!("no process could be observed ({error})"));
        Self::try_start(folder, run, library).map_err(failed)
    }

    pub(super) fn try_start(folder: Folder, run: &str, library: Option<&Path>) -> io::Result<Self> {
        // Every user can read the name. It says nothing of the run.
        let address = format!("urscope-{}", view::word()?);
        let stop = eventfd(0, EventfdFlags::CLOEXEC)?;
        let stopped = stop.try_clone()?;
        let notices = Notices::listen(&address, run);
        let address = if notices.is_ok() { address } else { String::new() };
        let mut book = Book::open(folder, run, notices);
        let mut looks = library.and_then(Looks::for_library);
        let (end, ended) = mpsc::channel();
        let (program, of_program) = mpsc::channel();
        thread::Builder::new().name("processes".into()).spawn(move || {
            let pause = |looks: Option<&Looks>| looks.map_or(PERIOD, |looks| looks.pause().min(PERIOD));
            let mut observed = Instant::now();
            loop {
                let woken = book.wait(&stopped, pause(looks.as_ref()));
                let nothing = woken.is_timeout && looks.as_mut().is_some_and(Looks::has_nothing_to_look_at);
                if nothing && observed.elapsed() < PERIOD {
                    continue;
                }
                observed = Instant::now();
                book.observe(woken);
                for looked in looks.iter_mut().flat_map(Looks::look) {
                    book.note_looked(looked);
                }
                if woken.is_stopped {
                    break;
                }
            }
            drop(end.send(book.close(of_program.try_recv().ok())));
        })?;
        Ok(Self { run: run.to_owned(), address, stop, program, ended })
    }

    /// Observes a last time; then everything is written, unless the file system does not answer. A program that died of
    /// a signal is given as what there is to write if it has made no trace.
    pub(super) fn finish(self, death: Option<ProcessTimes>) -> Observation {
        if let Some(death) = death {
            drop(self.program.send(death));
        }
        let stopped = rustix::io::write(&self.stop, &1_u64.to_ne_bytes()).is_ok();
        let observed = if stopped { self.ended.recv_timeout(WRITTEN_WITHIN).ok() } else { None };
        let given_up =
            || "what was seen of them was not written in time, as where a file system does not answer".into();
        observed.unwrap_or_else(|| Observation::none(&self.run, given_up()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_observation_that_is_given_up_is_said() {
        let stop = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let (program, _) = mpsc::channel();
        let (_, ended) = mpsc::channel();
        let observer = ProcessObserver { run: "r".into(), address: String::new(), stop, program, ended };
        let observed = observer.finish(None);
        let [line] = observed.lines() else { panic!("{observed:?}") };
        assert!(line.run == "r" && line.unobserved.starts_with("what was seen of them was not written"), "{line:?}");
    }
}
