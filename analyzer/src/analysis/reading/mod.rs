//! Reading: finds the trace files and reads their events.
//!
//! `paths` finds the files, `source` reads the bytes of one, and `cursor` turns them into events (`event`). `prefetch` reads many files
//! on other threads. `extent` finds the end of the text in a growing file, and `stack_index` keeps the offsets of call stacks. `alive`
//! checks whether the process that wrote a file still runs. Nothing here knows a rule or compares two processes.

mod alive;
mod cursor;
mod event;
mod extent;
mod paths;
mod prefetch;
mod process_times;
mod source;
mod stack_index;

pub(crate) use alive::is_alive;
pub use alive::{boot_id, is_running, pid_namespace};
pub(crate) use cursor::{Cursor, Growth, Notes, Opened};
pub(crate) use event::{Moment, TraceEvent};
pub(crate) use extent::{end_of_text, is_blank};
pub use paths::traces;
pub(crate) use prefetch::{Prefetcher, buffer_size, stay_open};
pub(crate) use process_times::ObservedTimes;
