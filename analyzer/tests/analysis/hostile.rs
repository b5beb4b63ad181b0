//! Tests with files that are truncated, damaged, of another version, foreign or malicious.

use std::{collections::BTreeMap, path::Path};

use urscope_analyzer::{AnalysisError, Options, Verdict, analysis::Ended, judge};

use crate::traces::{codes, files, files_with, judged, put};

const FAULTY_RUN: &str = "p: alloc a 64\np: get a -> h\np: put h\np: put h";

fn only(bytes: &[u8]) -> Result<urscope_analyzer::Judgement, AnalysisError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("urscope-a-1-1.json");
    std::fs::write(&path, bytes).unwrap();
    judge(&[path], &Options::default())
}

#[test]
fn a_trace_truncated_at_any_byte_is_judged_up_to_there() {
    let whole = files(FAULTY_RUN).into_values().next().unwrap();
    let mut found = 0;
    for cut in 0..whole.len() {
        let mut bytes = whole[..cut].to_vec();
        bytes.resize(cut + 100, b' ');
        let judgement = only(&bytes).unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
        assert_eq!(judgement.skipped_lines, 0, "cut at {cut}");
        if let Some(process) = judgement.processes.first() {
            assert!(matches!(process.ended, Ended::Killed | Ended::Exited), "cut at {cut}: {process:?}");
        } else {
            assert_eq!(judgement.verdict, Verdict::NotJudged, "cut at {cut}");
        }
        found = judgement.findings.len();
    }
    assert_eq!(found, 1);
}

#[test]
fn a_damaged_line_is_reported_and_makes_the_trace_incomplete() {
    let (name, whole) = files(FAULTY_RUN).into_iter().next().unwrap();
    let text = String::from_utf8(whole).unwrap();
    let damaged = text.replacen("\"ph\":\"E\"", "\"ph\"\u{1b}\"E\"", 1);
    let judgement = judged(&BTreeMap::from([(name, damaged.into_bytes())]));
    assert_eq!((judgement.skipped_lines, judgement.skipped[0].line), (1, 6));
    assert!(judgement.skipped[0].offset > 400 && judgement.skipped[0].file.contains("urscope-p-"));
    assert_eq!(judgement.processes[0].ended, Ended::Incomplete);
    assert_eq!(codes(&judgement), [("double-put", 1), ("calls-lost", 1)]);
    assert_eq!(judgement.verdict, Verdict::NotJudged, "missing calls prevent a verdict");
    let reason = judgement.reason.unwrap_or_default();
    assert!(reason.contains("1 line could not be used"), "{reason}");
}

#[test]
fn a_newer_format_is_rejected_with_its_number() {
    let newer = files_with(FAULTY_RUN, |header, _| (header.format, header.urscope) = (7, "9.9".into()));
    let error = only(newer.values().next().unwrap()).unwrap_err();
    assert!(matches!(&error, AnalysisError::Newer { format: 7, .. }));
    assert!(error.to_string().contains("format 7 (written by urscope 9.9)"), "{error}");
}

#[test]
fn a_file_that_is_not_a_trace_is_rejected() {
    let chrome = b"[\n{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1}\n]";
    let foreign: &[&[u8]] =
        &[b"\x7fELF\x02\x01\x01", b"hello", b"{\"traceEvents\":[]}", b"[1,2,3]", chrome, b"[\n\xff\xfe\n"];
    for bytes in foreign {
        let error = only(bytes).unwrap_err();
        assert!(matches!(error, AnalysisError::NotATrace { .. }), "{error}");
        assert!(error.to_string().contains("expected a file that liburscope.so wrote"), "{error}");
    }
}

#[test]
fn a_foreign_file_in_a_directory_is_named_and_the_rest_is_judged() {
    let folder = tempfile::tempdir().unwrap();
    let paths = put(folder.path(), &files(FAULTY_RUN));
    for (name, bytes) in [("urscope-report.json", "{\"verdict\":1}"), ("urscope-a-1-1.json", "notes of mine")] {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let judgement = judge(&[folder.path().to_owned()], &Options::default()).unwrap();
    assert_eq!((judgement.verdict, codes(&judgement)), (Verdict::Findings, vec![("double-put", 1)]));
    for said in
        ["urscope-report.json was ignored: it is not a trace (it begins with {", "urscope-a-1-1.json was ignored"]
    {
        assert!(judgement.unseen.iter().any(|unseen| unseen.contains(said)), "{said}: {:?}", judgement.unseen);
    }

    // What `urscope run` found by itself is not named by a person either.
    let found: Vec<_> = paths.into_iter().chain([folder.path().join("urscope-report.json")]).collect();
    let listed = judge(&found, &Options { listed: true, ..Options::default() }).unwrap();
    assert_eq!((listed.verdict, listed.unseen.len()), (Verdict::Findings, 1));
    assert!(judge(&found, &Options::default()).is_err(), "a named file must be a trace");
}

#[test]
fn foreign_files_alone_are_no_run() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("urscope-a.json"), "mine").unwrap();
    let judgement = judge(&[folder.path().to_owned()], &Options::default()).unwrap();
    assert_eq!(judgement.verdict, Verdict::NotJudged);
    let reason = judgement.reason.unwrap();
    assert!(reason.contains("no trace files") && reason.contains("urscope-a.json was ignored"), "{reason}");
}

#[test]
fn a_trace_whose_beginning_is_lost_is_no_foreign_file() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), &files(FAULTY_RUN));
    std::fs::write(folder.path().join("urscope-a-1-1.json"), [0; 4096]).unwrap();
    let error = judge(&[folder.path().to_owned()], &Options::default()).unwrap_err();
    assert!(error.to_string().contains("its beginning is lost"), "{error}");
}

#[test]
fn a_trace_without_its_header_is_rejected() {
    let whole = files(FAULTY_RUN).into_values().next().unwrap();
    let text = String::from_utf8(whole).unwrap();
    let headless: Vec<_> = text.lines().filter(|line| !line.contains("urscope_header")).collect();
    let error = only(headless.join("\n").as_bytes()).unwrap_err();
    assert!(matches!(error, AnalysisError::NoHeader { .. }), "{error}");
}

#[test]
fn a_missing_file_and_a_device_are_rejected() {
    let missing = judge(&["/nonexistent/urscope-a.json".into()], &Options::default()).unwrap_err();
    assert!(matches!(missing, AnalysisError::Unreadable { .. }), "{missing}");
    let device = judge(&[Path::new("/dev/zero").to_owned()], &Options::default()).unwrap_err();
    assert!(matches!(device, AnalysisError::NotATrace { .. }), "{device}");
}

#[test]
fn a_file_named_twice_is_analyzed_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut paths = put(folder.path(), &files(FAULTY_RUN));
    paths.push(folder.path().to_owned());
    let judgement = judge(&paths, &Options::default()).unwrap();
    assert_eq!((judgement.processes.len(), codes(&judgement)), (1, vec![("double-put", 1)]));
}

#[test]
fn very_long_blanks_and_lines_are_handled() {
    let mut spaces = files(FAULTY_RUN).into_values().next().unwrap();
    let end = spaces.len() - 2;
    spaces.truncate(end);
    spaces.resize(end + (16 << 20), b' ');
    assert_eq!(codes(&only(&spaces).unwrap()), [("double-put", 1)]);
    let mut line = b"[\n".to_vec();
    line.resize(8 << 20, b'x');
    assert!(only(&line).is_err());
}
