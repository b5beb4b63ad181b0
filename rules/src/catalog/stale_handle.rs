//! # What it does
//!
//! Reports handle data that is opened after its memory was freed and other memory was allocated at the same address.
//!
//! # Why it is bad
//!
//! The address is the same, but the memory is not. The open is refused, or it maps an allocation that nobody shared:
//! the open succeeds, and the data is wrong. A cache that identifies handle data or mappings by address alone causes
//! this.
//!
//! # Example
//!
//! The exporter, where bytes are kept by address:
//!
//! ```cpp
//! void *p = sycl::malloc_device(size, queue);
//! auto handle = ipc::memory::get(p, ctx);
//! auto kept = handle.data();
//! ipc::memory::put(handle, ctx);
//! sycl::free(p, ctx);
//! p = sycl::malloc_device(size, queue);
//! // Wrong: these bytes are of the old memory.
//! send(kept);
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! void *p = sycl::malloc_device(size, queue);
//! auto handle = ipc::memory::get(p, ctx);
//! ipc::memory::put(handle, ctx);
//! sycl::free(p, ctx);
//! p = sycl::malloc_device(size, queue);
//! handle = ipc::memory::get(p, ctx);
//! send(handle.data());
//! barrier();
//! ipc::memory::put(handle, ctx);
//! sycl::free(p, ctx);
//! ```
//!
//! With the CUDA driver:
//!
//! ```cpp
//! CUdeviceptr p;
//! CUipcMemHandle handle;
//! cuMemAlloc(&p, size);
//! cuIpcGetMemHandle(&handle, p);
//! cuMemFree(p);
//! cuMemAlloc(&p, size);
//! // Wrong: this is the handle of the old memory.
//! send(handle);
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! producer: put h
//! producer: free p
//! producer: alloc p 4096
//! consumer: open h -> m
//! consumer: close m
//! producer: free p
//! ```
//!
//! # Good trace
//!
//! The new memory is exported again. (Its bytes may equal those of the old memory; that is harmless.)
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m
//! consumer: close m
//! producer: put h
//! producer: free p
//! producer: alloc p 4096
//! producer: get p -> h2
//! consumer: open h2 -> m
//! consumer: close m
//! producer: put h2
//! producer: free p
//! ```
//!
//! # What to do
//!
//! Send new handle data for new memory, and notify the consumer when the old memory is freed. Discard what is kept by
//! address together with the memory.

use super::wording::{call, expired};
use super::{Check, Rule, When};
use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Expiry, Fact, FactKind, What};

pub(super) static RULE: Rule = Rule {
    code: "stale-handle",
    severity: Severity::Error,
    when: When::Exit,
    title: "handle data is opened after other memory took its address",
    sentence: "opened handle data after other memory had taken its address",
    facts: &[FactKind::OpenedExpired],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::OpenedExpired(old, outcome) = fact.what else { return None };
    let Expiry::Replaced(freed, reborn) = old.reason else { return None };
    let address = old.value.map_or_else(|| "its address".into(), |pointer| format!("{pointer:#x}"));
    let allocated = reborn.map_or_else(String::new, |reborn| format!(", allocated in {}", call(reborn)));
    let why = format!(
        "its memory was exported in {} and freed in {}; {address} now belongs to other memory{allocated}",
        call(old.got),
        fact.place(freed)
    );
    let finding = expired(&RULE, fact, old, outcome, &why).other(reborn.or(Some(freed)));
    Some(finding.advice("send new handle data for new memory, and discard what is kept by address when it is freed"))
}
