//! Loads traces into Perfetto's own importer, through `scripts/perfetto-check.mjs`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::repository;
use crate::runtime::Release;

/// What the importer reports about one trace.
#[derive(Debug)]
pub struct Opinion(Value);

impl Opinion {
    /// Fails the test unless the trace loads without a single warning.
    pub fn assert_ok(&self) {
        assert!(self.verdict() == "ok", "Perfetto does not load this trace cleanly: {self:#?}");
    }

    /// "ok", "warnings" or "rejected".
    pub fn verdict(&self) -> &str {
        self.0["verdict"].as_str().unwrap_or_else(|| panic!("no verdict: {self:#?}"))
    }

    /// The names of what the importer complains about.
    pub fn problems(&self) -> Vec<&str> {
        let problems = self.0["problems"].as_array().map_or(&[][..], Vec::as_slice);
        problems.iter().filter_map(|problem| problem["name"].as_str()).collect()
    }

    /// One of its counts, such as "slices" or "unfinished".
    pub fn count(&self, name: &str) -> u64 {
        self.0["counts"][name].as_u64().unwrap_or_else(|| panic!("no count of {name}: {self:#?}"))
    }

    /// The rows of a query, by its index.
    pub fn rows(&self, query: usize) -> &[Value] {
        self.0["rows"][query].as_array().expect("a query has rows").as_slice()
    }
}

/// A process that loads traces. It takes longer to start than to load most of them, so it serves several tests.
#[derive(Debug)]
struct Importer {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// How many more traces it may load: its memory grows.
    left: usize,
}

/// Those that serve no test now.
static IDLE: Mutex<Vec<Importer>> = Mutex::new(Vec::new());

impl Importer {
    fn start() -> Self {
        // The importer comes with the newest release.
        Release::R2026_2.folder();
        let mut process = Command::new("node")
            // Most traces are small: optimising the importer takes longer than it saves.
            .arg("--liftoff-only")
            .arg(repository().join("scripts/perfetto-check.mjs"))
            .arg("--serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node cannot be started: apt-get install nodejs");
        let questions = process.stdin.take().expect("its input is a pipe");
        let answers = BufReader::new(process.stdout.take().expect("its output is a pipe"));
        Self { process, questions, answers, left: 50 }
    }

    fn opinions(&mut self, traces: &[PathBuf], queries: &[&str]) -> Vec<Opinion> {
        let question = json!({ "traces": traces, "queries": queries });
        writeln!(self.questions, "{question}").expect("perfetto-check.mjs has ended");
        self.left = self.left.saturating_sub(traces.len());
        let mut answer = || {
            let mut line = String::new();
            self.answers.read_line(&mut line).expect("perfetto-check.mjs answers with text");
            Opinion(serde_json::from_str(&line).expect("perfetto-check.mjs failed; see standard error"))
        };
        traces.iter().map(|_| answer()).collect()
    }
}

impl Drop for Importer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Loads several traces and runs the same queries on each.
pub fn opinions(traces: &[PathBuf], queries: &[&str]) -> Vec<Opinion> {
    assert!(!traces.is_empty(), "there is no trace to load");
    let idle = || IDLE.lock().expect("no test panics while it holds this lock");
    let known = idle().pop();
    let mut importer = known.unwrap_or_else(Importer::start);
    let opinions = importer.opinions(traces, queries);
    if importer.left > 0 {
        idle().push(importer);
    }
    opinions
}

/// Loads one trace.
pub fn opinion(trace: &Path, queries: &[&str]) -> Opinion {
    opinions(&[trace.to_path_buf()], queries).remove(0)
}
