//! `--profile` writes a Chrome trace of the command's own work.

use std::{collections::BTreeMap, fs};

use clap::Parser as _;
use serde_json::Value;

use crate::command::Workspace;
use crate::generator::Generator;

/// A run of four processes and 4,000 calls, in the folder `traces`, with two findings.
fn workspace() -> Workspace {
    let workspace = Workspace::new();
    let folder = workspace.path().join("traces");
    let arguments = ["generator", folder.to_str().unwrap(), "--cycles", "166", "--double", "1"];
    Generator::parse_from(arguments).generate().unwrap();
    workspace
}

/// The value of an argument, which tracing-chrome writes as text.
fn number(argument: &Value) -> u64 {
    argument.as_str().map_or(0, |text| text.parse().unwrap())
}

#[test]
fn each_stage_is_a_span_on_its_thread() {
    let workspace = workspace();
    let ended = workspace.run(&["check", "--profile", "profile.json", "--output", "sarif=report.sarif", "traces"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (1, ""), "{}", ended.stdout);
    let text = fs::read_to_string(workspace.path().join("profile.json")).unwrap();
    let events: Vec<Value> = serde_json::from_str(&text).unwrap();

    let mut open: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    let mut spans: BTreeMap<&str, u64> = BTreeMap::new();
    let mut bytes = 0;
    let mut merged = 0;
    for event in events.iter().filter(|event| event["ph"] != "M") {
        let name = event["name"].as_str().unwrap();
        let stack = open.entry(event["tid"].as_u64().unwrap()).or_default();
        match event["ph"].as_str().unwrap() {
            "B" => stack.push(name),
            "E" => {
                assert_eq!(stack.pop(), Some(name));
                *spans.entry(name).or_default() += 1;
                bytes += number(&event["args"]["bytes"]);
                merged += number(&event["args"]["events"]);
            }
            other => panic!("{other}"),
        }
    }
    assert!(open.values().all(Vec::is_empty), "every span ends: {open:?}");
    let expected = [
        ("opening", 1),
        ("merging", 1),
        ("reporting", 1),
        ("judging", 1),
        ("rendering", 2),
        ("comparing call stacks", 1),
    ];
    for (name, count) in expected {
        assert_eq!(spans.remove(name), Some(count), "{name}");
    }
    assert!(spans.remove("reading").is_some_and(|count| count >= 4), "each of four files is read");
    assert!(spans.keys().all(|name| *name == "symbolizing"), "{spans:?}");
    // Each of 4 processes has 6 calls per cycle and one additional close. A call is two events. The begin, the adapter
    // and the end of a process are one each.
    assert_eq!(merged, 4 * (2 * (6 * 166 + 1) + 3));
    let size: u64 = fs::read_dir(workspace.path().join("traces"))
        .unwrap()
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum();
    assert!(bytes > size / 2 && bytes <= size, "{bytes} of {size} bytes were read after the headers");
}

#[test]
fn an_unwritable_profile_is_an_error_that_names_the_file() {
    let workspace = workspace();
    let ended = workspace.run(&["check", "--profile", "no/profile.json", "traces"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
    assert!(ended.stderr.contains("no/profile.json cannot be written"), "{}", ended.stderr);
    let ended = workspace.run(&["check", "--profile", "/dev/full", "traces"]);
    assert_eq!(ended.code, 1, "the verdict takes precedence");
    assert!(ended.stderr.contains("/dev/full cannot be written"), "{}", ended.stderr);
    let ended = workspace.run(&["--profile", "/dev/full", "explain", "double-put"]);
    assert_eq!(ended.code, 2, "the profile failed: {}", ended.stderr);
}
