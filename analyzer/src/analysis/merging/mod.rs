//! Merging: the traces of all processes become one sequence of events by time, which the rules and the observers take in.

mod clock;
mod merger;
mod spans;
mod traced_process;

pub(crate) use clock::{ClockAlignment, first, shift};
pub(crate) use merger::Merger;
pub(crate) use traced_process::TracedProcess;
