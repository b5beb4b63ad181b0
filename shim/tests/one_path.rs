//! Calls of every origin take the same path, also those of rows that another crate makes. The test reads the trace of
//! its process, so it has its own.

#![allow(clippy::unwrap_used, reason = "a test stops where it is surprised")]

use std::panic::catch_unwind;

use urscope_schema::api::role::{Context, Pointer, Role};
use urscope_schema::api::{Function, UrResult};
use urscope_schema::trace::read::{Reader, Record};
use urscope_shim::call::{Origin, intercept};
use urscope_shim::{layer::trace, raw::args::Arg};

urscope_shim::rows! {
    /// Frees USM.
    fn urUSMFree(context: Context, pointer: Pointer) in USM[3] Ends Usm;
    /// Frees memory.
    fn zeMemFree(context: Context, pointer: Pointer) in ZeMem[3] Ends Usm;
}

type Real = extern "C-unwind" fn(Arg<Context>, Arg<Pointer>) -> UrResult;

extern "C-unwind" fn frees(_: Arg<Context>, pointer: Arg<Pointer>) -> UrResult {
    UrResult(pointer.get().0 as u32 & 1)
}

extern "C-unwind" fn throws(_: Arg<Context>, _: Arg<Pointer>) -> UrResult {
    std::panic::resume_unwind(Box::new(()))
}

fn arg<R: Role>(role: R) -> Arg<R> {
    // SAFETY: the functions above follow no address.
    unsafe { Arg::new(role) }
}

fn of_adapter(pointer: usize, real: Real) -> UrResult {
    let row = urUSMFree { context: arg(Context(8)), pointer: arg(Pointer(pointer)) };
    intercept(Origin::Adapter(3), row, real)
}

fn of_driver(origin: Origin, pointer: usize, real: Real) -> UrResult {
    let row = zeMemFree { context: arg(Context(8)), pointer: arg(Pointer(pointer)) };
    intercept(origin, row, real)
}

/// The kind of a record of a call, the call's number, the adapter or the result, and the pointer.
type Shown = (&'static str, Function, u64, Option<u64>, Option<u64>);

fn shown(record: &Record) -> Option<Shown> {
    let result = |result: UrResult| Some(u64::from(result.0));
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
    assert_eq!(of_adapter(0x10, frees), UrResult::SUCCESS);
    assert_eq!(of_driver(Origin::Driver, 0x21, frees), UrResult(1));
    assert_eq!(of_driver(Origin::Inner(2), 0x30, frees), UrResult::SUCCESS);
    assert!(catch_unwind(|| of_adapter(0x40, throws)).is_err());
    assert!(catch_unwind(|| of_driver(Origin::Driver, 0x50, throws)).is_err());
    assert!(catch_unwind(|| of_driver(Origin::Inner(4), 0x60, throws)).is_err());
    trace::end("exit");

    let bytes = std::fs::read(trace::path().unwrap()).unwrap();
    let records: Vec<_> = Reader::new(&bytes[..]).filter_map(|record| shown(&record.unwrap().unwrap())).collect();
    let (ur, ze, unknown) = (Function::urUSMFree, Function::zeMemFree, Some(u64::from(UrResult::UNKNOWN.0)));
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
