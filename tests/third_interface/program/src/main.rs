//! A program with an implementation of the third interface. `export FILE` and `open FILE` share memory between two
//! processes, whose calls are recorded; `judge TRACE...` prints what the rules find in the traces.

use std::fs::{self, File};
use std::sync::atomic::{AtomicBool, Ordering};
use std::{io::BufReader, path::Path};

use urscope_rules::{Checker, End, Process, ProcessId, Rights, Tracker};
#[allow(clippy::wildcard_imports, reason = "a row may name any role")]
use urscope_schema::api::{Function, UrResult, role::*};
use urscope_schema::trace::read::{Reader, Record};
use urscope_schema::{call::Nanos, third_functions};
use urscope_shim::call::{self, Origin};
use urscope_shim::raw::args::{Arg, row};

/// What is exported, and the address at which another process finds it.
const HANDLE: &[u8; 16] = b"third interface!";
const MAPPED: usize = 0x7_0000_0000;

static IS_OPEN: AtomicBool = AtomicBool::new(false);

/// The implementation.
mod real {
    use super::*;

    pub extern "C-unwind" fn export(_: usize, _: usize, data: *mut *const u8, size: *mut usize) -> UrResult {
        // SAFETY: the caller passes two variables.
        unsafe { (*data, *size) = (HANDLE.as_ptr(), HANDLE.len()) };
        UrResult(0)
    }

    pub extern "C-unwind" fn open(_: usize, data: *const u8, size: usize, pointer: *mut usize) -> UrResult {
        // SAFETY: the caller passes so many bytes, and a variable.
        unsafe {
            if std::slice::from_raw_parts(data, size) != HANDLE {
                return UrResult(1);
            }
            *pointer = MAPPED;
        }
        IS_OPEN.store(true, Ordering::Relaxed);
        UrResult(0)
    }

    pub extern "C-unwind" fn close(_: usize, _: usize) -> UrResult {
        UrResult(if IS_OPEN.swap(false, Ordering::Relaxed) { 0 } else { 2 })
    }
}

macro_rules! stubs {
    ($($(#[$doc:meta])* fn $name:ident($($param:ident: $role:ident),*) in $table:ident[$slot:literal] $verb:ident $kind:ident;)*) => {
        /// The hooks: what a program of this interface calls.
        #[allow(non_snake_case, reason = "the names are those of the C functions")]
        mod hook {
            use super::*;

            $(pub extern "C-unwind" fn $name($($param: Arg<$role>),*) -> UrResult {
                let real = match Function::$name {
                    Function::thirdExport => real::export as *const (),
                    Function::thirdOpen => real::open as *const (),
                    _ => real::close as *const (),
                };
                // SAFETY: each has the signature of its row.
                let real = unsafe { std::mem::transmute::<*const (), extern "C-unwind" fn($(Arg<$role>),*) -> UrResult>(real) };
                call::intercept(Origin::Driver, row::$name { $($param),* }, real)
            })*
        }
    };
}

third_functions!(stubs);

/// The hooks with the types of C.
mod c {
    use super::*;

    pub fn export(pointer: usize) -> Vec<u8> {
        let (mut data, mut size) = (std::ptr::null::<u8>(), 0);
        // SAFETY: the types are those of the row.
        let function: extern "C-unwind" fn(usize, usize, *mut *const u8, *mut usize) -> UrResult =
            unsafe { std::mem::transmute(hook::thirdExport as *const ()) };
        assert_eq!(function(1, pointer, &raw mut data, &raw mut size), UrResult(0));
        // SAFETY: the export has returned so many bytes.
        unsafe { std::slice::from_raw_parts(data, size) }.to_vec()
    }

    pub fn open(data: &[u8]) -> (UrResult, usize) {
        let mut pointer = 0;
        // SAFETY: as above.
        let function: extern "C-unwind" fn(usize, *const u8, usize, *mut usize) -> UrResult =
            unsafe { std::mem::transmute(hook::thirdOpen as *const ()) };
        (function(1, data.as_ptr(), data.len(), &raw mut pointer), pointer)
    }

    pub fn close(pointer: usize) -> UrResult {
        // SAFETY: as above.
        let function: extern "C-unwind" fn(usize, usize) -> UrResult =
            unsafe { std::mem::transmute(hook::thirdClose as *const ()) };
        function(1, pointer)
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("export") => {
            urscope_shim::start();
            fs::write(&arguments[1], c::export(0x5000)).unwrap();
        }
        Some("open") => {
            urscope_shim::start();
            assert_eq!(c::open(b"no handle at all"), (UrResult(1), 0));
            let (result, pointer) = c::open(&fs::read(&arguments[1]).unwrap());
            assert_eq!((result, pointer), (UrResult(0), MAPPED));
            assert_eq!([c::close(pointer), c::close(pointer)], [UrResult(0), UrResult(2)]);
        }
        _ => judge(&arguments[1..]),
    }
}

/// Prints what the rules find in traces.
fn judge(traces: &[String]) {
    let (mut tracker, mut checker) = (Tracker::new(), Checker::new());
    let mut records: Vec<(Nanos, ProcessId, Record)> = Vec::new();
    for (pid, trace) in traces.iter().enumerate() {
        let executable = Path::new(trace).file_name().unwrap().to_string_lossy().into();
        let who = tracker.begin(Process {
            pid: pid as u32,
            start: 0,
            host: 0,
            executable,
            rank: None,
            forked_from: None,
            forked_at: None,
            rights: Rights::default().into(),
        });
        for record in Reader::new(BufReader::new(File::open(trace).unwrap())) {
            match record.unwrap().unwrap() {
                Record::Enter(enter) => records.push((enter.time, who, Record::Enter(enter))),
                Record::Exit(exit) => records.push((exit.time, who, Record::Exit(exit))),
                _ => {}
            }
        }
    }
    records.sort_by_key(|(time, ..)| *time);
    let last = records.last().map_or(Nanos(0), |(time, ..)| *time);
    for (_, who, record) in records {
        match record {
            Record::Enter(enter) => tracker.enter(who, &enter.begun(enter.fault()), &mut checker),
            Record::Exit(exit) => tracker.exit(who, &exit.returned(), &mut checker),
            _ => {}
        }
    }
    for who in 0..traces.len() as u32 {
        tracker.end(ProcessId(who), End::Exited, last, &mut checker);
    }
    tracker.finish(&mut checker);
    for finding in checker.take() {
        println!("{} {}: {}", finding.severity, finding.rule.code, finding.message);
    }
}
