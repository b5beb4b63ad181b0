//! Fault injection: result codes that functions return instead of doing their work (`ZE_SOFT_FAIL`).
//!
//! Every implemented function of the table has a gate, which its entry point reads first: it holds the code, whether
//! tracers have callbacks for the function, and whether its refused calls are logged. Must never list a function that
//! returns something other than a `ze_result_t`.

use std::sync::atomic::{AtomicU32, Ordering};

/// Functions that return something other than a `ze_result_t`.
const WITHOUT_RESULT: [&str; 6] = [
    "zeLoaderGetTracingHandle",
    "zelCheckIsLoaderInTearDown",
    "zeDriverGetDefaultContext",
    "zerGetDefaultContext",
    "zerTranslateDeviceHandleToIdentifier",
    "zerTranslateIdentifierToDeviceHandle",
];

/// A gate, which an entry point reads before it jumps to its implementation. All zero means that there
/// is nothing else to do.
#[repr(C, align(8))]
pub(crate) struct Gate {
    code: AtomicU32,
    tracers: AtomicU32,
}

/// The bit of `tracers` that is set until the settings are read, and afterwards with `ZE_SOFT_LOG=1`.
const LOGGED: u32 = 1 << 31;

#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "entry points there only read the code"))]
impl Gate {
    const fn new() -> Self {
        Self { code: AtomicU32::new(0), tracers: AtomicU32::new(LOGGED) }
    }

    /// The code that the function returns instead of doing its work; 0 for none.
    pub(crate) fn code(&self) -> u32 {
        self.code.load(Ordering::Relaxed)
    }

    /// Whether an enabled tracer has a callback for the function.
    pub(crate) fn is_traced(&self) -> bool {
        self.tracers.load(Ordering::Acquire) & !LOGGED > 0
    }

    /// Whether a refused call is to be reported, or the settings have not been read.
    pub(crate) fn is_logged(&self) -> bool {
        self.tracers.load(Ordering::Relaxed) & LOGGED > 0
    }

    /// Counts one more tracer with a callback for the function, or one less.
    pub(crate) fn count_tracer(&self, more: bool) {
        if more {
            self.tracers.fetch_add(1, Ordering::AcqRel);
        } else {
            self.tracers.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// From now on, calls are not logged.
pub(crate) fn stop_logging() {
    for (_, gate) in GATES.iter().chain(LOADER_GATES).flatten() {
        gate.tracers.fetch_and(!LOGGED, Ordering::AcqRel);
    }
}

/// Whether the implemented function of this name returns a `ze_result_t`.
pub(crate) fn has_result(name: &str) -> bool {
    !WITHOUT_RESULT.contains(&name)
}

/// Whether a function of this name exists, is implemented, and returns a `ze_result_t`.
pub(crate) fn can_fail(name: &str) -> bool {
    find(name).is_some()
}

/// Makes a function return `code` from now on, without doing anything. 0 makes it work again. Nothing happens if
/// [`can_fail`] is false for it.
pub(crate) fn fail(name: &str, code: u32) {
    if let Some(gate) = find(name) {
        gate.code.store(code, Ordering::Relaxed);
    }
}

fn find(name: &str) -> Option<&'static Gate> {
    let known = GATES.iter().flatten().find(|(known, _)| *known == name)?;
    has_result(name).then_some(known.1)
}

macro_rules! gate {
    ($name:ident) => {};
    ($name:ident => $($path:ident)::+) => {
        pub(crate) static $name: Gate = Gate::new();
    };
}

macro_rules! named {
    ($name:ident) => {
        None
    };
    ($name:ident => $($path:ident)::+) => {
        Some((stringify!($name), &gate::$name))
    };
}

macro_rules! expand {
    (
        loader { $($loader:ident => $($loader_path:ident)::+;)* }
        extensions { $($extension:ident => $($extension_path:ident)::+;)* }
        $($getter:ident { $($since:literal $name:ident $(=> $($path:ident)::+)?;)* })*
    ) => {
        /// One gate for each implemented function, under its C name.
        #[allow(non_upper_case_globals, reason = "the names are those of the C API")]
        pub(crate) mod gate {
            use super::Gate;

            $(gate!($loader => $($loader_path)::+);)*
            $(gate!($extension => $($extension_path)::+);)*
            $($(gate!($name $(=> $($path)::+)?);)*)*
        }

        /// The functions that can be made to fail: those of the API and the driver extensions.
        static GATES: &[Option<(&str, &Gate)>] = &[
            $(named!($extension => $($extension_path)::+),)*
            $($(named!($name $(=> $($path)::+)?),)*)*
        ];

        /// The functions of a loader.
        static LOADER_GATES: &[Option<(&str, &Gate)>] = &[$(named!($loader => $($loader_path)::+),)*];
    };
}

crate::ze_functions!(expand);
