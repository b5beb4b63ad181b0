//! # What it does
//!
//! Finds a process whose open descriptors became more and more to its end, and says whether as many handles, mappings and shared objects
//! were left open (the program's leak) or not (a cache's, the driver's, or that of other files of the program), and after how many more
//! calls the limit is reached.
//!
//! # Why it is bad
//!
//! Handle data of Level Zero holds file descriptors. When the limit is reached, gets and opens fail, and so does everything else
//! that needs a file. It is a note: a cache may still find its end, and who left the handles open is told by their own rules.
//! Only traces show it: the preloaded library counts descriptors now and then, and does not judge them.
//!
//! # Bad trace
//!
//! ```text
//! producer: descriptor-limit 1024
//! producer: alloc p 4096
//! producer: get p -> g
//! 4 times
//! producer: get p -> h
//! producer: put h
//! producer: descriptors 20
//! end
//! 4 times
//! producer: get p -> h
//! producer: put h
//! producer: descriptors 40
//! end
//! 4 times
//! producer: get p -> h
//! producer: put h
//! producer: descriptors 60
//! end
//! producer: put g
//! ```
//!
//! # Good trace
//!
//! ```text
//! producer: descriptor-limit 1024
//! producer: alloc p 4096
//! producer: get p -> g
//! 6 times
//! producer: descriptors 20
//! end
//! 6 times
//! producer: descriptors 60
//! end
//! producer: put g
//! ```
//!
//! # What to do
//!
//! Where handles grow along, see `leaked-handle` and `leaked-mapping` and `urscope holders`. Where they do not, see what the
//! descriptors are (`ls -l /proc/PID/fd`): of a `dmabuf` or `memfd` the driver or a cache has kept them; its limits are
//! `UMF_MAX_OPENED_IPC_HANDLES` and the pool settings of the runtime.

use super::{Rule, When, wording::number};
use crate::{
    finding::{Finding, Severity},
    tracker::fact::{Fact, What},
};

pub(super) static RULE: Rule = Rule {
    code: "descriptor-growth",
    severity: Severity::Note,
    when: When::Run,
    title: "a process has more and more descriptors open",
    source: include_str!("descriptor_growth.rs"),
    check,
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::Growth(growth) = fact.what else { return None };
    let (more, held) = (growth.descriptors(), growth.held());
    let calls = growth.to.calls - growth.from.calls;
    let (whose, advice) = if 2 * held >= more {
        (
            format!("{held} more handles, mappings and shared objects were open, too: the program leaves them open"),
            "put, close and release what leaked-handle and leaked-mapping name",
        )
    } else {
        (
            format!(
                "only {held} more handles, mappings and shared objects were open: a cache, the driver or other files have them"
            ),
            "see what they are (ls -l /proc/PID/fd), and limit the cache or report it to the driver's makers",
        )
    };
    let forecast = match (growth.limit, growth.calls_left()) {
        (Some(limit), Some(left)) => {
            format!("; the limit of {limit} is reached after {}", number(left, "more such call"))
        }
        _ => String::new(),
    };
    let message = format!(
        "{} had {} descriptors open after {}, and {} after {calls} more, {} ms later; {whose}{forecast}",
        fact.actor(),
        growth.from.descriptors,
        number(growth.from.calls, "IPC call"),
        growth.to.descriptors,
        growth.to.at.0.saturating_sub(growth.from.at.0) / 1_000_000,
    );
    Some(Finding::of_call(&RULE, fact.at, message).advice(advice))
}
