//! The two forms of a report, letter by letter.

use serde_json::{Value, json};
use urscope_analyzer::report;

use crate::traces::{SINNERS, files, files_with, judged};

fn text(story: &str) -> String {
    let mut out = Vec::new();
    report::text(&judged(&files(story)), &mut out, false).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn the_text_says_who_where_when_and_what_to_do() {
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/analysis/faulty.txt"), text(SINNERS)).unwrap();
        return;
    }
    assert_eq!(text(SINNERS), include_str!("faulty.txt"));
}

#[test]
fn the_text_of_a_clean_run_is_short() {
    let told = text("producer: get p -> h\nproducer: put h");
    assert_eq!(
        told,
        "urscope: clean (1 process, 2 calls)\n\n\
         processes\n  producer (pid 100)  2 calls, 2 of them IPC; exited\n\n\
         calls\n  urIPCGetMemHandleExp 1, urIPCPutMemHandleExp 1\n"
    );
}

#[test]
fn colour_changes_no_letter() {
    let judgement = judged(&files(SINNERS));
    let mut out = Vec::new();
    report::text(&judgement, &mut out, true).unwrap();
    let painted = String::from_utf8(out).unwrap();
    assert!(painted.contains("\x1b[1;31merror: freed-while-open\x1b[0m"));
    let mut plain = String::new();
    for (index, part) in painted.split("\x1b[").enumerate() {
        plain.push_str(if index == 0 { part } else { part.split_once('m').unwrap().1 });
    }
    assert_eq!(plain, include_str!("faulty.txt"));
}

#[test]
fn nothing_of_a_trace_steers_the_terminal() {
    let evil = files_with("p: put h", |header, door| {
        header.executable = "/app/\x1b[31mred\u{202e}\n".into();
        door.problem = "\x07".into();
    });
    let mut out = Vec::new();
    report::text(&judged(&evil), &mut out, false).unwrap();
    let told = String::from_utf8(out).unwrap();
    assert!(told.chars().all(|c| c == '\n' || (!c.is_control() && c != '\u{202e}')), "{told:?}");
}

#[test]
fn the_json_has_the_promised_form() {
    let mut out = Vec::new();
    report::json(&judged(&files(SINNERS)), &mut out).unwrap();
    let told: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(told["version"], 1);
    assert_eq!((&told["verdict"], &told["exit"], &told["reason"]), (&json!("findings"), &json!(1), &Value::Null));
    assert_eq!(told["calls"]["urIPCGetMemHandleExp"], 3);
    let consumer = &told["processes"][1];
    assert_eq!(consumer["ended"], "killed");
    assert_eq!(consumer["inside"], "urIPCOpenMemHandleExp");
    assert_eq!(told["processes"][0]["inside"], Value::Null);
    assert_eq!(consumer["command"], json!(["/app/consumer", "--role"]));
    assert_eq!(consumer["doors"][0]["slots"], 13);
    assert_eq!(consumer["file"], "urscope-consumer-200-2.json");
    let freed = &told["findings"][0];
    assert_eq!((&freed["rule"], &freed["severity"]), (&json!("freed-while-open"), &json!("error")));
    assert_eq!(
        freed["process"],
        json!({"host": "node", "pid": 100, "executable": "/app/producer", "tid": 100, "time_ns": 4000, "function": "urUSMFree", "call": 4,
            "stack": []})
    );
    assert_eq!((&freed["other"]["pid"], &freed["other"]["call"]), (&json!(200), &json!(1)));
    assert_eq!((&freed["time_ns"], &freed["call"], &freed["count"]), (&json!(4000), &json!(4), &json!(1)));
    assert_eq!((&freed["subject"], &freed["size"]), (&json!("USM allocation 0x10000000"), &json!(4096)));
    assert!(freed["fingerprint"].as_str().unwrap().starts_with("0x"));
    assert_eq!(told["findings"][1]["count"], 2);
    assert_eq!((&told["skipped"], &told["unseen"]), (&json!([]), &json!([])));

    let mut out = Vec::new();
    report::json(&judged(&files("")), &mut out).unwrap();
    let told: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!((&told["verdict"], &told["exit"]), (&json!("not-judged"), &json!(2)));
    assert!(told["reason"].is_string());
}
