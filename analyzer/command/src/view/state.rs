//! What the server knows: the run, how far it was heard, and who may ask.

use std::{path::PathBuf, sync::Arc};

use tokio::sync::{Semaphore, watch};

use super::{Subject, answers::Refusal, model::Model, perfetto::Copy, tokens::AccessTokens};

/// How many questions are heard at a time: each reads all traces.
const QUESTIONS: usize = 2;

/// How many timelines are written at a time. They go as slowly as whoever reads them.
const TIMELINES: usize = 4;

/// How far the run was heard.
#[derive(Clone, Default)]
pub(super) struct Latest {
    /// Counts hearings; 0 before the first.
    pub(super) generation: u64,
    /// What was heard last; it stays while a later hearing fails.
    pub(super) model: Option<Arc<Model>>,
    /// Why the latest hearing failed.
    pub(super) error: Option<Arc<str>>,
    /// Whether the run goes on, as far as was heard.
    pub(super) running: bool,
}

/// All that answers are made of.
pub(super) struct AppState {
    pub(super) tokens: Arc<AccessTokens>,
    pub(super) subject: Arc<Subject>,
    pub(super) now: watch::Receiver<Latest>,
    pub(super) perfetto: Option<Arc<Copy>>,
    pub(super) questions: Arc<Semaphore>,
    pub(super) timelines: Arc<Semaphore>,
}

impl AppState {
    pub(super) fn new(
        tokens: Arc<AccessTokens>,
        subject: Arc<Subject>,
        now: watch::Receiver<Latest>,
        perfetto: Option<Copy>,
    ) -> Self {
        let (questions, timelines) = (Arc::new(Semaphore::new(QUESTIONS)), Arc::new(Semaphore::new(TIMELINES)));
        Self { tokens, subject, now, perfetto: perfetto.map(Arc::new), questions, timelines }
    }

    /// What was heard, once something was.
    pub(super) async fn heard(&self) -> Result<Latest, Refusal> {
        let mut now = self.now.clone();
        let heard = now.wait_for(|now| now.generation > 0).await.map(|now| now.clone());
        heard.map_err(|_| Refusal::unavailable("the traces are not heard any more; start `urscope view` again"))
    }

    /// What was heard last.
    pub(super) async fn model(&self) -> Result<(u64, Arc<Model>), Refusal> {
        let Latest { generation, model, error, .. } = self.heard().await?;
        let why = || Refusal::unavailable(error.as_deref().unwrap_or("nothing was heard"));
        model.map(|model| (generation, model)).ok_or_else(why)
    }

    /// The traces, as they are now.
    pub(super) fn paths(&self) -> Result<Vec<PathBuf>, Refusal> {
        (self.subject.paths)().map_err(|error| Refusal::unavailable(format!("the traces cannot be listed: {error}")))
    }
}
