//! A hook reads nothing that the driver would refuse to read. Each function of a driver is called with wrong arguments,
//! bare and traced: it answers the same, and no call ends the process that would not end it without urscope.

use std::{fmt::Write as _, fs};

use urscope_tests::{Adapter, Release, TestRun, repository};

/// How often each function is called.
const CALLS: &str = "12";

/// The functions of an interface and their twins, each with its parameters. C passes all in one word, but for handles
/// by value.
fn functions(interface: &str) -> String {
    let rows = repository().join("schema/src/api").join(interface).join("rows.rs");
    let rows = fs::read_to_string(rows).expect("an interface has rows");
    let mut lines = String::new();
    for row in rows.lines().filter_map(|line| line.trim().strip_prefix("fn ")) {
        let (name, rest) = row.split_once('(').expect("a row has parameters");
        // The newest release has it no more, so without urscope there is nothing to call.
        if name == "urEnqueueKernelLaunch" {
            continue;
        }
        let (parameters, rest) = rest.split_once(')').expect("which end");
        let twin = rest.trim_end_matches(';').split_once(", ").map(|(_, twin)| twin);
        for name in [Some(name), twin].into_iter().flatten() {
            lines.push_str(name);
            for parameter in parameters.split(", ").filter(|parameter| !parameter.is_empty()) {
                let (its, role) = parameter.split_once(": ").expect("a parameter has a role");
                let words = match role {
                    "HandleBytes" | "IpcHandle" => 8,
                    "UnseenTriple" => 3,
                    _ => 1,
                };
                write!(lines, " {its}:{role}:{words}").expect("a string takes all");
            }
            lines.push('\n');
        }
    }
    assert!(lines.lines().count() > 30, "{lines}");
    lines
}

/// Calls that end the process without urscope are not compared. At least so many others are.
fn answers_are_those_without_urscope(interface: &str, at_least: usize, program: impl Fn() -> TestRun) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let list = folder.path().join("functions.txt");
    fs::write(&list, functions(interface)).expect("a file can be written");
    let run = |run: TestRun| run.option("--no-check").arg(&list).arg(CALLS).run();
    let bare = run(program().option("--no-shim"));
    let traced = run(program());
    assert_eq!((bare.code, traced.code), (0, 0), "{}{}", bare.stderr, traced.stderr);
    assert_eq!(bare.stdout.lines().count(), traced.stdout.lines().count());
    let compared = || bare.stdout.lines().zip(traced.stdout.lines()).filter(|(bare, _)| !bare.contains(" signal "));
    assert!(compared().count() >= at_least, "{}", bare.stdout);
    let differ: Vec<_> = compared().filter(|(bare, traced)| bare != traced).collect();
    assert!(differ.is_empty(), "{differ:#?}");
}

#[test]
fn level_zero_answers_as_without_urscope() {
    let program = || TestRun::new("bad_calls_ze", Release::R2026_2, Adapter::V2);
    answers_are_those_without_urscope("level_zero", 300, program);
}

#[test]
fn the_cuda_driver_answers_as_without_urscope() {
    answers_are_those_without_urscope("cuda", 500, || TestRun::of_cuda("bad_calls_cuda"));
}

/// Before the driver is initialized it refuses each call.
#[test]
fn the_cuda_driver_answers_as_without_urscope_before_it_is_initialized() {
    answers_are_those_without_urscope("cuda", 500, || TestRun::of_cuda("bad_calls_cuda").env("UNINITIALIZED", "1"));
}

/// An adapter checks little.
#[test]
fn unified_runtime_answers_as_without_urscope() {
    let program = || TestRun::new("bad_calls_ur", Release::R2026_2, Adapter::V2);
    answers_are_those_without_urscope("unified_runtime", 20, program);
}

/// A driver may leave a chain alone that leads nowhere.
#[test]
fn a_chain_that_leads_nowhere_ends() {
    let run = || TestRun::new("bad_calls_ze", Release::R2026_2, Adapter::V2).option("--no-check");
    let bare = run().option("--no-shim").run();
    let traced = run().run();
    assert_eq!((bare.code, bare.stdout.lines().count()), (0, 6), "{}", bare.stderr);
    assert_eq!((traced.code, &traced.stdout), (bare.code, &bare.stdout), "{}", traced.stderr);
}
