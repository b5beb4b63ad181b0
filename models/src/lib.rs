//! Files of `shim/src/raw`, compiled with a `sync` that runs them in every order of threads or of signal handlers.
//!
//! * [`threads`] has the atomics of loom, which tries every order of threads, and every value that a load may return.
//! * [`handlers`] has cells and stores that a signal handler can interrupt, and tries every place for it; see
//!   [`handlers::explorer`].
//!
//! The files are symbolic links. What they use of the rest of the shim is defined here.

#![allow(dead_code, reason = "the models use a part of the files")]

/// The variables of a thread, by a macro that declares those of a thread.
macro_rules! variables {
    ($($thread_local:tt)*) => {
        /// The variables of a thread.
        pub mod variables {
            pub(crate) use crate::variables::places;
            use crate::variables::{Known, find};

            $($thread_local)*! {
                static KNOWN: Known = Known::default();
            }

            pub(crate) unsafe trait Variable: Sized + 'static {
                const PLACE: std::ops::Range<usize>;

                fn own() -> &'static Self {
                    KNOWN.with(find)
                }
            }
        }
    };
}

/// Every order of threads.
pub mod threads {
    pub use processes::fork_reset;
    pub use signals::{sync, sync::explore};
    pub use threads::{lock, thread};

    pub mod processes {
        pub mod fork_reset;
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

        variables!(loom::thread_local);
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

        variables!(thread_local);
    }
}

/// Variables of a thread, which are made when they are asked for first. Their places mean nothing here.
pub mod variables {
    use std::any::{Any, TypeId};
    use std::cell::RefCell;

    pub type Known = RefCell<Vec<(TypeId, &'static dyn Any)>>;

    pub fn find<T: 'static>(known: &Known) -> &'static T {
        let mut known = known.borrow_mut();
        let found = known.iter().find(|(id, _)| *id == TypeId::of::<T>()).and_then(|(_, it)| it.downcast_ref());
        found.unwrap_or_else(|| {
            // SAFETY: as in the shim: zero bytes are a value.
            let new: &'static T = Box::leak(Box::new(unsafe { std::mem::zeroed() }));
            known.push((TypeId::of::<T>(), new));
            new
        })
    }

    pub mod places {
        use std::ops::Range;

        pub const THREAD: Range<usize> = 0..0;
        pub const LANE: Range<usize> = 0..0;
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
