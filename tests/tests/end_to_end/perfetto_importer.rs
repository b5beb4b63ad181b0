//! The check with Perfetto's importer tells good traces from bad ones; otherwise its "ok" would mean nothing.

use std::fs;

use urscope_tests::perfetto::{self, Opinion};

const GOOD: &str = r#"[
{"ph":"M","name":"process_name","pid":7,"tid":7,"args":{"name":"one"}}
,{"ph":"B","pid":7,"tid":7,"ts":1.000,"cat":"api","name":"whole","args":{}}
,{"ph":"E","pid":7,"tid":7,"ts":2.500,"cat":"api","name":"whole","args":{}}
,{"ph":"B","pid":7,"tid":8,"ts":3.000,"cat":"api","name":"begun","args":{}}"#;

fn opinion_on(text: &str, queries: &[&str]) -> Opinion {
    let folder = tempfile::tempdir().expect("no temporary folder");
    let file = folder.path().join("trace.json");
    fs::write(&file, text).expect("a trace can be written");
    perfetto::opinion(&file, queries)
}

#[test]
fn a_good_trace_is_ok_and_its_slices_are_counted() {
    let opinion = opinion_on(GOOD, &["select dur from slice where name = 'whole'"]);
    opinion.assert_ok();
    let counts = ["slices", "unfinished", "instants", "processes", "threads"].map(|name| opinion.count(name));
    assert_eq!(counts, [2, 1, 0, 1, 2]);
    assert_eq!(opinion.rows(0)[0]["dur"], 1500);
}

#[test]
fn a_trace_whose_end_is_lost_silently_has_warnings() {
    let lossy = format!("{GOOD}\n,{{\"ph\":\"X\",\"pid\":7,\"tid\":7,\"ts\":4,\"dur\":null,\"name\":\"bad\"}}");
    assert_eq!(opinion_on(&lossy, &[]).verdict(), "warnings");
}

#[test]
fn a_trace_with_a_hole_of_zeros_is_rejected() {
    assert_eq!(opinion_on(&GOOD.replace("\n,{\"ph\":\"E\"", "\n\0\0\0\0,{\"ph\":\"E\""), &[]).verdict(), "rejected");
}
