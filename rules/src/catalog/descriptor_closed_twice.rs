//! # What it does
//!
//! Finds a put of physical memory's handle data that would close a descriptor which the put of other handle data with the same
//! bytes has closed already.
//!
//! # Why it is bad
//!
//! The bytes are the exporter's process and the number of a descriptor, and the put of the v2 adapter closes that number. Where
//! the driver exports one and the same descriptor each time, as Intel's does, the first put ends every other handle of that
//! memory, and the second put closes whatever has taken the number meanwhile: a file, a socket, another handle. The program is
//! not at fault: it puts what it got, once.
//!
//! # Bad trace
//!
//! `like h` says that the driver exported the descriptor of `h` again.
//!
//! ```text
//! producer: physical m ipc
//! producer: get-physical m -> h
//! producer: get-physical m -> h2 like h
//! producer: put-physical h
//! producer: put-physical h2
//! producer: release-physical m
//! ```
//!
//! # Good trace
//!
//! A number that was closed may come again.
//!
//! ```text
//! producer: physical m ipc
//! producer: get-physical m -> h
//! producer: put-physical h
//! producer: get-physical m -> h2 like h
//! producer: put-physical h2
//! producer: release-physical m
//! ```
//!
//! # What to do
//!
//! Get handle data of physical memory once and hand out copies of its bytes; or let urscope's own backend serve it
//! (`URSCOPE_BACKEND=level_zero`), which duplicates the descriptor. `URSCOPE_ON_ERROR=refuse` answers such a put with success and
//! does not pass it on: the stranger's descriptor lives.

use urscope_schema::api::UrResult;

use super::{Rule, When, wording::call};
use crate::{
    finding::{Finding, Severity},
    tracker::fact::{Fact, What},
};

pub(super) static RULE: Rule = Rule {
    code: "descriptor-closed-twice",
    severity: Severity::Error,
    when: When::Enter,
    title: "a put closes a descriptor that the put of its twin has closed",
    source: include_str!("descriptor_closed_twice.rs"),
    check,
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::ClosedAlready { handle, got, closed } = fact.what else { return None };
    let (who, at, born, put) = (fact.actor(), call(fact.at), call(got.born), call(closed));
    let message = format!(
        "{who} puts {handle} in {at}, which was got in {born}: its descriptor was closed in {put}, the put of other handle \
         data with the same bytes, so this put closes whatever has its number now"
    );
    let finding = Finding::new(&RULE, fact.at, handle, message).other(Some(closed)).values(got.size, got.fingerprint);
    let advice = "get handle data of physical memory once and hand out copies of its bytes, or set \
                  URSCOPE_BACKEND=level_zero: its backend duplicates the descriptor";
    Some(finding.advice(advice).answer(UrResult::SUCCESS.0))
}
