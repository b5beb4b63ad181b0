//! A full disk: records so far stay, others are counted, calls continue. A limit of file size simulates the disk, so
//! the test has its own process.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops where it is surprised")]

use urscope_schema::api::{Function, ResultCode, demand::Nulls};
use urscope_schema::call::Values;
use urscope_schema::trace::Record;
use urscope_schema::trace::chrome::read::Reader;
use urscope_shim::{chain, knobs, layer::trace};

const CALLS: u64 = 20_000;

#[test]
fn a_full_disk_stops_the_recording_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let limit = libc::rlimit { rlim_cur: 3 << 19, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the only thread that uses the environment, in a process of its own; setrlimit(2) reads the structure.
    unsafe {
        std::env::set_var("URSCOPE_DIR", directory.path().join("made"));
        libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit);
    }
    for _ in 0..CALLS {
        let call = chain::enter::<false>(
            knobs::hot(),
            Function::urUSMFree,
            &Values { pointer: Some(0x7f00), ..Values::default() },
            &Nulls::default(),
        )
        .call;
        chain::exit::<false>(knobs::hot(), Function::urUSMFree, call, ResultCode::SUCCESS, None);
    }
    trace::end("exit");

    let path = trace::path().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    assert!((1 << 19..3 << 19).contains(&bytes.len()), "{} bytes", bytes.len());
    serde_json::from_slice::<Vec<serde_json::Value>>(&bytes).unwrap();
    let records: Vec<Record> = Reader::new(&bytes[..]).map(|record| record.unwrap().unwrap()).collect();
    let recorded = records.iter().filter(|record| matches!(record, Record::Enter(_) | Record::Exit(_))).count() as u64;
    let Some(Record::Footer(footer)) = records.last() else { panic!("no footer") };
    assert_eq!((footer.calls, footer.returned), (CALLS, CALLS));
    assert!(footer.lost > 0 && recorded > 0);
    assert_eq!(recorded + footer.lost, 2 * CALLS, "what is not recorded is counted");
}
