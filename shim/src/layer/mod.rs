//! The layers see a call before and after the backend.
//!
//! A layer may report, and may answer a call with an error that the specification lists. It must never change what a
//! correct program observes, hold a lock across the real call, or use another layer.

use urscope_schema::api::{ResultCode, demand::Nulls};
use urscope_schema::call::{Enter, Exit, Synchronization};
use urscope_schema::trace::records::{Device, Found};

pub mod trace;
pub mod validate;

/// The decision of a layer about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// It continues to the next layer, or to the backend.
    Passed,
    /// It ends here with this result. At the exit, it replaces the backend's result.
    Answered(ResultCode),
}

/// Receives the findings of a layer. [`crate::start`] connects the two layers.
pub trait FindingSink: Sync {
    /// Receives a finding, on the thread of the call.
    fn finding(&self, found: &Found);

    /// The process is about to end by `how`, without a call of [`Layer::end`].
    fn end(&self, how: &'static str);
}

/// A layer. Its functions run on the thread of the call, on many threads at once.
pub trait Layer: Sync {
    /// The call begins; `nulls` are the arguments that are missing.
    fn enter(&self, enter: &Enter, nulls: &Nulls) -> Verdict;

    /// A device is described, before the first successful call with it returns.
    fn device(&self, device: &Device);

    /// The call has returned, or was answered by a layer.
    fn exit(&self, exit: &Exit) -> Verdict;

    /// A call orders commands, or shows that some have completed.
    fn synchronization(&self, by: &Synchronization);

    /// The process is about to become another program, or has `failed` to.
    fn exec(&self, _failed: bool) {}

    /// The process ends normally, by `how`.
    fn end(&self, how: &'static str);
}
