//! What becomes of a finding: a line on stderr, an instant in the trace, and what `URSCOPE_ON_ERROR` asks for.
//!
//! A sin is said once for each place that commits it and then only counted, so that a loop does not drown the program's own
//! words; the trace has all of them. Nothing here may be called with the layer's lock held.

use std::{collections::BTreeMap, fmt::Write as _};

use parking_lot::Mutex;
use urscope_rules::{Finding, Severity};
use urscope_schema::{api::Function, trace::records::Found};

use super::{
    super::{Verdict, trace},
    frames,
};
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
const SPOTS: usize = 256;

/// What was found so far.
static TOLD: Renewable<Mutex<Told>> = Renewable::new(Mutex::default);

#[derive(Default)]
struct Told {
    /// How often each sin was found.
    spots: BTreeMap<Spot, u64>,
    /// How often one was found in a place for which there was no room.
    others: u64,
}

/// What becomes of a finding on stderr.
enum Telling {
    InWords,
    /// It is the first that there is no room for.
    NoRoom,
    Counted,
}

impl Told {
    fn add(&mut self, spot: Spot, times: u64) -> Telling {
        if let Some(known) = self.spots.get_mut(&spot) {
            *known += times;
            return Telling::Counted;
        }
        if self.spots.len() < SPOTS {
            self.spots.insert(spot, times);
            return Telling::InWords;
        }
        self.others += times;
        if self.others == times { Telling::NoRoom } else { Telling::Counted }
    }
}

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
    let told = std::mem::take(&mut *TOLD.get().lock());
    for (spot, times) in told.spots.into_iter().filter(|(_, times)| *times > 1) {
        let of = spot.function.map_or_else(String::new, |function| format!(" of {}", function.name()));
        stderr::say(&format!("{}: found {times} times in all at this call{of}; the trace has each", spot.rule));
    }
    if told.others > 0 {
        stderr::say(&format!("{} findings in further places were not said; the trace has each", told.others));
    }
}

fn tell(findings: &[Finding]) {
    for finding in findings {
        trace::finding(&Found {
            rule: finding.rule.code.into(),
            severity: finding.severity.name().into(),
            message: finding.message.clone(),
        });
        let telling = TOLD.get().lock().add(Spot::of(finding), finding.count);
        match telling {
            Telling::InWords if finding.severity > Severity::Note || !knobs::read().quiet => {
                stderr::say(&line(finding));
            }
            Telling::NoRoom => stderr::say(&format!(
                "mistakes in more than {SPOTS} places: from here on new ones are only counted; the trace has each"
            )),
            Telling::InWords | Telling::Counted => {}
        }
    }
}

/// A finding in one line, with the call stacks of this process: where it was found, and where what it is about came from.
fn line(finding: &Finding) -> String {
    let Finding { severity, rule, message, advice, at, other, .. } = finding;
    let mut line = format!("{severity}: {}: {message}; {advice}", rule.code);
    let own = other.filter(|other| other.process == at.process);
    for (label, stack) in [("here", at.stack), ("there", own.and_then(|own| own.stack))] {
        if let Some(frames) = stack.and_then(frames::told) {
            let _ = write!(line, "; {label} {frames}");
        }
    }
    line
}

/// Begins to count anew: a thread that holds the lock does not exist in the child.
pub(super) fn after_fork_in_child() {
    TOLD.renew(Mutex::default());
}
