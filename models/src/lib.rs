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
    pub mod fork_reset;
    pub mod lock;
    pub mod sync;
    pub mod thread;

    pub use sync::explore;

    pub use super::{interruptions, recent_data, stack};

    /// The variables of a thread.
    pub mod variables {
        use std::cell::RefCell;

        use super::thread;

        pub(super) struct Variables {
            pub(super) thread: thread::Own,
        }

        loom::thread_local! {
            static OWN: RefCell<Option<&'static Variables>> = RefCell::new(None);
        }

        pub(super) fn own() -> &'static Variables {
            // SAFETY: as in the shim: all fields are valid as zero bytes.
            let new = || &*Box::leak(Box::new(unsafe { std::mem::zeroed::<Variables>() }));
            OWN.with(|own| *own.borrow_mut().get_or_insert_with(new))
        }
    }
}

/// Every place where a signal handler can interrupt.
pub mod handlers {
    pub mod chunks;
    pub mod explorer;
    pub mod fork_reset;
    pub mod lock;
    pub mod named_file;
    pub mod plain_file;
    pub mod sync;
    pub mod thread;

    pub use super::{interruptions, process, recent_data, stack};

    /// The variables of the one thread.
    pub mod variables {
        use super::{chunks, thread};

        pub(super) struct Variables {
            pub(super) thread: thread::Own,
            pub(super) lane: chunks::Lane,
        }

        thread_local! {
            // SAFETY: as in the shim: all fields are valid as zero bytes.
            static OWN: &'static Variables = Box::leak(Box::new(unsafe { std::mem::zeroed() }));
        }

        pub(super) fn own() -> &'static Variables {
            OWN.with(|own| *own)
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
