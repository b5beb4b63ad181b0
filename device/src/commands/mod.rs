//! Command lists, queues and fences, and the threads that execute commands.
//!
//! `capture` and `graph` have what is recorded from immediate lists. `list`, `append`, `launch`,
//! `mutable`, `queue` and `fence` have the objects and their entry points; `recording` is what a regular list holds.
//! `stream` executes commands in order on a thread, and `engine` is the order of several streams; `work` is what a
//! command does, and `observer` tells tools of it. Must never execute a command on the thread that appends it.

pub(crate) mod append;
mod capture;
pub(crate) mod engine;
pub(crate) mod fence;
pub(crate) mod graph;
pub(crate) mod launch;
pub(crate) mod list;
pub(crate) mod mutable;
#[expect(unsafe_code, reason = "calls functions of a tool")]
pub(crate) mod observer;
pub(crate) mod queue;
mod recording;
pub(crate) mod stream;
#[expect(unsafe_code, reason = "copies and fills the memory that commands name")]
pub(crate) mod work;
