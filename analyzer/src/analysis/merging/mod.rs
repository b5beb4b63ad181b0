//! Merging: combines the traces of all processes into one sequence of events by time, for the rules and the observers.

mod merger;
mod releases;
mod spans;
mod traced_process;

pub(crate) use merger::Merger;
pub(crate) use traced_process::TracedProcess;
