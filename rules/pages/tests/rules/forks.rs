//! What a forked child has from its parent: what was over before the fork is over in the child, what came later is not.

use urscope_rule_pages::scenario::{Event, Scenario, judge};
use urscope_rules::{Checker, Finding};
use urscope_schema::api::Function;

use crate::scenarios::expect;

const PUT_BEFORE: &str = "p: alloc a 64\np: get a -> h\np: put h\np: fork c\nc: put h";

/// What is found after the events were changed.
fn found_after(scenario: &str, change: impl FnOnce(&mut Vec<Event>)) -> Vec<Finding> {
    let mut events = scenario.parse::<Scenario>().unwrap().events().unwrap();
    change(&mut events);
    let found = judge(events, Checker::new());
    found.into_iter().filter(|finding| finding.rule.code != "get-without-open").collect()
}

/// The child's trace begins with its first call, which comes after all of its parent's.
fn begin_late(events: &mut Vec<Event>) {
    let begin = events.iter().rposition(|event| matches!(event, Event::Begin(..))).unwrap();
    let who = urscope_rules::ProcessId(1);
    let first = events.iter().position(|event| matches!(event, Event::Enter(of, _) if *of == who)).unwrap();
    let begin = events.remove(begin);
    events.insert(first - 1, begin);
}

#[test]
fn a_put_before_the_fork_is_a_put_of_the_childs_copy() {
    let found = expect(PUT_BEFORE, &["double-put"]);
    assert!(found[0].message.contains(" was put in call 3 (urIPCPutMemHandleExp, thread 100) of p (pid 100)"));
    assert_eq!(found[0].other.unwrap().process, urscope_rules::ProcessId(0));
    // A grandchild has it from there.
    expect(&PUT_BEFORE.replace("c: put h", "c: fork d\nd: put h"), &["double-put"]);
    // The same of a mapping, and of physical memory.
    expect(
        "q: alloc a 8\nq: get a -> h\np: open h -> m\np: close m\np: fork c\nc: close m\nq: put h",
        &["double-close"],
    );
    let physical = "p: physical m ipc\np: get-physical m -> h\np: put-physical h\np: release-physical m\n";
    expect(&format!("{physical}p: fork c\nc: release-physical m"), &["double-release"]);
}

#[test]
fn a_trace_without_the_time_of_the_fork_is_judged_as_before() {
    let unknown = |events: &mut Vec<Event>| {
        for event in events {
            if let Event::Begin(process, _) = event {
                process.started = None;
            }
        }
    };
    assert!(found_after(PUT_BEFORE, unknown).is_empty());
    assert_eq!(found_after(PUT_BEFORE, |_| {}).len(), 1);
}

#[test]
fn a_put_after_the_fork_is_no_put_of_the_childs_copy() {
    let after = "p: alloc a 64\np: get a -> h\np: fork c\np: put h\nc: put h";
    expect(after, &[]);
    assert!(found_after(after, begin_late).is_empty());
    assert_eq!(found_after(PUT_BEFORE, begin_late).len(), 1);
    // At the fork it had begun and not returned.
    let meanwhile = "p: alloc a 64\np: get a -> h\np: put h begins\np/2: fork c\np: returns\nc: put h";
    expect(meanwhile, &[]);
    assert!(found_after(meanwhile, begin_late).is_empty());
}

#[test]
fn what_the_child_gets_at_the_same_address_is_its_own() {
    expect("p: alloc a 64\np: get a -> h\np: put h\np: fork c\nc: get a -> h\nc: put h", &[]);
}

const CHILD_GETS: &str = "p: alloc a 64\np: fork c\nc: get a + 8 -> h\nq: open h -> m\n";

#[test]
fn a_free_by_the_parent_of_what_its_child_exported_is_found() {
    let found = expect(&format!("{CHILD_GETS}p: free a\nq: close m\nc: put h"), &["freed-while-open"]);
    assert_eq!(found[0].other.unwrap().process, urscope_rules::ProcessId(2));
    // Of a grandchild, too.
    let grandchild = CHILD_GETS.replace("c: get", "c: fork d\nd: get");
    expect(&format!("{grandchild}p: free a\nq: close m\nd: put h"), &["freed-while-open"]);
    // It is the child's handle data: the parent need not wait for its put.
    expect(&format!("{CHILD_GETS}q: close m\np: free a\nc: put h"), &[]);
    // The child's copy may live on, so its bytes have not expired.
    expect(&format!("{CHILD_GETS}q: close m\np: free a\nq: open h -> n\nq: close n\nc: put h"), &[]);
}

#[test]
fn memory_that_is_not_the_parents_of_before_the_fork_is_left_alone() {
    let own = |get: &str| format!("{get}q: open h -> m\np: free a\nq: close m\nc: put h");
    // Both have allocated the same address for themselves after the fork.
    expect(&own("p: fork c\np: alloc a 64\nc: alloc a 64\nc: get a -> h\n"), &[]);
    expect(&own("p: fork c\np: alloc a 64\nc: get a -> h\n"), &[]);
    expect(&own("p: alloc a 64\np: fork c\nc: alloc a 64\nc: get a -> h\n"), &[]);
    expect(&own("p: alloc a 64\np: free a\np: fork c\np: alloc a 64\nc: get a -> h\n"), &[]);
    // Without the time of the fork nothing is known.
    let scenario = own("p: alloc a 64\np: fork c\nc: get a -> h\n");
    let found = found_after(&scenario, |events| {
        for event in events {
            if let Event::Begin(process, _) = event {
                process.started = None;
            }
        }
    });
    assert!(found.is_empty(), "{found:?}");
}

/// Whoever has the bytes since before the open has them unchanged.
#[test]
fn a_child_that_started_before_the_open_returned_may_have_unchanged_bytes() {
    let shared = |then: &str| format!("p: alloc a 64\np: get a -> h\n{then}\np: put h");
    let open = "q: open h -> m overwrites 44";
    let opened = |then: &str| shared(&format!("{then}\nc: open h -> n\nc: close n\nq: close m"));
    expect(&opened(&format!("{open}\nq: fork c")), &["overwritten-handle"]);
    expect(&opened(&format!("q: fork c\n{open}")), &[]);
    // The parent opens a copy each time, or does not work either.
    expect(&opened(&format!("{open}\nq: close m\n{open}\nq: fork c")), &[]);
    expect(&opened(&format!("{open}\nq: close m\n{open} begins\nq: fork c\nq: returns")), &[]);
    // A handler of a signal forked in the middle of the call.
    expect(&opened(&format!("{open} begins\nq: fork c\nq: returns")), &[]);
    // The parent shows later that it opens a copy.
    expect(&opened(&format!("{open}\nq: fork c\nc: open h -> n\nc: close n\nq: close m\n{open}")), &[]);
    // A handler of a signal forked in a further open of that thread.
    let found = found_after(&opened(&format!("{open}\nq: fork c")), |events| {
        let enters =
            events.iter_mut().filter_map(|event| if let Event::Enter(_, enter) = event { Some(enter) } else { None });
        let mut opens: Vec<_> = enters.filter(|enter| enter.function == Function::urIPCOpenMemHandleExp).collect();
        opens[1].tid = opens[0].tid;
    });
    assert!(found.is_empty(), "{found:?}");
}
