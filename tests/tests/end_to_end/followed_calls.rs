//! `urscope calls --follow`, next to a real program: its calls are listed while it runs, each once, and in the end all
//! of them.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use serde_json::Value;
use urscope_tests::{artefacts, run};

use crate::top::{LIMIT, lingering};

/// The function and the number of a call, from its line.
fn call(line: &str) -> (String, u64) {
    let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("no JSON ({error}): {line}"));
    (line["function"].as_str().expect("a name").to_owned(), line["call"].as_u64().expect("a number"))
}

fn functions(calls: &[(String, u64)]) -> Vec<&str> {
    calls.iter().map(|(function, _)| function.as_str()).collect()
}

fn take(lines: &Receiver<String>, count: usize) -> Vec<(String, u64)> {
    let line = || lines.recv_timeout(LIMIT).expect("a call is listed");
    (0..count).map(|_| call(&line())).collect()
}

#[test]
fn calls_are_listed_while_the_program_runs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let traces = folder.path().join("later");
    let mut follower = Command::new(artefacts::command())
        .args(["calls", "--ipc", "--follow", "--format", "json"])
        .arg(&traces)
        .stdout(Stdio::piped())
        .spawn()
        .expect("urscope can be started");
    let out = BufReader::new(follower.stdout.take().expect("a pipe"));
    let (sender, lines) = mpsc::channel();
    let reader = thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));

    let (mut program, input) = lingering(&traces, "sharing");
    let mut listed = take(&lines, 4);
    let get = "urIPCGetMemHandleExp";
    let put = "urIPCPutMemHandleExp";
    assert_eq!(functions(&listed), [get, put, put, get]);
    assert_eq!(program.try_wait().expect("a child can be asked"), None, "the program has not ended");
    drop(input);
    assert_eq!(program.wait().expect("a child can be waited for").code(), Some(0));
    listed.extend(take(&lines, 1));
    assert_eq!(functions(&listed), [get, put, put, get, put]);

    let ended = run::urscope(&["calls", "--ipc", "--format", "json", traces.to_str().expect("a path in UTF-8")]);
    assert_eq!(ended.stdout.lines().map(call).collect::<Vec<_>>(), listed, "without --follow it lists the same");
    follower.kill().expect("it runs until it is interrupted");
    follower.wait().expect("a child can be waited for");
    reader.join().expect("the reader does not panic").expect("all lines were taken");
    assert_eq!(lines.try_iter().collect::<Vec<_>>(), Vec::<String>::new(), "each call is listed once");
}
