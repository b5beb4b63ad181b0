//! Memory that ends while commands access it: what is proved, what is a note, and what is no finding.

use urscope_rule_pages::scenario::{Event, Scenario, judge};
use urscope_rules::{Checker, Finding, Severity};
use urscope_schema::api::Function;
use urscope_schema::call::{Enter, Exit};

use crate::scenarios;

/// Plays a consumer that has memory of 4096 bytes open at `m`, and expects exactly these findings of it.
#[track_caller]
fn consumer(steps: &str, codes: &[&str]) -> Vec<Finding> {
    let begin = "p: alloc a 4096\np: get a -> h\nc: open h -> m\n";
    let found = scenarios::play(&format!("{begin}{steps}\np: put h\np: free a"));
    assert_eq!(found.iter().map(|finding| finding.rule.code).collect::<Vec<_>>(), codes, "{found:#?}");
    found
}

const CLOSED: &[&str] = &["closed-while-in-use"];

#[test]
fn what_the_device_says_is_an_error_that_names_both_calls() {
    let found = consumer("c: copy m sized 64\nc: close m unfinished", CLOSED);
    assert_eq!(
        (found[0].severity, found[0].at.call.map(u64::from), found[0].other.unwrap().call.map(u64::from)),
        (Severity::Error, Some(3), Some(2))
    );
    for part in ["closes mapping", "of 4 KiB", "has not completed: call 2 (urEnqueueUSMMemcpy"] {
        assert!(found[0].message.contains(part), "{}", found[0].message);
    }
}

/// A command of another queue was waited for, and so counts for this one; the device knows better.
#[test]
fn a_wait_for_something_else_does_not_excuse_what_the_device_says() {
    let found = consumer("c: copy m sized 64\nc: host-waits\nc: close m unfinished", CLOSED);
    assert_eq!(found[0].other.unwrap().call.map(u64::from), Some(2), "the latest command that is known");
}

/// A kernel, or a command of the runtime that is not hooked.
#[test]
fn a_command_that_is_not_known_is_found_by_the_device() {
    let found = consumer("c: close m unfinished", CLOSED);
    assert_eq!((found[0].severity, found[0].other), (Severity::Error, None));
    assert!(found[0].message.contains("from byte 0 on"), "{}", found[0].message);
}

#[test]
fn what_nobody_waited_for_is_a_note_where_the_device_says_nothing() {
    let found = consumer("c: copy m sized 64\nc: copy m sized 64\nc: close m", CLOSED);
    assert_eq!(
        (found[0].severity, found[0].other.unwrap().call.map(u64::from)),
        (Severity::Note, Some(2)),
        "the first of them"
    );
    assert!(found[0].message.contains("not proved to have completed"), "{}", found[0].message);
    consumer("c: copy m sized 64\nc: host-waits\nc: close m", &[]);
    consumer("c: host-waits\nc: copy m sized 64 fails\nc: close m", &[]);
    consumer("c: limit\nc: copy m sized 64\nc: close m", &[]);
}

#[test]
fn only_the_last_close_unmaps() {
    consumer("c: open h -> m\nc: copy m sized 64\nc: close m unfinished\nc: host-waits\nc: close m", &[]);
}

#[test]
fn only_a_wait_that_was_for_the_command_counts() {
    let copies = "c: copy m sized 64 queue q\nc: copy m + 128 sized 64 queue r\nc: host-waits of r";
    for (wait, expected) in [
        ("c: host-waits of q", &[][..]),
        ("c: may-know of q", &[]),
        ("c: host-waits", &[]),
        ("c: host-waits of r", CLOSED),
        ("c: signals for e of q\nc: host-waits for e", &[]),
        ("c: signals for e of r\nc: host-waits for e", CLOSED),
        ("c: signals for e of q\nc: awaits for e of r\nc: host-waits of r", &[]),
        // It may have waited for a flag, in which way the other queue was waited for.
        ("c: not-followed of r\nc: host-waits of r", &[]),
        ("c: not-followed\nc: host-waits of r", &[]),
        // What was enqueued there is not known.
        ("c: host-waits of s", &[]),
        ("c: host-waits for f", &[]),
    ] {
        consumer(&format!("{copies}\n{wait}\nc: close m"), expected);
    }
    let event = "begins\nc: signals for e of q\nc: returns\nc: host-waits for e\nc: close m";
    consumer(&format!("c: out-of-order of q\nc: copy m sized 64 queue q {event}"), &[]);
    consumer(&format!("c: out-of-order of q\nc: copy m sized 64 queue q\nc: copy x sized 64 queue q {event}"), CLOSED);
    let list = "c: list of l\nc: copy m sized 64 queue l\nc: executes for l of q\nc: copy m + 128 sized 64 queue r";
    consumer(&format!("{list}\nc: close m"), CLOSED);
    consumer(&format!("{list}\nc: host-waits of r\nc: close m"), &[]);
}

/// The device is asked before a close takes its turn, so what it says may be about an open that has ended since.
#[test]
fn a_command_of_another_thread_counts_if_it_began_after_the_last_other_close() {
    consumer("c/2: open h -> m\nc/2: copy m sized 64\nc/2: host-waits\nc/2: close m\nc: close m unfinished", &[]);
    consumer("c/2: open h -> m\nc/2: close m\nc/2: copy m sized 64\nc: close m unfinished", CLOSED);
    consumer("c/2: open h -> m\nc: copy m sized 64\nc/2: close m\nc: close m unfinished", CLOSED);
}

#[test]
fn a_command_on_other_memory_is_none_on_this() {
    consumer("c: alloc b 4096\nc: copy b sized 64\nc: close m\nc: free b", &[]);
    // Behind the mapping, in a block that the driver shares among several.
    consumer("c: copy m + 4096 sized 64\nc: close m", &[]);
    consumer("c: copy m + 4095 sized 1\nc: close m", CLOSED);
}

#[test]
fn memory_that_was_never_exported_is_left_out() {
    let found = scenarios::play(
        "p: alloc a 64\np: alloc b 64\np: get b -> h\nc: open h -> m\nc: close m\np: copy a sized 64\np: free a unfinished\np: put h\np: free b",
    );
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn level_zero_has_the_same_rules() {
    let found = scenarios::play(
        "p: alloc a 4096 ze\np: get a -> h ze\nc: open h -> m ze\nc: close m ze\np: put h ze\np: copy a sized 64 ze\np: free a unfinished ze",
    );
    assert_eq!(found.iter().map(|finding| finding.rule.code).collect::<Vec<_>>(), ["freed-while-in-use"], "{found:#?}");
    assert_eq!(found[0].severity, Severity::Error);
}

/// The number of the first command that was not waited for is that of a call of another thread, which has numbers of
/// its own.
#[test]
fn the_order_of_commands_is_that_of_time() {
    let story = "p: alloc a 64\np: get a -> h\np: copy a sized 64\np: host-waits\np/2: alloc b 64\np/2: copy b sized 64\np: put h\np: free a";
    let scenario: Scenario = story.parse().unwrap();
    let mut events = scenario.events().unwrap();
    // Thread 2 has the lower numbers.
    for event in &mut events {
        match event {
            Event::Enter(_, Enter { call, values, .. }) => {
                (*call, values.value) = (renumbered(*call), values.value.map(renumbered));
            }
            Event::Exit(_, Exit { call, .. }) => *call = renumbered(*call),
            _ => {}
        }
    }
    let found = judge(events, Checker::new());
    assert!(found.iter().all(|finding| finding.rule.code != "freed-while-in-use"), "{found:#?}");
}

/// Which bytes it accesses is not known.
#[test]
fn a_kernel_uses_the_memory_that_it_has_a_pointer_to() {
    for (steps, expected) in [
        ("c: copy m + 4095 sized 64\nc: close m", Some((Severity::Note, Some(3)))),
        ("c: copy m + 4096 sized 64\nc: close m", None),
        ("c: copy m sized 64\nc: close m unfinished", Some((Severity::Error, Some(3)))),
        ("c: copy m sized 64\nc: host-waits\nc: close m", None),
    ] {
        let story =
            format!("p: alloc a 4096\np: get a -> h\nc: open h -> m\nc: alloc b 64\n{steps}\np: put h\np: free a");
        let scenario: Scenario = story.parse().unwrap();
        let mut events = scenario.events().unwrap();
        for event in &mut events {
            match event {
                Event::Enter(_, Enter { function, values, .. }) if function.is_command() => {
                    (*function, values.size, values.value) = (Function::urEnqueueKernelLaunchWithArgsExp, None, None);
                }
                Event::Exit(_, Exit { function, .. }) if function.is_command() => {
                    *function = Function::urEnqueueKernelLaunchWithArgsExp;
                }
                _ => {}
            }
        }
        let found = judge(events, Checker::new());
        let in_use = found.iter().find(|finding| finding.rule.code == "closed-while-in-use");
        let seen = in_use.map(|finding| (finding.severity, finding.other.unwrap().call.map(u64::from)));
        assert_eq!(seen, expected, "{steps}: {found:#?}");
    }
}

/// Calls 4 and 5 are those of thread 2.
const fn renumbered(call: u64) -> u64 {
    if call == 4 || call == 5 { call - 3 } else { call + 10 }
}

/// Physical memory is accessed where it is mapped. Its unmap is the end of that, not its close.
#[test]
fn physical_memory_that_is_unmapped_in_use_is_found() {
    let with = |steps: &str, codes: &[&str]| {
        let begin =
            "p: physical a ipc\np: map a -> u\np: get-physical a -> h\nc: open-physical h -> m\nc: map m -> v\n";
        let end = "c: close-physical m\np: put-physical h\np: unmap u\np: release-physical a";
        let found = scenarios::play(&format!("{begin}{steps}\n{end}"));
        assert_eq!(found.iter().map(|finding| finding.rule.code).collect::<Vec<_>>(), codes, "{found:#?}");
        found
    };
    let found = with("c: copy v sized 64\nc: unmap v unfinished", CLOSED);
    assert_eq!((found[0].severity, found[0].other.unwrap().call.map(u64::from)), (Severity::Error, Some(3)));
    assert!(found[0].message.contains("unmaps physical memory"), "{}", found[0].message);
    assert_eq!(with("c: copy v sized 64\nc: unmap v", CLOSED)[0].severity, Severity::Note);
    with("c: copy v sized 64\nc: host-waits\nc: unmap v", &[]);
    with("p: copy u sized 64\np: unmap u unfinished\np: map a -> u\nc: unmap v", CLOSED);
    // Nobody else has it.
    let alone = "p: physical a ipc\np: map a -> u\np: copy u sized 64\np: unmap u unfinished\np: release-physical a";
    scenarios::expect(alone, &["no-calls-seen"]);
}
