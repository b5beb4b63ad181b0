//! Files of `shim/src/raw`, compiled with a `sync` that runs them in every order of threads or of signal handlers.
//!
//! * [`threads`] has the atomics of loom, which tries every order of threads, and every value that a load may return.
//! * [`handlers`] has cells and stores that a signal handler can interrupt, and tries every place for it; see
//!   [`handlers::explorer`].
//!
//! The files are symbolic links. What they use of the rest of the shim is defined here.

#![allow(dead_code, reason = "the models use a part of the files")]

/// Every order of threads.
pub mod threads {
    pub use processes::fork_reset;
    pub use signals::{sync, sync::explore};
    pub use threads::{lock, thread};

    pub mod processes {
        pub mod fork_reset;
    }

    pub mod call_stacks {
        pub use crate::stack;
    }

    pub mod signals {
        pub mod sync;

        pub use crate::interruptions;
    }

    #[allow(clippy::module_inception, reason = "the folders have the names of those in the shim")]
    pub mod threads {
        pub mod lock;
        pub mod thread;

        pub use crate::recent_data;

        /// The variables of a thread.
        pub mod variables {
            use std::cell::RefCell;

            use super::thread;

            pub(crate) struct Variables {
                pub(crate) thread: thread::Own,
            }

            loom::thread_local! {
                static OWN: RefCell<Option<&'static Variables>> = RefCell::new(None);
            }

            pub(crate) fn own() -> &'static Variables {
                // SAFETY: as in the shim: all fields are valid as zero bytes.
                let new = || &*Box::leak(Box::new(unsafe { std::mem::zeroed::<Variables>() }));
                OWN.with(|own| *own.borrow_mut().get_or_insert_with(new))
            }
        }
    }
}

/// Every place where a signal handler can interrupt.
pub mod handlers {
    pub mod explorer;

    pub use files::{named_file, plain_file};
    pub use processes::{fork_reset, process};
    pub use signals::sync;
    pub use threads::{lock, thread};
    pub use trace_file::chunks;

    pub mod processes {
        pub mod fork_reset;

        pub use crate::process;
    }

    pub mod signals {
        pub mod sync;

        pub use crate::interruptions;
    }

    pub mod call_stacks {
        pub use crate::stack;
    }

    pub mod files {
        pub mod named_file;
        pub mod plain_file;
    }

    pub mod trace_file {
        pub mod chunks;
    }

    pub mod threads {
        pub mod lock;
        pub mod thread;

        pub use crate::recent_data;

        /// The variables of the one thread.
        pub mod variables {
            use super::{super::trace_file::chunks, thread};

            pub(crate) struct Variables {
                pub(crate) thread: thread::Own,
                pub(crate) lane: chunks::Lane,
            }

            thread_local! {
                // SAFETY: as in the shim: all fields are valid as zero bytes.
                static OWN: &'static Variables = Box::leak(Box::new(unsafe { std::mem::zeroed() }));
            }

            pub(crate) fn own() -> &'static Variables {
                OWN.with(|own| *own)
            }
        }
    }
}

/// The models do not block interruptions.
pub mod interruptions {
    pub fn hold_off() {}
}

/// The cache of handle data is no part of the models.
pub mod recent_data {
    #[derive(Default)]
    pub struct RecentData;
}

pub mod process {
    pub fn file_size_limit() -> u64 {
        u64::MAX
    }
}

pub mod stack {
    pub fn free_cache() {}
}
