//! # What it does
//!
//! Reports a call that returns success but leaves the caller's variable unchanged: an allocation, a get or an open that
//! made nothing.
//!
//! # Why it is bad
//!
//! The program continues with the old content of the variable. The adapter for Level Zero v1 behaves this way for every
//! get and open that the driver refuses. The program then sends an empty handle or uses a null pointer, and the reason
//! is lost.
//!
//! # Example
//!
//! The process that opens. The adapter for Level Zero v1 reports success where the driver refused:
//!
//! ```cpp
//! auto data = receive();
//! void *p = ipc::memory::open(data, ctx, dev);
//! // Wrong: p may be null.
//! queue.memset(p, 0, size).wait();
//! ipc::memory::close(p, ctx);
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! auto data = receive();
//! void *p = ipc::memory::open(data, ctx, dev);
//! if (p == nullptr)
//!   throw std::runtime_error("open failed");
//! queue.memset(p, 0, size).wait();
//! ipc::memory::close(p, ctx);
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p
//! ```
//!
//! # Good trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m
//! consumer: close m
//! producer: put h
//! producer: get p -> h fails
//! ```
//!
//! # What to do
//!
//! Treat it as a failure: set the variable to null before the call and check it afterwards. With
//! `URSCOPE_ON_ERROR=refuse` the preloaded library turns it into an error. The v2 adapter returns errors itself.

use urscope_schema::api::ResultCode;

use super::{Check, Rule, When, wording::call};
use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Fact, FactKind, What};

pub(super) static RULE: Rule = Rule {
    code: "success-without-result",
    severity: Severity::Error,
    when: When::Exit,
    title: "a call returns success and no result",
    sentence: "got success and no result from a call",
    facts: &[FactKind::Refused],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::Refused(refused) = fact.what else { return None };
    if !refused.result.is_success() {
        return None;
    }
    let who = fact.actor();
    let noun = refused.kind.noun();
    let message = format!("{who} gets no {noun} from {}, which returned success", call(fact.at));
    let advice = "treat it as a failure; UR_LOG_LEVEL_ZERO=level:debug;output:stderr makes the adapter log the reason, and the v2 adapter \
                  returns it";
    Some(Finding::of_call(&RULE, fact.at, message).advice(advice).answer(ResultCode::INVALID_ARGUMENT))
}
