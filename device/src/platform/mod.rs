//! What the device takes from the host system: time, memory, processes, descriptors, environment variables and stderr.
//!
//! The lowest layer. Must never know Level Zero beyond the names of its functions.

pub(crate) mod budget;
#[expect(unsafe_code, reason = "clock_gettime")]
pub(crate) mod clock;
#[expect(unsafe_code, reason = "the timer slack of a thread is set by prctl")]
pub(crate) mod deadline;
#[expect(unsafe_code, reason = "descriptors of this process and of others come from system calls")]
pub(crate) mod descriptor;
pub(crate) mod faults;
#[expect(unsafe_code, reason = "the futex system call")]
pub(crate) mod futex;
#[expect(unsafe_code, reason = "sysconf")]
pub(crate) mod host;
pub(crate) mod log;
#[expect(unsafe_code, reason = "fork handlers and prctl")]
pub(crate) mod process;
pub mod settings;
#[expect(unsafe_code, reason = "signal masks")]
pub(crate) mod threads;
