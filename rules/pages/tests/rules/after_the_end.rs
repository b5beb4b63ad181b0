//! Commands that access memory which has been closed, freed or unmapped.

use urscope_rule_pages::scenario::{Event, Scenario, judge};
use urscope_rules::{Checker, Finding, Severity};
use urscope_schema::api::Function;
use urscope_schema::call::{Enter, Exit};

use crate::scenarios::{expect, play};

#[test]
fn a_command_on_a_closed_mapping_names_its_close() {
    let found = expect(&opened("c: close m\nc: copy m + 900 sized 8\np: put h\np: free a"), &["use-after-close"]);
    assert_eq!(found[0].severity, Severity::Error);
    let parts = ["writes to 0x", "it was in mapping 0x", " of 1,000 bytes, closed in call "];
    assert!(parts.iter().all(|part| found[0].message.contains(part)), "{}", found[0].message);
    assert_eq!(found[0].other.unwrap().function.unwrap().name(), "urIPCCloseMemHandleExp");
}

#[test]
fn a_command_on_freed_memory_names_its_free() {
    let found =
        expect(&opened("c: close m\np: free a\np: copy a + 900 sized 8"), &["freed-while-exported", "use-after-free"]);
    assert!(found[1].message.contains(", freed in call "), "{}", found[1].message);
    // A free that is a command may come later.
    expect(&opened("c: close m\np: free a queued\np: copy a sized 8"), &["freed-while-exported"]);
    // Memory that was never shared is none of urscope's business.
    expect(&opened("p: alloc b 64\np: free b\np: copy b sized 8\nc: close m\np: free a"), &["freed-while-exported"]);
}

#[test]
fn a_command_on_memory_that_its_owner_freed_names_that_free() {
    let found = expect(
        &opened("p: put h\np: free a\nc: copy m + 900 sized 8\nc: host-waits\nc: close m"),
        &["freed-while-open", "use-after-free"],
    );
    assert_eq!(found[1].severity, Severity::Error);
    let parts = [
        "c (pid ",
        " accesses mapping 0x",
        " of 1,000 bytes in call 2 (urEnqueueUSMMemcpy, ",
        ", and freed in call 4 (urUSMFree, ",
    ];
    assert!(parts.iter().all(|part| found[1].message.contains(part)), "{}", found[1].message);
    assert_eq!(found[1].other.unwrap().function.unwrap().name(), "urUSMFree");
    // Other memory has the address.
    let anew = "p: put h\np: free a\np: alloc a 1000\nc: copy m sized 8\nc: host-waits\nc: close m\np: free a";
    expect(&opened(anew), &["freed-while-open", "use-after-free"]);
    // The free is under way, or is a command that may come later.
    expect(
        &opened("p: put h\np: free a begins\nc: copy m sized 8\np: returns\nc: host-waits\nc: close m"),
        &["freed-while-open"],
    );
    expect(&opened("p: put h\np: free a queued\nc: copy m sized 8\nc: host-waits\nc: close m"), &["freed-while-open"]);
    for right in [
        "c: copy m sized 8\nc: host-waits\nc: close m\np: put h\np: free a",
        "c: close m\np: put h\np: free a\np: alloc a 1000\np: get a -> i\nc: open i -> m\nc: copy m sized 8\nc: host-waits\nc: close m\np: put i\np: free a",
    ] {
        expect(&opened(right), &[]);
    }
}

/// `steps` after the open of a mapping `m` of memory `a`.
fn opened(steps: &str) -> String {
    format!("p: alloc a 1000\np: get a -> h\nc: open h -> m\n{steps}")
}

#[test]
fn an_address_that_is_in_use_again_is_right() {
    for steps in [
        "c: close m\nc: open h -> m\nc: copy m sized 8\nc: close m",
        "c: close m\nc: alloc m 2000\nc: copy m sized 8\nc: free m",
        "c: open h -> m\nc: close m\nc: copy m sized 8\nc: close m",
        "c: close m\nc: copy m sized 8 on-host",
        "c: close m fails\nc: copy m sized 8\nc: close m",
        "c: close m\nc: copy m + 1000 sized 8",
    ] {
        let found = play(&opened(&format!("{steps}\np: put h\np: free a")));
        assert!(found.iter().all(|finding| !finding.rule.code.starts_with("use-after")), "{steps}: {found:?}");
    }
}

#[test]
fn a_command_where_physical_memory_was_unmapped_names_the_unmap() {
    let of = |made: &str, rest: &str| {
        let found = play(&format!("p: physical m ipc{made}\np: map m -> v sized 65536\n{rest}\np: release-physical m"));
        found
            .into_iter()
            .filter(|finding| finding.rule.code == "use-after-close")
            .map(|finding| finding.message)
            .collect()
    };
    let found: Vec<String> = of("\np: get-physical m -> h", "p: unmap v\np: copy v + 4096 sized 8");
    assert!(matches!(&found[..], [one] if one.contains(", unmapped in call 4 (urVirtualMemUnmap")), "{found:?}");
    for (made, rest) in [
        ("", "p: unmap v\np: copy v sized 8"),
        ("\np: get-physical m -> h", "p: unmap v fails\np: copy v sized 8\np: unmap v"),
        ("\np: get-physical m -> h", "p: unmap v\np: map m -> v sized 65536\np: copy v sized 8\np: unmap v"),
        ("\np: get-physical m -> h", "p: copy v sized 8\np: unmap v"),
    ] {
        assert_eq!(of(made, rest), Vec::<String>::new(), "{made} {rest}");
    }
}

/// What is found where the first copy is appended to a command list, which is executed where the last one stands.
fn executed(steps: &str) -> Vec<Finding> {
    let scenario: Scenario = opened(steps).parse().unwrap();
    let mut events = scenario.events().unwrap();
    let copies = events.iter().filter_map(|event| match event {
        Event::Enter(_, enter) if enter.function.is_command() => Some(enter.call),
        _ => None,
    });
    let copies: Vec<_> = copies.collect();
    let append = copies[0];
    let execution = *copies.last().unwrap();
    for event in &mut events {
        match event {
            Event::Enter(_, Enter { function, call, values, .. }) if function.is_command() && *call == execution => {
                (*function, values.appended) = (Function::zeCommandQueueExecuteCommandLists, Some(append));
            }
            Event::Exit(_, Exit { function, call, .. }) if function.is_command() && *call == execution => {
                *function = Function::zeCommandQueueExecuteCommandLists;
            }
            _ => {}
        }
    }
    let found = judge(events, Checker::new()).into_iter();
    found.filter(|finding| finding.rule.code.starts_with("use-after")).collect()
}

#[test]
fn a_list_that_is_executed_after_the_end_names_the_append() {
    for (steps, code, ended) in [
        ("c: copy m sized 8\nc: close m\nc: copy m sized 8", "use-after-close", ", closed in call 3 ("),
        (
            "c: open h -> m\nc: copy m sized 8\nc: close m\nc: close m\nc: copy m sized 8",
            "use-after-close",
            ", closed in call ",
        ),
        ("p: copy a sized 8\np: free a\np: copy a sized 8", "use-after-free", ", freed in call "),
    ] {
        let found = executed(steps);
        assert_eq!(found.iter().map(|finding| finding.rule.code).collect::<Vec<_>>(), [code], "{steps}: {found:#?}");
        let parts =
            [" executes a command in call ", " (zeCommandQueueExecuteCommandLists, ", ", appended in call ", ended];
        assert!(parts.iter().all(|part| found[0].message.contains(part)), "{}", found[0].message);
        assert_eq!(found[0].other.unwrap().function, Some(Function::urEnqueueUSMMemcpy));
    }
}

#[test]
fn a_list_on_memory_that_is_there_again_is_right() {
    for steps in [
        "c: copy m sized 8\nc: close m\nc: open h -> m\nc: copy m sized 8\nc: close m",
        "c: copy m sized 8\nc: close m fails\nc: copy m sized 8\nc: close m",
        "c: open h -> m\nc: copy m sized 8\nc: close m\nc: copy m sized 8\nc: close m",
        "c: copy m sized 8\nc: close m\nc: alloc m 2000\nc: copy m sized 8\nc: free m",
    ] {
        assert_eq!(executed(steps).len(), 0, "{steps}");
    }
    // The append is reported, not each execution of it.
    let found = executed("c: close m\nc: copy m sized 8\nc: copy m sized 8");
    let at: Vec<_> = found.iter().map(|finding| finding.at.function).collect();
    assert_eq!(at, [Some(Function::urEnqueueUSMMemcpy)], "{found:#?}");
}
