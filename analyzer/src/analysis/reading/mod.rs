//! Reading: which files are meant, one file record by record, and many files ahead of time.
//!
//! `paths` finds the files, `source` reads the bytes of one, `cursor` turns them into `event`s, `prefetch` does so for many files on
//! other threads, and `stack_index` remembers where the call stacks stand. `alive` tells whether the process that wrote a file is
//! still there. Nothing here knows a rule or compares two processes.

mod alive;
mod cursor;
mod event;
mod extent;
mod paths;
mod prefetch;
mod source;
mod stack_index;

pub(crate) use alive::is_alive;
pub use alive::is_running;
pub(crate) use cursor::{Cursor, Growth, Notes, Opened};
pub(crate) use event::{Moment, TraceEvent};
pub(crate) use extent::{end_of_text, is_blank};
pub use paths::traces;
pub(crate) use prefetch::{Prefetcher, buffer_size, stay_open};
