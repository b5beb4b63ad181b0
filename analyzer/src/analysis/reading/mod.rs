//! Reading: finds the trace files and reads their events.
//!
//! `paths` finds the files, `source` reads the bytes of one, `input` its records in either form (`chunks` the binary
//! one), and `cursor` turns them into events (`event`), whose calls `numbers` numbers in order. `prefetch` reads many
//! files on other threads. `extent` finds the end of the text in a growing file, and `stack_index` keeps the offsets of
//! call stacks, of which `callers` says which functions were called from them. `alive` checks whether the process that
//! wrote a file still runs. Nothing here knows a rule or compares two processes.

mod alive;
mod callers;
mod chunks;
mod cursor;
mod event;
mod extent;
mod input;
mod numbers;
mod paths;
mod prefetch;
mod process_times;
mod source;
mod stack_index;

pub(crate) use alive::is_alive;
pub use alive::{boot_id, is_running, pid_namespace};
pub use cursor::header_of;
pub(crate) use cursor::{Cursor, Notes, Opened};
pub(crate) use event::{Event, Events, Moment, Other, Position};
pub(crate) use extent::{ChunkExtent, end_of_text, is_binary, is_blank};
pub(crate) use paths::of_others;
pub use paths::{contents, runs_below, traces};
pub(crate) use prefetch::{Prefetcher, buffer_size, stay_open};
pub(crate) use process_times::ObservedTimes;
pub use stack_index::Stacks;
