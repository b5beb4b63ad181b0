//! The judgement, as it is shown and as it is written to JSON.
//!
//! The field names of these types are the JSON format `"version":1`; a change of meaning needs a new version. A field that
//! came later has a default, so that older reports can be read.

mod schema;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use urscope_rules::Severity;

pub use schema::report_schema;
use schema::{DoorForm, SeverityForm};

/// The version of the JSON form.
pub const VERSION: u32 = 1;

/// The verdict over a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Calls were seen, and nothing as bad as was asked for.
    Clean,
    /// There are findings at or above the severity that was asked for.
    Findings,
    /// There was nothing to judge: never to be taken for clean.
    #[default]
    NotJudged,
}

impl Verdict {
    /// The exit code of the command.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::Findings => 1,
            Self::NotJudged => 2,
        }
    }

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Findings => "findings",
            Self::NotJudged => "not-judged",
        }
    }
}

/// All that is known after a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judgement {
    /// [`VERSION`].
    pub version: u32,
    /// The verdict.
    pub verdict: Verdict,
    /// Its exit code.
    pub exit: u8,
    /// Why nothing was judged.
    pub reason: Option<String>,
    /// The processes, in the order in which they began.
    pub processes: Vec<ProcessSummary>,
    /// How often each function was called, those that were called at all.
    pub calls: BTreeMap<String, u64>,
    /// The findings, the worst first, then by time.
    pub findings: Vec<FoundFinding>,
    /// What the verdict does not cover: processes whose doors did not open, traces with gaps.
    pub unseen: Vec<String>,
    /// Lines that could not be used, the first of each file.
    pub skipped: Vec<SkippedLine>,
    /// How many lines could not be used.
    pub skipped_lines: u64,
    /// The suppressions that were given, and what each was good for.
    #[serde(default)]
    pub suppressions: Vec<SuppressionUse>,
    /// The comparison with the report that was given as the baseline.
    #[serde(default)]
    pub baseline: Option<Compared>,
}

impl Judgement {
    /// Whether a process is still there.
    pub fn goes_on(&self) -> bool {
        self.processes.iter().any(|seen| seen.ended == Ended::Running)
    }
}

/// A process as its trace shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessSummary {
    /// Its number on its host.
    pub pid: u32,
    /// Its host.
    pub host: String,
    /// Its executable.
    pub executable: String,
    /// Its command line.
    pub command: Vec<String>,
    /// Its rank among the processes of its job, if a launcher gave it one.
    #[serde(default)]
    pub rank: Option<u32>,
    /// When it began, in nanoseconds of its host's monotonic clock.
    pub began_ns: u64,
    /// How many calls of it were seen.
    pub calls: u64,
    /// How many of these were `urIPC*` calls.
    pub ipc_calls: u64,
    /// How many records of its calls could not be written.
    pub lost: u64,
    /// How it ended.
    pub ended: Ended,
    /// The function it was inside of when it ended.
    pub inside: Option<String>,
    /// Whether its last line was cut short.
    pub torn: bool,
    /// The ways in that were tried.
    #[schemars(with = "Vec<DoorForm>")]
    pub doors: Vec<urscope_schema::trace::records::EntryPoint>,
    /// Its trace.
    pub file: String,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// In order.
    Exited,
    /// Without a footer, and it is gone.
    Killed,
    /// Without a footer, and it is still there.
    Running,
    /// It became another program.
    Exec,
    /// Calls are missing in its trace.
    Incomplete,
}

impl Ended {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exited => "exited",
            Self::Killed => "killed",
            Self::Running => "running",
            Self::Exec => "exec",
            Self::Incomplete => "incomplete",
        }
    }
}

/// A finding, with the number of times it happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FoundFinding {
    /// The code of the rule.
    pub rule: String,
    /// How bad it is.
    #[schemars(with = "SeverityForm")]
    pub severity: Severity,
    /// Where the first one happened.
    pub process: Location,
    /// The other side.
    pub other: Option<Location>,
    /// When, in nanoseconds since the first process of the run began. Clocks of hosts are related by their real time.
    pub time_ns: u64,
    /// In which function.
    pub function: Option<String>,
    /// In which call.
    pub call: Option<u64>,
    /// What happened.
    pub message: String,
    /// What to do.
    pub advice: String,
    /// How often.
    pub count: u64,
    /// How often on each host; empty where the run was seen on one node only.
    #[serde(default)]
    pub hosts: BTreeMap<String, u64>,
    /// The object.
    pub subject: Option<String>,
    /// What kind of object it is: `usm`, `mem-handle`, `mapping` and so on.
    #[serde(default)]
    pub kind: Option<String>,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// The fingerprint of its handle data, `0x` and hexadecimal.
    pub fingerprint: Option<String>,
    /// By what it is known again in another run: 16 hexadecimal digits. Findings that are alike share it.
    #[serde(default)]
    pub identity: String,
    /// Whether it makes the verdict [`Verdict::Findings`].
    #[serde(default)]
    pub fails: bool,
    /// Why it does not count, if it does not.
    #[serde(default)]
    pub excuse: Option<Excuse>,
}

/// Why a finding does not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum Excuse {
    /// Somebody suppressed it.
    Suppression {
        /// The line, as `FILE:LINE`.
        place: String,
        /// What it says.
        text: String,
    },
    /// The baseline has it as well.
    Baseline,
}

impl std::fmt::Display for Excuse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Suppression { place, text } => write!(f, "suppressed by {place} ({text})"),
            Self::Baseline => f.write_str("known from the baseline"),
        }
    }
}

/// A suppression, and what it was good for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SuppressionUse {
    /// The line, as `FILE:LINE`.
    pub place: String,
    /// What it says.
    pub text: String,
    /// How many findings it excused; 0 if it is not needed.
    pub count: u64,
}

/// What is different from before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Compared {
    /// The report of before.
    pub file: String,
    /// How many findings it excuses.
    pub known: u64,
    /// How many findings neither it nor a suppression excuses.
    pub new: u64,
    /// The findings of before that were not found again.
    pub gone: Vec<GoneFinding>,
}

/// A finding of before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GoneFinding {
    /// The code of the rule.
    pub rule: String,
    /// How bad it was.
    #[schemars(with = "SeverityForm")]
    pub severity: Severity,
    /// What happened.
    pub message: String,
    /// By what it would be known again.
    pub identity: String,
}

impl GoneFinding {
    pub(crate) fn of(finding: &FoundFinding) -> Self {
        let (rule, message, identity) = (finding.rule.clone(), finding.message.clone(), finding.identity_of());
        Self { rule, severity: finding.severity, message, identity }
    }
}

/// A place in a process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Location {
    /// Its host.
    #[serde(default)]
    pub host: String,
    /// Its number on its host.
    pub pid: u32,
    /// Its executable.
    pub executable: String,
    /// The thread.
    pub tid: u32,
    /// When, in nanoseconds since the first process of the run began. Clocks of hosts are related by their real time.
    pub time_ns: u64,
    /// In which function.
    pub function: Option<String>,
    /// In which call.
    pub call: Option<u64>,
    /// Its call stack, innermost first; empty where none was taken.
    pub stack: Vec<Frame>,
}

/// One frame of a call stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Frame {
    /// The path of the file that it lies in; empty if it lies in none.
    pub module: String,
    /// Its address there, `0x` and hexadecimal.
    pub offset: String,
    /// Its function.
    pub function: Option<String>,
    /// The source file.
    pub file: Option<String>,
    /// The line, from 1 on.
    pub line: Option<u32>,
}

/// A line that could not be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkippedLine {
    /// The file.
    pub file: String,
    /// The line, from 1 on.
    pub line: u64,
    /// Where it starts, in bytes.
    pub offset: u64,
    /// What was wrong.
    pub why: String,
}
