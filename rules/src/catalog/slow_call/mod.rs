//! # What it does
//!
//! Reports calls of a function that took more than a hundred times as long as half of its calls in this process, and
//! more than half a second: so long no call waits for a processor, also on a busy machine. The rule needs a thousand
//! calls of the function. Calls that wait for other processes are left out.
//!
//! # Why it is bad
//!
//! A function that normally returns in microseconds and sometimes in a second was delayed by something else: a
//! lock, a page that was swapped out, a cache that was emptied, or a thread that was not scheduled. The median hides
//! such calls, but users notice them.
//!
//! # Example
//!
//! No line of the program is wrong: what delays a few of many equal calls is outside of them.
//! `urscope stats` shows the times of the calls of each function, and `urscope view` the moment.
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> g
//! 999 times
//! producer: get p -> h
//! producer: put h
//! end
//! producer: get p -> h takes 5000
//! producer: put h
//! producer: put g
//! ```
//!
//! # Good trace
//!
//! A function that is always slow has no outliers.
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> g
//! 1000 times
//! producer: get p -> h takes 5000
//! producer: put h
//! end
//! producer: put g
//! ```
//!
//! # What to do
//!
//! Check what else happened at that moment: the timeline of the traces, `urscope stats`, and the load of the machine.

mod durations;

use urscope_schema::api::{Effect, Function};
use urscope_schema::{duration, handle::Kind};

use self::durations::{Durations, Outlier};
use super::{Check, Rule, RuleState, When, memory::PerProcess, wording::call};
use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Fact, FactKind, What};

pub(super) static RULE: Rule = Rule {
    code: "slow-call",
    severity: Severity::Note,
    when: When::End,
    title: "some calls of a function took far longer than the others",
    sentence: "made calls that took far longer than the others",
    facts: &[FactKind::Returned, FactKind::ProcessEnded],
    check: Check::Stateful(|| Box::new(SlowCalls::default())),
};

/// How long the calls of each process took.
#[derive(Clone, Debug, Default)]
struct SlowCalls(PerProcess<Durations>);

impl RuleState for SlowCalls {
    fn check(&mut self, fact: &Fact<'_>, found: &mut Vec<Finding>) {
        match (&fact.what, fact.at.function) {
            (What::Returned(returned), Some(function)) if !waits(function) => {
                let took = returned.time.0.saturating_sub(fact.at.time.0);
                self.0.get_or_insert_with(fact.at.process, Durations::default).add(function, took, fact.at);
            }
            (What::ProcessEnded(_), _) => {
                let durations = self.0.take(fact.at.process).unwrap_or_default();
                found.extend(durations.outliers().iter().map(|outlier| report(fact, outlier)));
            }
            _ => {}
        }
    }
}

/// Whether a call may wait for another process.
fn waits(function: Function) -> bool {
    matches!(function.effect(), Effect::Waits(Kind::Event) | Effect::Signals(_))
}

fn report(fact: &Fact<'_>, outlier: &Outlier) -> Finding {
    let at = outlier.place;
    let function = at.function.map_or("", |function| function.name());
    let message = format!(
        "{} waited {} for {}, while half of its {} calls of {function} took no more than {}; outliers in total: {}",
        fact.actor(),
        duration(outlier.took),
        call(at),
        outlier.calls,
        duration(outlier.median),
        outlier.outliers
    );
    let advice = "check what else happened at that moment: the timeline, urscope stats, and the load of the machine";
    Finding::of_call(&RULE, at, message).advice(advice)
}
