//! Raw traces in the binary form, read word by word after the specification of Fuchsia's trace format.
//!
//! A record is given in the shape that it has in the Chrome form, so that one test can look at both.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The number of words in a chunk, which no record crosses.
const CHUNK: usize = 4096;

/// The records of a file in the order of time, and whether there is a footer. Fails if the file holds anything that is
/// no record.
pub(super) fn records(bytes: &[u8]) -> (Vec<Value>, bool) {
    // A process may be killed while its file grows, or find the disk full: nothing is in the last part then.
    assert_eq!(bytes.len() % 8, 0, "the file is not a sequence of words");
    let words: Vec<u64> = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let mut file = File::default();
    for chunk in words.chunks(CHUNK) {
        let mut rest = chunk;
        (file.before, file.bases) = (0, BTreeMap::new());
        while let Some(first) = rest.first() {
            let size = (first >> 4 & 0xfff) as usize;
            let (record, behind) = rest.split_at_checked(size.max(1)).expect("a record goes beyond its chunk");
            file.take(record);
            rest = behind;
        }
    }
    let closed = file.records.iter().any(|(_, record)| record["name"] == "urscope_footer");
    file.records.sort_by_key(|(time, _)| *time);
    (file.records.into_iter().map(|(_, record)| record).collect(), closed)
}

/// What has been read.
#[derive(Default)]
struct File {
    strings: BTreeMap<u64, String>,
    thread: (u64, u64),
    /// The number of the call that the record in front is of; 0 where another record is.
    before: u64,
    /// The values of the latest record in the chunk of a function's beginning or return that neither repeats others nor
    /// has a number.
    bases: BTreeMap<(String, &'static str), Map<String, Value>>,
    /// Records and their times; 0 for those without one.
    records: Vec<(u64, Value)>,
}

impl File {
    fn take(&mut self, record: &[u64]) {
        let first = record[0];
        let body = &record[1..];
        let before = std::mem::take(&mut self.before);
        match first & 0xf {
            // The magic number has this type, too.
            0 => assert!(first == 0x0016_5478_4604_0010 || matches!(first >> 16 & 0xf, 14 | 15), "{first:#x}"),
            1 => assert_eq!(body, [1_000_000_000], "times are in nanoseconds"),
            2 => drop(self.strings.insert(first >> 16 & 0x7fff, text(body, first >> 32 & 0x7fff))),
            3 => self.thread = (body[0], body[1]),
            4 => self.event(first, body, before),
            5 => {
                let args: Value = serde_json::from_str(&text(body, first >> 32 & 0x7f_ffff)).expect("a blob is JSON");
                let name = self.string(first >> 16 & 0xffff, &[]);
                // In the Chrome form the footer is behind all that came before it.
                let time = if name == "urscope_footer" { args["clock"]["monotonic_ns"].as_u64() } else { None };
                self.add(time.unwrap_or(0), json!({"ph": "M", "name": name, "args": args}));
            }
            7 => {
                let kind = if first >> 16 & 0xff == 1 { "process_name" } else { "thread_name" };
                let name = self.string(first >> 24 & 0xffff, &body[1..]);
                self.add(0, json!({"ph": "M", "name": kind, "args": {"name": name}}));
                if kind == "process_name" {
                    self.thread = (body[0], body[0]);
                    self.records.last_mut().expect("just added").1["pid"] = json!(body[0]);
                }
            }
            kind => panic!("a record of type {kind}"),
        }
    }

    fn event(&mut self, first: u64, body: &[u64], before: u64) {
        let category = self.string(first >> 32 & 0xffff, &[]);
        // The second string of this text.
        let earlier = self.strings.range(..first >> 32 & 0xffff).filter(|(_, text)| **text == category).count();
        let repeats = category == "api" && earlier == 1;
        let name = self.string(first >> 48, &[]);
        let phase = ["i", "C", "B", "E", "X"][(first >> 16 & 0xf) as usize];
        let mut args = Map::new();
        if repeats {
            args.clone_from(self.bases.get(&(name.clone(), phase)).expect("a record repeats an earlier one"));
        }
        let mut rest = &body[1..];
        for _ in 0..first >> 20 & 0xf {
            let (argument, behind) = rest.split_at((rest[0] >> 4 & 0xfff) as usize);
            let head = argument[0];
            let value = match head & 0xf {
                2 => json!(head >> 32),
                4 => json!(argument[1]),
                6 => json!(self.string(head >> 32 & 0xffff, &argument[1..])),
                7 => hex(argument[1]),
                kind => panic!("an argument of type {kind}"),
            };
            args.insert(self.string(head >> 16 & 0xffff, &[]), value);
            rest = behind;
        }
        assert_eq!(rest.len(), usize::from(["C", "X"].contains(&phase)), "words behind the arguments of {name}");
        if category == "api" {
            let begins = phase == "B";
            if !repeats && !args.contains_key("call") && !args.contains_key("result") {
                self.bases.insert((name.clone(), phase), args.clone());
            }
            let said = (before != 0).then(|| before + u64::from(begins));
            let call = args.get("call").and_then(Value::as_u64).or(said).expect("a call has a number");
            args.insert("call".into(), json!(call));
            self.before = call;
        }
        if phase == "E" {
            args.entry("result").or_insert(json!(0));
        }
        let mut record =
            json!({"ph": phase, "cat": category, "name": name, "ts": body[0] as f64 / 1000.0, "args": args});
        // Such a record stands where the time that it describes has ended.
        let end = if phase == "X" { rest[0] } else { body[0] };
        if phase == "X" {
            record["dur"] = json!((end - body[0]) as f64 / 1000.0);
        }
        self.add(end, record);
    }

    fn add(&mut self, time: u64, mut record: Value) {
        (record["pid"], record["tid"]) = (json!(self.thread.0), json!(self.thread.1));
        self.records.push((time, record));
    }

    /// A string by its reference; one that stands inline is at the beginning of `inline`.
    fn string(&self, reference: u64, inline: &[u64]) -> String {
        let length = reference & 0x7fff;
        match reference {
            0 => String::new(),
            0x8000.. => text(&inline[..length.div_ceil(8) as usize], length),
            _ => self.strings.get(&reference).expect("a string is defined before its use").clone(),
        }
    }
}

fn hex(word: u64) -> Value {
    json!(format!("{word:#x}"))
}

fn text(words: &[u64], length: u64) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let (text, rest) = bytes.split_at(length as usize);
    assert!(rest.len() < 8 && rest.iter().all(|byte| *byte == 0), "a text of {length} bytes in {} words", words.len());
    String::from_utf8(text.to_vec()).expect("texts are UTF-8")
}
