//! Counts repeated violations: the same violation at the same place is one finding with a count.

use std::collections::HashMap;

use urscope_rules::{Finding, ProcessId, Severity};
use urscope_schema::{api::Function, handle::Kind};

/// Findings with the same key are the same violation.
type Key = (&'static str, Severity, ProcessId, Option<Function>, Option<Function>, Option<Kind>, Option<u64>);

/// The findings so far, with their counts.
#[derive(Clone, Default)]
pub(crate) struct Deduplicator {
    pub(crate) findings: Vec<Finding>,
    places: HashMap<Key, usize>,
}

impl Deduplicator {
    /// Adds findings, and empties `found`.
    pub(crate) fn add(&mut self, found: &mut Vec<Finding>) {
        for finding in found.drain(..) {
            let functions = (finding.at.function, finding.other.and_then(|other| other.function));
            let kind = finding.subject.map(|subject| subject.kind);
            let key = (
                finding.rule.code,
                finding.severity,
                finding.at.process,
                functions.0,
                functions.1,
                kind,
                finding.at.stack,
            );
            if let Some(known) = self.places.get(&key).and_then(|place| self.findings.get_mut(*place)) {
                known.count += finding.count;
            } else {
                self.places.insert(key, self.findings.len());
                self.findings.push(finding);
            }
        }
    }
}
