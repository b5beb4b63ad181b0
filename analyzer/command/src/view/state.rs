//! The state that all requests share: the run, its latest analysis, the tokens and the limits.

use std::{path::PathBuf, sync::Arc};

use tokio::sync::{Semaphore, watch};
use urscope_analyzer::sources::Sources;

use super::{Settings, Subject, answers::Refusal, model::Model, perfetto::Copy, tokens::AccessTokens};

/// The maximum number of questions that are answered at a time, because each analyzes all traces.
const QUESTIONS: usize = 2;

/// The maximum number of timelines that are written at a time. Each is written only as fast as its client reads.
const TIMELINES: usize = 4;

#[derive(Clone, Default)]
pub(super) struct Latest {
    /// The number of analyses so far; 0 before the first.
    pub(super) generation: u64,
    /// The results of the latest successful analysis.
    pub(super) model: Option<Arc<Model>>,
    pub(super) error: Option<Arc<str>>,
    /// Whether the run was still running at the latest successful analysis.
    pub(super) running: bool,
}

pub(super) struct AppState {
    pub(super) tokens: Arc<AccessTokens>,
    pub(super) subject: Arc<Subject>,
    pub(super) now: watch::Receiver<Latest>,
    pub(super) perfetto: Option<Arc<Copy>>,
    pub(super) sources: Sources,
    pub(super) questions: Arc<Semaphore>,
    pub(super) timelines: Arc<Semaphore>,
}

impl AppState {
    pub(super) fn new(
        tokens: Arc<AccessTokens>,
        subject: Arc<Subject>,
        now: watch::Receiver<Latest>,
        settings: Settings,
    ) -> Self {
        let Settings { perfetto, sources, .. } = settings;
        let questions = Arc::new(Semaphore::new(QUESTIONS));
        let timelines = Arc::new(Semaphore::new(TIMELINES));
        Self { tokens, subject, now, perfetto: perfetto.map(Arc::new), sources, questions, timelines }
    }

    /// The latest analysis. Waits for the first one.
    pub(super) async fn latest(&self) -> Result<Latest, Refusal> {
        let mut now = self.now.clone();
        let latest = now.wait_for(|now| now.generation > 0).await.map(|now| now.clone());
        latest.map_err(|_| Refusal::unavailable("the analysis has stopped; start `urscope view` again"))
    }

    /// The number of the latest analysis, and the latest results. An error if no analysis has succeeded.
    pub(super) async fn model(&self) -> Result<(u64, Arc<Model>), Refusal> {
        let Latest { generation, model, error, .. } = self.latest().await?;
        let why = || Refusal::unavailable(error.as_deref().unwrap_or("the traces have not been analyzed"));
        model.map(|model| (generation, model)).ok_or_else(why)
    }

    pub(super) fn paths(&self) -> Result<Vec<PathBuf>, Refusal> {
        (self.subject.paths)().map_err(|error| Refusal::unavailable(format!("the traces cannot be listed: {error}")))
    }
}
