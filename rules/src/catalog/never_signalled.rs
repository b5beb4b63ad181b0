//! # What it does
//!
//! Reports a wait for an opened event that never returned, when the process that made the event has ended.
//!
//! # Why it is bad
//!
//! The process that signals an event must live until it has signalled. The wait has no time limit, so the waiting
//! process hangs. A trace shows neither what became of the signal, nor when exactly a process was killed, so this is a
//! note. (Waits for several events are left out, because the trace does not show which event is missing.)
//!
//! # Example
//!
//! The process that made the event:
//!
//! ```cpp
//! properties shared{enable_ipc{true}};
//! auto event = make_event(ctx, shared);
//! auto handle = ipc::event::get(event);
//! send(handle.data());
//! enqueue_signal_event(queue, event);
//! // Wrong: the queue may not be that far.
//! std::_Exit(0);
//! ```
//!
//! Mended:
//!
//! ```cpp
//! properties shared{enable_ipc{true}};
//! auto event = make_event(ctx, shared);
//! auto handle = ipc::event::get(event);
//! send(handle.data());
//! enqueue_signal_event(queue, event);
//! queue.wait();
//! barrier();
//! ipc::event::put(handle, ctx);
//! std::_Exit(0);
//! ```
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
//! A signalled event stays signalled, whichever process ends.
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
//! Let the producer wait for its own queue before it ends. Let the consumer poll the status of the event and check that
//! its peer is alive.

use urscope_schema::handle::Handle;

use super::wording::{call, name};
use super::{Check, Rule, RuleState, When};
use crate::finding::{Finding, Place, Severity};
use crate::tracker::fact::{Fact, FactKind, What};
use crate::tracker::{End, Tracker, pending::PendingChange};

pub(super) static RULE: Rule = Rule {
    code: "never-signalled",
    severity: Severity::Note,
    when: When::Run,
    title: "a wait for an event never returns, and the process that made the event has ended",
    sentence: "waited for an event whose maker has ended",
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
                    let PendingChange::Wait(event) = pending.change else { return None };
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
}

fn report(tracker: &Tracker, waiting: &Wait) -> Option<Finding> {
    let (how, at) = tracker.state(waiting.source.process)?.ended?;
    let how = match how {
        End::Exited => "exited",
        End::Exec => "become another program",
        End::Killed => "been killed",
        End::Running | End::Incomplete => return None,
    };
    let when = if waiting.at.time > at { "had already" } else { "has" };
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
