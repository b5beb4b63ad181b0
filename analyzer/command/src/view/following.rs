//! The thread that analyzes the run, and takes in what is new whenever the run grows.
//!
//! If a later analysis fails, the results of the earlier one stay available, and the error is reported with them.

use std::time::{Duration, Instant};
use std::{io, sync::Arc, thread};

use tokio::sync::watch::{self, Receiver, Sender};

use super::model::{Follow, Model};
use super::{Subject, state::Latest};
use urscope_analyzer::follow::Follower;

/// The interval at which the thread checks whether it should stop.
const STOP_CHECK: Duration = Duration::from_millis(100);

/// Starts to follow the run, until the sender of `stopped` is dropped.
pub(super) fn start(subject: Arc<Subject>, stopped: Receiver<()>) -> io::Result<Receiver<Latest>> {
    let (sender, now) = watch::channel(Latest::default());
    thread::Builder::new().name("analysis".into()).spawn(move || follow(&subject, &sender, &stopped))?;
    Ok(now)
}

fn follow(subject: &Subject, sender: &Sender<Latest>, stopped: &Receiver<()>) {
    let mut follower = Follower::new(&subject.watched);
    let mut follow = Follow::default();
    let mut due = true;
    while stopped.has_changed().is_ok() {
        let began = Instant::now();
        // The next poll reports what is written during this analysis.
        if follower.poll(began) || due {
            due = false;
            let result = analyze(subject, &mut follow);
            follower.analyzed(began, Instant::now());
            sender.send_modify(|now| {
                now.generation += 1;
                match result {
                    Ok(model) => {
                        (now.running, now.model, now.error) =
                            (model.judgement.is_running(), Some(Arc::new(model)), None);
                    }
                    Err(error) => now.error = Some(error.into()),
                }
            });
        }
        let now = Instant::now();
        thread::sleep(follower.next_poll(now).saturating_duration_since(now).min(STOP_CHECK));
    }
}

fn analyze(subject: &Subject, follow: &mut Follow) -> Result<Model, String> {
    let paths = (subject.paths)().map_err(|error| format!("the traces cannot be listed: {error}"))?;
    follow.model(&paths, &subject.options).map_err(|error| error.to_string())
}
