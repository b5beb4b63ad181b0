//! The judge's report in its JSON form, as a program would read it.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;

use crate::repository;

/// What is promised to programs.
static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
    let text = std::fs::read_to_string(repository().join("docs/report.schema.json")).expect("the schema of a report");
    let schema = serde_json::from_str(&text).expect("a schema is JSON");
    jsonschema::validator_for(&schema).expect("a schema is a schema")
});

/// One report.
#[derive(Debug)]
pub struct Report(Value);

impl Report {
    /// Reads a report, which has to be what `docs/report.schema.json` promises.
    pub fn parse(text: &str) -> Self {
        let value = serde_json::from_str(text).unwrap_or_else(|error| panic!("no JSON report ({error}): {text}"));
        let errors: Vec<_> = SCHEMA.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "the report is not what its schema promises: {errors:#?}\n{text}");
        Self(value)
    }

    /// "clean", "findings" or "not-judged".
    pub fn verdict(&self) -> &str {
        self.0["verdict"].as_str().unwrap_or_else(|| panic!("a report without a verdict: {self:#?}"))
    }

    /// Why nothing could be judged.
    pub fn reason(&self) -> Option<&str> {
        self.0["reason"].as_str()
    }

    /// How often an entry point was called, all processes together.
    pub fn calls(&self, entry_point: &str) -> u64 {
        self.0["calls"][entry_point].as_u64().unwrap_or(0)
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

    /// All findings.
    pub fn findings(&self) -> &[Value] {
        list(&self.0["findings"])
    }

    /// The findings as "severity rule", sorted, each once: the shortest form that tells whether a report is right. That a call was
    /// slow is left out, for it tells of the machine: a thread of a faultless program may not get to run for long.
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
