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

use urscope_schema::handle::{Handle, Kind};

use super::{Rule, When, wording::call};
use crate::{
    finding::{Finding, Severity},
    tracker::fact::{Fact, Opened, What},
};

pub(super) static RULE: Rule = Rule {
    code: "unsupported-device",
    severity: Severity::Warning,
    when: When::Exit,
    title: "something is shared on a device that has said that it cannot",
    source: include_str!("unsupported_device.rs"),
    check,
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::Denied(denied, opened) = fact.what else { return None };
    let (became, most) = match opened {
        Opened::Well => ("was let, by luck".to_owned(), Severity::Warning),
        Opened::Not(result) if result.is_success() => ("was given nothing".to_owned(), Severity::Note),
        Opened::Not(result) => (format!("was answered {result}"), Severity::Note),
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
    Some(finding.advice("take another way where the device says no: a copy through the host, or another device"))
}
