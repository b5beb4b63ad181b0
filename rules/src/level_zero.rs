//! The severity of findings about memory that was shared by the functions of Level Zero itself.
//!
//! The specification of Level Zero asks for less than that of SYCL. A put is optional, because a driver
//! gives back what belongs to a handle when its memory is freed, and a driver keeps memory as long as
//! somebody has it open. Communication libraries rely on both: they put nothing, free before others
//! close, and keep mappings open until their process ends. Only growth is a leak.

use urscope_schema::api::Function;

use crate::finding::{Finding, Place, Severity};

/// How a rule applies to the functions of Level Zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Its findings are notes, unless one finding stands for many leaked objects of one call.
    AsNote,
    /// It reports nothing.
    No,
}

/// The rules that apply differently there than to the functions of Unified Runtime, and why. All others apply equally.
pub static LIMITS: &[(&str, Holds, &str)] = &[
    ("churn", Holds::No, "a driver makes a handle anew at every get, and libraries get one for each message"),
    ("freed-while-exported", Holds::No, "a put is optional; the driver takes the handle back with its memory"),
    ("freed-while-open", Holds::AsNote, "the driver keeps the memory until all that opened it have closed it"),
    ("get-without-open", Holds::No, "libraries map the descriptor of a handle by mmap(2), too, which no trace shows"),
    ("leaked-event", Holds::AsNote, "libraries keep the event pools that they have opened until their process ends"),
    ("leaked-handle", Holds::No, "a put is optional; the driver takes the handle back with its memory or its process"),
    ("leaked-mapping", Holds::AsNote, "libraries keep what they have opened in a cache until their process ends"),
    (
        "leaked-physical-memory",
        Holds::AsNote,
        "libraries keep what they have imported in a cache until their process ends",
    ),
    (
        "wrong-usm",
        Holds::No,
        "a driver exports memory of any of its contexts, and libraries get it in a context of their own",
    ),
];

/// Adapts the latest findings, from index `from` on.
pub(crate) fn adapt(found: &mut Vec<Finding>, from: usize) {
    let mut index = 0;
    found.retain_mut(|finding| {
        index += 1;
        if index <= from || !is_at_level_zero(finding) {
            return true;
        }
        let limit = LIMITS.iter().find(|(code, ..)| *code == finding.rule.code);
        match limit.map(|(_, holds, _)| *holds) {
            None => true,
            Some(Holds::No) => false,
            Some(Holds::AsNote) => {
                if finding.count == 1 {
                    finding.severity = finding.severity.min(Severity::Note);
                }
                true
            }
        }
    });
}

/// Whether one of its two places is a call of Level Zero.
fn is_at_level_zero(finding: &Finding) -> bool {
    let is_one = |place: &Place| place.function.is_some_and(Function::is_level_zero);
    is_one(&finding.at) || finding.other.as_ref().is_some_and(is_one)
}
