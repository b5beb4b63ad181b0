//! An unwritable directory: calls work as without urscope. The test has its own process.

#![allow(clippy::unwrap_used, reason = "a test stops where it is surprised")]

use urscope_schema::api::{Function, ResultCode, demand::Nulls};
use urscope_schema::call::Values;
use urscope_shim::{chain, knobs, layer::trace};

#[test]
fn an_unwritable_directory_stops_no_call() {
    let file = tempfile::NamedTempFile::new().unwrap();
    // SAFETY: the only thread that uses the environment, in a process of its own.
    unsafe { std::env::set_var("URSCOPE_DIR", file.path().join("below a file")) };
    for number in 1..=3 {
        let call = chain::enter::<false>(knobs::hot(), Function::urUSMFree, &Values::default(), &Nulls::default()).call;
        assert_eq!(call, number);
        chain::exit::<false>(knobs::hot(), Function::urUSMFree, call, ResultCode::SUCCESS, None);
    }
    assert_eq!(trace::path(), None);
    trace::end("exit");
}
