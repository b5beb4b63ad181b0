//! Commands that begin inside shared memory, and end outside of it.

use urscope_rules::Severity;

use crate::scenarios::{expect, play};

const FOUND: &[&str] = &["out-of-bounds"];

/// What `command` does to memory of 1,000 bytes that is shared.
fn of(command: &str) -> String {
    let end = "c: host-waits\nc: close m\np: host-waits\np: put h\np: free a";
    format!("p: alloc a 1000\np: get a -> h\nc: open h -> m\n{command}\n{end}")
}

#[test]
fn both_sizes_are_named() {
    let found = expect(&of("c: copy m + 900 sized 101"), FOUND);
    assert_eq!(found[0].severity, Severity::Error);
    let parts = ["writes 101 bytes of mapping 0x", " from byte 900 on in call ", ", which has 1000 bytes"];
    assert!(parts.iter().all(|part| found[0].message.contains(part)), "{}", found[0].message);
    assert_eq!(found[0].other.unwrap().function.unwrap().name(), "urIPCOpenMemHandleExp");
    let own = expect(&of("p: copy a sized 1001"), FOUND);
    assert_eq!(own[0].other.unwrap().function.unwrap().name(), "urUSMDeviceAlloc");
}

#[test]
fn what_ends_inside_is_right() {
    for command in
        ["c: copy m sized 1000", "c: copy m + 999 sized 1", "c: copy m + 1000 sized 8", "p: copy a sized 1000"]
    {
        expect(&of(command), &[]);
    }
    // Memory that is not shared is none of urscope's business.
    expect(
        "p: alloc a 1000\np: alloc b 8\np: get b -> h\nc: open h -> n\np: copy a sized 1001\nc: close n\np: put h",
        &[],
    );
}

/// At the level of Level Zero, a handle names the whole allocation of the driver, and the memory may lie anywhere in it.
#[test]
fn a_size_that_is_not_certain_is_not_used() {
    let share = |exporter: &str| {
        let steps =
            format!("p: alloc a 1000{exporter}\np: get a -> h ze\nc: open h -> m ze\nc: copy m + 900 sized 200 ze");
        let found = play(&format!("{steps}\nc: host-waits\nc: close m ze\np: free a{exporter}"));
        found.into_iter().filter(|finding| finding.rule.code == "out-of-bounds").count()
    };
    assert_eq!((share(" ze"), share("")), (1, 0));
}
