//! The overview of a run, which the page requests first.

use serde::Serialize;

use super::{Subject, state::Latest, tokens::AccessTokens};
use urscope_analyzer::analysis::{Ended, FoundFinding, Frame, Location};
use urscope_analyzer::{Judgement, plain::plain};

const HOSTED: &str = "https://ui.perfetto.dev";

/// The overview of a run, as JSON.
#[derive(Serialize)]
pub(super) struct Overview<'a> {
    generation: u64,
    running: bool,
    title: &'a str,
    urscope: &'static str,
    first_ns: u64,
    last_ns: u64,
    calls: u64,
    lives: u64,
    limits: &'a [String],
    error: Option<&'a str>,
    /// Absent on a page that is a file.
    perfetto: Option<Perfetto>,
    processes: Vec<Process<'a>>,
    /// The findings in few words, in the order of the judgement.
    sentences: Vec<Sentence>,
    again: &'a str,
}

/// A finding in few words.
#[derive(Serialize)]
struct Sentence {
    /// With its place: `rank 7 freed 8 MiB while rank 6 had it open: ring.cpp:37`.
    text: String,
    /// The call site here.
    here: Option<String>,
    /// The call site on the other side.
    there: Option<String>,
    /// The positions in the stacks of the frames that are shown first.
    shown: [Vec<usize>; 2],
}

impl Sentence {
    fn from_finding(judgement: &Judgement, found: &FoundFinding) -> Self {
        let site = |side: &Location| side.site.as_deref().map(plain);
        let shown = |side: &Location| {
            let frames: Vec<_> = side.passed_frames().chain(side.shown_frames()).collect();
            let is_shown = |frame: &Frame| frames.iter().any(|shown| std::ptr::eq(*shown, frame));
            (0..).zip(&side.stack).filter(|(_, frame)| is_shown(frame)).map(|(at, _)| at).collect()
        };
        Self {
            text: plain(&judgement.sentence(found)),
            here: site(&found.process),
            there: found.other.as_ref().and_then(site),
            shown: [shown(&found.process), found.other.as_ref().map(shown).unwrap_or_default()],
        }
    }
}

/// The Perfetto UI that the page passes the timeline to.
#[derive(Serialize)]
pub(super) struct Perfetto {
    url: String,
    local: bool,
}

impl Perfetto {
    /// The copy that is served beside the page, or the public one. `port` is the one in the Host header of the request.
    pub(super) fn new(tokens: &AccessTokens, port: u16) -> Self {
        match tokens.perfetto() {
            Some(word) => Self { url: format!("http://localhost:{port}/{word}/"), local: true },
            None => Self { url: HOSTED.into(), local: false },
        }
    }
}

/// A process. All answers refer to it by its index.
#[derive(Serialize)]
struct Process<'a> {
    index: usize,
    pid: u32,
    host: &'a str,
    rank: Option<u32>,
    role: Option<&'a str>,
    executable: &'a str,
    command: &'a [String],
    began_ns: u64,
    ended_ns: u64,
    ended: Ended,
    calls: u64,
    ipc_calls: u64,
}

/// The overview of the latest analysis.
pub(super) fn overview<'a>(subject: &'a Subject, now: &'a Latest, perfetto: Option<Perfetto>) -> Overview<'a> {
    let model = now.model.as_deref();
    let seen = model.iter().flat_map(|model| model.judgement.processes.iter().zip(&model.tables.spans)).enumerate();
    let processes = seen.map(|(index, (seen, span))| Process {
        index,
        pid: seen.pid,
        host: &seen.host,
        rank: seen.rank,
        role: seen.role.as_deref(),
        executable: &seen.executable,
        command: &seen.command,
        began_ns: span.began_ns,
        ended_ns: span.ended_ns,
        ended: seen.ended,
        calls: seen.calls,
        ipc_calls: seen.ipc_calls,
    });
    Overview {
        generation: now.generation,
        running: now.running,
        title: &subject.title,
        urscope: env!("CARGO_PKG_VERSION"),
        first_ns: 0,
        last_ns: model.map_or(0, |model| model.tables.spans.iter().map(|span| span.ended_ns).max().unwrap_or_default()),
        calls: model.map_or(0, |model| model.tables.calls.total),
        lives: model.map_or(0, |model| model.tables.lives.total),
        limits: model.map_or(&[], |model| &model.limits),
        error: now.error.as_deref(),
        perfetto,
        processes: processes.collect(),
        sentences: model.map_or_else(Vec::new, |model| {
            let of = |found| Sentence::from_finding(&model.judgement, found);
            model.judgement.findings.iter().map(of).collect()
        }),
        again: &subject.again,
    }
}
