//! # What it does
//!
//! Finds calls that name a device which is not the one of their context, and opens on another device than that of the memory.
//!
//! # Why it is bad
//!
//! Handle data is to be opened on the device that the memory was allocated on, in a context of that device. Where the two
//! differ, the adapters answer that the context or an argument is invalid, or that they do not know why; v1 takes it for a success at
//! times. An open that works on another device than that of the memory does so where the driver reaches one from the other,
//! and is a note. (Devices are told apart by handles, which mean nothing to another process: so what is told is what one
//! process did with its own context or its own memory, and contexts of several devices are left out.)
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
//! A context takes the sub-devices of its device.
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
//! Tell the consumer which device the memory is on, by its UUID or its PCI address, and open it there, in a context of that device.

use urscope_schema::{
    api::{Effect, UrResult},
    call::Enter,
    handle::{Handle, Kind},
};

use super::{Check, Rule, RuleState, When, wording::call};
use crate::{
    finding::{Finding, Place, Severity},
    tracker::{
        ExportId, ProcessId,
        fact::{Fact, FactKind, Opening, Outcome, What},
    },
};

pub(super) static RULE: Rule = Rule {
    code: "wrong-device",
    severity: Severity::Error,
    when: When::Exit,
    title: "a call names a device that is not its context's or its memory's",
    facts: &[FactKind::Opening, FactKind::Creating, FactKind::Returned],
    check: Check::Stateful(|| Box::new(Pending::default())),
};

/// What the adapters answer to a device that is none of the context's; or success without a result. A sub-device is let pass.
const ANSWERS: [UrResult; 4] =
    [UrResult::INVALID_CONTEXT, UrResult::INVALID_ARGUMENT, UrResult::UNKNOWN, UrResult::SUCCESS];

/// The calls under way that name another device than they should.
///
/// A device is known by its handle, and that is an address of its process: between processes nothing can be proved. Of a
/// context of several devices only their number is known, so nothing is proved of it either.
#[derive(Clone, Debug, Default)]
struct Pending(Vec<(ProcessId, u64, WrongDevice)>);

/// A call with another device than it should have.
#[derive(Clone, Copy, Debug)]
struct WrongDevice {
    /// The device that it names.
    device: u64,
    /// The one that it should name.
    right: u64,
    /// What that one is of: a context, or memory.
    of: Handle,
    /// The call that made it.
    made: Option<Place>,
}

impl RuleState for Pending {
    fn check(&mut self, fact: &Fact<'_>, found: &mut Vec<Finding>) {
        let (enter, export) = match fact.what {
            What::Opening(Opening { enter, export, .. }) => (enter, export),
            What::Creating(enter) => (enter, None),
            What::Returned(returned) if !self.0.is_empty() => {
                let this = |(who, call, _): &_| (*who, *call) == (fact.at.process, returned.call);
                let Some(index) = self.0.iter().position(this) else { return };
                let (.., wrong) = self.0.swap_remove(index);
                found.extend(report(fact, &wrong, returned.outcome));
                return;
            }
            _ => return,
        };
        if let Some(wrong) = wrong_device(fact, enter, export) {
            self.0.retain(|(who, call, _)| (*who, *call) != (fact.at.process, enter.call));
            self.0.push((fact.at.process, enter.call, wrong));
        }
    }

    fn clone_box(&self) -> Box<dyn RuleState> {
        Box::new(self.clone())
    }
}

/// What is wrong with the device of a call that is to make something.
fn wrong_device(fact: &Fact<'_>, enter: &Enter, export: Option<ExportId>) -> Option<WrongDevice> {
    let Effect::Makes(made) = enter.function.effect() else { return None };
    let device = enter.values.device.filter(|device| *device != 0)?;
    let context = enter.values.context?;
    let state = fact.tracker.state(fact.at.process)?;
    let of_context = state.contexts.get(&context).and_then(|known| {
        let of = Handle { kind: Kind::Context, value: context };
        Some(WrongDevice { device, right: known.device?, of, made: Some(known.born) })
    });
    let wrong = |wrong: &WrongDevice| wrong.right != device;
    of_context.filter(wrong).or_else(|| {
        // Handles of another process say nothing here.
        let export = fact.tracker.exports().get(export.filter(|_| made == Kind::Mapping)?)?;
        let own = export.subject.value.filter(|_| export.got.process == fact.at.process)?;
        let (base, memory) = state.allocation_at(own)?;
        let of = Handle { kind: Kind::Usm, value: base };
        Some(WrongDevice { device, right: memory.device?, of, made: memory.born }).filter(wrong)
    })
}

/// What became of the call shows whether the device was the reason. A context takes sub-devices of its device, so that a
/// success is no violation; memory has just one device.
fn report(fact: &Fact<'_>, wrong: &WrongDevice, outcome: Outcome) -> Option<Finding> {
    let (became, most) = match outcome {
        Outcome::Done if wrong.of.kind == Kind::Context => return None,
        Outcome::Done => ("was let, by luck".to_owned(), Severity::Note),
        Outcome::Refused(result) if !ANSWERS.contains(&result) => return None,
        Outcome::Refused(result) if result.is_success() => ("was given nothing".to_owned(), Severity::Error),
        Outcome::Refused(result) => (format!("was answered {result}"), Severity::Error),
    };
    let device = |value| Handle { kind: Kind::Device, value };
    let belongs = if wrong.of.kind == Kind::Context { "has only" } else { "is on" };
    let made = wrong.made.map_or_else(String::new, |made| format!(" since {}", call(made)));
    let message = format!(
        "{} names {} in {} and {became}: {} {belongs} {}{made}",
        fact.actor(),
        device(wrong.device),
        call(fact.at),
        wrong.of,
        device(wrong.right)
    );
    let finding = Finding::new(&RULE, fact.at, device(wrong.device), message).other(wrong.made).at_most(most);
    Some(finding.advice("open it on the device that the memory is on, in a context of that device"))
}
