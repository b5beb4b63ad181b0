//! Commands that begin inside shared memory, and end outside of it.

use urscope_rules::Severity;

use crate::scenarios::{expect, play};

const FOUND: &[&str] = &["out-of-bounds"];

/// What `command` does to memory of 1,000 bytes that is shared.
fn scenario_with(command: &str) -> String {
    let end = "c: host-waits\nc: close m\np: host-waits\np: put h\np: free a";
    format!("p: alloc a 1000\np: get a -> h\nc: open h -> m\n{command}\n{end}")
}

#[test]
fn both_sizes_are_named() {
    let found = expect(&scenario_with("c: copy m + 900 sized 101"), FOUND);
    assert_eq!(found[0].severity, Severity::Error);
    let parts = ["writes 101 bytes of mapping 0x", " from byte 900 on in call ", ", which has 1,000 bytes"];
    assert!(parts.iter().all(|part| found[0].message.contains(part)), "{}", found[0].message);
    assert_eq!(found[0].other.unwrap().function.unwrap().name(), "urIPCOpenMemHandleExp");
    let own = expect(&scenario_with("p: copy a sized 1001"), FOUND);
    assert_eq!(own[0].other.unwrap().function.unwrap().name(), "urUSMDeviceAlloc");
}

#[test]
fn what_ends_inside_is_right() {
    for command in
        ["c: copy m sized 1000", "c: copy m + 999 sized 1", "c: copy m + 1000 sized 8", "p: copy a sized 1000"]
    {
        expect(&scenario_with(command), &[]);
    }
    // Memory that is not shared is none of urscope's business.
    expect(
        "p: alloc a 1000\np: alloc b 8\np: get b -> h\nc: open h -> n\np: copy a sized 1001\nc: close n\np: put h",
        &[],
    );
}

/// At the level of Level Zero, a handle names the whole allocation of the driver, and the memory may lie anywhere in
/// it.
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

#[test]
fn a_get_of_the_address_behind_an_allocation_names_it() {
    let found = expect("p: alloc a 1000\np: get a + 1000 -> h fails", FOUND);
    assert_eq!(found[0].severity, Severity::Error);
    assert!(found[0].message.contains(" of 1,000 bytes ends, allocated in call 1 (urUSMDeviceAlloc"), "{found:#?}");
    expect("p: alloc a 1000\np: get a + 1001 -> h fails", &["refused-call"]);
    // The child may have the memory behind it from its parent.
    expect("p: fork c\nc: alloc a 1000\nc: get a + 1000 -> h fails", &["refused-call"]);
}

/// A handle of Level Zero names the allocation. That of Unified Runtime contains the offset.
#[test]
fn an_offset_that_a_handle_does_not_contain_is_lost() {
    let share = |level: &str, read: &str| {
        let steps = format!("p: alloc a 3000{level}\np: get a + 1000 -> h{level}\nc: open h -> m{level}\n{read}");
        play(&format!("{steps}\nc: host-waits\nc: close m{level}\np: put h{level}\np: free a{level}"))
    };
    let lost = |read: &str| {
        let found = share(" ze", read).into_iter().find(|finding| finding.rule.code == "lost-offset").unwrap();
        (found.severity, found.message, found.other.is_some())
    };
    let (severity, message, other) = lost("");
    assert_eq!((severity, other), (Severity::Warning, false));
    assert!(message.contains(", 1,000 bytes into ") && message.ends_with("whoever opens it is at the beginning"));
    let (severity, message, other) = lost("c: copy m sized 1000 ze");
    assert_eq!((severity, other), (Severity::Warning, true));
    assert!(message.contains("c (pid ") && message.contains("accesses the beginning of what it opened"), "{message}");
    assert_eq!(lost("c: copy m + 1000 sized 1000 ze").0, Severity::Note);
    assert!(share("", "c: copy m sized 1000").is_empty());
}

/// What is opened in a context is for queues of that context.
#[test]
fn a_queue_of_another_context_is_named() {
    let contexts = "c: context x\nc: context y";
    let with = |contexts: &str, opens: &str, copies: &str, codes: &[&str]| {
        let begin = format!("p: alloc a 64\np: get a -> h\n{contexts}\nc: open h -> m in x\n{opens}");
        let end = "c: host-waits\nc: close m in x\np: put h\np: free a";
        expect(&format!("{begin}\nc: copy m sized 64 {copies}\n{end}"), codes)
    };
    with(contexts, "", "in x", &[]);
    let found = with(contexts, "", "in y", &["wrong-context"]);
    assert_eq!(found[0].severity, Severity::Error);
    assert!(found[0].message.contains(", in a queue of context 0x"), "{}", found[0].message);
    assert_eq!(with("", "", "in y", &["wrong-context"])[0].severity, Severity::Note, "of unknown origin");
    with(contexts, "c: open h -> m in y", "in y\nc: host-waits\nc: close m in y", &[]);
    let by_level_zero = "p: alloc a 64 ze\np: get a -> h ze\nc: open h -> m in x ze\nc: copy m sized 64 in y ze";
    let found = play(&format!("{contexts}\n{by_level_zero}\nc: host-waits\nc: close m in x ze\np: free a ze"));
    let found: Vec<_> = found.iter().filter(|it| it.rule.code == "wrong-context").map(|it| it.severity).collect();
    assert_eq!(found, [Severity::Note], "as libraries do");
    // A handle of one interface says nothing of a context of another one.
    with(contexts, "", "in y ze", &[]);
}

#[test]
fn a_close_by_another_interface_may_be_in_the_context_of_the_open() {
    let with = |open: &str, close: &str, codes: &[&str]| {
        let opened = format!("p: alloc a 64\np: get a -> h\nc: context x\nc: open h -> m in x{open}");
        expect(&format!("{opened}\nc: close m in y{close}\np: put h\np: free a"), codes)
    };
    with("", "", &["wrong-context"]);
    with("", " ze", &[]);
    with(" ze", "", &[]);
}

#[test]
fn physical_memory_ends_where_nothing_is_mapped_behind_it() {
    let of = |command: &str| {
        format!(
            "p: physical a ipc\np: get-physical a -> h\np: map a -> v\n{command}\np: host-waits\np: unmap v\np: put-physical h
            p: release-physical a"
        )
    };
    expect(&of("p: copy v sized 65536"), &[]);
    expect(&of("p: copy v + 65535 sized 2"), FOUND);
    let found = play(&of("p: copy v + 65535 sized 2"));
    let parts = ["writes 2 bytes of physical memory 0x", " from byte 65535 on in call ", ", which has 64 KiB"];
    assert!(parts.iter().all(|part| found[0].message.contains(part)), "{}", found[0].message);
}
