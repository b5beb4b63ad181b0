//! How messages name devices: by index and name where their process has described them, otherwise by handle.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test panics where it fails")]

mod scenarios;

use scenarios::expect;

const WRONG: &str = "p: context c on d\np: alloc a 64 in c on d\np: get a -> h in c\np: open h -> m in c on e fails 5\np: put h in c";

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
    let (d, e) = ("p: device d 0 Big_GPU\n", "p: device e 1 Small_GPU\n");
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
    let (d, e) = ("p: device d 0 GPU\n", "p: device e 0 GPU\n");
    assert_names(&format!("{d}{e}"), "device 0 (GPU) at 0x11000000", "device 0 (GPU) at 0x10000000");
}

#[test]
fn a_device_without_support_is_named_by_index_and_name() {
    let scenario = "p: device d 0 Big_GPU\np: support memory -> no on d\np: alloc a 64 on d\np: get a -> h\np: put h";
    let found = expect(scenario, &["unsupported-device"]);
    assert!(found[0].message.contains(" shares memory on device 0 (Big GPU) in "), "{}", found[0].message);
}
