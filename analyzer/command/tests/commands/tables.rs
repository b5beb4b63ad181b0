//! The exported tables of a run: both formats contain the same rows, which match the judgement.

use std::{collections::BTreeMap, fs, path::Path};

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Map, Value, json};
use urscope_analyzer::{Options, judge};
use urscope_command::export::ExportError;
use urscope_command::export::tables::{self, Form, Rows};

use crate::traces::{FAULTY_RUN, files, put};

type Table = Vec<Map<String, Value>>;

const NAMES: [&str; 4] = ["calls", "handles", "findings", "processes"];

fn columns(path: &Path) -> Table {
    let reader = SerializedFileReader::try_from(path).unwrap();
    let value = |field: &Field| match field {
        Field::Null => Value::Null,
        Field::ULong(number) => json!(number),
        Field::Str(text) => json!(text),
        other => panic!("{other:?}"),
    };
    let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
    rows.map(|row| row.get_column_iter().map(|(name, field)| (name.clone(), value(field))).collect()).collect()
}

fn lines(path: &Path) -> Table {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn exported(scenario: &str) -> (Rows, BTreeMap<&'static str, Table>, urscope_analyzer::Judgement) {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), &files(scenario));
    let paths = [folder.path().to_owned()];
    let options = Options::default();
    let to = folder.path().join("tables");
    let rows = tables::export(&paths, &options, Form::Parquet, &to).unwrap();
    assert_eq!(tables::export(&paths, &options, Form::Jsonl, &to).unwrap(), rows, "the folder may already exist");
    let read = NAMES.map(|name| {
        let table = columns(&to.join(format!("{name}.parquet")));
        assert_eq!(table, lines(&to.join(format!("{name}.jsonl"))), "{name}");
        (name, table)
    });
    assert_eq!(fs::read_dir(&to).unwrap().count(), 2 * NAMES.len());
    (rows, read.into(), judge(&paths, &options).unwrap())
}

#[test]
fn tables_match_the_judgement() {
    let (rows, tables, judgement) = exported(FAULTY_RUN);
    let calls: u64 = judgement.calls.values().sum();
    assert_eq!((rows.calls, rows.findings), (calls, judgement.findings.len() as u64));
    for (name, count) in NAMES.iter().zip([rows.calls, rows.handles, rows.findings, rows.processes]) {
        assert_eq!(tables[name].len() as u64, count, "{name}");
    }
    for (function, count) in &judgement.calls {
        let there = tables["calls"].iter().filter(|call| call["function"] == **function).count() as u64;
        assert_eq!(there, *count, "{function}");
    }
    for (row, seen) in tables["processes"].iter().zip(&judgement.processes) {
        assert_eq!((&row["pid"], &row["calls"]), (&json!(seen.pid), &json!(seen.calls)));
        assert_eq!(row["ended"], seen.ended.name());
    }
    for (row, finding) in tables["findings"].iter().zip(&judgement.findings) {
        assert_eq!((&row["rule"], &row["message"]), (&json!(finding.rule), &json!(finding.message)));
        let process = &tables["processes"][row["process"].as_u64().unwrap() as usize];
        assert_eq!(process["pid"], finding.process.pid);
    }
    let unreturned: Vec<_> = tables["calls"].iter().filter(|call| call["end_ns"].is_null()).collect();
    assert_eq!(unreturned.len(), 1);
    assert_eq!(unreturned[0]["function"], "urIPCOpenMemHandleExp");
}

#[test]
fn lifetimes_refer_to_the_calls_that_began_and_ended_them() {
    let (_, tables, _) =
        exported("p: alloc a 4096\np: get a -> h\nc: open h -> m\nc: close m\nc: open h -> n\nc: killed\np: put h");
    let lives = &tables["handles"];
    let ends: Vec<_> =
        lives.iter().map(|life| (life["lane"].as_str().unwrap(), life["how"].as_str().unwrap())).collect();
    assert_eq!(ends, [("opening", "urIPCCloseMemHandleExp"), ("opening", "kill"), ("handle", "urIPCPutMemHandleExp")]);
    let handle = &lives[2];
    for opening in &lives[..2] {
        assert_eq!((&opening["handle"], &opening["export"]), (&handle["life"], &handle["export"]));
        assert_eq!((&opening["producer"], &opening["bytes"]), (&handle["process"], &json!(4096)));
    }
    for life in lives {
        let made = tables["calls"].iter().find(|call| call["made"] == life["life"]).unwrap();
        assert_eq!((&made["process"], &made["call"]), (&life["process"], &life["born_call"]));
        assert_eq!(made["end_ns"], life["born_ns"]);
    }
}

#[test]
fn many_rows_are_written_in_groups() {
    let scenario = format!("p: alloc a 64\n{}", "40000 times\np: get a -> h\np: put h\nend");
    let (rows, tables, _) = exported(&scenario);
    assert_eq!((rows.calls, rows.handles), (80_001, 40_000));
    assert!(tables["handles"].is_sorted_by_key(|life| life["life"].as_u64()));
}

#[test]
fn a_failed_export_leaves_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let traces = folder.path().join("none");
    let to = folder.path().join("tables");
    let error = tables::export(&[traces], &Options::default(), Form::Parquet, &to).unwrap_err();
    assert!(matches!(error, ExportError::Judge(_)), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
