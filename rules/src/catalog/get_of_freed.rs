//! # What it does
//!
//! Reports a get of memory that this process has freed.
//!
//! # Why it is bad
//!
//! Freed memory cannot be shared. If the free returned the memory to the driver, the get is refused. Memory from the
//! adapter's pool stays in the pool, and the get returns success: the bytes are valid, and whoever opens them sees the
//! next allocation at that address. (A success is a note, because functions that urscope does not intercept can also
//! allocate memory.)
//!
//! # Example
//!
//! The exporter:
//!
//! ```cpp
//! void *p = sycl::malloc_device(size, queue);
//! sycl::free(p, ctx);
//! // Wrong: p is freed.
//! auto handle = ipc::memory::get(p, ctx);
//! send(handle.data());
//! barrier();
//! ipc::memory::put(handle, ctx);
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! void *p = sycl::malloc_device(size, queue);
//! auto handle = ipc::memory::get(p, ctx);
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
//! cuMemFree(p);
//! // Wrong: the memory is gone.
//! cuIpcGetMemHandle(&handle, p);
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 16777216
//! producer: free p
//! producer: get p -> h fails
//! ```
//!
//! # Good trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: free p
//! producer: alloc p 4096
//! producer: get p -> h
//! producer: put h
//! producer: free p
//! ```
//!
//! # What to do
//!
//! Get before the free. If handle data is kept by address, discard it when the memory is freed.

use urscope_schema::counted;
use urscope_schema::handle::Kind;

use super::wording::{call, of_size, which};
use super::{Check, Rule, When};
use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Fact, FactKind, Outcome, What};

pub(super) static RULE: Rule = Rule {
    code: "get-of-freed",
    severity: Severity::Error,
    when: When::Exit,
    title: "handle data is exported for memory that was freed",
    sentence: "got handle data for memory that was freed",
    facts: &[FactKind::Dangling],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::Dangling(dangling, how) = fact.what else { return None };
    if dangling.was.kind != Kind::Usm {
        return None;
    }
    let most = if how == Outcome::Succeeded { Severity::Note } else { Severity::Error };
    let who = fact.actor();
    let at = call(fact.at);
    let what = dangling.was;
    let size = of_size(dangling.size);
    let inside = match dangling.pointer - what.value {
        0 => String::new(),
        inside => format!("{} into ", counted(inside, "byte")),
    };
    let message = format!(
        "{who} gets handle data for {inside}{what}{size} in {at}, {}: the memory was freed in {}",
        which(fact.at, how),
        call(dangling.died)
    );
    let finding = Finding::new(&RULE, fact.at, what, message).other(Some(dangling.died)).values(dangling.size, None);
    Some(
        finding
            .at_most(most)
            .advice("get before the free, and discard what is kept by address when the memory is freed"),
    )
}
