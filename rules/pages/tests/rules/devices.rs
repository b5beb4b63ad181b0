//! How messages name devices: by index and name where their process has described them, otherwise by handle.

use urscope_rule_pages::scenario::{Event, Scenario, judge};
use urscope_rules::Checker;

use crate::scenarios::expect;

const WRONG: &str =
    "p: context c on d\np: alloc a 64 in c on d\np: get a -> h in c\np: open h -> m in c on e fails 5\np: put h in c";

fn wrong_device(before: &str) -> String {
    let found = expect(&format!("{before}{WRONG}"), &["wrong-device"]);
    found[0].message.clone()
}

/// The message with what the process said of the devices `d` and `e`.
fn assert_names(before: &str, wrong: &str, right: &str) {
    let message = wrong_device(before);
    assert!(message.contains(&format!(" names {wrong} in call ")), "{message}");
    assert!(message.contains(&format!(" has only {right} since call ")), "{message}");
}

#[test]
fn a_device_that_its_process_described_is_named_by_index_and_name() {
    let d = "p: device d 0 Big_GPU\n";
    let e = "p: device e 1 Small_GPU\n";
    assert_names(&format!("{d}{e}"), "device 1 (Small GPU)", "device 0 (Big GPU)");
    assert_names("p: device d 0 _\np: device e - Half\n", "device 0x11000000 (Half)", "device 0 0x10000000");
    let undescribed = wrong_device("");
    assert!(undescribed.contains(" names device 0x"), "{undescribed}");
}

#[test]
fn what_another_process_described_is_not_taken_for_this_ones() {
    let message = wrong_device("q: device d 0 Big_GPU\n");
    assert!(!message.contains("Big GPU"), "{message}");
}

#[test]
fn two_devices_of_the_same_description_are_told_apart_by_their_handles() {
    let d = "p: device d 0 GPU\n";
    let e = "p: device e 0 GPU\n";
    assert_names(&format!("{d}{e}"), "device 0 (GPU) at 0x11000000", "device 0 (GPU) at 0x10000000");
}

#[test]
fn two_handles_of_one_device_below_the_adapter_are_that_device() {
    let scenario = format!("p: device d 0 GPU\np: device e 0 GPU\n{WRONG}");
    let found = |natives: [u64; 2]| {
        let mut events = scenario.parse::<Scenario>().unwrap().events().unwrap();
        let mut natives = natives.into_iter();
        for event in &mut events {
            if let Event::Device(_, (_, native), ..) = event {
                *native = natives.next();
            }
        }
        let found = judge(events, Checker::new());
        found.iter().map(|finding| finding.rule.code).collect::<Vec<_>>()
    };
    assert_eq!(found([1, 2]), ["wrong-device"]);
    assert!(!found([1, 1]).contains(&"wrong-device"));
}

#[test]
fn a_device_without_support_is_named_by_index_and_name() {
    let scenario = "p: device d 0 Big_GPU\np: support memory -> no on d\np: alloc a 64 on d\np: get a -> h\np: put h";
    let found = expect(scenario, &["unsupported-device"]);
    assert!(found[0].message.contains(" shares memory on device 0 (Big GPU) in "), "{}", found[0].message);
}

const REFUSED: &str =
    "p: context k on d\np: alloc a 64 in k on d\np: get a -> h in k\nc: open h -> m on e fails 45\np: put h in k";

fn refused_open(before: &str, scenario: &str) -> String {
    expect(&format!("{before}{scenario}"), &["refused-open"])[0].message.clone()
}

#[test]
fn a_refused_open_names_the_devices_that_their_processes_describe_otherwise() {
    let described = "p: device d 0 Big_GPU\nc: device e 1 Small_GPU\n";
    let differs =
        "; the memory is on device 0 (Big GPU) of its process, and the open names device 1 (Small GPU) of this one";
    let message = refused_open(described, REFUSED);
    assert!(message.ends_with(differs), "{message}");
    // An exporter that was killed has described its device before.
    let killed = REFUSED.replace("c: open", "p: killed\nc: open").replace("\np: put h in k", "");
    let found = expect(&format!("{described}{killed}"), &["leaked-handle", "refused-open"]);
    assert!(found[1].message.ends_with(differs), "{}", found[1].message);
    // An event is on the device of its context, and an open of it names a context only.
    let event = "p: context k on d\nc: context l on e\np: event v ipc in k\np: get-event v -> h\nc: open-event h -> w in l fails 45\n\
                 p: put-event h\np: release-event v";
    let message = refused_open(described, event);
    assert!(
        message.contains("; the exported object is on device 0 (Big GPU) of its process, and the context"),
        "{message}"
    );
}

#[test]
fn a_refused_open_says_nothing_of_devices_that_may_be_the_same() {
    for before in ["", "p: device d 0 Big_GPU\n", "c: device e 1 Small_GPU\n", "p: device d 0 GPU\nc: device e 0 GPU\n"]
    {
        let message = refused_open(before, REFUSED);
        assert!(!message.contains("device"), "{message}");
    }
}
