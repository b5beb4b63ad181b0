//! The exported timeline of a run: what it draws of findings.

use serde_json::Value;
use urscope_analyzer::Options;
use urscope_command::export::{Form, export};

use crate::traces::{files, put};

/// The bars of races on the timeline of a scenario, each with its process, its begin and its end in nanoseconds.
fn bars(scenario: &str) -> Vec<(u64, String, u64, u64)> {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), &files(scenario));
    let mut out = Vec::new();
    export(&[folder.path().to_owned()], &Options::default(), Form::Chrome, &mut out).unwrap();
    let timeline: Value = serde_json::from_slice(&out).unwrap();
    let of_races = timeline["traceEvents"].as_array().unwrap().iter().filter(|event| event["cat"] == "race");
    let events: Vec<_> = of_races.collect();
    let bar = |[begin, end]: &[&Value; 2]| {
        assert_eq!((begin["ph"].as_str(), end["ph"].as_str()), (Some("b"), Some("e")), "{begin}");
        assert_eq!((&begin["id2"], &begin["name"], &begin["pid"]), (&end["id2"], &end["name"], &end["pid"]));
        let time = |event: &Value| (event["ts"].as_f64().unwrap() * 1000.0).round() as u64;
        (begin["pid"].as_u64().unwrap(), begin["name"].as_str().unwrap().to_owned(), time(begin), time(end))
    };
    let (pairs, rest) = events.as_chunks();
    assert!(rest.is_empty(), "{events:?}");
    pairs.iter().map(bar).collect()
}

/// Two processes share memory of the CUDA driver, and copy there. `p` waits for its copy behind that of `c`.
const RACE: &str =
    "p: alloc a 4096 cuda\np: get a -> h cuda\nc: open h -> m cuda\np: copy a sized 64 cuda\nc: copy m sized 64 cuda";

#[test]
fn commands_that_nothing_orders_are_bars_until_they_are_known_to_be_over() {
    let [first, second, between] = &bars(&format!("{RACE}\np: host-waits\nc: host-waits"))[..] else { panic!("bars") };
    let name = "cuMemcpyDtoD_v2: enqueued until known to be over";
    assert_eq!([first, second].map(|bar| (bar.0, bar.1.as_str())), [(100, name), (200, name)]);
    assert!(first.2 < second.2 && second.2 < first.3 && first.3 < second.3, "{first:?} {second:?}");
    assert_eq!((between.0, between.1.as_str()), (200, "nothing orders the two commands"));
    assert_eq!((between.2, between.3), (second.2, first.3));
}

#[test]
fn a_command_whose_end_is_known_first_has_its_own_end() {
    let [first, second, between] = &bars(&format!("{RACE}\nc: host-waits\np: host-waits"))[..] else { panic!("bars") };
    assert!(second.3 < first.3, "{first:?} {second:?}");
    assert_eq!(between.3, first.3);
}

#[test]
fn a_command_whose_end_is_not_known_is_drawn_as_far_as_nothing_orders_it() {
    let [first, second, between] = &bars(&format!("{RACE}\np: host-waits"))[..] else { panic!("bars") };
    assert_eq!(second.1, "cuMemcpyDtoD_v2: enqueued, end not known");
    assert_eq!((second.3, between.3), (first.3, first.3));
}

#[test]
fn what_is_ordered_has_no_bars() {
    assert_eq!(bars(&RACE.replace("\nc: copy", "\np: host-waits\nc: copy")), []);
}

/// It counts from its execution on, and each execution has an end of its own.
#[test]
fn a_command_of_a_list_is_enqueued_when_the_list_is_executed() {
    let list = RACE
        .replace("p: copy a sized 64 cuda", "p: list of l\np: copy a sized 64 cuda queue l\np: executes for l of s");
    let [first, second, between] = &bars(&format!("{list}\np: host-waits\nc: host-waits"))[..] else { panic!("bars") };
    let again =
        format!("{list}\np: host-waits\nc: host-waits\nc: copy m sized 64 cuda\np: executes for l of s\np: host-waits");
    assert_eq!(&bars(&again)[..], [first.clone(), second.clone(), between.clone()]);
    assert!(first.2 < second.2 && second.2 < first.3, "{first:?} {second:?}");
}
