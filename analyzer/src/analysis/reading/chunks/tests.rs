use std::fs::{self, File};
use std::{os::unix::fs::FileExt as _, path::PathBuf};

use urscope_schema::api::Function;
use urscope_schema::call::{Enter, Values};
use urscope_schema::trace::fxt::{hole, write};

use super::*;

/// A file of two lanes, to which records are added where a writer would.
struct Trace {
    folder: tempfile::TempDir,
    file: File,
    /// The next word of each chunk.
    next: Vec<usize>,
}

impl Trace {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(folder.path().join("t")).unwrap();
        let mut trace = Self { folder, file, next: vec![0; 4] };
        for chunk in 0..trace.next.len() {
            trace.words(chunk, 0, &vec![UNWRITTEN; CHUNK]);
        }
        trace.put(0, &write::beginning(1, "app"));
        trace
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("t")
    }

    fn words(&self, chunk: usize, at: usize, words: &[u64]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.file.write_all_at(&bytes, chunk as u64 * CHUNK_BYTES + at as u64 * WORD).unwrap();
    }

    fn put(&mut self, chunk: usize, words: &[u64]) {
        self.words(chunk, self.next[chunk], words);
        self.next[chunk] += words.len();
    }

    fn head(&mut self, chunk: usize, lane: u32, tid: u32) {
        self.put(chunk, &write::head(lane));
        self.put(chunk, &write::thread(1, tid));
    }

    fn call(&mut self, chunk: usize, time: u64) {
        self.put(chunk, &enter(time));
    }

    fn read(&self, until: Option<u64>) -> ChunkReader {
        ChunkReader::open(Source::open(&self.path()).unwrap(), until.map(Nanos)).unwrap()
    }
}

/// A call whose number is its time.
fn enter(time: u64) -> Vec<u64> {
    let function = Function::urUSMFree;
    let enter = Enter { function, call: time, tid: 0, time: Nanos(time), values: Values::NONE };
    let mut words = vec![write::enter(&enter, &mut write::Measure).unwrap()];
    write::enter(&enter, &mut words);
    words
}

/// The times of the calls that can be read, each with its thread.
fn calls(reader: &mut ChunkReader) -> Vec<(u64, u32)> {
    let found = std::iter::from_fn(|| reader.next()).map(|found| found.unwrap().1.unwrap());
    let calls = found.filter_map(|record| if let Record::Enter(enter) = record { Some(enter) } else { None });
    calls.map(|enter| (enter.time.0, enter.tid)).collect()
}

/// A trace of two threads, the first of which has filled a chunk.
fn two_lanes() -> Trace {
    let mut trace = Trace::new();
    trace.head(0, 0, 10);
    trace.head(1, 1, 11);
    trace.head(2, 0, 10);
    for (chunk, time) in [(0, 1), (0, 4), (1, 2), (1, 3), (1, 7), (2, 5)] {
        trace.call(chunk, time);
    }
    trace
}

#[test]
fn lanes_are_merged_by_time() {
    let mut reader = two_lanes().read(None);
    assert_eq!(calls(&mut reader), [(1, 10), (2, 11), (3, 11), (4, 10), (5, 10), (7, 11)]);
    assert!(!reader.is_late());
}

#[test]
fn a_growing_file_is_read_up_to_a_time() {
    let mut trace = two_lanes();
    let mut reader = trace.read(Some(4));
    assert_eq!(calls(&mut reader), [(1, 10), (2, 11), (3, 11)]);
    trace.call(2, 6);
    trace.head(3, 2, 12);
    trace.call(3, 5);
    assert!(reader.grow(Some(Nanos(7))).unwrap());
    assert_eq!(calls(&mut reader), [(4, 10), (5, 10), (5, 12), (6, 10)]);
    trace.call(1, 8);
    let rest = reader.remainder(Source::open(&trace.path()).unwrap());
    assert_eq!(calls(&mut rest.unwrap()), [(7, 11), (8, 11)]);
    assert!(reader.grow(None).unwrap());
    assert_eq!(calls(&mut reader), [(7, 11), (8, 11)]);
    assert!(!reader.is_late());
}

#[test]
fn a_record_that_arrives_too_late_is_noticed() {
    let mut trace = two_lanes();
    let mut reader = trace.read(Some(100));
    assert_eq!(calls(&mut reader).last(), Some(&(7, 11)));
    trace.call(2, 6);
    assert!(reader.grow(Some(Nanos(100))).unwrap());
    calls(&mut reader);
    assert!(reader.is_late());
}

#[test]
fn claimed_room_is_waited_for_and_skipped_in_the_end() {
    let mut trace = two_lanes();
    let claimed = enter(6).len();
    let at = trace.next[2];
    trace.put(2, &[hole(claimed)]);
    trace.next[2] = at + claimed;
    trace.call(2, 9);
    assert_eq!(calls(&mut trace.read(None)).last(), Some(&(9, 10)));
    let mut reader = trace.read(Some(100));
    assert_eq!(calls(&mut reader).last(), Some(&(7, 11)));
    trace.words(2, at, &enter(8));
    reader.grow(Some(Nanos(100))).unwrap();
    assert_eq!(calls(&mut reader), [(8, 10), (9, 10)]);
}

#[test]
fn a_file_that_became_shorter_is_another() {
    let trace = two_lanes();
    let mut reader = trace.read(Some(100));
    trace.file.set_len(CHUNK_BYTES).unwrap();
    assert!(!reader.grow(Some(Nanos(100))).unwrap());
    fs::remove_file(trace.path()).unwrap();
    assert!(!reader.grow(Some(Nanos(100))).unwrap());
}
