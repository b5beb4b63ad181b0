//! Calls that are refused, and handle data that was changed on its way.

use urscope_rules::{Finding, Severity};

use crate::scenarios::expect;

const REFUSED: &[&str] = &["refused-call"];
const ALTERED: &[&str] = &["altered-handle"];
const GET: &str = "p: alloc a 4096\np: get a -> h\n";
const END: &str = "p: put h\np: free a\n";

fn only(found: &[Finding]) -> (Severity, &str) {
    assert_eq!(found.len(), 1, "{found:#?}");
    (found[0].severity, &found[0].message)
}

#[test]
fn a_refused_call_is_a_note_with_the_likely_reason() {
    let in_c = "p: context c\np: alloc a 4096 in c\np: get a -> h in c\n";
    for (scenario, reason) in [
        (format!("{in_c}p: put h in c\np: release c\np: free a in c fails"), "its context was released in call 5"),
        ("p: context c\np: alloc a 4096 in c\np: release c\np: get a -> h in c fails".into(), "released in call 3"),
        ("p: physical m ipc\np: map m -> v\np: get v -> h fails".into(), "lies in physical memory"),
        ("p: pool q\np: alloc a 4096 from q\np: get a -> h fails".into(), "it comes from USM pool"),
        ("p: get a -> h fails".into(), "no recorded call has allocated it"),
        (format!("{GET}p: put h fails\n{END}"), "puts memory handle"),
        (format!("{GET}c: open h -> m\nc: close m fails\nc: close m\n{END}"), "closes mapping"),
        (format!("{GET}p: put h\np: free a fails\np: free a"), "the reason is not known"),
        ("p: physical m ipc\np: map m -> v fails\np: release-physical m".into(), "maps physical memory"),
        ("p: physical m ipc\np: release-physical m fails\np: release-physical m".into(), "releases physical memory"),
        (format!("{GET}c: open unknown -> m fails 38\n{END}"), "opens memory handle"),
    ] {
        let mut found = urscope_rule_pages::scenario::Scenario::play(&scenario.parse().unwrap()).unwrap();
        found.retain(|finding| finding.rule.code == "refused-call");
        assert!(!found.is_empty(), "{scenario}");
        let (severity, message) = only(&found);
        assert!(severity == Severity::Note && message.contains(reason), "{message}");
        assert!(message.contains("which returned UR_RESULT_ERROR_"), "{message}");
    }
}

#[test]
fn a_call_that_another_rule_explains_is_left_out() {
    expect(&format!("{GET}p: close a fails\n{END}"), &["close-of-unknown"]);
    expect(&format!("{GET}{END}p: put h fails"), &["double-put"]);
    expect("p: alloc a 4096\np: free a\np: get a -> h fails", &["get-of-freed"]);
    // A finding about one call does not explain another.
    let found = expect(&format!("{GET}p: close a fails\np: put h fails\n{END}"), &["close-of-unknown", "refused-call"]);
    assert!(found[1].message.contains(" puts "), "{}", found[1].message);
}

#[test]
fn each_place_in_the_program_is_reported_once() {
    let found = expect(&format!("{GET}5 times\np: put h fails\nend\n{END}"), REFUSED);
    assert_eq!(found[0].count, 5);
}

#[test]
fn going_on_without_the_result_is_a_warning() {
    let get = "p: get a -> h fails\n";
    let found = expect(&format!("{get}p: put null fails"), &["invalid-argument", "refused-call"]);
    assert_eq!(found[1].severity, Severity::Warning);
    assert!(found[1].message.contains("; the process then passes null in call 2"), "{}", found[1].message);
    // Of something else.
    let found = expect(&format!("{get}p: put-physical null fails"), &["invalid-argument", "refused-call"]);
    assert_eq!(found[1].severity, Severity::Note);
}

#[test]
fn a_changed_byte_is_an_error_with_the_get_whether_the_open_succeeds_or_not() {
    for byte in [0, 8, 33, 119] {
        let found = expect(&format!("{GET}c: open h flipped {byte} -> m\nc: close m\n{END}"), ALTERED);
        let (severity, message) = only(&found);
        assert!(severity == Severity::Error && message.contains(&format!("differ in byte {byte} ")), "{message}");
        assert_eq!(found[0].other.unwrap().call.unwrap().get(), 2);
        expect(&format!("{GET}c: open h flipped {byte} -> m fails\n{END}"), ALTERED);
        expect(&format!("{GET}c: open h flipped {byte}\n{END}"), &["success-without-result", "altered-handle"]);
    }
    let physical = "p: physical m ipc\np: get-physical m -> h\nc: open-physical h flipped 3 -> n fails\n";
    expect(&format!("{physical}p: put-physical h\np: release-physical m"), ALTERED);
}

#[test]
fn the_latest_get_of_like_bytes_is_named() {
    let two =
        format!("{GET}p: alloc b 4096\np: get b -> i\nc: open i flipped 8 -> m\nc: close m\np: put i\np: free b\n");
    assert_eq!(expect(&format!("{two}{END}"), ALTERED)[0].other.unwrap().call.unwrap().get(), 4);
}

#[test]
fn what_may_be_the_bytes_of_a_get_that_was_not_seen_is_no_error() {
    let open = "c: open h flipped 8 -> m\nc: close m\n";
    expect(&format!("{GET}p: put h\n{open}p: incomplete"), &["calls-lost"]);
    // A size that no get returned, and other kinds.
    expect(&format!("{GET}c: open h flipped 8 sized 119 -> m\nc: close m\n{END}"), &["untraced-peer"]);
    expect(&format!("{GET}c@2: open h flipped 8 -> m\nc@2: close m\n{END}"), &["untraced-peer"]);
}
