//! A report of the judge in its JSON form, read as another program would.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;

use crate::repository;

/// The published schema of a report.
static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
    let text = std::fs::read_to_string(repository().join("docs/report.schema.json")).expect("the schema of a report");
    let schema = serde_json::from_str(&text).expect("a schema is JSON");
    jsonschema::validator_for(&schema).expect("the schema is valid")
});

/// Whether the kernel tells the signal of every process that died. An older one tells it until the parent has waited
/// for the process.
pub fn tells_every_signal() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("the kernel has a release");
    let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(16))
}

/// One report.
#[derive(Debug)]
pub struct Report(Value);

impl Report {
    /// Reads a report; fails unless it matches `docs/report.schema.json`.
    pub fn parse(text: &str) -> Self {
        let value = serde_json::from_str(text).unwrap_or_else(|error| panic!("no JSON report ({error}): {text}"));
        let errors: Vec<_> = SCHEMA.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "the report does not match its schema: {errors:#?}\n{text}");
        Self(value)
    }

    /// "clean", "findings" or "not-judged".
    pub fn verdict(&self) -> &str {
        self.0["verdict"].as_str().unwrap_or_else(|| panic!("a report without a verdict: {self:#?}"))
    }

    /// Why nothing was judged, if so.
    pub fn reason(&self) -> Option<&str> {
        self.0["reason"].as_str()
    }

    /// What keeps a verdict without findings from being clean.
    pub fn limits(&self) -> &[Value] {
        list(&self.0["limits"])
    }

    /// What the verdict does not cover.
    pub fn unseen(&self) -> Vec<&str> {
        list(&self.0["unseen"]).iter().filter_map(Value::as_str).collect()
    }

    /// How often all processes together called an entry point.
    pub fn calls(&self, entry_point: &str) -> u64 {
        self.0["calls"][entry_point].as_u64().unwrap_or(0)
    }

    /// How many calls all processes made.
    pub fn all_calls(&self) -> u64 {
        self.0["calls"].as_object().map_or(0, |calls| calls.values().filter_map(Value::as_u64).sum())
    }

    /// The processes of the run.
    pub fn processes(&self) -> &[Value] {
        list(&self.0["processes"])
    }

    /// The process with this pid.
    pub fn process(&self, pid: u64) -> &Value {
        self.processes()
            .iter()
            .find(|process| process["pid"] == pid)
            .unwrap_or_else(|| panic!("no process {pid} in the report: {self:#?}"))
    }

    /// The processes that died of a signal. A kernel before Linux 6.16 may not tell the signal of a process whose
    /// parent has waited for it.
    pub fn died_of<'r>(&'r self, signal: &'r str) -> impl Iterator<Item = &'r Value> {
        let has_died = move |process: &&Value| {
            process["ended"] == "killed"
                && (process["signal"] == signal || process["signal"].is_null() && !tells_every_signal())
        };
        self.processes().iter().filter(has_died)
    }

    /// All findings.
    pub fn findings(&self) -> &[Value] {
        list(&self.0["findings"])
    }

    /// The findings as "severity rule", sorted, each once. `slow-call` is left out, because it depends on the machine:
    /// a thread of a correct program may wait long for a processor.
    pub fn violations(&self) -> Vec<String> {
        let mut violations: Vec<String> = self
            .findings()
            .iter()
            .filter(|finding| finding["rule"] != "slow-call")
            .map(|finding| format!("{} {}", text(&finding["severity"]), text(&finding["rule"])))
            .collect();
        violations.sort();
        violations.dedup();
        violations
    }

    /// The only finding of a rule.
    pub fn finding(&self, rule: &str) -> &Value {
        let found: Vec<&Value> = self.findings().iter().filter(|finding| finding["rule"] == rule).collect();
        assert!(found.len() == 1, "expected one finding of {rule}: {self:#?}");
        found[0]
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}
