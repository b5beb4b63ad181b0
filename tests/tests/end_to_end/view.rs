//! `urscope view` on real runs: its answers equal those of the commands, also while a program runs.

use std::{ffi::OsString, fs::File, path::PathBuf};

use serde_json::{Value, json};
use urscope_tests::{Adapter, Release, TestRun, apps, run, view_server::ViewServer};

#[test]
fn the_answers_equal_those_of_the_commands() {
    let outcome = TestRun::new("free_while_open", Release::R2026_2, Adapter::V2).run();
    let traces = outcome.trace_folder();
    let traces = traces.to_str().expect("a path in UTF-8");
    let mut served = ViewServer::by(["view", "--no-open", "--port", "0", traces]);
    for question in ["check", "stats", "holders"] {
        let printed = run::urscope(&[question, "--format", "json", traces]);
        let (status, body) = served.get(&format!("api/{question}"));
        assert_eq!((status, String::from_utf8_lossy(&body).into_owned()), (200, printed.stdout), "{question}");
    }
    let report = outcome.report();
    let run = served.json("api/run");
    let judged: u64 = report.processes().iter().filter_map(|process| process["calls"].as_u64()).sum();
    assert_eq!(run["processes"].as_array().map(Vec::len), Some(report.processes().len()));
    assert_eq!((&run["calls"], &served.json("api/calls")["matching"]), (&json!(judged), &json!(judged)));
    // A search finds what is in any column, also call sites.
    let at_site = served.json("api/calls?q=FREE_WHILE_OPEN.cpp");
    let mut sites =
        at_site["rows"].as_array().expect("rows").iter().map(|row| row["site"].as_str().unwrap_or_default());
    assert!(
        at_site["matching"].as_u64() > Some(3) && sites.all(|site| site.contains("free_while_open.cpp:")),
        "{at_site:#}"
    );
    let marks = &served.json("api/lives")["columns"]["findings"];
    assert_eq!(marks, &json!([[0], [0]]), "a handle and its opening, with the finding on both");
    let (status, page) = served.get("");
    assert_eq!((status, String::from_utf8_lossy(&page).contains("<title>")), (200, true));
    assert_eq!(served.interrupt(), Some(0));
}

/// Runs a program with `--view`.
fn shown(program: PathBuf, arguments: &[&str]) -> ViewServer {
    let options = ["run", "--device", "software", "--view", "--no-open", "--dir", "traces", "--"];
    let words = options.into_iter().map(OsString::from).chain([program.into_os_string()]);
    ViewServer::by(words.chain(arguments.iter().map(OsString::from)))
}

fn wait_for_its_end(served: &ViewServer) {
    served.wait_for("that the program has ended", |said| said.contains("until Ctrl-C").then_some(()));
}

#[test]
fn a_program_is_shown_while_it_runs_and_afterwards() {
    let mut served = shown(apps::executable("sharing", Release::R2026_2), &["waits_sharing", "gate"]);
    served.until("api/lives", "both share", |lives| lives["columns"]["to_ns"] == json!([null, null]));
    let run = served.json("api/run");
    assert_eq!((&run["running"], &run["error"]), (&json!(true), &Value::Null));
    assert_eq!(served.json("api/holders")["held"].as_array().map(Vec::len), Some(1));
    File::create(served.folder().join("gate")).expect("the gate can be opened");
    wait_for_its_end(&served);
    let after = served.until("api/run", "its end", |run| run["running"] == false);
    assert!(after["generation"].as_u64() > run["generation"].as_u64(), "{after}");
    let check = served.json("api/check");
    assert_eq!((&check["verdict"], check["processes"].as_array().map(Vec::len)), (&json!("clean"), Some(2)));
    assert_eq!(served.interrupt(), Some(0));
}

#[test]
fn the_view_changes_no_exit_code() {
    let mut served = shown(apps::executable("mistakes", Release::R2026_2), &["leaked_handle"]);
    wait_for_its_end(&served);
    served.until("api/check", "the verdict", |check| check["verdict"] == "findings");
    assert_eq!(served.interrupt(), Some(1), "{}", served.said());
    let mut served = shown("/bin/sh".into(), &["-c", "exit 7"]);
    wait_for_its_end(&served);
    assert_eq!(served.interrupt(), Some(7));
}
