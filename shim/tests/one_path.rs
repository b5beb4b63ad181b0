//! Calls of every origin take the same path. The test reads the trace of its process, so it has its own.

#![allow(clippy::unwrap_used, reason = "a test stops where it is surprised")]

use std::ffi::c_void;
use std::panic::catch_unwind;

use urscope_schema::api::{Function, ResultCode};
use urscope_schema::trace::Record;
use urscope_schema::trace::chrome::read::Reader;
use urscope_shim::call::{Origin, intercept};
use urscope_shim::layer::trace;
use urscope_shim::raw::args::reader::NoReader;
use urscope_shim::raw::args::row::{Call, Callee, Frame};

type Real = extern "C-unwind" fn(usize, usize) -> ResultCode;

extern "C-unwind" fn frees(_: usize, pointer: usize) -> ResultCode {
    ResultCode(pointer as u32 & 1)
}

extern "C-unwind" fn throws(_: usize, _: usize) -> ResultCode {
    std::panic::resume_unwind(Box::new(()))
}

fn called(function: Function, origin: Origin, pointer: usize, real: Real) -> ResultCode {
    let words = [8, pointer, 0, 0, 0, 0].map(|word| word as u64);
    // SAFETY: both functions have two numbers as arguments, and follow none.
    let mut call = unsafe {
        let frame = Frame::new(words.as_ptr(), words.as_ptr());
        Call::new(function, &NoReader, frame, Callee::Function(real as *mut c_void))
    };
    intercept(origin, &mut call)
}

fn of_adapter(pointer: usize, real: Real) -> ResultCode {
    called(Function::urUSMFree, Origin::Adapter(3), pointer, real)
}

fn of_driver(origin: Origin, pointer: usize, real: Real) -> ResultCode {
    called(Function::zeMemFree, origin, pointer, real)
}

/// The kind of a record of a call, the call's number, the adapter or the result, and the pointer.
type Shown = (&'static str, Function, u64, Option<u64>, Option<u64>);

fn shown(record: &Record) -> Option<Shown> {
    let result = |result: ResultCode| Some(u64::from(result.0));
    match record {
        Record::Enter(enter) => Some(("enter", enter.function, enter.call, enter.values.via, enter.values.pointer)),
        Record::Exit(exit) => Some(("exit", exit.function, exit.call, result(exit.result), exit.values.pointer)),
        Record::InnerEnter(enter) => {
            Some(("inner", enter.function, enter.call, enter.values.via, enter.values.pointer))
        }
        Record::InnerExit(exit) => Some(("end", exit.function, exit.call, result(exit.result), exit.values.pointer)),
        _ => None,
    }
}

#[test]
fn calls_of_every_origin_are_recorded_also_when_an_exception_leaves_them() {
    let directory = tempfile::tempdir().unwrap();
    // SAFETY: the only thread that uses the environment, in a process of its own.
    unsafe { std::env::set_var("URSCOPE_DIR", directory.path()) };
    assert_eq!(of_adapter(0x10, frees), ResultCode::SUCCESS);
    assert_eq!(of_driver(Origin::Driver, 0x21, frees), ResultCode(1));
    assert_eq!(of_driver(Origin::Inner(2), 0x30, frees), ResultCode::SUCCESS);
    assert!(catch_unwind(|| of_adapter(0x40, throws)).is_err());
    assert!(catch_unwind(|| of_driver(Origin::Driver, 0x50, throws)).is_err());
    assert!(catch_unwind(|| of_driver(Origin::Inner(4), 0x60, throws)).is_err());
    trace::end("exit");

    let bytes = std::fs::read(trace::path().unwrap()).unwrap();
    let records: Vec<_> = Reader::new(&bytes[..]).filter_map(|record| shown(&record.unwrap().unwrap())).collect();
    let ur = Function::urUSMFree;
    let ze = Function::zeMemFree;
    let unknown = Some(u64::from(ResultCode::UNKNOWN.0));
    let expected = [
        ("enter", ur, 1, Some(3), Some(0x10)),
        ("exit", ur, 1, Some(0), None),
        ("enter", ze, 2, None, Some(0x21)),
        ("exit", ze, 2, Some(1), None),
        ("inner", ze, 2, None, Some(0x30)),
        ("end", ze, 2, Some(0), None),
        ("enter", ur, 3, Some(3), Some(0x40)),
        ("exit", ur, 3, unknown, None),
        ("enter", ze, 4, None, Some(0x50)),
        ("exit", ze, 4, unknown, None),
        ("inner", ze, 4, None, Some(0x60)),
        ("end", ze, 4, unknown, None),
    ];
    assert_eq!(records, expected);
}
