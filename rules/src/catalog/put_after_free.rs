//! # What it does
//!
//! Reports handle data that is put by `zeMemPutIpcHandle` after its memory was freed.
//!
//! # Why it is bad
//!
//! A Level Zero driver takes a handle back when it frees the memory, and closes its descriptor. The put
//! then closes a descriptor that belongs to somebody else by now, or crashes in the driver. (SYCL
//! allows a put after the free, and its adapters keep what the put needs.)
//!
//! # Example
//!
//! The exporter, with the functions of Level Zero:
//!
//! ```cpp
//! ze_ipc_mem_handle_t handle;
//! zeMemGetIpcHandle(ze_ctx, p, &handle);
//! send(bytes_of(handle));
//! barrier();
//! zeMemFree(ze_ctx, p);
//! // Wrong: its memory is freed.
//! zeMemPutIpcHandle(ze_ctx, handle);
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! ze_ipc_mem_handle_t handle;
//! zeMemGetIpcHandle(ze_ctx, p, &handle);
//! send(bytes_of(handle));
//! barrier();
//! zeMemPutIpcHandle(ze_ctx, handle);
//! zeMemFree(ze_ctx, p);
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096 ze
//! producer: get p -> h ze
//! consumer: open h -> m ze
//! consumer: close m ze
//! producer: free p ze
//! producer: put h ze
//! ```
//!
//! # Good trace
//!
//! A put is optional.
//!
//! ```text
//! producer: alloc p 4096 ze
//! producer: get p -> h ze
//! producer: alloc q 4096 ze
//! producer: get q -> g ze
//! consumer: open h -> m ze
//! consumer: open g -> n ze
//! consumer: close m ze
//! consumer: close n ze
//! producer: put h ze
//! producer: free p ze
//! producer: free q ze
//! ```
//!
//! # What to do
//!
//! Put before the free, or not at all.

use urscope_schema::api::Promise;
use urscope_schema::{api::ResultCode, handle::Kind};

use super::{Check, Rule, When, wording::call};
use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Fact, FactKind, Target, What};

pub(super) static RULE: Rule = Rule {
    code: "put-after-free",
    severity: Severity::Error,
    when: When::Enter,
    title: "handle data is put by Level Zero after its memory was freed",
    sentence: "put handle data after its memory was freed",
    facts: &[FactKind::Ending],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::Ending(ending) = fact.what else { return None };
    if ending.object.kind != Kind::MemHandle || !fact.at.promises(Promise::PutIsOptional) {
        return None;
    }
    let Target::Handle(data) = ending.target else { return None };
    let freed = fact.tracker.exports.get(data.export?)?.last_free?;
    let who = fact.actor();
    let what = ending.object;
    let message = format!(
        "{who} puts {what} in {}: it was exported in {}, and its memory was freed in {}",
        call(fact.at),
        call(data.born),
        call(freed)
    );
    let finding = Finding::new(&RULE, fact.at, what, message).other(Some(freed)).values(data.size, data.fingerprint);
    Some(finding.advice("put before the free, or not at all").answer(ResultCode::INVALID_ARGUMENT))
}
