//! # What it does
//!
//! Reports physical memory whose last reference is released, by `urPhysicalMemRelease` or `urIPCClosePhysMemHandleExp`,
//! while the same process has it mapped at addresses (`urVirtualMemMap`). Addresses that another thread is unmapping by
//! then count as unmapped. Memory that cannot be shared, because it was made without the IPC flag, is left out.
//!
//! CUDA: nothing is reported. Memory stays while it is mapped.
//!
//! # Why it is bad
//!
//! The release does not unmap. SYCL asks the program to unmap before a `physical_mem` object is destroyed, and Level
//! Zero asks it to make sure that the device does not refer to the memory any more. Intel's driver deletes its object
//! for the memory, and reads that object again when the addresses are unmapped.
//!
//! It is a note because `ur_api.h` says nothing about it, and because drivers differ: CUDA's keeps the
//! memory until it is unmapped.
//!
//! # Example
//!
//! The process that opened the memory:
//!
//! ```cpp
//! namespace physical = ipc::physical_memory;
//! auto data = receive();
//! auto mode = address_access_mode::read;
//! auto at = reserve_virtual_mem(size, ctx);
//! void *p;
//! {
//!   auto mem = physical::open(data, ctx, dev);
//!   p = mem.map(at, size, mode);
//! } // Noted: mem ends while it is mapped.
//! unmap(p, size, ctx);
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! namespace physical = ipc::physical_memory;
//! auto data = receive();
//! auto mode = address_access_mode::read;
//! auto at = reserve_virtual_mem(size, ctx);
//! void *p;
//! {
//!   auto mem = physical::open(data, ctx, dev);
//!   p = mem.map(at, size, mode);
//!   unmap(p, size, ctx);
//! }
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: physical m ipc
//! producer: get-physical m -> h
//! consumer: open-physical h -> n
//! consumer: map n -> v
//! consumer: close-physical n
//! consumer: unmap v
//! producer: put-physical h
//! producer: release-physical m
//! ```
//!
//! # Good trace
//!
//! As long as there is another reference, the memory may stay mapped.
//!
//! ```text
//! producer: physical m ipc
//! producer: map m -> v
//! producer: get-physical m -> h
//! consumer: open-physical h -> n
//! consumer: retain-physical n
//! consumer: map n -> w
//! consumer: close-physical n
//! consumer: unmap w
//! consumer: release-physical n
//! producer: put-physical h
//! producer: unmap v
//! producer: release-physical m
//! ```
//!
//! # What to do
//!
//! Unmap all addresses of the memory before its last reference is released; in SYCL, call `unmap` before the
//! `physical_mem` object is destroyed.

use urscope_schema::api::{Function, Promise};
use urscope_schema::counted;

use super::wording::{call, of_size};
use super::{Check, Rule, When};
use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Fact, FactKind, What};

pub(super) static RULE: Rule = Rule {
    code: "released-while-mapped",
    severity: Severity::Note,
    when: When::Exit,
    title: "physical memory is released or closed while it is mapped",
    sentence: "released {what} while it was mapped",
    facts: &[FactKind::Freed],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::Freed(freed) = fact.what else { return None };
    let still = freed.mapped?;
    let who = fact.actor();
    let what = freed.what;
    let size = of_size(freed.size);
    let at = call(fact.at);
    let releases = if fact.at.function.is_some_and(Function::is_ipc) { "closes" } else { "releases" };
    let others = match still.others {
        0 => String::new(),
        others => format!(", and at {} more", counted(others, "range")),
    };
    let message = format!(
        "{who} {releases} {what}{size} in {at} while {} are mapped at {:#x}, since {}{others}",
        urscope_schema::size(still.size),
        still.pointer,
        call(still.mapped)
    );
    let finding = Finding::new(&RULE, fact.at, what, message).other(Some(still.mapped));
    let advice = "unmap it before its last reference is released; in SYCL, before the physical_mem object is destroyed";
    finding.values(freed.size, freed.fingerprint).advice(advice).unless(Promise::MappingsHoldMemory)
}
