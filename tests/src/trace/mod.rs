//! Raw trace files, read line by line with nothing but a JSON parser, or word by word.
//!
//! This reader must not share code with that of the analyzer, or both could be wrong in the same way.

use std::path::{Path, PathBuf};
use std::{collections::BTreeMap, fs};

use serde_json::Value;

mod binary;

/// One trace file.
#[derive(Debug)]
pub struct Trace {
    /// The file.
    pub path: PathBuf,
    /// Its records, in the order of the file.
    pub records: Vec<Value>,
    /// Whether it has what an orderly exit writes: the closing bracket, or the footer of a binary trace.
    pub closed: bool,
}

impl Trace {
    /// Reads a file; fails if it holds anything but records and room for more.
    pub fn read(path: &Path) -> Self {
        Self::of_file(path, false)
    }

    /// Reads the file of a process that may have been killed inside a record: the last one may be cut short in the
    /// Chrome form.
    pub fn read_of_killed(path: &Path) -> Self {
        Self::of_file(path, true)
    }

    fn of_file(path: &Path, may_be_cut: bool) -> Self {
        if path.extension().is_some_and(|extension| extension == "fxt") {
            let (records, closed) = binary::records(&fs::read(path).expect("a trace can be read"));
            return Self { path: path.to_path_buf(), records, closed };
        }
        let text = fs::read_to_string(path).expect("a trace is text and can be read");
        let mut lines: Vec<&str> = text.trim_end().lines().collect();
        assert_eq!(lines.first(), Some(&"["), "{} does not begin with a bracket", path.display());
        lines.remove(0);
        let closed = lines.last() == Some(&"]");
        if closed {
            // A process that is killed while it closes the file leaves free room behind the end, which JSON allows.
            assert!(may_be_cut || text.ends_with(']'), "{} goes on after its end", path.display());
            lines.pop();
        }
        if may_be_cut && !closed && lines.last().is_some_and(|line| !line.ends_with("}}")) {
            lines.pop();
        }
        let records = lines.iter().enumerate().map(|(number, line)| record(path, number, line)).collect();
        Self { path: path.to_path_buf(), records, closed }
    }

    /// The process that wrote it.
    pub fn pid(&self) -> u64 {
        self.records[0]["pid"].as_u64().expect("the first record has a pid")
    }

    /// The begin ("B") or end ("E") records of calls.
    pub fn calls<'a>(&'a self, phase: &'a str) -> impl Iterator<Item = &'a Value> {
        self.records.iter().filter(move |record| record["ph"] == phase && record["cat"] == "api")
    }

    /// How many begin or end records of an entry point there are.
    pub fn count(&self, phase: &str, entry_point: &str) -> usize {
        self.calls(phase).filter(|record| record["name"] == entry_point).count()
    }

    /// The entry points of the calls that have begun and not ended.
    pub fn unfinished(&self) -> Vec<&str> {
        let mut open: BTreeMap<u64, &str> = BTreeMap::new();
        for record in &self.records {
            if record["cat"] == "api" && record["ph"] == "B" {
                open.insert(call_number(record), record["name"].as_str().expect("a call has a name"));
            } else if record["cat"] == "api" && record["ph"] == "E" {
                open.remove(&call_number(record));
            }
        }
        open.into_values().collect()
    }

    /// Checks what holds for every trace: there is one pid, and each call begins once and ends at most once, later and
    /// in the same thread.
    pub fn assert_whole(&self) {
        let mut begun: BTreeMap<u64, (&Value, bool)> = BTreeMap::new();
        for record in &self.records {
            assert_eq!(
                record["pid"].as_u64(),
                Some(self.pid()),
                "{}: a record of another process: {record}",
                self.path.display()
            );
        }
        for record in self.records.iter().filter(|record| record["cat"] == "api") {
            let call = call_number(record);
            if record["ph"] == "B" {
                let before = begun.insert(call, (record, false));
                assert!(before.is_none(), "call {call} begins twice in {}", self.path.display());
            } else if record["ph"] == "E" {
                let (begin, ended) = begun.get_mut(&call).unwrap_or_else(|| panic!("an end without a begin: {record}"));
                assert!(!*ended, "call {call} ends twice in {}", self.path.display());
                assert_eq!((&begin["name"], &begin["tid"]), (&record["name"], &record["tid"]), "{record}");
                assert!(begin["ts"].as_f64() <= record["ts"].as_f64(), "call {call} ends before it begins");
                *ended = true;
            }
        }
    }
}

/// The trace files of a folder, by name. The merged trace of a run is none of them.
pub fn files_in(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the folder of the traces is there")
        .map(|entry| entry.expect("a folder can be listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json" || extension == "fxt"))
        .filter(|path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"urscope-")))
        .collect();
    files.sort();
    files
}

/// How many begin or end records of an entry point several traces hold.
pub fn count(traces: &[Trace], phase: &str, entry_point: &str) -> usize {
    traces.iter().map(|trace| trace.count(phase, entry_point)).sum()
}

/// The number of a call in its process.
pub fn call_number(record: &Value) -> u64 {
    record["args"]["call"].as_u64().unwrap_or_else(|| panic!("a call without its number: {record}"))
}

fn record(path: &Path, number: usize, line: &str) -> Value {
    // Every record but the first follows a separator.
    let record = match (number, line.strip_prefix(',')) {
        (0, None) => line,
        (1.., Some(record)) => record,
        _ => panic!("{}: the separator of record {number} is wrong: {line}", path.display()),
    };
    serde_json::from_str(record).unwrap_or_else(|error| panic!("{}: {error} in: {line}", path.display()))
}
