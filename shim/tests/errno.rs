//! No function changes errno, whatever is done for its first call: with a new thread, a new place, a trace that is made
//! and one that cannot grow, in both forms, with validation. Each form has a process of its own.

#![allow(clippy::unwrap_used, reason = "a test stops where it is surprised")]

use std::{env, fs, path::Path, process::Command, thread};

use urscope_schema::api::{Function, ResultCode};
use urscope_shim::call::{Origin, intercept};
use urscope_shim::raw::args::reader::NoReader;
use urscope_shim::raw::args::row::{Call, Callee, Frame};

/// Set in the processes that call.
const ROLE: &str = "URSCOPE_TEST_ROLE";

/// A value that no function sets.
const UNCHANGED: i32 = 1234;

fn errno() -> *mut i32 {
    // SAFETY: errno(3) is a variable of this thread.
    unsafe { libc::__errno_location() }
}

/// Makes a call of a function without arguments, by each origin.
fn keeps_errno(function: Function) {
    extern "C-unwind" fn real() -> ResultCode {
        ResultCode::SUCCESS
    }
    let words = [0; 16];
    // SAFETY: no row has more words on the stack, and no address is followed that is null.
    let mut call = unsafe {
        let frame = Frame::new(words.as_ptr(), words.as_ptr());
        Call::new(function, &NoReader, frame, Callee::Function(real as *mut _))
    };
    for origin in [Origin::Adapter(0), Origin::Driver, Origin::Inner(1)] {
        // SAFETY: as above.
        unsafe { *errno() = UNCHANGED };
        intercept(origin, &mut call);
        // SAFETY: as above.
        let after = unsafe { *errno() };
        assert_eq!(after, UNCHANGED, "{function:?} by {origin:?}");
    }
}

/// Makes each call in a thread of its own.
fn call_all() {
    for function in Function::ALL {
        thread::spawn(|| keeps_errno(*function)).join().unwrap();
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
