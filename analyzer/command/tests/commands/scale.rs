//! The memory of an analysis does not grow with the size of the run.

use std::path::Path;
use std::process::{Command, Output};

use clap::Parser as _;
use serde_json::Value;
use urscope_analyzer::{Judgement, Verdict};

use crate::generator::Generator;
use crate::traces::{codes, files, put};

fn generator(directory: &Path, arguments: &[&str]) {
    let directory = directory.to_str().unwrap();
    Generator::parse_from(["generator", directory].iter().chain(arguments)).generate().unwrap();
}

/// The judgement of a process whose data segment is limited. The process fails if it needs more.
fn judged_within(mebibytes: u32, directory: &Path) -> Value {
    let script = format!("ulimit -d {}; exec \"$0\" check --format json \"$1\"", mebibytes << 10);
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_urscope")]).arg(directory);
    let Output { stdout, stderr, .. } = command.output().unwrap();
    serde_json::from_slice(&stdout).unwrap_or_else(|_| panic!("no judgement: {}", String::from_utf8_lossy(&stderr)))
}

/// The limit of the data segment in MiB. It includes the buffers for reading ahead.
const BOUND: u32 = 96;

fn size(directory: &Path) -> u64 {
    std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

#[test]
fn memory_does_not_grow_with_the_traces() {
    // A trace in the binary form is a third as large.
    for (form, cycles) in [(&[][..], 20_000), (&["--binary"], 60_000)] {
        let folder = tempfile::tempdir().unwrap();
        let cycles_text = cycles.to_string();
        let options = ["--ranks", "3", "--cycles", &cycles_text, "--leak", "2", "--double", "1"];
        generator(folder.path(), &[&options, form].concat());
        assert!(size(folder.path()) > u64::from(BOUND) << 20, "the traces are larger than the memory limit");
        let judgement = judged_within(BOUND, folder.path());
        assert_eq!(judgement["calls"]["urIPCGetMemHandleExp"], 3 * cycles);
        // One mistake of several ranks is one finding.
        let findings = judgement["findings"].as_array().unwrap();
        let counts: Vec<_> = findings.iter().map(|finding| finding["count"].as_u64()).collect();
        assert_eq!(counts, [Some(3), Some(6)], "{findings:#?}");
    }
}

#[test]
fn many_killed_processes_fit_in_the_memory_limit() {
    let folder = tempfile::tempdir().unwrap();
    generator(folder.path(), &["--ranks", "300", "--cycles", "4", "--stacks", "400", "--killed"]);
    assert!(size(folder.path()) > (3 * u64::from(BOUND)) << 20, "the traces are larger than the memory limit");
    let judgement = judged_within(BOUND, folder.path());
    let processes = judgement["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 300);
    assert!(processes.iter().all(|process| process["ended"] == "killed" && process["calls"] == 24));
}

/// Runs `urscope check` with a limit of 32 open files.
#[test]
fn a_run_may_have_more_files_than_the_limit_of_open_files() {
    let scenario: Vec<_> = (0..300).map(|i| format!("p{i}: get a -> h\np{i}: put h\np{i}: put h")).collect();
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), &files(&scenario.join("\n")));
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 32 && exec \"$0\" check --format json \"$1\"", env!("CARGO_BIN_EXE_urscope")])
        .arg(folder.path())
        .output()
        .unwrap();
    let judgement: Judgement = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((judgement.processes.len(), judgement.verdict), (300, Verdict::Findings));
    assert_eq!(codes(&judgement), vec![("double-put", 1); 300]);
}
