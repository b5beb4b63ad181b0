//! # What it does
//!
//! Reports calls of a function that took more than a hundred times as long as half of its calls in this process, and
//! more than ten milliseconds. The rule needs a thousand calls of the function. Calls that wait for other processes are
//! left out.
//!
//! # Why it is bad
//!
//! A function that normally returns in microseconds and sometimes in milliseconds was delayed by something else: a
//! lock, a page that was swapped out, a cache that was emptied, or a thread that was not scheduled. The median hides
//! such calls, but users notice them.
//!
//! # Example
//!
//! No line of the program is wrong: what delays a few of many equal calls is outside of them. `urscope stats` shows the times of the
//! calls of each function, and `urscope view` the moment.
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
//! producer: get p -> h takes 50
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
//! producer: get p -> h takes 50
//! producer: put h
//! end
//! producer: put g
//! ```
//!
//! # What to do
//!
//! Check what else happened at that moment: the timeline of the traces, `urscope stats`, and the load of the machine.

use urscope_schema::duration;

use super::{Check, Rule, When, wording::call};
use crate::{
    finding::{Finding, Severity},
    tracker::{
        durations::Outlier,
        fact::{Fact, FactKind, What},
    },
};

pub(super) static RULE: Rule = Rule {
    code: "slow-call",
    severity: Severity::Note,
    when: When::End,
    title: "some calls of a function took far longer than the others",
    sentence: "made calls that took far longer than the others",
    facts: &[FactKind::ProcessEnded],
    check: Check::Each(check),
};

fn check(fact: &Fact<'_>, found: &mut Vec<Finding>) {
    if let (What::ProcessEnded(_), Some(state)) = (fact.what, fact.tracker.state(fact.at.process)) {
        found.extend(state.durations.outliers().map(|outlier| report(fact, &outlier)));
    }
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
