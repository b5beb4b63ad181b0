//! A program with an implementation of the third interface. `export FILE` and `open FILE` share memory between two
//! processes, whose calls are recorded; `judge TRACE...` prints what the rules find in the traces.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use urscope_rules::{Checker, End, Process, ProcessId, Rights, Tracker};
use urscope_schema::api::UrResult;
use urscope_schema::api::role::{Context, DataSize, OpenedData, OutData, OutDataSize, OutPointer, Pointer, Role};
use urscope_schema::call::Nanos;
use urscope_schema::trace::read::{Reader, Record};
use urscope_shim::call::{Origin, intercept};
use urscope_shim::raw::args::{Arg, row};

/// What is exported, and the address at which another process finds it.
const HANDLE: &[u8; 16] = b"third interface!";
const MAPPED: usize = 0x7_0000_0000;

static IS_OPEN: AtomicBool = AtomicBool::new(false);

extern "C-unwind" fn export(_: Arg<Context>, _: Arg<Pointer>, data: Arg<OutData>, size: Arg<OutDataSize>) -> UrResult {
    let (data, size) = (data.get().0 as *mut *const u8, size.get().0 as *mut usize);
    // SAFETY: the caller passes two variables.
    unsafe { (*data, *size) = (HANDLE.as_ptr(), HANDLE.len()) };
    UrResult(0)
}

extern "C-unwind" fn open(
    _: Arg<Context>,
    data: Arg<OpenedData>,
    size: Arg<DataSize>,
    pointer: Arg<OutPointer>,
) -> UrResult {
    // SAFETY: the caller passes so many bytes.
    let data = unsafe { std::slice::from_raw_parts(data.get().0 as *const u8, size.get().0) };
    if data != HANDLE {
        return UrResult(1);
    }
    // SAFETY: the caller passes a variable.
    unsafe { *(pointer.get().0 as *mut usize) = MAPPED };
    IS_OPEN.store(true, Ordering::Relaxed);
    UrResult(0)
}

extern "C-unwind" fn close(_: Arg<Context>, _: Arg<Pointer>) -> UrResult {
    UrResult(if IS_OPEN.swap(false, Ordering::Relaxed) { 0 } else { 2 })
}

fn arg<R: Role>(role: R) -> Arg<R> {
    // SAFETY: the addresses below are those of variables that live during the call.
    unsafe { Arg::new(role) }
}

fn opened(bytes: &[u8]) -> (UrResult, usize) {
    let mut pointer = 0_usize;
    let row = row::thirdOpen {
        context: arg(Context(1)),
        data: arg(OpenedData(bytes.as_ptr() as usize)),
        data_size: arg(DataSize(bytes.len())),
        pointer: arg(OutPointer(&raw mut pointer as usize)),
    };
    (intercept(Origin::Driver, row, open), pointer)
}

fn closed(pointer: usize) -> UrResult {
    let row = row::thirdClose { context: arg(Context(1)), pointer: arg(Pointer(pointer)) };
    intercept(Origin::Driver, row, close)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("export") => {
            urscope_shim::start();
            let (mut data, mut size) = (std::ptr::null::<u8>(), 0_usize);
            let row = row::thirdExport {
                context: arg(Context(1)),
                pointer: arg(Pointer(0x5000)),
                data: arg(OutData(&raw mut data as usize)),
                data_size: arg(OutDataSize(&raw mut size as usize)),
            };
            assert_eq!(intercept(Origin::Driver, row, export), UrResult(0));
            // SAFETY: the export has returned so many bytes.
            fs::write(&arguments[1], unsafe { std::slice::from_raw_parts(data, size) }).unwrap();
        }
        Some("open") => {
            urscope_shim::start();
            assert_eq!(opened(b"no handle at all"), (UrResult(1), 0));
            assert_eq!(opened(&fs::read(&arguments[1]).unwrap()), (UrResult(0), MAPPED));
            assert_eq!([closed(MAPPED), closed(MAPPED)], [UrResult(0), UrResult(2)]);
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
            parent: None,
            forked_from: None,
            started: None,
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
            Record::Enter(enter) => tracker.enter(who, &enter.begun(&enter.nulls()), &mut checker),
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
