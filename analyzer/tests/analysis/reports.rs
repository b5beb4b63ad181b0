//! Tests of the exact text and JSON of a report.

use serde_json::{Value, json};
use urscope_analyzer::{Options, judge, report};

use crate::forms::form;
use crate::traces::{FAULTY_RUN, files, files_with, judged, put};

fn text(scenario: &str) -> String {
    form(|out| report::text(&judged(&files(scenario)), out, false))
}

#[test]
fn the_text_of_a_faulty_run_is_as_expected() {
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/analysis/faulty.txt"), text(FAULTY_RUN)).unwrap();
        return;
    }
    assert_eq!(text(FAULTY_RUN), include_str!("faulty.txt"));
}

#[test]
fn the_text_of_a_clean_run_is_short() {
    assert_eq!(text("producer: get p -> h\nproducer: put h"), "urscope: clean (1 process, 2 calls)\n");
}

#[test]
fn a_verbose_text_lists_the_processes_and_the_calls() {
    let judgement = judged(&files("producer: get p -> h\nproducer: put h"));
    assert_eq!(
        form(|out| report::text(&judgement, out, report::Paint { whole: true, ..false.into() })),
        "urscope: clean (1 process, 2 calls)\n\n\
         processes\n  producer (pid 100)  2 calls, 2 of them IPC; exited\n\n\
         calls\n  urIPCGetMemHandleExp 1, urIPCPutMemHandleExp 1\n"
    );
}

#[test]
fn processes_are_named_and_listed_by_rank() {
    let scenario = "a: alloc p 4096\na: get p -> h\nb: open h -> m\na: put h\nb: exit\nc: get q -> i\nc: put i";
    let judgement = judged(&files_with(scenario, |header, _| {
        (header.rank, header.executable) =
            ([Some(12), Some(3), None][header.pid as usize / 100 - 1], "/app/ring".into());
    }));
    let text = form(|out| report::text(&judgement, out, report::Paint { whole: true, ..false.into() }));
    let listed: Vec<_> = text.lines().skip_while(|line| *line != "processes").take(4).collect();
    let names: Vec<_> = listed.iter().map(|line| line.split("  ").nth(1).unwrap_or_default()).collect();
    assert_eq!(names, ["", "ring (pid 300)", "rank 3 (pid 200) ring", "rank 12 (pid 100) ring"], "{text}");
    let leaked = judgement.findings.iter().find(|finding| finding.rule == "leaked-mapping").unwrap();
    assert!(leaked.message.starts_with("rank 3 (pid 200) opened") && leaked.message.ends_with("of rank 12 (pid 100)"));
    assert!(text.contains(" rank 3 (pid 200), call 1 urIPCOpenMemHandleExp"), "{text}");
}

#[test]
fn colour_does_not_change_the_text() {
    let judgement = judged(&files(FAULTY_RUN));
    let painted = form(|out| report::text(&judgement, out, true));
    assert!(painted.contains("\x1b[1;31merror: freed-while-open\x1b[0m"));
    let mut plain = String::new();
    for (index, part) in painted.split("\x1b[").enumerate() {
        plain.push_str(if index == 0 { part } else { part.split_once('m').unwrap().1 });
    }
    assert_eq!(plain, include_str!("faulty.txt"));
}

#[test]
fn text_of_a_trace_does_not_control_the_terminal() {
    let evil = files_with("p: put h", |header, entry_point| {
        header.executable = "/app/\x1b[31mred\u{202e}\n".into();
        entry_point.problem = "\x07".into();
    });
    let output = form(|out| report::text(&judged(&evil), out, false));
    assert!(output.chars().all(|c| c == '\n' || (!c.is_control() && c != '\u{202e}')), "{output:?}");
}

#[test]
fn the_json_has_the_documented_fields() {
    let json = |scenario: &str| {
        serde_json::from_str::<Value>(&form(|out| report::json(&judged(&files(scenario)), out))).unwrap()
    };
    let empty = json("");
    let json = json(FAULTY_RUN);
    assert_eq!(json["version"], 1);
    assert_eq!((&json["verdict"], &json["exit"]), (&json!("findings"), &json!(1)));
    let died = "consumer (pid 200) was killed inside call 2 (urIPCOpenMemHandleExp)";
    assert_eq!((&json["reason"], &json["limits"]), (&json!(died), &json!([{"cause": "death", "text": died}])));
    assert_eq!(json["calls"]["urIPCGetMemHandleExp"], 3);
    let consumer = &json["processes"][1];
    assert_eq!(consumer["ended"], "killed");
    assert_eq!(consumer["inside"], "urIPCOpenMemHandleExp");
    assert_eq!(json["processes"][0]["inside"], Value::Null);
    assert_eq!(consumer["command"], Value::Null, "a command line may contain secrets");
    assert_eq!(consumer["entry_points"][0]["slots"], 13);
    assert_eq!(consumer["file"], "urscope-consumer-200-2.json");
    let freed = &json["findings"][0];
    assert_eq!((&freed["rule"], &freed["severity"]), (&json!("freed-while-open"), &json!("error")));
    assert_eq!(
        freed["process"],
        json!({"host": "node", "pid": 100, "rank": null, "executable": "/app/producer", "tid": 100, "time_ns": 4000, "function": "urUSMFree", "call": 4,
            "stack": []})
    );
    assert_eq!((&freed["other"]["pid"], &freed["other"]["call"]), (&json!(200), &json!(1)));
    assert_eq!((&freed["time_ns"], &freed["call"], &freed["count"]), (&json!(4000), &json!(4), &json!(1)));
    assert_eq!((&freed["subject"], &freed["size"]), (&json!("USM allocation 0x10000000"), &json!(4096)));
    assert!(freed["fingerprint"].as_str().unwrap().starts_with("0x"));
    assert_eq!(json["findings"][1]["count"], 2);
    assert_eq!((&json["skipped"], &json["unseen"]), (&json!([]), &json!([])));

    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), &files(FAULTY_RUN));
    let options = Options { command_lines: true, ..Options::default() };
    let asked = judge(&[folder.path().to_owned()], &options).unwrap();
    assert_eq!(asked.processes[1].command, ["/app/consumer", "--role"]);

    assert_eq!((&empty["verdict"], &empty["exit"]), (&json!("not-judged"), &json!(2)));
    assert!(empty["reason"].is_string());
}
