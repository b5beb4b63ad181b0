//! The program lowers its limit of file size after the trace has begun: the trace is closed normally. The test has
//! its own process.

#![allow(clippy::unwrap_used, reason = "a test stops where it is surprised")]

use urscope_schema::api::{Function, ResultCode, demand::Nulls};
use urscope_schema::call::Values;
use urscope_schema::trace::Record;
use urscope_schema::trace::chrome::read::Reader;
use urscope_shim::{chain, knobs, layer::trace};

fn call() {
    let call = chain::enter::<false>(knobs::hot(), Function::urUSMFree, &Values::default(), &Nulls::default()).call;
    chain::exit::<false>(knobs::hot(), Function::urUSMFree, call, ResultCode::SUCCESS, None);
}

#[test]
fn a_limit_below_the_file_ends_neither_the_process_nor_the_trace() {
    let directory = tempfile::tempdir().unwrap();
    // SAFETY: the only thread that uses the environment, in a process of its own.
    unsafe { std::env::set_var("URSCOPE_DIR", directory.path()) };
    (0..100).for_each(|_| call());
    let limit = libc::rlimit { rlim_cur: 1000, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: setrlimit(2) reads the structure. SIGXFSZ keeps its default, which ends the process.
    unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) };
    call();
    trace::end("exit");
    // The teardown of a library, after the end.
    call();
    // The harness may write to a file, too.
    let limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, ..limit };
    // SAFETY: as above.
    unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) };

    let bytes = std::fs::read(trace::path().unwrap()).unwrap();
    assert!(bytes.len() > 1000, "the limit was not reached");
    serde_json::from_slice::<Vec<serde_json::Value>>(&bytes).unwrap();
    let last = Reader::new(&bytes[..]).map(|record| record.unwrap().unwrap()).last();
    assert!(matches!(last, Some(Record::Footer(footer)) if footer.calls == 101 && footer.lost == 0));
}
