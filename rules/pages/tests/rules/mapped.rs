//! Physical memory that is released while it is mapped: what counts as mapped by then.

use urscope_rule_pages::scenario::{Event, Scenario, judge};
use urscope_rules::{Checker, Finding, Severity};
use urscope_schema::api::Function;

use crate::scenarios;

const MAPPED: &[&str] = &["released-while-mapped"];

/// Plays a scenario, in which there may be no call of a `urIPC*` function, and calls that fail, and expects exactly
/// these findings.
#[track_caller]
fn expect(scenario: &str, codes: &[&str]) -> Vec<Finding> {
    let mut found = scenarios::play(scenario);
    found.retain(|finding| !["no-calls-seen", "refused-call"].contains(&finding.rule.code));
    assert_eq!(found.iter().map(|finding| finding.rule.code).collect::<Vec<_>>(), codes, "{found:#?}");
    found
}

/// Physical memory `m` of 65536 bytes, mapped at `v`, and then.
#[track_caller]
fn of_own(rest: &str, codes: &[&str]) {
    expect(&format!("p: physical m ipc\np: map m -> v\n{rest}"), codes);
}

#[test]
fn memory_that_cannot_be_shared_is_left_out() {
    expect("p: physical m\np: map m -> v\np: release-physical m\np: unmap v", &[]);
}

#[test]
fn the_finding_names_both_calls_and_the_addresses() {
    let found = expect("p: physical m ipc\np: map m -> v\np: release-physical m\np: unmap v", MAPPED);
    let message = &found[0].message;
    for part in [
        "p (pid 100) releases physical",
        "of 64 KiB (65,536 bytes) in call 3 (urPhysicalMemRelease",
        "call 2 (urVirtualMemMap",
    ] {
        assert!(message.contains(part), "{message}");
    }
    assert!(message.contains("while 64 KiB (65,536 bytes) are mapped at 0x"), "{message}");
    assert!(!message.contains("more"), "{message}");
    assert_eq!((found[0].at.call.map(u64::from), found[0].other.unwrap().call.map(u64::from)), (Some(3), Some(2)));
    assert_eq!((found[0].severity, found[0].size), (Severity::Note, Some(65536)));

    let opened =
        "p: physical m ipc\np: get-physical m -> h\nc: open-physical h -> n\np: put-physical h\nc: map n -> v\n";
    let found = expect(&format!("{opened}c: close-physical n\nc: unmap v"), MAPPED);
    assert!(found[0].message.contains("c (pid 200) closes physical"), "{}", found[0].message);
    expect(&format!("{opened}c: release-physical n\nc: unmap v"), MAPPED);
    expect(&format!("{opened}c: unmap v\nc: close-physical n"), &[]);
    // It is mapped in one process and released in the other.
    expect(&format!("{opened}p: release-physical m\nc: unmap v\nc: close-physical n"), &[]);
}

#[test]
fn only_the_last_reference_counts_and_only_if_its_release_succeeds() {
    of_own("p: retain-physical m\np: release-physical m\np: unmap v\np: release-physical m", &[]);
    of_own("p: retain-physical m\np: release-physical m\np: release-physical m\np: unmap v", MAPPED);
    of_own("p: release-physical m fails\np: unmap v\np: release-physical m", &[]);
    of_own("p: release-physical m fails\np: release-physical m", MAPPED);
    of_own("p: release-physical m begins\np/2: retain-physical m\np: returns\np: unmap v", &[]);
    of_own("p: release-physical m begins\np: killed", &[]);
}

#[test]
fn each_range_is_mapped_until_it_is_unmapped_itself() {
    of_own("p: map m -> w\np: unmap v\np: release-physical m", MAPPED);
    of_own("p: map m -> w\np: unmap v\np: unmap w\np: release-physical m", &[]);
    of_own("p: unmap v\np: map m -> v\np: release-physical m", MAPPED);
    of_own("p: unmap v\np: map m -> v\np: unmap v\np: release-physical m", &[]);
    of_own("p: map m -> w fails\np: unmap v\np: release-physical m", &[]);
    of_own("p: unmap v fails\np: release-physical m", MAPPED);
    of_own("p: unmap v fails\np: unmap v\np: release-physical m", &[]);
    let found = expect("p: physical m ipc\np: map m -> w\np: map m -> v\np: map m -> u\np: release-physical m", MAPPED);
    assert!(found[0].message.contains("call 2 (urVirtualMemMap") && found[0].message.ends_with("and at 2 ranges more"));
}

#[test]
fn a_part_that_is_unmapped_leaves_the_others() {
    let half = "sized 32768";
    of_own(&format!("p: unmap v {half}\np: release-physical m"), MAPPED);
    of_own(&format!("p: unmap v + 32768 {half}\np: release-physical m"), MAPPED);
    of_own(&format!("p: unmap v {half}\np: unmap v + 32768 {half}\np: release-physical m"), &[]);
    of_own("p: unmap v + 4096 sized 4096\np: release-physical m", MAPPED);
    let found = expect("p: physical m ipc\np: map m -> v\np: unmap v + 4096 sized 4096\np: release-physical m", MAPPED);
    assert!(
        found[0].message.contains("while 4 KiB (4,096 bytes)") && found[0].message.ends_with("and at 1 range more")
    );
    of_own("p: unmap v + 4096 sized 4096 fails\np: unmap v\np: release-physical m", &[]);
    of_own("p: unmap v sized 0\np: release-physical m", MAPPED);
    of_own("p: unmap v + 65536 sized 4096 fails\np: release-physical m", MAPPED);
}

#[test]
fn one_unmap_may_cover_ranges_of_several_objects() {
    let side_by_side = "p: physical m ipc\np: physical n ipc\np: map m -> v\np: map n -> v + 65536\n";
    let both = "p: release-physical m\np: release-physical n";
    expect(&format!("{side_by_side}p: unmap v sized 131072\n{both}"), &[]);
    expect(&format!("{side_by_side}p: unmap v + 32768 sized 98304\n{both}"), MAPPED);
    expect(&format!("{side_by_side}p: unmap v + 32768 sized 65536\n{both}"), &["released-while-mapped"; 2]);
    expect(&format!("{side_by_side}p: unmap v + 65536\n{both}"), MAPPED);
    expect(&format!("{side_by_side}{both}\np: unmap v sized 131072"), &["released-while-mapped"; 2]);
}

#[test]
fn what_is_being_unmapped_when_the_release_begins_counts_as_unmapped() {
    of_own("p: unmap v begins\np/2: release-physical m\np: returns", &[]);
    of_own("p: unmap v begins\np/2: release-physical m\np: fails", &[]);
    of_own("p: unmap v begins\np/2: release-physical m begins\np: returns\np/2: returns", &[]);
    of_own("p: unmap v sized 4096 begins\np/2: release-physical m\np: returns", MAPPED);
    of_own("p: release-physical m begins\np/2: unmap v\np: returns", MAPPED);
    // A map that has not returned may fail.
    expect("p: physical m ipc\np: map m -> v begins\np/2: release-physical m\np: returns", &[]);
    expect(
        "p: physical m ipc\np: map m -> v begins\np/2: release-physical m fails\np: returns\np: release-physical m",
        MAPPED,
    );
}

#[test]
fn a_new_object_at_an_old_address_is_not_mapped() {
    of_own("p: release-physical m\np: physical m ipc\np: release-physical m\np: unmap v", MAPPED);
    of_own(
        "p: release-physical m\np: physical m ipc\np: map m -> w\np: release-physical m",
        &["released-while-mapped"; 2],
    );
    of_own("p: unmap v begins\np/2: release-physical m\np/2: physical m\np: fails\np: release-physical m", &[]);
    // Neither end of the first object was seen.
    of_own("p: physical m ipc\np: release-physical m", &[]);
    // Addresses that can be mapped again were unmapped where we do not see.
    of_own("p: physical n ipc\np: map n -> v\np: release-physical m\np: unmap v\np: release-physical n", &[]);
    of_own(
        "p: physical n ipc\np: map n -> v sized 4096\np: release-physical m\np: unmap v\np: release-physical n",
        MAPPED,
    );
}

#[test]
fn unknown_memory_and_other_processes_are_left_alone() {
    expect("p: map x -> v\np: release-physical x", &[]);
    expect("p: map x -> v\np: physical x\np: release-physical x", &[]);
    expect("p: unmap v\np: physical m ipc\np: release-physical m", &[]);
    of_own("p: fork c\nc: release-physical m\nc: unmap v\np: unmap v\np: release-physical m", &[]);
    of_own("p: fork c\nc: unmap v\np: release-physical m", MAPPED);
    for end in ["exit", "exec", "killed", "running"] {
        of_own(&format!("p: {end}"), &[]);
    }
}

/// Records may be lost. What an unmap was about is not known without its enter.
#[test]
fn an_unmap_whose_enter_is_missing_may_have_unmapped_anything() {
    let scenario: Scenario = "p: physical m ipc\np: map m -> v\np: unmap v\np: release-physical m".parse().unwrap();
    let is_seen =
        |event: &Event| !matches!(event, Event::Enter(_, enter) if enter.function == Function::urVirtualMemUnmap);
    let found = judge(scenario.events().unwrap().into_iter().filter(is_seen), Checker::new());
    assert_eq!(found.iter().map(|finding| finding.rule.code).collect::<Vec<_>>(), ["no-calls-seen"], "{found:?}");
}
