//! Counts repeated violations: the same violation at the same place is one finding with a count. Of each, the first
//! [`KEPT`] occurrences are kept, so that the memory does not grow with the number of calls.

use std::{collections::HashMap, num::NonZeroU64};

use urscope_rules::{Finding, Place, ProcessId, Severity};
use urscope_schema::api::Function;
use urscope_schema::call::Nanos;
use urscope_schema::handle::{Handle, Kind};

/// Findings with the same key are the same violation.
type Key = (&'static str, Severity, ProcessId, Option<Function>, Option<Function>, Option<Kind>, Option<NonZeroU64>);

/// How many occurrences of a finding are kept, of each process.
pub(crate) const KEPT: usize = 100;

/// A finding, with its first occurrences. Its count is that of all.
#[derive(Clone)]
pub(crate) struct Repeated {
    pub(crate) first: Finding,
    pub(crate) occurrences: Vec<Occurred>,
    /// Of a race: when the hosts knew that the commands of the first one had completed, here and on the other side.
    pub(crate) known: [Option<Nanos>; 2],
}

/// Where and with which object a finding occurred.
#[derive(Clone, Copy)]
pub(crate) struct Occurred {
    pub(crate) at: Place,
    pub(crate) subject: Option<Handle>,
    pub(crate) size: Option<u64>,
    pub(crate) fingerprint: Option<u64>,
    pub(crate) count: u64,
}

/// The findings so far, with their counts.
#[derive(Clone, Default)]
pub(crate) struct Deduplicator {
    pub(crate) findings: Vec<Repeated>,
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
            let Finding { at, subject, size, fingerprint, count, .. } = finding;
            let occurred = Occurred { at, subject, size, fingerprint, count };
            if let Some(known) = self.places.get(&key).and_then(|place| self.findings.get_mut(*place)) {
                known.first.count += count;
                if known.occurrences.len() < KEPT {
                    known.occurrences.push(occurred);
                }
            } else {
                self.places.insert(key, self.findings.len());
                self.findings.push(Repeated { first: finding, occurrences: vec![occurred], known: [None; 2] });
            }
        }
    }
}
