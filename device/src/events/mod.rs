//! Events and event pools, in one process and shared between processes.
//!
//! `event` and `pool` have the objects and their entry points, `ipc` the entry points that share them. `signal` is the
//! state of an event, and `page` is where that state lies if other processes see it. Must never know what work signals
//! an event.

pub(crate) mod event;
pub(crate) mod ipc;
#[expect(unsafe_code, reason = "promises the layout of the state in shared memory")]
pub(crate) mod page;
pub(crate) mod pool;
pub(crate) mod signal;
