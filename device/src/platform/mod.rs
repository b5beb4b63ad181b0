//! What the device takes from the host: time, memory limits, processes, environment variables, stderr.

pub(crate) mod budget;
pub(crate) mod clock;
pub(crate) mod log;
pub(crate) mod process;
pub mod settings;
