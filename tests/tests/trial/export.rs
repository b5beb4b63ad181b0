//! The timeline of a run is drawn by Perfetto as it was written: nothing is dropped, and the arrows go between processes.

use std::{fs, path::Path};

use serde_json::Value;
use urscope_tests::{Adapter, Outcome, Release, Trial, perfetto, run};

use crate::on_both_adapters;

/// The flows, with the names of their two ends and whether these are in different processes.
const FLOWS: &str = "select out.name as a, into_.name as b, \
    (select upid from thread_track join thread using (utid) where thread_track.id = out.track_id) as p, \
    (select upid from thread_track join thread using (utid) where thread_track.id = into_.track_id) as q \
    from flow join slice out on slice_out = out.id join slice into_ on slice_in = into_.id order by into_.ts";

fn exported(outcome: &Outcome, to: &Path) {
    let (traces, file) = (outcome.trace_folder(), to.to_str().unwrap());
    let ended = run::urscope(&["export", traces.to_str().unwrap(), "-o", file]);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, ""), "{}", ended.stderr);
}

/// Exports a run and asks Perfetto about it; hands out the flows.
fn drawn(outcome: &Outcome) -> Vec<(String, String, bool)> {
    let folder = tempfile::tempdir().unwrap();
    let (plain, packed) = (folder.path().join("run.json"), folder.path().join("run.json.gz"));
    exported(outcome, &plain);
    exported(outcome, &packed);
    assert!(fs::metadata(&packed).unwrap().len() < fs::metadata(&plain).unwrap().len());
    let timeline: Value = serde_json::from_str(&fs::read_to_string(&plain).unwrap()).expect("strict JSON");
    let events = timeline["traceEvents"].as_array().unwrap();
    let count = |test: &dyn Fn(&Value) -> bool| events.iter().filter(|event| test(event)).count() as u64;
    let phase = |phase: &'static str| move |event: &Value| event["ph"] == phase;

    let opinion = perfetto::opinion(&plain, &[FLOWS]);
    opinion.assert_ok();
    let calls = count(&phase("X")) + count(&phase("B"));
    let (lives, over, findings) = (count(&phase("b")), count(&phase("e")), count(&phase("i")));
    assert_eq!(opinion.count("slices"), calls + lives + findings);
    assert_eq!(opinion.count("unfinished"), count(&phase("B")) + lives - over);
    assert_eq!(opinion.count("flows"), count(&|event| event["flow_in"] == true));
    let values = events.iter().filter(|event| event["ph"] == "C").map(|event| event["args"].as_object().unwrap().len());
    assert_eq!(opinion.count("counters"), values.sum::<usize>() as u64);

    let report = outcome.report();
    let judged: u64 = report.processes().iter().map(|process| process["calls"].as_u64().unwrap()).sum();
    assert_eq!((calls, findings), (judged, report.findings().len() as u64));
    let text = |row: &Value, column: &str| row[column].as_str().unwrap_or_default().to_owned();
    let flow = |row: &Value| (text(row, "a"), text(row, "b"), row["p"] != row["q"] && !row["p"].is_null());
    opinion.rows(0).iter().map(flow).collect()
}

fn flow(from: &str, to: &str, between_processes: bool) -> (String, String, bool) {
    (from.to_owned(), to.to_owned(), between_processes)
}

on_both_adapters! {
    fn the_sharing_of_memory_is_drawn_with_its_arrows(adapter) {
        let outcome = Trial::of("free_while_open", Release::R2026_2, adapter).run();
        assert_eq!(drawn(&outcome), [
            flow("urIPCGetMemHandleExp", "urIPCOpenMemHandleExp", true),
            flow("mapping", "urIPCCloseMemHandleExp", false),
        ]);
    }

    fn what_was_cut_short_is_drawn_to_its_end(adapter) {
        let flows = drawn(&Trial::of("killed_producer", Release::R2026_2, adapter).run());
        assert!(flows.contains(&flow("urIPCGetMemHandleExp", "urIPCOpenMemHandleExp", true)), "{flows:?}");
    }

    fn many_threads_are_drawn(adapter) {
        let flows = drawn(&Trial::of("threads_saint", Release::R2026_2, adapter).run());
        assert!(flows.len() > 10, "{flows:?}");
    }
}

#[test]
fn physical_memory_and_events_are_drawn_alike() {
    let physical = drawn(&Trial::of("physical_saint", Release::R2026_2, Adapter::V2).run());
    assert!(physical.contains(&flow("urIPCGetPhysMemHandleExp", "urIPCOpenPhysMemHandleExp", true)), "{physical:?}");
    assert!(physical.contains(&flow("physical memory", "urIPCClosePhysMemHandleExp", false)), "{physical:?}");
    let event = drawn(&Trial::of("event_saint", Release::R2026_2, Adapter::V2).arg("signalled_before_get").run());
    assert!(event.contains(&flow("urIPCGetEventHandleExp", "urIPCOpenEventHandleExp", true)), "{event:?}");
    assert!(event.contains(&flow("event", "urEventRelease", false)), "{event:?}");
}

#[test]
fn a_timeline_that_cannot_be_written_is_said() {
    let outcome = Trial::of("saint", Release::R2026_2, Adapter::V2).run();
    let traces = outcome.trace_folder();
    let ended = run::urscope(&["export", traces.to_str().unwrap(), "-o", "/nonexistent/run.json"]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("/nonexistent/run.json"), "{}", ended.stderr);
}
