//! Which functions are wrappers, from the call stacks of processes.

use super::*;
use crate::analysis::{Location, Wrappers};

/// A frame from a text: `f file.cpp:3`, `f@0x10` without a source, or `0x10` without a name.
fn frame(text: &str) -> Frame {
    let module = "/home/me/app".to_owned();
    if let Some((function, place)) = text.split_once(' ') {
        let (file, line) = place.split_once(':').unwrap();
        let offset = format!("0x{line}0");
        let line = line.parse().ok();
        let function = Some(function.to_owned());
        let file = Some(format!("/home/me/{file}"));
        return Frame { module, offset, function, file, line, ..Frame::default() };
    }
    match text.split_once('@') {
        Some((function, offset)) => {
            Frame { module, offset: offset.into(), function: Some(function.into()), ..Frame::default() }
        }
        None => Frame { module, offset: text.into(), ..Frame::default() },
    }
}

/// The frames of a call, innermost first.
fn stack(frames: &str) -> Vec<Frame> {
    frames.split(" < ").map(frame).collect()
}

fn made(function: Function, frames: &str) -> Made {
    Made { function, frames: compared(stack(frames)) }
}

const ALLOCATE: Function = Function::urUSMDeviceAlloc;
const FREE: Function = Function::urUSMFree;
const GET: Function = Function::urIPCGetMemHandleExp;
const PUT: Function = Function::urIPCPutMemHandleExp;
const OPEN: Function = Function::urIPCOpenMemHandleExp;

/// The place of a call, as all answers show it, with the wrappers of these processes.
fn place(processes: &[Vec<Made>], frames: &str) -> String {
    let mut side = Location { stack: stack(frames), ..Location::default() };
    Wrappers::default().mark(&mut side, &FoundWrappers::find(processes));
    side.site.unwrap()
}

fn frees(stacks: &[&str]) -> Vec<Made> {
    stacks.iter().map(|stack| made(FREE, stack)).collect()
}

#[test]
fn the_place_is_where_the_callers_of_one_function_differ() {
    let one = "Gpu::free gpu.cpp:3 < release gpu.cpp:9 < step app.cpp:20 < main app.cpp:50";
    let two = "Gpu::free gpu.cpp:3 < release gpu.cpp:9 < step app.cpp:30 < main app.cpp:50";
    let run = [frees(&[one, two])];
    assert_eq!(place(&run, one), "step, app.cpp:20");
    assert_eq!(place(&run, two), "step, app.cpp:30");
    // Also where another process shows only one of its callers.
    assert_eq!(place(&run, "Gpu::free gpu.cpp:3 < leave app.cpp:60 < main app.cpp:51"), "leave, app.cpp:60");
    // What calls the function itself is no wrapper.
    let direct = "step app.cpp:40 < main app.cpp:50";
    assert_eq!(place(&run, direct), "step, app.cpp:40");
}

#[test]
fn one_caller_shows_nothing() {
    let one = "Gpu::free gpu.cpp:3 < step app.cpp:20 < main app.cpp:50";
    assert_eq!(place(&[frees(&[one])], one), "Gpu::free, gpu.cpp:3");
    assert_eq!(place(&[frees(&[one]), frees(&[one])], one), "Gpu::free, gpu.cpp:3");
}

#[test]
fn processes_that_each_have_one_caller_show_nothing() {
    let parent = "play app.cpp:7 < main app.cpp:50";
    let child = "play app.cpp:7 < main app.cpp:52";
    let run = [frees(&[parent]), frees(&[child])];
    assert_eq!((place(&run, parent), place(&run, child)), ("play, app.cpp:7".into(), "play, app.cpp:7".into()));
}

#[test]
fn a_function_that_begins_and_ends_objects_is_no_wrapper() {
    let warm = "step app.cpp:20 < main app.cpp:50";
    let hot = "step app.cpp:20 < main app.cpp:55";
    let mut run = frees(&[warm, hot]);
    assert_eq!(place(&[frees(&[warm, hot])], hot), "main, app.cpp:55");
    run.push(made(ALLOCATE, "step app.cpp:10 < main app.cpp:50"));
    assert_eq!(place(&[run], hot), "step, app.cpp:20");
    // Nothing differs below it.
    let warm = "f app.cpp:3 < step app.cpp:20 < main app.cpp:50";
    let hot = "f app.cpp:3 < step app.cpp:20 < main app.cpp:55";
    let mut run = frees(&[warm, hot]);
    run.push(made(ALLOCATE, "step app.cpp:10 < main app.cpp:50"));
    assert_eq!(place(&[run], hot), "f, app.cpp:3");
    // What only ends objects, or only begins with them, may be one.
    let one = "release gpu.cpp:9 < main app.cpp:50";
    let two = "release gpu.cpp:9 < main app.cpp:55";
    let mut run = frees(&[one, two]);
    run.push(made(PUT, "release gpu.cpp:8 < main app.cpp:50"));
    assert_eq!(place(&[run], two), "main, app.cpp:55");
}

#[test]
fn nearly_all_callers_are_enough() {
    let through = |line: u32| format!("Gpu::free gpu.cpp:3 < step app.cpp:{line} < main app.cpp:50");
    let texts = [through(10), through(20), through(30)];
    let around = "leave app.cpp:60 < main app.cpp:51";
    let mut run = frees(&[&texts[0], &texts[1], around]);
    assert_eq!(place(&[run], &texts[1]), "Gpu::free, gpu.cpp:3");
    run = frees(&[&texts[0], &texts[1], &texts[2], around]);
    assert_eq!(place(&[run], &texts[1]), "step, app.cpp:20");
}

#[test]
fn many_calls_from_one_place_are_no_majority() {
    let repeated = |line: u32| format!("step app.cpp:20 < main app.cpp:{line}");
    let texts = [50, 51, 52, 53].map(repeated);
    let mut run = frees(&texts.each_ref().map(String::as_str));
    run.extend(frees(&["step app.cpp:30 < main app.cpp:50"]));
    assert_eq!(place(&[run], &texts[2]), "step, app.cpp:20");
}

#[test]
fn a_function_that_calls_what_it_is_told_is_one_for_all_functions() {
    let run = [vec![
        made(ALLOCATE, "Device.call gpu.py:15 < Device.alloc gpu.py:18 < serve app.py:30"),
        made(GET, "Device.call gpu.py:15 < serve app.py:31"),
        made(FREE, "Device.call gpu.py:15 < serve app.py:40"),
    ]];
    assert_eq!(place(&run, "Device.call gpu.py:15 < serve app.py:40"), "serve, app.py:40");
    // Each of the others has one caller.
    assert_eq!(
        place(&run, "Device.call gpu.py:15 < Device.alloc gpu.py:18 < serve app.py:30"),
        "Device.alloc, gpu.py:18"
    );
    // Statements on one line have one caller.
    let free = made(FREE, "drop app.py:9 < main app.py:20");
    let put = made(PUT, "drop app.py:9 < main app.py:20");
    assert_eq!(place(&[vec![free, put]], "drop app.py:9 < main app.py:20"), "drop, app.py:9");
}

#[test]
fn functions_without_lines_and_addresses_without_names_are_compared_too() {
    let one = "Gpu::free@0x10 < step@0x20 < main@0x50";
    let two = "Gpu::free@0x10 < step@0x30 < main@0x50";
    assert_eq!(place(&[frees(&[one, two])], two), "step");
    let one = "0x10 < 0x20 < 0x50";
    let two = "0x10 < 0x30 < 0x50";
    assert_eq!(place(&[frees(&[one, two])], two), "0x30 in app");
}

#[test]
fn helpers_stand_beside_each_other_in_a_header() {
    let one = "Gpu::free gpu.hpp:3 < step app.cpp:20";
    let two = "Gpu::free gpu.hpp:3 < step app.cpp:30";
    let open = "Gpu::open gpu.hpp:9 < Gpu::map gpu.hpp:12 < step app.cpp:10";
    let mut run = frees(&[one, two]);
    run.push(made(OPEN, open));
    assert_eq!(place(&[run], open), "step, app.cpp:10");
    // There is nothing to compare it with.
    assert_eq!(place(&[vec![made(OPEN, open)]], open), "Gpu::open, gpu.hpp:9");
}

#[test]
fn a_function_that_calls_itself_is_a_place() {
    let one = "visit app.cpp:3 < visit app.cpp:4 < main app.cpp:9";
    let two = "visit app.cpp:3 < main app.cpp:9";
    assert_eq!(place(&[frees(&[one, two])], one), "visit, app.cpp:3");
}

#[test]
fn libraries_that_call_for_others_are_passed_without_comparing() {
    assert_eq!(place(&[], "std::_Function_handler<void(),f>::_M_invoke@0x1 < step app.cpp:20"), "step, app.cpp:20");
    let mpi = Frame { module: "/opt/mpi/libmpi.so.12".into(), ..frame("MPIDI_free@0x7") };
    assert!(is_of_library(&mpi) && !is_of_library(&frame("standard::free@0x7")));
    assert!(is_of_library(&Frame { function: Some("void std::__invoke<f>(f&&)".into()), ..Frame::default() }));
    assert!(!is_of_library(&Frame { function: Some("app::f<std::string>(std::string)".into()), ..Frame::default() }));
    // There is no other frame.
    assert_eq!(place(&[], "std::invoke@0x1"), "std::invoke");
}
