//! How each program of `tests/apps` is run by a test that runs them all. They are listed from the folder, so that none is
//! forgotten; what a program needs beside its name stands here.

use std::fs;

use urscope_tests::{Adapter, Release, TestRun, apps};

/// Programs that such a test leaves out, and why.
const LEFT_OUT: [(&str, &str); 4] = [
    ("no_ipc", "it is a script that makes no call of IPC"),
    ("ur_other_adapter", "it counts on an adapter that refuses what it hands in"),
    ("clean_ranks", "it has a launcher start it"),
    ("unknown_adapter", "it brings an adapter that is left alone, so that nothing is seen"),
];

/// Programs that are libraries.
const LIBRARIES: [&str; 2] = ["in_a_library", "late_put"];

/// Which cases a program of cases tells. (Its misuse is for those who refuse it.)
const CASES: [&str; 4] = ["alone", "of-two", "apart", "faults"];

/// Ways to run a program, with what tells them apart.
pub(crate) fn ways(program: &str, adapter: Adapter) -> Vec<(String, TestRun)> {
    if LIBRARIES.contains(&program) {
        return vec![(program.to_owned(), TestRun::of_library(program, Release::R2026_2, adapter))];
    }
    let test_run = || TestRun::of(program, Release::R2026_2, adapter);
    let source = source(program);
    let arguments: Vec<&str> = match program {
        "fork_child" => vec!["calls"],
        "backend_cycles" => vec!["10"],
        "bench_get_put" => vec!["1"],
        "other_backend" => vec!["adapter"],
        "clean_event" => crate::event::ORDERS.iter().map(|(order, _)| *order).collect(),
        // The table of its violations stands in it, a line for each.
        "ur_violations" => source.lines().filter_map(|line| line.strip_prefix("    {\"")?.split('"').next()).collect(),
        _ if source.contains("run_cases(") => CASES.to_vec(),
        _ => return vec![(program.to_owned(), test_run())],
    };
    assert!(!arguments.is_empty(), "no way to run {program}");
    let way = |argument: &&str| (format!("{program} {argument}"), beside(program, test_run().arg(*argument)));
    arguments.iter().map(way).collect()
}

/// What a program needs beside its first argument.
fn beside(program: &str, test_run: TestRun) -> TestRun {
    match program {
        "bench_get_put" => test_run.arg("100"),
        // Some of its violations take a second device.
        "ur_violations" => test_run.env("ZE_SOFT_DEVICES", "2"),
        // It counts on the refusals of our backend.
        "backend_cycles" => test_run.env("URSCOPE_BACKEND", "level_zero"),
        _ => test_run,
    }
}

/// The programs that have something to do on an adapter. The older one shares memory only.
pub(crate) fn on(adapter: Adapter) -> Vec<String> {
    let mut programs: Vec<String> = fs::read_dir(apps::source(""))
        .expect("the folder of the programs can be listed")
        .map(|entry| entry.expect("a folder can be listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension != "hpp"))
        .map(|path| path.file_stem().and_then(|name| name.to_str()).expect("a name in UTF-8").to_owned())
        .collect();
    programs.sort();
    for (program, why) in LEFT_OUT {
        assert!(programs.iter().any(|known| known == program), "{program} is gone: {why}");
    }
    programs.retain(|program| LEFT_OUT.iter().all(|(out, _)| out != program));
    programs.retain(|program| adapter == Adapter::V2 || shares_memory_only(program));
    programs
}

fn source(program: &str) -> String {
    let file = ["cpp", "c"].map(|extension| apps::source("").join(format!("{program}.{extension}")));
    let file = file.iter().find(|file| file.exists()).expect("a program has a source");
    fs::read_to_string(file).expect("a source can be read")
}

fn shares_memory_only(program: &str) -> bool {
    let source = source(program);
    let words = ["PhysMem", "PhysicalMem", "EventHandleExp", "physical_app.hpp", "event_app.hpp", "run_cases("];
    !words.iter().any(|word| source.contains(word))
}

#[test]
fn every_program_is_run_in_some_way() {
    let [all, some] = [Adapter::V2, Adapter::V1].map(on);
    assert!(all.len() > 35 && some.len() > 15, "{all:?}, {some:?}");
    assert!(["clean", "double_put"].iter().all(|name| some.iter().any(|program| program == name)), "{some:?}");
    assert!(
        all.iter().any(|program| program == "ur_violations") && !some.iter().any(|program| program == "ur_violations")
    );
}
