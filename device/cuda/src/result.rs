//! The result codes of the driver that are returned here, and the wrapper around each C function.

use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};

use urscope_device::ZeResult;

use crate::arguments::Out;

/// `CUresult` (cuda.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
#[must_use]
pub(crate) struct Code(pub(crate) u32);

/// What the body of a function returns: a value, or the code for the caller.
pub(crate) type Outcome<T = ()> = Result<T, Code>;

/// The errors, without `CUDA_ERROR_`, and the texts for them.
macro_rules! errors {
    ($($name:ident = $code:literal, $text:literal;)*) => {
        impl Code {
            $(pub(crate) const $name: Self = Self($code);)*
        }

        /// The codes with their names and texts, each with a NUL at its end.
        const TEXTS: &[(Code, &str, &str)] = &[
            (Code::SUCCESS, "CUDA_SUCCESS\0", "no error\0"),
            $((Code::$name, concat!("CUDA_ERROR_", stringify!($name), "\0"), concat!($text, "\0")),)*
        ];
    };
}

errors! {
    INVALID_VALUE = 1, "invalid argument";
    OUT_OF_MEMORY = 2, "out of memory";
    NOT_INITIALIZED = 3, "initialization error";
    NO_DEVICE = 100, "no CUDA-capable device is detected";
    INVALID_DEVICE = 101, "invalid device ordinal";
    INVALID_CONTEXT = 201, "invalid device context";
    INVALID_HANDLE = 400, "invalid resource handle";
    NOT_FOUND = 500, "named symbol not found";
    NOT_READY = 600, "device not ready";
    NOT_PERMITTED = 800, "operation not permitted";
    NOT_SUPPORTED = 801, "operation not supported";
    UNKNOWN = 999, "unknown error";
}

impl Code {
    pub(crate) const SUCCESS: Self = Self(0);
}

impl From<ZeResult> for Code {
    fn from(result: ZeResult) -> Self {
        match result {
            ZeResult::SUCCESS => Self::SUCCESS,
            ZeResult::NOT_READY => Self::NOT_READY,
            ZeResult::OUT_OF_HOST_MEMORY | ZeResult::OUT_OF_DEVICE_MEMORY => Self::OUT_OF_MEMORY,
            ZeResult::UNINITIALIZED => Self::NOT_INITIALIZED,
            ZeResult::UNSUPPORTED_FEATURE => Self::NOT_SUPPORTED,
            ZeResult::UNKNOWN | ZeResult::DEVICE_LOST => Self::UNKNOWN,
            _ => Self::INVALID_VALUE,
        }
    }
}

/// Runs the body of a C function. With `ZE_SOFT_LOG=1`, a line on stderr says why it refuses the call.
pub(crate) fn call(name: &str, body: impl FnOnce() -> Outcome) -> Code {
    // Of a step that was refused in a call that succeeded.
    urscope_device::take_reason();
    let code = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => Code::SUCCESS,
        Ok(Err(code)) => code,
        Err(_) => Code::UNKNOWN,
    };
    if !matches!(code, Code::SUCCESS | Code::NOT_READY) {
        say_why(name, code);
    }
    code
}

#[cold]
fn say_why(name: &str, code: Code) {
    let Some((_, known, text)) = TEXTS.iter().find(|(known, ..)| *known == code) else { return };
    let [known, text] = [known, text].map(|text| text.trim_end_matches('\0'));
    let reason = urscope_device::take_reason().map_or_else(|| text.to_owned(), |(_, reason)| reason);
    urscope_device::note(&format!("{name}: {reason} ({known})"));
}

crate::exports::functions! {
    6000 "cuGetErrorName" cuGetErrorName(error: Code, name: Out<*const c_char>) {
        describe(error, name, |(_, name, _)| name)
    }
    6000 "cuGetErrorString" cuGetErrorString(error: Code, text: Out<*const c_char>) {
        describe(error, text, |(.., text)| text)
    }
}

/// Writes a text of a code: `INVALID_VALUE` and NULL for one that is not returned here.
fn describe(
    error: Code,
    to: Out<*const c_char>,
    of: fn(&'static (Code, &str, &str)) -> &'static &'static str,
) -> Outcome {
    let found = TEXTS.iter().find(|(code, ..)| *code == error);
    to.write(found.map_or(std::ptr::null(), |row| of(row).as_ptr().cast()))?;
    found.map(drop).ok_or(Code::INVALID_VALUE)
}
