//! `urscope check`, `explain` and `doctor`, the help texts, and the errors for invalid arguments.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test stops at the first unexpected result"
)]

#[allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]
mod command;

use std::fs;

use command::{Workspace, harmless_library};
use serde_json::Value;

#[test]
fn the_version_and_the_help_are_printed() {
    let workspace = Workspace::new();
    let version = workspace.run(&["--version"]);
    assert_eq!((version.code, version.stdout), (0, format!("urscope {}\n", env!("CARGO_PKG_VERSION"))));
    for arguments in
        [&["--help"][..], &["run", "--help"], &["check", "--help"], &["doctor", "--help"], &["explain", "--help"]]
    {
        let help = workspace.run(arguments);
        assert_eq!(help.code, 0);
        assert!(help.stdout.contains("Examples:") && help.stdout.contains("Exit code"), "{}", help.stdout);
        assert!(!help.stdout.contains("doctor-probe"), "{}", help.stdout);
    }
}

#[test]
fn unknown_arguments_are_refused() {
    let workspace = Workspace::new();
    for arguments in [&["judge"][..], &["run", "--fast", "--", "true"], &["handle"], &["check", "--fail-on", "x", "."]]
    {
        let ended = workspace.run(arguments);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(ended.stderr.contains("error:"), "{}", ended.stderr);
    }
}

#[test]
fn missing_traces_cannot_be_analyzed() {
    let workspace = Workspace::new();
    let ended = workspace.run(&["check", "nowhere"]);
    assert_eq!(ended.code, 2, "{ended:?}");
}

/// Writes a trace with one call, as the library does.
fn put_trace(workspace: &Workspace, path: &str, run: &str, pid: u32) {
    let path = workspace.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text = format!(
        r#"[
{{"ph":"M","name":"urscope_header","pid":{pid},"tid":{pid},"args":{{"format":1,"run":"{run}","pid":{pid},"host":"h"}}}}
,{{"ph":"B","name":"urIPCPutMemHandleExp","cat":"ur","pid":{pid},"tid":{pid},"ts":1.0,"args":{{"call":1}}}}
"#
    );
    fs::write(path, text).unwrap();
}

/// "Nothing" is no answer about a place without traces.
#[test]
fn a_directory_without_traces_is_refused_with_what_is_in_it() {
    let workspace = Workspace::new();
    fs::create_dir(workspace.path().join("empty")).unwrap();
    fs::create_dir(workspace.path().join("notes")).unwrap();
    fs::write(workspace.path().join("notes/a.txt"), "").unwrap();
    for run in ["app-1", "app-2"] {
        put_trace(&workspace, &format!("urscope-traces/{run}/urscope-app-7-1.json"), run, 7);
    }
    for (folder, found) in [
        ("empty", "empty has no traces: it is empty; name a directory that urscope run wrote"),
        ("notes", "notes has no traces: it has 1 file (a.txt), and none is named urscope-*.json or *.fxt"),
        ("urscope-traces", "has no traces: it is the directory of 2 runs (app-1, app-2); name one of them"),
    ] {
        for command in [
            &["holders", folder][..],
            &["handle", "0x1", folder],
            &["stats", folder],
            &["export", "-o", "out.json", folder],
            &["diff", folder, "urscope-traces/app-1"],
            &["diff", "urscope-traces/app-1", folder],
        ] {
            let ended = workspace.run(command);
            assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{command:?}");
            assert!(ended.stderr.contains(found), "{command:?}: {}", ended.stderr);
        }
        let checked = workspace.run(&["check", folder]);
        let text: String = checked.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(&format!("in {folder}: ")), "{text}");
        assert_eq!(checked.code, 2);
    }
    for command in [&["top", "--once", "urscope-traces"][..], &["view", "--no-open", "urscope-traces"]] {
        let ended = workspace.run(command);
        assert_eq!(ended.code, 2);
        assert!(ended.stderr.contains("it is the directory of 2 runs"), "{}", ended.stderr);
    }
}

#[test]
fn without_a_name_the_newest_run_is_read() {
    let workspace = Workspace::new();
    let nothing = workspace.run(&["holders"]);
    assert_eq!(nothing.code, 2);
    assert!(nothing.stderr.contains("no traces are named, and there are none in urscope-traces"), "{}", nothing.stderr);
    put_trace(&workspace, "urscope-traces/old-1/urscope-app-7-1.json", "one", 7);
    let time = std::time::SystemTime::UNIX_EPOCH;
    fs::File::open(workspace.path().join("urscope-traces/old-1")).unwrap().set_modified(time).unwrap();
    put_trace(&workspace, "urscope-traces/app-2/urscope-app-8-1.json", "two", 8);
    for command in [&["check", "--format", "json"][..], &["stats", "--format", "json"]] {
        let ended = workspace.run(command);
        assert!(ended.stdout.contains("\"pid\": 8") && !ended.stdout.contains("\"pid\": 7"), "{}", ended.stdout);
        assert!(ended.stderr.contains("the newest run, urscope-traces/app-2"), "{}", ended.stderr);
    }
}

#[test]
fn one_of_several_runs_in_a_directory_is_chosen() {
    let workspace = Workspace::new();
    for (run, pid) in [("ab1", 7), ("ab2", 8), ("cd", 9)] {
        put_trace(&workspace, &format!("traces/urscope-app-{pid}-1.json"), run, pid);
    }
    let read = |run: &str| workspace.run(&["check", "--format", "json", "--run", run, "traces"]);
    for (run, pid) in [("ab2", 8), ("c", 9), ("ab1", 7)] {
        let report: Value = serde_json::from_str(&read(run).stdout).unwrap();
        let processes: Vec<_> = report["processes"].as_array().unwrap().iter().map(|process| &process["pid"]).collect();
        assert_eq!(processes, [&Value::from(pid)], "{run}");
    }
    for (run, message) in [
        ("ab", "ab is the beginning of several runs: \"ab1\" (1 trace), \"ab2\" (1 trace); give more of the name"),
        ("x", "no trace is of the run x; the runs there are \"ab1\" (1 trace), \"ab2\" (1 trace), \"cd\" (1 trace)"),
    ] {
        let ended = read(run);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
        assert!(ended.stderr.contains(message), "{}", ended.stderr);
    }
    let all = workspace.run(&["check", "traces"]);
    assert!(all.stdout.contains("these are traces of 3 runs"), "{}", all.stdout);
}

#[test]
fn a_rule_is_explained() {
    let workspace = Workspace::new();
    let list = workspace.run(&["explain"]);
    assert_eq!((list.code, list.stderr.as_str()), (0, ""));
    assert!(list.stdout.contains("leaked-handle") && list.stdout.contains("warning"), "{}", list.stdout);
    let page = workspace.run(&["explain", "leaked-handle"]);
    assert_eq!(page.code, 0);
    let head = "leaked-handle (warning): ";
    assert!(page.stdout.starts_with(head) && page.stdout.contains("# What to do"), "{}", page.stdout);
    let misspelled = workspace.run(&["explain", "leaked_handel"]);
    assert_eq!((misspelled.code, misspelled.stdout.as_str()), (2, ""));
    assert!(misspelled.stderr.contains("did you mean leaked-handle"), "{}", misspelled.stderr);
}

#[test]
fn reports_are_written_even_without_traces() {
    let workspace = Workspace::new();
    let outputs = ["--output", "junit=report.xml", "--output", "html=report.html", "--write-suppressions", "known.txt"];
    let ended = workspace.run(&[&["check", "--format", "github"][..], &outputs, &["."]].concat());
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(ended.stdout.starts_with("::error title=urscope%3A not judged::no trace files"), "{}", ended.stdout);
    let written = |name: &str| fs::read_to_string(workspace.path().join(name)).unwrap();
    assert!(written("report.xml").contains("errors=\"1\"") && written("report.html").contains("not judged"));
    assert!(
        written("known.txt").lines().all(|line| line.is_empty() || line.starts_with('#')),
        "{}",
        written("known.txt")
    );
}

#[test]
fn unusable_inputs_and_outputs_are_reported_before_the_analysis() {
    let workspace = Workspace::new();
    fs::write(workspace.path().join("known.txt"), "\nleaked-handle\n").unwrap();
    fs::write(workspace.path().join("main.json"), "[]").unwrap();
    fs::write(workspace.path().join("newer.json"), "{\"version\": 99}").unwrap();
    for (arguments, message) in [
        (["--suppressions", "known.txt"], "known.txt:2: expected RULE:PATTERN, found \"leaked-handle\""),
        (["--suppressions", "nowhere.txt"], "nowhere.txt cannot be read: "),
        (["--baseline", "main.json"], "main.json is not a urscope report: "),
        (["--baseline", "newer.json"], "it has version 99, and this urscope reads up to 1"),
        (["--baseline", "nowhere.json"], "nowhere.json cannot be read: "),
        (["--output", "html=no/where.html"], "no/where.html cannot be written: "),
        (["--output", "xml=report.xml"], "expected one of text, json, sarif, junit, html, github"),
    ] {
        let ended = workspace.run(&[&["check"][..], &arguments, &["."]].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(ended.stderr.contains(message), "{arguments:?}: {}", ended.stderr);
    }
}

fn doctor(workspace: &Workspace, arguments: &[&str]) -> (i32, Value) {
    let mut command = workspace.command(&["doctor", "--format", "json"]);
    command.args(arguments).env("URSCOPE_LIBRARY", harmless_library()).env("URSCOPE_DIRECTORY", "/tmp");
    let ended = workspace.start(command).end();
    (ended.code, serde_json::from_str(&ended.stdout).unwrap())
}

fn line<'a>(checkup: &'a Value, check: &str) -> &'a Value {
    let lines = checkup["lines"].as_array().unwrap();
    lines.iter().find(|line| line["check"] == check).unwrap_or_else(|| panic!("no line {check}: {checkup:#}"))
}

#[test]
fn the_doctor_reports_missing_parts() {
    let workspace = Workspace::new();
    fs::create_dir(workspace.path().join("empty")).unwrap();
    let (code, checkup) = doctor(&workspace, &["--runtime", "empty"]);
    assert_eq!((code, &checkup["able"]), (1, &Value::Bool(false)), "{checkup:#}");
    assert_eq!(line(&checkup, "runtime")["state"], "problem");
    assert!(line(&checkup, "library")["found"].as_str().unwrap().contains("is not liburscope.so"), "{checkup:#}");
    assert_eq!(line(&checkup, "environment")["state"], "warning");
    for line in checkup["lines"].as_array().unwrap() {
        assert!(line["state"] == "ok" || line["advice"].is_string(), "a problem without advice: {line:#}");
    }
}

/// Whether pidfd_getfd works depends on the machine. The report must show that it was tested.
#[test]
fn the_doctor_tests_passing_a_descriptor() {
    let workspace = Workspace::new();
    let (_, checkup) = doctor(&workspace, &["--device", "software"]);
    let found = line(&checkup, "descriptors")["found"].as_str().unwrap();
    assert!(!found.contains("could not be tested") && !found.contains("does not know the cause"), "{found}");
    line(&checkup, "device");
}

#[test]
fn the_doctor_also_writes_text() {
    let workspace = Workspace::new();
    let ended = workspace.run(&["doctor"]);
    assert!(ended.stdout.contains("on this machine"), "{}", ended.stdout);
    assert!(!ended.stdout.contains('\x1b'), "a file must have no colours");
}
