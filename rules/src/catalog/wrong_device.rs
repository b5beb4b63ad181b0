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

use urscope_schema::handle::{Handle, Kind};

use super::{Rule, When, wording::call};
use crate::{
    finding::{Finding, Severity},
    tracker::fact::{Fact, Opened, What},
};

pub(super) static RULE: Rule = Rule {
    code: "wrong-device",
    severity: Severity::Error,
    when: When::Exit,
    title: "a call names a device that is not its context's or its memory's",
    source: include_str!("wrong_device.rs"),
    check,
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::WrongDevice(wrong_device, opened) = fact.what else { return None };
    let (became, most) = match opened {
        _ if !wrong_device.is_proved(opened) => return None,
        Opened::Well => ("was let, by luck".to_owned(), Severity::Note),
        Opened::Not(result) if result.is_success() => ("was given nothing".to_owned(), Severity::Error),
        Opened::Not(result) => (format!("was answered {result}"), Severity::Error),
    };
    let device = |value| Handle { kind: Kind::Device, value };
    let belongs = if wrong_device.of.kind == Kind::Context { "has only" } else { "is on" };
    let made = wrong_device.made.map_or_else(String::new, |made| format!(" since {}", call(made)));
    let message = format!(
        "{} names {} in {} and {became}: {} {belongs} {}{made}",
        fact.actor(),
        device(wrong_device.device),
        call(fact.at),
        wrong_device.of,
        device(wrong_device.right)
    );
    let finding =
        Finding::new(&RULE, fact.at, device(wrong_device.device), message).other(wrong_device.made).at_most(most);
    Some(finding.advice("open it on the device that the memory is on, in a context of that device"))
}
