//! # What it does
//!
//! Reports that calls of a process are missing in its trace: records could not be written, lines cannot be read, or the
//! file was closed without its footer.
//!
//! # Why it is bad
//!
//! A missing call may be a violation, or it may excuse what looks like one. So every finding that depends on this
//! process is at most a note, what the process left open does not count against it, and a run without other findings is
//! "not judged" instead of clean.
//!
//! # Example
//!
//! A run whose traces do not fit on the disk:
//!
//! ```sh
//! urscope run --dir /small -- ./app # Wrong
//! ```
//!
//! Fixed:
//!
//! ```sh
//! urscope run --dir /scratch -- ./app
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! producer: put h
//! producer: incomplete
//! ```
//!
//! # Good trace
//!
//! A killed process has lost nothing: its trace ends where the process ended.
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! producer: put h
//! producer: killed
//! ```
//!
//! # What to do
//!
//! Give the traces more room (`URSCOPE_DIR` on another disk, no limit on the size of files) and run again. Copy trace
//! files only after their processes have ended.

use urscope_schema::counted;

use super::{Check, Rule, When};
use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Fact, FactKind, Missing, What};

pub(super) static RULE: Rule = Rule {
    code: "calls-lost",
    severity: Severity::Note,
    when: When::Run,
    title: "calls of a process are missing in its trace",
    sentence: "lost records of its calls",
    facts: &[FactKind::CallsMissing],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::CallsMissing(Missing { lost, lines }) = fact.what else { return None };
    let why = match (lost, lines) {
        (0, 0) => "the file was closed without a footer".to_owned(),
        (lost, 0) => format!("{} could not be written", counted(lost, "record")),
        (0, lines) => format!("{} could not be read", counted(lines, "line")),
        _ => format!("{} could not be written, {} could not be read", counted(lost, "record"), counted(lines, "line")),
    };
    let message = format!(
        "calls of {} are missing in its trace: {why}; findings that depend on them are notes at most",
        fact.actor()
    );
    let advice = "give the traces more room and run again; copy them only after their processes have ended";
    Some(Finding::of_call(&RULE, fact.at, message).advice(advice))
}
