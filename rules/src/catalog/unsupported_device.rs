//! # What it does
//!
//! Reports objects that are shared on a device which does not support it: handle data is got or opened, or physical
//! memory or an event is made with the IPC flag, after `urDeviceGetInfo` reported that the device does not support
//! sharing of that kind.
//!
//! # Why it is bad
//!
//! Only what the device reports is guaranteed. Whether the call works without support depends on the driver and its
//! release. If the call was refused, it is a note: the program may have tested for support this way.
//!
//! # Example
//!
//! The exporter:
//!
//! ```cpp
//! void *p = sycl::malloc_device(size, queue);
//! // Wrong: nothing says that dev can do it.
//! auto handle = ipc::memory::get(p, ctx);
//! send(handle.data());
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! using sycl::aspect;
//! if (!dev.has(aspect::ext_oneapi_ipc_memory))
//!   throw std::runtime_error("no memory IPC");
//! void *p = sycl::malloc_device(size, queue);
//! auto handle = ipc::memory::get(p, ctx);
//! send(handle.data());
//! ```
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
//! Query the device (`aspect::ext_oneapi_ipc_memory` and its siblings in SYCL). Where it reports no support, use
//! another way: a copy through the host, or another device.

use std::num::NonZeroU64;

use urscope_schema::handle::{Handle, Kind};
use urscope_schema::operation::Create;

use super::wording::{call, device, which};
use super::{Check, Rule, RuleState, When, memory::PerProcess};
use crate::finding::{Finding, Place, Severity};
use crate::tracker::ProcessId;
use crate::tracker::fact::{Exporting, Fact, FactKind, Opening, Outcome, Source, What};

pub(super) static RULE: Rule = Rule {
    code: "unsupported-device",
    severity: Severity::Warning,
    when: When::Exit,
    title: "an object is shared on a device that does not support it",
    sentence: "shared {what} on a device that does not support it",
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

/// The kinds of objects that devices report not to share, and the pending calls that share them nevertheless.
#[derive(Clone, Debug, Default)]
struct Devices {
    denied: PerProcess<Vec<Denied>>,
    /// Whether any device of any process has reported so.
    any: bool,
    pending: Vec<(ProcessId, Option<NonZeroU64>, Denied)>,
}

/// A device that reported no support for sharing a kind of object.
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
            What::Exporting(Exporting { source, .. }) => {
                let device = if let Source::Allocation(_, memory) = source { memory.requested.device } else { None };
                self.begins(fact.at, Kind::Usm, device);
            }
            What::Opening(Opening { open, .. }) => {
                let kind = if open.makes == Kind::Mapping { Kind::Usm } else { open.makes };
                self.begins(fact.at, kind, open.device);
            }
            What::Creating(Create { kind, is_shareable: true, device, .. }) => self.begins(fact.at, kind, device),
            What::Returned(returned) => {
                let this = |(of, call, _): &_| (*of, *call) == (who, fact.at.call);
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

    fn begins(&mut self, at: Place, kind: Kind, device: Option<u64>) {
        let denied = self.denied.get_or_insert_with(at.process, Vec::new).iter();
        let found = denied.copied().find(|denied| denied.kind == kind && Some(denied.device) == device);
        self.pending.retain(|(of, call, _)| (*of, *call) != (at.process, at.call));
        self.pending.extend(found.map(|denied| (at.process, at.call, denied)));
    }
}

fn report(fact: &Fact<'_>, denied: &Denied, outcome: Outcome) -> Finding {
    let most = if outcome == Outcome::Succeeded { Severity::Warning } else { Severity::Note };
    let what = if denied.kind == Kind::Usm { "memory" } else { denied.kind.noun() };
    let subject = Handle { kind: Kind::Device, value: denied.device };
    let device = device(fact.tracker, fact.at.process, denied.device);
    let message = format!(
        "{} shares {what} on {device} in {}, {}: the device reported in {} that it does not support this",
        fact.actor(),
        call(fact.at),
        which(fact.at, outcome),
        call(denied.asked)
    );
    let finding = Finding::new(&RULE, fact.at, subject, message).other(Some(denied.asked)).at_most(most);
    finding.advice("use another way where the device reports no support: a copy through the host, or another device")
}
