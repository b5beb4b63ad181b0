//! The layers: what looks at a call before and after the backend does the work.
//!
//! A layer may report, and may answer a call itself where the specification names an error for it; it must never change
//! what a correct program observes, hold a lock across the real call, or let anything but its own bookkeeping fail.

use urscope_schema::{
    api::{UrResult, demand::Nulls},
    call::{Enter, Exit},
    trace::records::Found,
};

pub mod trace;
pub mod validate;

/// What a layer makes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// It goes on.
    Passed,
    /// It goes no further: this is what the caller gets. At the exit, it takes the place of the backend's answer.
    Answered(UrResult),
}

/// Where a layer leaves what it finds. A layer knows no other layer: `crate::start` connects the two.
pub trait FindingSink: Sync {
    /// Takes a finding, on the thread that it is found on.
    fn finding(&self, found: &Found);

    /// The process is about to end in the way `how`, without any layer being shown its end.
    fn end(&self, how: &'static str);
}

/// What a layer can do with a call. All are called on the thread of the call, from many threads at once.
pub trait Layer: Sync {
    /// The call begins; `nulls` are the arguments that are missing.
    fn enter(&self, enter: &Enter, nulls: &Nulls) -> Verdict;

    /// The call has returned, or was answered by a layer.
    fn exit(&self, exit: &Exit) -> Verdict;

    /// The process ends in order, in the way `how`.
    fn end(&self, how: &'static str);
}
