//! One hearing of a run, kept for whoever looks at it.

use std::path::PathBuf;

use crate::{
    Judgement, Options, judge,
    judge::Ended,
    questions::{self, Holders, QuestionError, Stats},
};

/// A run as it was heard.
pub struct Model {
    judgement: Judgement,
    stats: Stats,
    holders: Holders,
    spans: Vec<Span>,
}

/// When a process was there, in nanoseconds since the first one began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Its beginning.
    pub began_ns: u64,
    /// The last that is known of it.
    pub ended_ns: u64,
}

impl Model {
    /// Hears a run.
    pub fn hear(paths: &[PathBuf], options: &Options, _generation: u64) -> Result<Self, QuestionError> {
        let judgement = judge(paths, options)?;
        let stats = questions::stats(paths, options)?;
        let holders = questions::holders(paths, options, None)?;
        let first = judgement.processes.iter().map(|seen| seen.began_ns).min().unwrap_or_default();
        let spans = judgement.processes.iter().map(|seen| seen.began_ns - first);
        let spans = spans.map(|began_ns| Span { began_ns, ended_ns: began_ns }).collect();
        Ok(Self { judgement, stats, holders, spans })
    }

    /// What `urscope check` says.
    pub fn judgement(&self) -> &Judgement {
        &self.judgement
    }

    /// What `urscope stats` says.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// What `urscope holders` says.
    pub fn holders(&self) -> &Holders {
        &self.holders
    }

    /// When each process of the judgement was there.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Whether a process of it still runs.
    pub fn running(&self) -> bool {
        self.judgement.processes.iter().any(|seen| seen.ended == Ended::Running)
    }
}
