//! What becomes of a finding: a line on stderr, an instant in the trace, and what `URSCOPE_ON_ERROR` asks for.
//!
//! A sin is said once for each place that commits it and then only counted, so that a loop does not drown the program's own
//! words; the trace has all of them. Nothing here may be called with the layer's lock held.

use std::{collections::BTreeMap, fmt::Write as _, sync::OnceLock};

use parking_lot::Mutex;
use urscope_rules::{Finding, Severity};
use urscope_schema::{api::Function, trace::records::Found};

use super::{
    super::{FindingSink, Verdict},
    frames,
};
use crate::{
    knobs::{self, OnError},
    raw::{fork_reset::ForkReset, stderr},
};

static SINK: OnceLock<&'static dyn FindingSink> = OnceLock::new();

/// Sends all findings there, besides to stderr. Only the first call counts.
pub(super) fn send_findings_to(sink: &'static dyn FindingSink) {
    let _ = SINK.set(sink);
}

/// Where a sin is committed. The place is as fine as what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Site {
    rule: &'static str,
    function: Option<Function>,
    /// The number of the call stack.
    stack: Option<u64>,
}

impl Site {
    fn of(finding: &Finding) -> Self {
        Self { rule: finding.rule.code, function: finding.at.function, stack: finding.at.stack }
    }
}

/// How many sites are reported apart: a program may commit a sin under very many stacks.
const SITES: usize = 256;

/// What was found so far.
static REPORTED: ForkReset<Mutex<Reported>> = ForkReset::new(Mutex::default);

#[derive(Default)]
struct Reported {
    /// How often each sin was found.
    sites: BTreeMap<Site, u64>,
    /// How often one was found in a place for which there was no room.
    others: u64,
}

/// What becomes of a finding on stderr.
enum Output {
    Full,
    /// It is the first that there is no room for.
    NoRoom,
    Counted,
}

impl Reported {
    fn add(&mut self, site: Site, times: u64) -> Output {
        if let Some(known) = self.sites.get_mut(&site) {
            *known += times;
            return Output::Counted;
        }
        if self.sites.len() < SITES {
            self.sites.insert(site, times);
            return Output::Full;
        }
        self.others += times;
        if self.others == times { Output::NoRoom } else { Output::Counted }
    }
}

/// Says what was found at a call, and what is to become of the call.
#[cold]
pub(super) fn found(findings: &[Finding]) -> Verdict {
    let serious = findings.iter().any(|finding| finding.severity > Severity::Note);
    let answer = findings.iter().find_map(|finding| finding.answer);
    report(findings);
    match (knobs::read().on_error, answer) {
        (OnError::Refuse, Some(answer)) => Verdict::Answered(answer),
        (OnError::Abort, _) if serious => {
            stderr::say("URSCOPE_ON_ERROR=abort ends the program here; its trace ends with what was found");
            if let Some(sink) = SINK.get() {
                sink.end("abort");
            }
            std::process::abort()
        }
        _ => Verdict::Passed,
    }
}

/// Says what was found at the end of the process, and how often what was not said each time.
pub(super) fn at_end(findings: &[Finding]) {
    report(findings);
    let reported = std::mem::take(&mut *REPORTED.get().lock());
    for (site, times) in reported.sites.into_iter().filter(|(_, times)| *times > 1) {
        let of = site.function.map_or_else(String::new, |function| format!(" of {}", function.name()));
        stderr::say(&format!("{}: found {times} times in all at this call{of}; the trace has each", site.rule));
    }
    if reported.others > 0 {
        stderr::say(&format!("{} findings in further places were not said; the trace has each", reported.others));
    }
}

fn report(findings: &[Finding]) {
    for finding in findings {
        if let Some(sink) = SINK.get() {
            sink.finding(&Found {
                rule: finding.rule.code.into(),
                severity: finding.severity.name().into(),
                message: finding.message.clone(),
            });
        }
        let output = REPORTED.get().lock().add(Site::of(finding), finding.count);
        match output {
            Output::Full if finding.severity > Severity::Note || !knobs::read().quiet => {
                stderr::say(&line(finding));
            }
            Output::NoRoom => stderr::say(&format!(
                "mistakes in more than {SITES} places: from here on new ones are only counted; the trace has each"
            )),
            Output::Full | Output::Counted => {}
        }
    }
}

/// A finding in one line, with the call stacks of this process: where it was found, and where what it is about came from.
fn line(finding: &Finding) -> String {
    let Finding { severity, rule, message, advice, at, other, .. } = finding;
    let mut line = format!("{severity}: {}: {message}; {advice}", rule.code);
    let own = other.filter(|other| other.process == at.process);
    for (label, stack) in [("here", at.stack), ("there", own.and_then(|own| own.stack))] {
        if let Some(frames) = stack.and_then(frames::describe) {
            let _ = write!(line, "; {label} {frames}");
        }
    }
    line
}

/// Begins to count anew: a thread that holds the lock does not exist in the child.
pub(super) fn after_fork_in_child() {
    REPORTED.reset(Mutex::default());
}
