//! Decides which calls of a process that shares memory are recorded, and notices what only the process can know: which
//! of its memory is shared or has ended. What the records mean is for the tracker (`rules/src/tracker`).

pub(crate) mod commands;
mod device_errors;
pub(crate) mod event_filter;
pub(crate) mod limit;
mod lists;
pub(crate) mod ranges;
pub(crate) mod synchronization;
