//! A process that can no longer open its trace, as after chroot(2): what is lost is counted in the file, in both forms,
//! also if the process is killed before it ends in order. Each case has a process of its own.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test stops where it is surprised")]

use std::{env, fs, path::Path, process::Command};

use urscope_schema::api::{Function, ResultCode, demand::Nulls};
use urscope_schema::call::Values;
use urscope_schema::trace::Record;
use urscope_schema::trace::chrome::read::Reader;
use urscope_schema::trace::fxt::CHUNK;
use urscope_schema::trace::fxt::read::{Before, Item, Strings, next};
use urscope_shim::{chain, knobs, layer::trace};

const CALLS: u64 = 20_000;

/// Set in the process that calls: whether it ends in order.
const ROLE: &str = "URSCOPE_TEST_ROLE";

fn call_without_trace(ends: bool, folder: &Path) {
    let calls = |count| {
        for _ in 0..count {
            let call =
                chain::enter::<false>(knobs::hot(), Function::urUSMFree, &Values::default(), &Nulls::default()).call;
            chain::exit::<false>(knobs::hot(), Function::urUSMFree, call, ResultCode::SUCCESS, None);
        }
    };
    calls(1);
    let moved = folder.with_extension("moved");
    fs::rename(folder, &moved).unwrap();
    calls(CALLS - 1);
    if ends {
        trace::end("exit");
    }
    fs::rename(&moved, folder).unwrap();
}

fn records_of_chrome(bytes: &[u8]) -> Vec<Record> {
    Reader::new(bytes).map(|record| record.unwrap().unwrap()).collect()
}

fn records_of_binary(bytes: &[u8]) -> Vec<Record> {
    let words: Vec<u64> = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let mut strings = Strings::default();
    let mut before = Before::default();
    let mut records = Vec::new();
    for chunk in words.chunks(CHUNK) {
        let mut at = 0;
        while at < chunk.len() {
            let (item, count) = next(chunk, at, 0, &mut strings, &mut before);
            match item {
                Item::Record(record) => records.push(record),
                Item::Damaged(why) => panic!("{why:?}"),
                _ => {}
            }
            at += count;
        }
    }
    records
}

#[test]
fn what_is_lost_is_counted_in_the_file() {
    if let (Some(role), Some(folder)) = (env::var_os(ROLE), env::var_os("URSCOPE_DIR")) {
        call_without_trace(role == "ends", Path::new(&folder));
        return;
    }
    for (form, role) in [("chrome", "ends"), ("chrome", "is killed"), ("binary", "ends"), ("binary", "is killed")] {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("traces");
        let mut process = Command::new(env::current_exe().unwrap());
        process.arg("what_is_lost").env(ROLE, role).env("URSCOPE_DIR", &folder).env("URSCOPE_FORMAT", form);
        assert!(process.output().unwrap().status.success(), "{form}, {role}");

        let file = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
        let bytes = fs::read(file).unwrap();
        let records = if form == "binary" { records_of_binary(&bytes) } else { records_of_chrome(&bytes) };
        let recorded =
            records.iter().filter(|record| matches!(record, Record::Enter(_) | Record::Exit(_))).count() as u64;
        let gaps =
            records.iter().filter_map(|record| if let Record::Gap(gap) = record { Some(gap.lost) } else { None });
        let lost = gaps.max().unwrap();
        assert!(recorded > 0 && lost > 0, "{form}, {role}: {recorded} records, {lost} lost");
        assert_eq!(recorded + lost, 2 * CALLS, "{form}, {role}");
        let footers: Vec<u64> = records
            .iter()
            .filter_map(|record| if let Record::Footer(footer) = record { Some(footer.lost) } else { None })
            .collect();
        assert_eq!(footers, if role == "ends" { vec![lost] } else { vec![] }, "{form}, {role}");
    }
}
