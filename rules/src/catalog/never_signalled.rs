//! # What it does
//!
//! Notes a wait for an opened event that was never answered, when the process that made the event has ended.
//!
//! # Why it is bad
//!
//! Who is to signal an event must live until it has: the wait has no time limit, and the process hangs. What became of the signal is
//! not in a trace, nor how long a process that was killed had still to live, so this is a note. (A wait for several events is left
//! out: which one did not come is not known.)
//!
//! # Bad trace
//!
//! ```text
//! producer: event e ipc
//! producer: get-event e -> h
//! consumer: open-event h -> i
//! producer: put-event h
//! producer: release-event e
//! producer: exit
//! consumer: wait i begins
//! consumer: running
//! ```
//!
//! # Good trace
//!
//! An event that is signalled stays so, whoever ends.
//!
//! ```text
//! producer: event e ipc
//! producer: get-event e -> h
//! consumer: open-event h -> i
//! producer: put-event h
//! producer: release-event e
//! producer: exit
//! consumer: wait i begins
//! consumer: returns
//! consumer: release-event i
//! ```
//!
//! # What to do
//!
//! Let the producer wait for its own queue before it ends; let the consumer ask for the event's status and look after its peer.

use urscope_schema::handle::Handle;

use super::{
    Check, Rule, RuleState, When,
    wording::{call, name},
};
use crate::{
    finding::{Finding, Place, Severity},
    tracker::{
        End, Tracker,
        fact::{Fact, FactKind, What},
        pending::Operation,
    },
};

pub(super) static RULE: Rule = Rule {
    code: "never-signalled",
    severity: Severity::Note,
    when: When::Run,
    title: "a wait for an event is never answered, and the event's process has ended",
    facts: &[FactKind::ProcessEnded, FactKind::Finished],
    check: Check::Stateful(|| Box::new(Waits::default())),
};

/// The waits for opened events that had not returned when their process ended.
#[derive(Clone, Debug, Default)]
struct Waits(Vec<Wait>);

#[derive(Clone, Copy, Debug)]
struct Wait {
    at: Place,
    event: Handle,
    fingerprint: Option<u64>,
    /// The get of its handle data, in the process that made the event.
    source: Place,
}

impl RuleState for Waits {
    fn check(&mut self, fact: &Fact<'_>, found: &mut Vec<Finding>) {
        match fact.what {
            What::ProcessEnded(_) => {
                let Some(state) = fact.tracker.state(fact.at.process) else { return };
                self.0.extend(state.pending.values().filter_map(|pending| {
                    let Operation::Wait(event) = pending.operation else { return None };
                    let imported = state.objects.get(&event)?;
                    let (source, fingerprint) = (imported.source?, imported.fingerprint);
                    Some(Wait { at: pending.place, event, fingerprint, source })
                }));
            }
            What::Finished => {
                self.0.sort_by_key(|wait| super::memory::order(&wait.at));
                found.extend(self.0.iter().filter_map(|wait| report(fact.tracker, wait)));
            }
            _ => {}
        }
    }

    fn clone_box(&self) -> Box<dyn RuleState> {
        Box::new(self.clone())
    }
}

fn report(tracker: &Tracker, waiting: &Wait) -> Option<Finding> {
    let (how, at) = tracker.state(waiting.source.process)?.ended?;
    let how = match how {
        End::Exited => "exited",
        End::Killed => "been killed",
        End::Running | End::Incomplete => return None,
    };
    let when = if waiting.at.time > at { "had by then" } else { "has" };
    let (who, what, source) = (name(tracker, waiting.at.process), waiting.event, waiting.source);
    let message = format!(
        "{who} waits for {what} in {}, which never returned; {}, which made the event and shared it in {}, {when} {how}",
        call(waiting.at),
        name(tracker, source.process),
        call(source)
    );
    let finding = Finding::new(&RULE, waiting.at, what, message).other(Some(source));
    let finding = finding.values(None, waiting.fingerprint);
    Some(finding.advice("let the producer wait for its own queue before it ends"))
}
