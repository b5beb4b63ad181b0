//! # What it does
//!
//! Finds something that is shared on a device which has said that it cannot: handle data that is got or opened, physical memory or
//! an event that is made with the IPC flag, after `urDeviceGetInfo` answered no to the question about that kind.
//!
//! # Why it is bad
//!
//! The answer of the device is the promise; what works without it works by luck, on this driver and this release. Where the call was
//! refused, it is a note: the program may have wanted to see.
//!
//! # Bad trace
//!
//! ```text
//! producer: support memory -> no
//! producer: alloc p 4096
//! producer: get p -> h
//! producer: put h
//! ```
//!
//! # Good trace
//!
//! ```text
//! producer: support memory -> yes
//! producer: support events -> no
//! producer: alloc p 4096
//! producer: get p -> h
//! producer: put h
//! producer: event e
//! ```
//!
//! # What to do
//!
//! Ask the device (`aspect::ext_oneapi_ipc_memory` and its neighbours in SYCL) and take another way where it says no: a copy through
//! the host, or another device.

use urscope_schema::{
    api::{Effect, demand::IPC},
    call::Enter,
    handle::{Handle, Kind},
};

use super::{Check, Rule, RuleState, When, memory::PerProcess, wording::call};
use crate::{
    finding::{Finding, Place, Severity},
    tracker::{
        ProcessId,
        fact::{Exporting, Fact, FactKind, Opening, Outcome, Source, What},
    },
};

pub(super) static RULE: Rule = Rule {
    code: "unsupported-device",
    severity: Severity::Warning,
    when: When::Exit,
    title: "something is shared on a device that has said that it cannot",
    facts: &[
        FactKind::Support,
        FactKind::Exporting,
        FactKind::Opening,
        FactKind::Creating,
        FactKind::Returned,
        FactKind::ProcessEnded,
    ],
    check: Check::Stateful(|| Box::new(Devices::default())),
};

/// What devices have said that they cannot share, and the calls under way that share it all the same.
#[derive(Clone, Debug, Default)]
struct Devices {
    denied: PerProcess<Vec<Denied>>,
    /// Any device of any process has said so.
    any: bool,
    pending: Vec<(ProcessId, u64, Denied)>,
}

/// A device that has said that it cannot share a kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Denied {
    device: u64,
    kind: Kind,
    asked: Place,
}

impl RuleState for Devices {
    fn check(&mut self, fact: &Fact<'_>, found: &mut Vec<Finding>) {
        let who = fact.at.process;
        match fact.what {
            What::Support(support) => {
                let new = Denied { device: support.device, kind: support.kind, asked: fact.at };
                self.answered(who, new, support.value);
            }
            _ if !self.any => {}
            What::Exporting(Exporting { enter, source }) => {
                let device = if let Source::Allocation(_, memory) = source { memory.device } else { None };
                self.begins(who, enter, Kind::Usm, device);
            }
            What::Opening(Opening { enter, .. }) | What::Creating(enter) => {
                if let Some((kind, device)) = shares(enter) {
                    self.begins(who, enter, kind, device);
                }
            }
            What::Returned(returned) => {
                let this = |(of, call, _): &_| (*of, *call) == (who, returned.call);
                if let Some(index) = self.pending.iter().position(this) {
                    let (.., denied) = self.pending.swap_remove(index);
                    found.push(report(fact, &denied, returned.outcome));
                }
            }
            What::ProcessEnded(_) => {
                self.denied.take(who);
            }
            _ => {}
        }
    }

    fn clone_box(&self) -> Box<dyn RuleState> {
        Box::new(self.clone())
    }
}

impl Devices {
    fn answered(&mut self, who: ProcessId, new: Denied, value: Option<u64>) {
        let denied = self.denied.get_or_insert_with(who, Vec::new);
        let known = denied.iter().position(|denied| (denied.kind, denied.device) == (new.kind, new.device));
        match (value, known) {
            (Some(0), None) => {
                denied.push(new);
                self.any = true;
            }
            (Some(1..), Some(known)) => {
                denied.swap_remove(known);
            }
            _ => {}
        }
    }

    fn begins(&mut self, who: ProcessId, enter: &Enter, kind: Kind, device: Option<u64>) {
        let denied = self.denied.get_or_insert_with(who, Vec::new).iter();
        let found = denied.copied().find(|denied| denied.kind == kind && Some(denied.device) == device);
        self.pending.retain(|(of, call, _)| (*of, *call) != (who, enter.call));
        self.pending.extend(found.map(|denied| (who, enter.call, denied)));
    }
}

/// What a call is to share, and on which device.
fn shares(enter: &Enter) -> Option<(Kind, Option<u64>)> {
    let values = &enter.values;
    match enter.function.effect() {
        Effect::Makes(Kind::Mapping) => Some((Kind::Usm, values.device)),
        Effect::Makes(kind @ (Kind::PhysicalMem | Kind::Event)) => {
            let shared = enter.function.is_ipc() || values.flags.is_some_and(|flags| flags & IPC != 0);
            Some((kind, values.device.filter(|_| shared)))
        }
        _ => None,
    }
}

fn report(fact: &Fact<'_>, denied: &Denied, outcome: Outcome) -> Finding {
    let (became, most) = match outcome {
        Outcome::Done => ("was let, by luck".to_owned(), Severity::Warning),
        Outcome::Refused(result) if result.is_success() => ("was given nothing".to_owned(), Severity::Note),
        Outcome::Refused(result) => (format!("was answered {result}"), Severity::Note),
    };
    let what = if denied.kind == Kind::Usm { "memory" } else { denied.kind.noun() };
    let device = Handle { kind: Kind::Device, value: denied.device };
    let message = format!(
        "{} shares {what} on {device} in {} and {became}: the device had said in {} that it cannot",
        fact.actor(),
        call(fact.at),
        call(denied.asked)
    );
    let finding = Finding::new(&RULE, fact.at, device, message).other(Some(denied.asked)).at_most(most);
    finding.advice("take another way where the device says no: a copy through the host, or another device")
}
