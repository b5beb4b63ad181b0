//! A program without a free descriptor for a while: its calls are counted as lost, and the trace continues later. The
//! test changes the limit of descriptors, so it has its own process.

#![allow(clippy::unwrap_used, reason = "a test stops where it is surprised")]

use std::time::{Duration, Instant};
use std::{fs::File, thread::sleep};

use urscope_schema::api::{Function, ResultCode, demand::Nulls};
use urscope_schema::call::Values;
use urscope_schema::trace::Record;
use urscope_schema::trace::chrome::read::Reader;
use urscope_shim::{chain, knobs, layer::trace};

const CALLS: u64 = 20_000;

fn calls(count: u64) {
    for _ in 0..count {
        let call = chain::enter::<false>(knobs::hot(), Function::urUSMFree, &Values::default(), &Nulls::default()).call;
        chain::exit::<false>(knobs::hot(), Function::urUSMFree, call, ResultCode::SUCCESS, None);
    }
}

#[test]
fn a_trace_goes_on_when_there_is_a_descriptor_again() {
    let directory = tempfile::tempdir().unwrap();
    // SAFETY: the only thread that uses the environment, in a process of its own.
    unsafe { std::env::set_var("URSCOPE_DIR", directory.path()) };
    calls(1);
    let mut taken = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        taken.push(file);
    }
    let began = Instant::now();
    calls(CALLS);
    drop(taken);
    // A pause is at most 10 ms longer than all before it together.
    sleep(began.elapsed() + Duration::from_millis(100));
    calls(10);
    trace::end("exit");

    let bytes = std::fs::read(trace::path().unwrap()).unwrap();
    serde_json::from_slice::<Vec<serde_json::Value>>(&bytes).unwrap();
    let records: Vec<Record> = Reader::new(&bytes[..]).map(|record| record.unwrap().unwrap()).collect();
    let recorded = records.iter().filter(|record| matches!(record, Record::Enter(_) | Record::Exit(_))).count() as u64;
    let Some(Record::Footer(footer)) = records.last() else { panic!("no footer") };
    assert!(footer.lost > 0, "the file never had to grow");
    assert_eq!(recorded + footer.lost, 2 * footer.calls, "what is not recorded is counted");
    let gaps = records.iter().filter_map(|record| if let Record::Gap(gap) = record { Some(gap.lost) } else { None });
    assert_eq!(gaps.collect::<Vec<_>>(), [footer.lost; 2], "a killed process would have no footer");
    let later =
        records.iter().filter(|record| matches!(record, Record::Enter(enter) if enter.call > CALLS + 1)).count();
    assert_eq!(later, 10, "the trace has what was called later");
}
