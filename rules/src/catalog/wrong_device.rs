//! # What it does
//!
//! Reports calls that name a device which does not belong to their context, and opens on another device than that of
//! the memory.
//!
//! # Why it is bad
//!
//! Handle data must be opened on the device on which the memory was allocated, in a context of that device. If the two
//! differ, the adapters return that the context or an argument is invalid, or an unknown error; v1 sometimes returns
//! success. An open on another device than that of the memory succeeds where the driver can reach one device from the
//! other, and is a note. (Devices are identified by handles, which mean nothing in another process. So the rule reports
//! only what one process did with its own context or its own memory, and leaves out contexts of several devices.)
//!
//! # Example
//!
//! The process that opens memory of the second device:
//!
//! ```cpp
//! auto data = receive();
//! auto all = sycl::device::get_devices();
//! sycl::context own(all[0]);
//! // Wrong: own has the first device only.
//! void *p = ipc::memory::open(data, own, all[1]);
//! ipc::memory::close(p, own);
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! auto data = receive();
//! auto all = sycl::device::get_devices();
//! sycl::context own(all[1]);
//! void *p = ipc::memory::open(data, own, all[1]);
//! ipc::memory::close(p, own);
//! ```
//!
//! # Bad trace
//!
//! ```text
//! consumer: context c on d
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m in c on e fails 5
//! producer: put h
//! ```
//!
//! # Good trace
//!
//! A context accepts the sub-devices of its device.
//!
//! ```text
//! consumer: context c on d
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m in c on d
//! consumer: alloc q 4096 in c on half
//! consumer: alloc r 4096 in c on half fails 39
//! consumer: close m in c
//! producer: put h
//! ```
//!
//! # What to do
//!
//! Send the consumer the UUID or the PCI address of the device of the memory, and open it there, in a context of that
//! device.

use std::num::NonZeroU64;

use urscope_schema::handle::{Handle, Kind};
use urscope_schema::{api::ResultCode, operation::Create};

use super::wording::{call, two_devices, which};
use super::{Check, Rule, RuleState, When};
use crate::finding::{Finding, Place, Severity};
use crate::tracker::fact::{Fact, FactKind, Opening, Outcome, What};
use crate::tracker::{ExportId, ProcessId};

pub(super) static RULE: Rule = Rule {
    code: "wrong-device",
    severity: Severity::Error,
    when: When::Exit,
    title: "a call names a device that is not the one of its context or memory",
    sentence: "named a device that is not the one of its context or memory",
    facts: &[FactKind::Opening, FactKind::Creating, FactKind::Returned],
    check: Check::Stateful(|| Box::new(Pending::default())),
};

/// The results of the adapters for a device that is not in the context; and success without a result.
/// They accept sub-devices.
const RESULTS: [ResultCode; 4] =
    [ResultCode::INVALID_CONTEXT, ResultCode::INVALID_ARGUMENT, ResultCode::UNKNOWN, ResultCode::SUCCESS];

/// The pending calls that name another device than they should.
///
/// A device is identified by its handle, which is an address of its process, so nothing can be proved across processes.
/// For a context of several devices only their number is known, so nothing can be proved for it either.
#[derive(Clone, Debug, Default)]
struct Pending(Vec<(ProcessId, Option<NonZeroU64>, WrongDevice)>);

/// A call with another device than it should have.
#[derive(Clone, Copy, Debug)]
struct WrongDevice {
    /// The device that it names.
    device: u64,
    /// The one that it should name.
    right: u64,
    /// The object that has that device: a context, or memory.
    of: Handle,
    /// The call that made it.
    made: Option<Place>,
}

impl RuleState for Pending {
    fn check(&mut self, fact: &Fact<'_>, found: &mut Vec<Finding>) {
        let wrong = match fact.what {
            What::Opening(Opening { open, export, .. }) => {
                wrong_device(fact, open.device, open.context, export.filter(|_| open.makes == Kind::Mapping))
            }
            What::Creating(Create { device, context, .. }) => wrong_device(fact, device, context, None),
            What::Returned(returned) if !self.0.is_empty() => {
                let this = |(who, call, _): &_| (*who, *call) == (fact.at.process, fact.at.call);
                let Some(index) = self.0.iter().position(this) else { return };
                let (.., wrong) = self.0.swap_remove(index);
                found.extend(report(fact, &wrong, returned.outcome));
                return;
            }
            _ => return,
        };
        if let Some(wrong) = wrong {
            self.0.retain(|(who, call, _)| (*who, *call) != (fact.at.process, fact.at.call));
            self.0.push((fact.at.process, fact.at.call, wrong));
        }
    }
}

/// The wrong device of a call that is to make something; `export` is what a mapping is opened from.
fn wrong_device(
    fact: &Fact<'_>,
    device: Option<u64>,
    context: Option<u64>,
    export: Option<ExportId>,
) -> Option<WrongDevice> {
    let device = device.filter(|device| *device != 0)?;
    let context = context?;
    let state = fact.tracker.state(fact.at.process)?;
    let of_context = state.contexts.get(&context).and_then(|known| {
        let of = Handle { kind: Kind::Context, value: context };
        Some(WrongDevice { device, right: known.device?, of, made: Some(known.born) })
    });
    let wrong = |wrong: &WrongDevice| !state.is_same_device(wrong.right, device);
    of_context.filter(wrong).or_else(|| {
        // Handles of another process mean nothing here.
        let export = fact.tracker.exports.get(export?)?;
        let own = export.subject.value.filter(|_| export.latest_get.process == fact.at.process)?;
        let (base, memory) = state.allocation_at(own)?;
        let of = Handle { kind: Kind::Usm, value: base };
        Some(WrongDevice { device, right: memory.requested.device?, of, made: memory.born }).filter(wrong)
    })
}

/// The result of the call shows whether the device was the reason. A context accepts sub-devices of its
/// device, so a success is no violation; memory has exactly one device.
fn report(fact: &Fact<'_>, wrong: &WrongDevice, outcome: Outcome) -> Option<Finding> {
    let most = match outcome {
        Outcome::Succeeded if wrong.of.kind == Kind::Context => return None,
        Outcome::Succeeded => Severity::Note,
        Outcome::Refused(result) if !RESULTS.contains(&result) => return None,
        Outcome::Refused(_) => Severity::Error,
    };
    let [device, right] = two_devices(fact.tracker, fact.at.process, [wrong.device, wrong.right]);
    let belongs = if wrong.of.kind == Kind::Context { "has only" } else { "is on" };
    let made = wrong.made.map_or_else(String::new, |made| format!(" since {}", call(made)));
    let message = format!(
        "{} names {} in {}, {}: {} {belongs} {}{made}",
        fact.actor(),
        device,
        call(fact.at),
        which(fact.at, outcome),
        wrong.of,
        right
    );
    let subject = Handle { kind: Kind::Device, value: wrong.device };
    let finding = Finding::new(&RULE, fact.at, subject, message).other(wrong.made).at_most(most);
    Some(finding.advice("open it on the device that the memory is on, in a context of that device"))
}
