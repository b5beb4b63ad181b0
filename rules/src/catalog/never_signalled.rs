//! # What it does
//!
//! Reports a wait for a shared event that never returned, when all processes have ended that could signal it: the one
//! that made the event, and those that opened it. Processes that wait for it themselves do not count. While the wait
//! hangs, `urscope top` and `urscope check` show this, too, and `urscope holders` shows who waits.
//!
//! # Why it is bad
//!
//! The process that signals an event must live until it has signalled. The wait has no time limit, so the waiting
//! process hangs. A trace shows neither what became of the signal, nor when exactly a process was killed, so this is a
//! note. (Waits for several events are left out, because the trace does not show which event is missing. At the level
//! of Level Zero, so are events of pools, and waits with a limit.)
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
//! Fixed:
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

use urscope_schema::{counted, handle::Handle};

use super::wording::{call, name};
use super::{Check, Rule, RuleState, When};
use crate::finding::{Finding, Place, Severity};
use crate::tracker::fact::{Fact, FactKind, What};
use crate::tracker::{End, ExportId, Tracker, pending::PendingChange};

pub(super) static RULE: Rule = Rule {
    code: "never-signalled",
    severity: Severity::Note,
    when: When::Run,
    title: "a wait for a shared event never returns, and no process is left that could signal it",
    sentence: "waited for an event that no process is left to signal",
    facts: &[FactKind::ProcessEnded, FactKind::Finished],
    check: Check::Stateful(|| Box::new(Waits::default())),
};

/// How many processes that have ended a finding names.
const MAX_NAMED: usize = 8;

/// The waits for shared events that had not returned when their process ended.
#[derive(Clone, Debug, Default)]
struct Waits(Vec<Wait>);

#[derive(Clone, Copy, Debug)]
struct Wait {
    at: Place,
    event: Handle,
    fingerprint: Option<u64>,
    /// What it was opened from, or its latest own export.
    export: ExportId,
}

impl RuleState for Waits {
    fn check(&mut self, fact: &Fact<'_>, found: &mut Vec<Finding>) {
        match fact.what {
            What::ProcessEnded(_) => {
                let Some(state) = fact.tracker.state(fact.at.process) else { return };
                self.0.extend(state.pending.iter().filter_map(|pending| {
                    let PendingChange::Wait(event) = pending.change else { return None };
                    let object = state.objects.get(&event)?;
                    Some(Wait { at: pending.place, event, fingerprint: object.fingerprint, export: object.export? })
                }));
            }
            What::Finished => {
                self.0.sort_by_key(|wait| super::memory::order(&wait.at));
                found.extend(self.0.iter().filter_map(|wait| self.report(fact.tracker, wait)));
            }
            _ => {}
        }
    }
}

impl Waits {
    fn report(&self, tracker: &Tracker, waiting: &Wait) -> Option<Finding> {
        let life = |id: ExportId| Some(tracker.exports.get(id)?.life());
        let of_it = life(waiting.export)?;
        let waits = |who| self.0.iter().any(|wait| wait.at.process == who && life(wait.export) == Some(of_it));
        let exports = || tracker.exports.iter().filter(|export| export.life() == of_it);
        let got = exports().map(|export| export.latest_get).max_by_key(|got| (got.time, got.call));
        let mut opens: Vec<_> = exports().flat_map(|export| &export.opened).copied().collect();
        opens.sort_by_key(super::memory::order);
        let all = got.into_iter().map(|got| (got, "made the event and shared it"));
        let all = all.chain(opens.into_iter().map(|open| (open, "opened the event")));
        let mut gone = Vec::new();
        for (place, does) in all.filter(|(place, _)| !waits(place.process)) {
            let (how, at) = tracker.state(place.process)?.ended?;
            let how = match how {
                End::Exited => "exited",
                End::Exec => "become another program",
                End::Killed => "been killed",
                End::Running | End::Incomplete => return None,
            };
            let when = if waiting.at.time > at { "had already" } else { "has" };
            gone.push((
                place,
                format!("{}, which {does} in {}, {when} {how}", name(tracker, place.process), call(place)),
            ));
        }
        let (first, _) = *gone.first()?;
        let who = name(tracker, waiting.at.process);
        let what = waiting.event;
        let named: Vec<_> = gone.iter().take(MAX_NAMED).map(|(_, text)| text.as_str()).collect();
        let others = match gone.len() - named.len() {
            0 => String::new(),
            others => format!(", and so {}", counted(others as u64, "other process")),
        };
        let message = format!(
            "{who} waits for {what} in {}, which never returned; {}{others}",
            call(waiting.at),
            named.join(", and ")
        );
        let finding = Finding::new(&RULE, waiting.at, what, message).other(Some(first));
        let finding = finding.values(None, waiting.fingerprint);
        Some(finding.advice("let a process that signals an event wait for its own queue before it ends"))
    }
}
