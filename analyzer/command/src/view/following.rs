//! The thread that hears: once, and again whenever there is more of the run.
//!
//! A later hearing that fails takes nothing away: what was heard before stays, and the failure is told beside it.

use std::{
    io,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use tokio::sync::watch::{self, Receiver, Sender};

use super::{
    Subject,
    model::{Follow, Model},
    state::Latest,
};
use urscope_analyzer::follow::Follower;

/// How often it is looked whether nobody listens any more.
const GLANCE: Duration = Duration::from_millis(100);

/// Begins to hear, until `stopped` has no sender any more.
pub(super) fn start(subject: Arc<Subject>, stopped: Receiver<()>) -> io::Result<Receiver<Latest>> {
    let (say, now) = watch::channel(Latest::default());
    thread::Builder::new().name("hearing".into()).spawn(move || follow(&subject, &say, &stopped))?;
    Ok(now)
}

fn follow(subject: &Subject, say: &Sender<Latest>, stopped: &Receiver<()>) {
    let mut follower = Follower::new(&subject.watched);
    let mut follow = Follow::default();
    let mut due = true;
    while stopped.has_changed().is_ok() {
        let began = Instant::now();
        // What grows while it is heard is told by the next look.
        if follower.poll(began) || due {
            due = false;
            let heard = analyze(subject, &mut follow);
            follower.heard(began, Instant::now());
            say.send_modify(|now| {
                now.generation += 1;
                match heard {
                    Ok(model) => {
                        (now.running, now.model, now.error) =
                            (model.judgement().goes_on(), Some(Arc::new(model)), None);
                    }
                    Err(error) => now.error = Some(error.into()),
                }
            });
        }
        let now = Instant::now();
        thread::sleep(follower.next_look(now).saturating_duration_since(now).min(GLANCE));
    }
}

fn analyze(subject: &Subject, follow: &mut Follow) -> Result<Model, String> {
    let paths = (subject.paths)().map_err(|error| format!("the traces cannot be listed: {error}"))?;
    follow.model(&paths, &subject.options).map_err(|error| error.to_string())
}
