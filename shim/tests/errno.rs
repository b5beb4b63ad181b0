//! No function changes errno, whatever is done for its first call: with a new thread, a new place, a trace that is made
//! and one that cannot grow, in both forms, with validation. Each form has a process of its own.

#![allow(clippy::unwrap_used, reason = "a test stops where it is surprised")]

use std::{env, fs, path::Path, process::Command, thread};

#[allow(clippy::wildcard_imports, reason = "a row may name any role")]
use urscope_schema::api::{UrResult, role::*};
#[allow(clippy::wildcard_imports, reason = "each interface has a macro for its rows")]
use urscope_schema::*;
use urscope_shim::call::{Origin, intercept_shared};
use urscope_shim::raw::args::Arg;
use urscope_shim::raw::args::row::{self, RealCall, RowCall};

/// Set in the processes that call.
const ROLE: &str = "URSCOPE_TEST_ROLE";

/// A value that no function sets.
const UNCHANGED: i32 = 1234;

fn errno() -> *mut i32 {
    // SAFETY: errno(3) is a variable of this thread.
    unsafe { libc::__errno_location() }
}

fn keeps_errno(call: &dyn RealCall) {
    for origin in [Origin::Adapter(0), Origin::Driver, Origin::Inner(1)] {
        // SAFETY: as above.
        unsafe { *errno() = UNCHANGED };
        intercept_shared(origin, call);
        // SAFETY: as above.
        let after = unsafe { *errno() };
        assert_eq!(after, UNCHANGED, "{:?} by {origin:?}", call.arguments().function());
    }
}

macro_rules! calls {
    ($(#[doc = $doc:literal] fn $name:ident($($param:ident: $role:ident),*) in $table:ident[$slot:literal] $verb:ident $kind:ident;)*) => {
        /// A call of every function without arguments, by each origin.
        const CALLS: &[fn()] = &[$(
            || {
                extern "C-unwind" fn real($(_: Arg<$role>),*) -> UrResult {
                    UrResult::SUCCESS
                }
                // SAFETY: a role is a number, which is not followed here.
                let row = row::$name { $($param: unsafe { std::mem::zeroed::<Arg<$role>>() }),* };
                keeps_errno(&RowCall::new(row, real));
            },
        )*];
    };
}

hooked_functions!(calls);

/// Makes each call in a thread of its own.
fn call_all() {
    for call in CALLS {
        thread::spawn(*call).join().unwrap();
    }
}

#[test]
fn no_function_changes_errno() {
    if let (Some(_), Some(folder)) = (env::var_os(ROLE), env::var_os("URSCOPE_DIR")) {
        call_all();
        // The file cannot be opened again.
        fs::remove_dir_all(Path::new(&folder)).unwrap();
        (0..100).for_each(|_| call_all());
        return;
    }
    for form in ["chrome", "binary"] {
        let folder = tempfile::tempdir().unwrap();
        let mut process = Command::new(env::current_exe().unwrap());
        process.arg("no_function").env(ROLE, "calls").env("URSCOPE_DIR", folder.path().join("traces"));
        let output = process.env("URSCOPE_FORMAT", form).env("URSCOPE_ON_ERROR", "report").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{form}: {}{said}", String::from_utf8_lossy(&output.stdout));
        assert!(said.contains("cannot grow"), "{form}: {said}");
    }
}
