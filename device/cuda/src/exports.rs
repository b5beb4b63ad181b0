//! What a module exports.

use std::cell::Cell;

use crate::result::Code;

/// A function as `cuGetProcAddress` knows it.
pub(crate) struct Function {
    /// Its name, without the version of the symbol.
    pub name: &'static str,
    /// The version of CUDA in which this form of it appeared.
    pub since: i32,
    pub address: *const (),
    /// The form of it in which no stream means that of the calling thread.
    pub per_thread: Option<*const ()>,
}

// SAFETY: the addresses are those of functions, the same for all threads and never written through.
unsafe impl Sync for Function {}

/// C functions: the version that a form of it appeared in, its name, its symbol, its parameters, and after a stroke the
/// symbol of its form for the default stream of a thread.
macro_rules! functions {
    ($($since:literal $name:literal $symbol:ident $arguments:tt $(/ $per_thread:ident)? $body:block)*) => {
        $(
            crate::exports::functions!(@define $name $symbol $arguments $body);
            $(crate::exports::functions!(@of_thread $name $per_thread $symbol $arguments);)?
        )*

        pub(crate) static FUNCTIONS: &[crate::exports::Function] = &[$(crate::exports::Function {
            name: $name,
            since: $since,
            address: $symbol as *const (),
            per_thread: crate::exports::functions!(@address $($per_thread)?),
        }),*];
    };
    (@define $name:literal $symbol:ident ($($argument:ident: $type:ty),* $(,)?) $body:block) => {
        #[doc = concat!("`", $name, "` (cuda.h).")]
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the name is that of a C symbol")]
        pub(crate) extern "C" fn $symbol($($argument: $type),*) -> crate::result::Code {
            crate::result::call(stringify!($symbol), || $body)
        }
    };
    (@of_thread $name:literal $per_thread:ident $symbol:ident ($($argument:ident: $type:ty),* $(,)?)) => {
        #[doc = concat!("`", $name, "` (cuda.h), with the default stream of the calling thread.")]
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the name is that of a C symbol")]
        pub(crate) extern "C" fn $per_thread($($argument: $type),*) -> crate::result::Code {
            crate::exports::with_stream_of_thread(|| $symbol($($argument),*))
        }
    };
    (@address) => { None };
    (@address $symbol:ident) => { Some($symbol as *const ()) };
}
pub(crate) use functions;

thread_local! {
    static STREAM_OF_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Makes a call in which no stream means that of the calling thread.
pub(crate) fn with_stream_of_thread(call: impl FnOnce() -> Code) -> Code {
    STREAM_OF_THREAD.set(true);
    let code = call();
    STREAM_OF_THREAD.set(false);
    code
}

/// Whether no stream means that of the calling thread.
pub(crate) fn is_stream_of_thread() -> bool {
    STREAM_OF_THREAD.get()
}
