//! Command lists, queues and fences, and the threads that execute commands.

pub(crate) mod append;
pub(crate) mod fence;
pub(crate) mod list;
pub(crate) mod queue;
pub(crate) mod stream;
pub(crate) mod work;
