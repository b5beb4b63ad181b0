//! Loads traces into Perfetto's own importer, through `scripts/perfetto-check.mjs`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

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

/// Loads several traces and runs the same queries on each.
pub fn opinions(traces: &[PathBuf], queries: &[&str]) -> Vec<Opinion> {
    // The importer comes with the newest release.
    Release::R2026_2.folder();
    assert!(!traces.is_empty(), "there is no trace to load");
    let output = Command::new("node")
        // Most traces are small: optimising the importer takes longer than it saves.
        .arg("--liftoff-only")
        .arg(repository().join("scripts/perfetto-check.mjs"))
        .args(queries.iter().flat_map(|query| ["--sql", query]))
        .args(traces)
        .output()
        .expect("node cannot be started: apt-get install nodejs");
    let opinions: Vec<Opinion> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| Opinion(serde_json::from_str(line).expect("the checker prints JSON")))
        .collect();
    assert!(opinions.len() == traces.len(), "perfetto-check.mjs failed:\n{}", String::from_utf8_lossy(&output.stderr));
    opinions
}

/// Loads one trace.
pub fn opinion(trace: &Path, queries: &[&str]) -> Opinion {
    opinions(&[trace.to_path_buf()], queries).remove(0)
}
