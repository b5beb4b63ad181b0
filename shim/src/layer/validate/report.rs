//! What becomes of a finding: a line on stderr, an instant in the trace, and what `URSCOPE_ON_ERROR` asks for.
//!
//! A sin is said once for each place that commits it and then only counted, so that a loop does not drown the program's own
//! words; the trace has all of them. Nothing here may be called with the layer's lock held.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use urscope_rules::{Finding, Severity};
use urscope_schema::{api::Function, trace::records::Found};

use super::super::{Verdict, trace};
use crate::{
    knobs::{self, OnError},
    raw::{renewable::Renewable, stderr},
};

/// Where a sin is committed. The place is as fine as what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Spot {
    rule: &'static str,
    function: Option<Function>,
    /// The number of the call stack.
    stack: Option<u64>,
}

impl Spot {
    fn of(finding: &Finding) -> Self {
        Self { rule: finding.rule.code, function: finding.at.function, stack: finding.at.stack }
    }
}

/// How many spots are told apart: a program may commit a sin under very many stacks.
const SPOTS: usize = 1024;

/// How often each sin was found.
static TOLD: Renewable<Mutex<BTreeMap<Spot, u64>>> = Renewable::new(Mutex::default);

/// Says what was found at a call, and what is to become of the call.
#[cold]
pub(super) fn found(findings: &[Finding]) -> Verdict {
    let serious = findings.iter().any(|finding| finding.severity > Severity::Note);
    let answer = findings.iter().find_map(|finding| finding.answer);
    tell(findings);
    match (knobs::read().on_error, answer) {
        (OnError::Refuse, Some(answer)) => Verdict::Answered(answer),
        (OnError::Abort, _) if serious => {
            stderr::say("URSCOPE_ON_ERROR=abort ends the program here; its trace ends with what was found");
            trace::end("abort");
            std::process::abort()
        }
        _ => Verdict::Passed,
    }
}

/// Says what was found at the end of the process, and how often what was not said each time.
pub(super) fn at_end(findings: &[Finding]) {
    tell(findings);
    for (spot, times) in std::mem::take(&mut *TOLD.get().lock()) {
        if times > 1 {
            let of = spot.function.map_or_else(String::new, |function| format!(" of {}", function.name()));
            stderr::say(&format!("{}: found {times} times in all at this call{of}; the trace has each", spot.rule));
        }
    }
}

fn tell(findings: &[Finding]) {
    for finding in findings {
        trace::finding(&Found {
            rule: finding.rule.code.into(),
            severity: finding.severity.name().into(),
            message: finding.message.clone(),
        });
        let is_new = {
            let mut told = TOLD.get().lock();
            let room = told.len() < SPOTS;
            match told.get_mut(&Spot::of(finding)) {
                Some(times) => {
                    *times += finding.count;
                    false
                }
                None if room => told.insert(Spot::of(finding), finding.count).is_none(),
                None => false,
            }
        };
        if is_new && (finding.severity > Severity::Note || !knobs::read().quiet) {
            stderr::say(&line(finding));
        }
    }
}

/// A finding in one line. What is known of its call stack is to stand behind it.
fn line(finding: &Finding) -> String {
    format!("{}: {}: {}; {}", finding.severity, finding.rule.code, finding.message, finding.advice)
}

/// Begins to count anew: a thread that holds the lock does not exist in the child.
pub(super) fn after_fork_in_child() {
    TOLD.renew(Mutex::default());
}
