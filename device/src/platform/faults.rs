//! Fault injection: result codes that functions return instead of doing their work (`ZE_SOFT_FAIL`).
//!
//! Every implemented function of the table has one code, which its entry point reads first. Must never list a function
//! that returns something other than a `ze_result_t`.

use std::sync::atomic::{AtomicU32, Ordering};

/// Functions that return something other than a `ze_result_t`.
const WITHOUT_RESULT: [&str; 4] = [
    "zeDriverGetDefaultContext",
    "zerGetDefaultContext",
    "zerTranslateDeviceHandleToIdentifier",
    "zerTranslateIdentifierToDeviceHandle",
];

/// Whether a function of this name exists, is implemented, and returns a `ze_result_t`.
pub(crate) fn can_fail(name: &str) -> bool {
    find(name).is_some()
}

/// Makes a function return `code` from now on, without doing anything. 0 makes it work again. Nothing happens if
/// [`can_fail`] is false for it.
pub(crate) fn fail(name: &str, code: u32) {
    if let Some(cell) = find(name) {
        cell.store(code, Ordering::Relaxed);
    }
}

fn find(name: &str) -> Option<&'static AtomicU32> {
    let known = CODES.iter().flatten().find(|(known, _)| *known == name)?;
    (!WITHOUT_RESULT.contains(&name)).then_some(known.1)
}

macro_rules! cell {
    ($name:ident) => {};
    ($name:ident => $($path:ident)::+) => {
        pub(crate) static $name: AtomicU32 = AtomicU32::new(0);
    };
}

macro_rules! code {
    ($name:ident) => {
        None
    };
    ($name:ident => $($path:ident)::+) => {
        Some((stringify!($name), &cell::$name))
    };
}

macro_rules! expand {
    (
        loader { $($loader:ident => $($loader_path:ident)::+;)* }
        extensions { $($extension:ident => $($extension_path:ident)::+;)* }
        $($getter:ident { $($since:literal $name:ident $(=> $($path:ident)::+)?;)* })*
    ) => {
        /// One code for each implemented function, under its C name; 0 for none.
        #[allow(non_upper_case_globals, reason = "the names are those of the C API")]
        pub(crate) mod cell {
            use super::AtomicU32;

            $(cell!($loader => $($loader_path)::+);)*
            $(cell!($extension => $($extension_path)::+);)*
            $($(cell!($name $(=> $($path)::+)?);)*)*
        }

        /// The functions that can be made to fail: those of the API and the driver extensions.
        static CODES: &[Option<(&str, &AtomicU32)>] = &[
            $(code!($extension => $($extension_path)::+),)*
            $($(code!($name $(=> $($path)::+)?),)*)*
        ];
    };
}

crate::ze_functions!(expand);
