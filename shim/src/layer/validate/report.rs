//! Reports a finding: a line on stderr, a record through the [`FindingSink`], and the action of `URSCOPE_ON_ERROR`.
//!
//! A violation is printed once for each place in the program and then only counted; the trace has every one. Must
//! never be called while the layer's lock is held.

use std::{collections::BTreeMap, fmt::Write as _, num::NonZeroU64, sync::OnceLock};

use urscope_rules::{Finding, Severity};
use urscope_schema::{api::Function, trace::records::Found};

use super::super::{FindingSink, Verdict};
use super::frames;
use crate::knobs::{self, OnError};
use crate::raw::{processes::fork_reset::ForkReset, signals::interruptions, stderr, threads::mutex::Mutex};

static SINK: OnceLock<&'static dyn FindingSink> = OnceLock::new();

/// Sends all findings to `sink`, too. Only the first call has an effect.
pub fn send_findings_to(sink: &'static dyn FindingSink) {
    let _ = SINK.set(sink);
}

/// The place of a violation in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Site {
    rule: &'static str,
    function: Option<Function>,
    stack: Option<NonZeroU64>,
}

impl Site {
    fn from_finding(finding: &Finding) -> Self {
        Self { rule: finding.rule.code, function: finding.at.function, stack: finding.at.stack }
    }
}

/// The most sites: a program may violate a rule under very many stacks.
const SITE_LIMIT: usize = 256;

/// The violations so far.
static VIOLATIONS: ForkReset<Mutex<Violations>> = ForkReset::new(Mutex::default);

#[derive(Default)]
struct Violations {
    /// The count of each violation, and whether it is printed.
    sites: BTreeMap<Site, (u64, bool)>,
    /// The count of violations at further sites.
    others: u64,
}

/// What is printed of a finding.
enum Output {
    Full,
    /// The first one without room for its site.
    NoRoom,
    Counted,
}

impl Violations {
    fn add(&mut self, site: Site, times: u64, printed: bool) -> Output {
        if let Some((known, before)) = self.sites.get_mut(&site) {
            *known += times;
            let first = printed && !*before;
            *before |= printed;
            return if first { Output::Full } else { Output::Counted };
        }
        if self.sites.len() < SITE_LIMIT {
            self.sites.insert(site, (times, printed));
            return if printed { Output::Full } else { Output::Counted };
        }
        if !printed {
            return Output::Counted;
        }
        self.others += times;
        if self.others == times { Output::NoRoom } else { Output::Counted }
    }
}

/// Reports the findings of a call, and decides what happens to it.
#[cold]
pub(super) fn report_call(findings: &[Finding]) -> Verdict {
    let _held_off = interruptions::hold_off();
    let serious = findings.iter().any(|finding| finding.severity > Severity::Note);
    let answer = findings.iter().find_map(|finding| finding.answer);
    report(findings);
    match (knobs::read().on_error, answer) {
        (OnError::Refuse, Some(answer)) => Verdict::Answered(answer),
        (OnError::Abort, _) if serious => {
            stderr::say("URSCOPE_ON_ERROR=abort: the program ends here, and its trace ends with the finding");
            if let Some(sink) = SINK.get() {
                sink.end("abort");
            }
            std::process::abort()
        }
        _ => Verdict::Passed,
    }
}

/// Reports the findings at the end of the process, and the counts of violations that were printed once.
pub(super) fn report_end(findings: &[Finding]) {
    report(findings);
    let reported = std::mem::take(&mut *VIOLATIONS.get().lock());
    let often = reported.sites.into_iter().filter(|(_, (times, printed))| *times > 1 && *printed);
    for (site, (times, _)) in often {
        let of = site.function.map_or_else(String::new, |function| format!(" of {}", function.name()));
        stderr::say(&format!("{}: found {times} times in all at this call{of}; the trace has all of them", site.rule));
    }
    if reported.others > 0 {
        stderr::say(&format!(
            "{} findings at further places were not printed; the trace has all of them",
            reported.others
        ));
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
        let printed = finding.severity > Severity::Note || !knobs::read().quiet;
        let output = VIOLATIONS.get().lock().add(Site::from_finding(finding), finding.count, printed);
        match output {
            Output::Full => stderr::say(&line(finding)),
            Output::NoRoom => stderr::say(&format!(
                "violations at more than {SITE_LIMIT} places: further ones are only counted; the trace has all of them"
            )),
            Output::Counted => {}
        }
    }
}

/// A finding in one line, with this process's call stacks: of the call, and of the call that made the object.
fn line(finding: &Finding) -> String {
    let Finding { severity, rule, message, advice, at, other, .. } = finding;
    let mut line = format!("{severity}: {}: {message}; {advice}", rule.code);
    let own = other.filter(|other| other.process == at.process);
    for (label, stack) in [("here", at.stack), ("there", own.and_then(|own| own.stack))] {
        if let Some(frames) = stack.and_then(|stack| frames::describe(stack.get())) {
            let _ = write!(line, "; {label} {frames}");
        }
    }
    line
}

/// Resets the counts in a forked child, where a thread that holds the lock does not exist.
pub(super) fn after_fork_in_child() {
    VIOLATIONS.reset(Mutex::default());
}
