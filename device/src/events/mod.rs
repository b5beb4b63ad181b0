//! Events and event pools, in one process and shared between processes.

pub(crate) mod event;
pub(crate) mod ipc;
pub(crate) mod page;
pub(crate) mod pool;
pub(crate) mod signal;
