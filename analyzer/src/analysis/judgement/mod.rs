//! The judgement, as reports show it and as JSON stores it.
//!
//! The field names of these types are the JSON format `"version":1`; a change of meaning needs a new version.

mod location;
mod schema;
mod skipped_line;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use urscope_rules::Severity;
use urscope_schema::{host::ranks::process_name, trace::records::EntryPoint};

pub use location::{Excerpt, Frame, Location};
pub use schema::report_schema;
use schema::{EntryPointForm, SeverityForm};
pub use skipped_line::SkippedLine;

/// The version of the JSON format.
pub const VERSION: u32 = 1;

/// The verdict over a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Calls were recorded, and there are no findings at or above the requested severity.
    Clean,
    /// There are findings at or above the requested severity.
    Findings,
    /// There are no such findings, but there are [`Judgement::limits`]. This is not the same as clean.
    PartlyJudged,
    /// There was nothing to judge, or calls are missing. This is not the same as clean.
    #[default]
    NotJudged,
}

impl Verdict {
    /// The exit code of the command.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::Findings => 1,
            Self::PartlyJudged | Self::NotJudged => 2,
        }
    }

    /// The name of the verdict in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Findings => "findings",
            Self::PartlyJudged => "partly-judged",
            Self::NotJudged => "not-judged",
        }
    }
}

/// The result of an analysis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judgement {
    /// [`VERSION`].
    pub version: u32,
    /// The verdict.
    pub verdict: Verdict,
    /// What happened, in one line: the first finding that counts as a sentence with its place, or the verdict with its
    /// reason.
    pub headline: String,
    /// The exit code of the command.
    pub exit: u8,
    /// Why nothing was judged, or not everything. It may stand beside findings.
    pub reason: Option<String>,
    /// What keeps a verdict without findings from being clean: what happened that the traces do not show.
    pub limits: Vec<Limit>,
    /// The processes, in the order in which they began.
    pub processes: Vec<ProcessSummary>,
    /// The number of calls of each function that was called.
    pub calls: BTreeMap<String, u64>,
    /// The findings, by descending severity, then by time.
    pub findings: Vec<FoundFinding>,
    /// What the verdict does not cover: processes that could not be intercepted, and incomplete traces.
    pub unseen: Vec<String>,
    /// The first lines of each file that could not be used.
    pub skipped: Vec<SkippedLine>,
    /// The number of lines that could not be used.
    pub skipped_lines: u64,
    /// The suppressions that were given, and how many findings each of them excused.
    pub suppressions: Vec<SuppressionUse>,
    /// The comparison with the report that was given as the baseline.
    pub baseline: Option<Compared>,
}

impl Judgement {
    /// Adds limits, and what follows from them for the verdict, its reason and the headline.
    #[must_use]
    pub fn limited(mut self, limits: impl IntoIterator<Item = Limit>) -> Self {
        for limit in limits {
            self.reason =
                Some(self.reason.map_or_else(|| limit.text.clone(), |known| format!("{known}; {}", limit.text)));
            self.limits.push(limit);
        }
        if self.verdict == Verdict::Clean && !self.limits.is_empty() {
            self.verdict = Verdict::PartlyJudged;
            self.exit = self.verdict.exit_code();
        }
        self.headline = self.headline_of();
        self
    }

    /// How processes died and devices failed, if nothing else keeps the verdict from being clean.
    pub(crate) fn failures_only(&self) -> Option<&str> {
        let is_failure = |limit: &Limit| matches!(limit.cause, LimitCause::Death | LimitCause::DeviceError);
        let only = self.verdict == Verdict::PartlyJudged && self.limits.iter().all(is_failure);
        self.reason.as_deref().filter(|_| only)
    }

    /// Whether a process of the run is still running.
    pub fn is_running(&self) -> bool {
        self.processes.iter().any(|process| process.ended == Ended::Running)
    }
}

/// What keeps a verdict without findings from being clean.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    /// What it comes from.
    pub cause: LimitCause,
    /// What is not known, and of which processes.
    pub text: String,
}

/// What a [`Limit`] comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LimitCause {
    /// A process died of a signal that nobody expected.
    Death,
    /// A call of a process that shares memory reported the failure of a device.
    DeviceError,
    /// Handle data came from processes that were not traced.
    UntracedPeer,
    /// Commands were enqueued whose accesses to memory are not known: graphs, batches of copies, kernels whose
    /// arguments cannot be read.
    Unexamined,
    /// Ranks or other processes were not traced.
    NotTraced,
    /// A process was not traced from its beginning on.
    Late,
    /// Calls through an adapter were not seen.
    UnseenCalls,
    /// Processes of another run may have opened what this one exported.
    OtherRun,
}

/// A process, as its trace describes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessSummary {
    /// Its process id on its host.
    pub pid: u32,
    /// Its host.
    pub host: String,
    /// Its executable.
    pub executable: String,
    /// The name of its run.
    pub run: String,
    /// Its command line; absent unless `--command-lines` asks for it, because it may contain secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Its rank among the processes of its job, if a launcher assigned one.
    pub rank: Option<u32>,
    /// The function of the program that it runs, such as `producer`, if no other process of the run does. It is known
    /// if there are findings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The ranks of its job that were traced, as `0,3-5`; empty if all were.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ranks: String,
    /// How many ranks of its job are on other hosts; absent if none is, or if the launcher does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks_elsewhere: Option<u32>,
    /// Whether urscope came into it while it ran, so that what it had done before is not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    /// When it began, in nanoseconds of its host's monotonic clock.
    pub began_ns: u64,
    /// When that was in nanoseconds since 1970 (`CLOCK_REALTIME`); 0 if that is not known.
    pub realtime_ns: u64,
    /// The number of its recorded calls.
    pub calls: u64,
    /// The number of calls that share something among them.
    pub ipc_calls: u64,
    /// The number of call records that could not be written.
    pub lost: u64,
    /// How it ended.
    pub ended: Ended,
    /// The signal that ended it, such as `SIGSEGV`; absent if none did, or if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The function that it was executing when it ended.
    pub inside: Option<String>,
    /// The number of that call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inside_call: Option<u64>,
    /// Whether the last line of its trace is incomplete.
    pub torn: bool,
    /// The entry points at which urscope tried to intercept calls.
    #[schemars(with = "Vec<EntryPointForm>")]
    pub entry_points: Vec<EntryPoint>,
    /// The path of its trace.
    pub file: String,
}

impl ProcessSummary {
    /// Its name: `rank 7 (pid 12510)`, `producer (pid 12510)`, or with the program's name.
    pub fn name(&self) -> String {
        process_name(self.role.as_deref().unwrap_or(&self.executable), self.pid, self.rank)
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// It exited normally.
    Exited,
    /// It no longer runs, and its trace has no footer.
    Killed,
    /// It still runs.
    Running,
    /// It became another program by `exec`.
    Exec,
    /// Calls are missing from its trace.
    #[default]
    Incomplete,
}

impl Ended {
    /// The name in reports.
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

/// A finding, with the number of its occurrences.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FoundFinding {
    /// The code of the rule.
    pub rule: String,
    /// Its severity.
    #[schemars(with = "SeverityForm")]
    pub severity: Severity,
    /// The place of its first occurrence.
    pub process: Location,
    /// The other place that the finding involves.
    pub other: Option<Location>,
    /// The places in further processes on the other side, one in each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Location>,
    /// Where the other process ended what it held, after the finding: the close of memory that was freed before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub later: Option<Location>,
    /// Whether the other process never ended it, and is over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub never_ends: bool,
    /// The time, in nanoseconds since the first process of the run began. Hosts are aligned by their real time.
    pub time_ns: u64,
    /// The function.
    pub function: Option<String>,
    /// The number of the call in its process.
    pub call: Option<u64>,
    /// What happened.
    pub message: String,
    /// What to do.
    pub advice: String,
    /// The number of occurrences.
    pub count: u64,
    /// The number of occurrences of each severity, if they differ; [`Self::severity`] is the highest.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub severities: BTreeMap<String, u64>,
    /// The occurrences, by rank, pid and time: of each process at most the first 100 with the same call stacks.
    pub occurrences: Vec<Occurrence>,
    /// The number of occurrences on each host; empty if the run has one node.
    pub hosts: BTreeMap<String, u64>,
    /// The object.
    pub subject: Option<String>,
    /// The kind of the object: `usm`, `mem-handle`, `mapping` and so on.
    pub kind: Option<String>,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// The fingerprint of its handle data, `0x` and hexadecimal.
    pub fingerprint: Option<String>,
    /// Identifies the finding across runs: 16 hexadecimal digits. Equal findings share it.
    pub identity: String,
    /// Whether it makes the verdict [`Verdict::Findings`].
    pub fails: bool,
    /// Why it does not count, if it does not.
    pub excuse: Option<Excuse>,
}

/// One occurrence of a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Occurrence {
    /// The host.
    pub host: String,
    /// The process id on its host.
    pub pid: u32,
    /// Its rank in its job, if a launcher assigned one.
    pub rank: Option<u32>,
    /// The executable.
    pub executable: String,
    /// The thread id.
    pub tid: u32,
    /// The time, in nanoseconds since the first process of the run began.
    pub time_ns: u64,
    /// The number of the call in its process.
    pub call: Option<u64>,
    /// The object.
    pub subject: Option<String>,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// The fingerprint of its handle data, `0x` and hexadecimal.
    pub fingerprint: Option<String>,
    /// How many occurrences it stands for: more than 1 only where a process left very many objects.
    pub count: u64,
}

impl FoundFinding {
    /// Of two commands that nothing orders: the one that was enqueued first, the other one, and when the first one's
    /// process knew that it had completed. That is behind the second one's enqueue, and nothing can have ordered them
    /// in between.
    pub fn unordered(&self) -> Option<(&Location, &Location, u64)> {
        let mut sides = [&self.process, self.other.as_ref()?];
        sides.sort_by_key(|side| side.time_ns);
        let [first, second] = sides;
        let known = first.known_ns.filter(|known| *known > second.time_ns)?;
        Some((first, second, known))
    }
}

#[cfg(test)]
impl FoundFinding {
    /// A note about a place, once, and without details.
    pub(crate) fn note_at(process: Location) -> Self {
        let needed = serde_json::json!({"rule": "", "severity": "note", "process": Location::default(), "time_ns": 0, "message": "",
            "advice": "", "count": 1, "occurrences": [], "hosts": {}, "identity": "", "fails": false});
        Self { process, ..serde_json::from_value(needed).unwrap() }
    }
}

#[cfg(test)]
impl Frame {
    /// A frame of the program `/app`.
    pub(crate) fn new(function: &str, file: &str, line: u32) -> Self {
        let function = Some(function.to_owned());
        let file = Some(file.to_owned());
        Self { module: "/app".into(), function, file, line: Some(line), ..Self::default() }
    }
}

impl Occurrence {
    /// The order in which lists show occurrences: by rank, host, pid and time.
    pub(crate) fn order(&self) -> (Option<u32>, &str, u32, u64, Option<u64>) {
        (self.rank, &self.host, self.pid, self.time_ns, self.call)
    }
}

/// Why a finding does not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum Excuse {
    /// A suppression covers it.
    Suppression {
        /// The line, as `FILE:LINE`.
        place: String,
        /// The text of the line.
        text: String,
    },
    /// The baseline has it as well.
    Baseline,
}

impl std::fmt::Display for Excuse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Suppression { place, text } => write!(f, "suppressed by {place} ({text})"),
            Self::Baseline => f.write_str("unchanged from the baseline"),
        }
    }
}

/// A suppression, and how many findings it excused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SuppressionUse {
    /// The line, as `FILE:LINE`.
    pub place: String,
    /// The text of the line.
    pub text: String,
    /// The number of findings that it excused; 0 if it is not needed.
    pub count: u64,
}

/// The comparison with a baseline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Compared {
    /// The report that is the baseline.
    pub file: String,
    /// The number of findings that it excuses.
    pub known: u64,
    /// The number of findings that neither it nor a suppression excuses.
    pub new: u64,
    /// The findings of the baseline that were not found again.
    pub gone: Vec<GoneFinding>,
}

/// A finding of the baseline that was not found again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GoneFinding {
    /// The code of the rule.
    pub rule: String,
    /// Its severity.
    #[schemars(with = "SeverityForm")]
    pub severity: Severity,
    /// What happened.
    pub message: String,
    /// Identifies the finding across runs.
    pub identity: String,
}

impl GoneFinding {
    pub(crate) fn from_finding(finding: &FoundFinding) -> Self {
        let rule = finding.rule.clone();
        let message = finding.message.clone();
        let identity = finding.identity.clone();
        Self { rule, severity: finding.severity, message, identity }
    }
}
