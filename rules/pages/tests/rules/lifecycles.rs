//! Circumstances of a violation: what excuses it, what splits it into two, and what is no violation at all.

use urscope_rules::Severity;

use crate::scenarios::{expect, play};

#[test]
fn a_refused_put_revives_the_handle() {
    expect("p: get a -> h\np: put h fails\np: put h", &[]);
    expect("p: get a -> h\np: put h fails", &["leaked-handle"]);
}

#[test]
fn an_address_reborn_during_its_put_is_a_new_handle() {
    expect("p: get a -> h\np: put h begins\np/2: get b -> h\np: returns\np: put h", &[]);
    expect("p: get a -> h\np: put h begins\np/2: get b -> h\np: fails\np: put h", &[]);
    expect("p: get a -> h\np: put h begins\np/2: get b -> h\np: returns\np/2: put h\np: put h", &["double-put"]);
}

#[test]
fn a_second_put_during_the_first_is_found() {
    expect("p: get a -> h\np: put h begins\np/2: put h\np: returns", &["double-put"]);
    expect("p: get a -> h\np: put h begins\np/2: put h begins\np: fails\np/2: returns", &["double-put"]);
}

#[test]
fn a_put_after_the_free_is_allowed_and_the_free_is_a_note() {
    let found = expect("p: alloc a 64\np: get a -> h\np: free a\np: put h", &["freed-while-exported"]);
    assert_eq!(found[0].severity, Severity::Note);
    expect("p: alloc a 64\np: get a -> h\np: free a", &["freed-while-exported"]);
    expect("p: alloc a 64\np: get a + 8 -> h\np: get a -> h2\np: put h2\np: free a", &["freed-while-exported"]);
}

#[test]
fn memory_that_was_never_seen_allocated_goes_by_its_exact_pointer() {
    expect("p: get a -> h\np: free a", &["freed-while-exported"]);
    expect("p: get a -> h\np: free a + 8\np: put h", &[]);
    expect("p: get a -> h\nc: open h -> m\np: free a\nc: close m\np: put h", &["freed-while-open"]);
}

#[test]
fn a_free_names_each_process_that_has_the_memory_open() {
    let opened = "p: alloc a 64\np: get a -> h\nc: open h -> m\nd: open h -> n\nq: open h -> o\nq: close o\np: put h\n";
    let found = expect(&format!("{opened}p: free a\nc: close m\nd: close n"), &["freed-while-open"]);
    assert_eq!((found[0].other.is_some(), found[0].others.len()), (true, 1));
}

#[test]
fn a_freed_address_that_is_allocated_again_is_new_memory() {
    let scenario = "p: alloc a 64\np: get a -> h\nc: open h -> m\np: put h\nc: close m\np: free a\n\
                 p: alloc a 64\np: get a -> h\nc: open h -> m\n";
    expect(&format!("{scenario}c: close m\np: put h\np: free a"), &[]);
    expect(&format!("{scenario}p: put h\np: free a\nc: close m"), &["freed-while-open"]);
    // The old handle ended with the old memory; the new one did not.
    expect(
        "p: alloc a 64\np: get a -> h\np: free a\np: alloc a 64\np: get a -> h2",
        &["freed-while-exported", "leaked-handle"],
    );
}

#[test]
fn a_free_is_a_violation_only_if_it_succeeds_and_by_what_was_open_when_it_began() {
    let scenario = "p: alloc a 64\np: get a -> h\nc: open h -> m\np: put h\n";
    expect(&format!("{scenario}p: free a fails\nc: close m\np: free a"), &[]);
    expect(&format!("{scenario}c: close m begins\np: free a\nc: returns"), &[]);
    expect(&format!("{scenario}p: free a begins\nc: close m\np: returns"), &["freed-while-open"]);
    expect(&format!("{scenario}p: free a begins\nc: close m\np: killed"), &[]);
}

#[test]
fn a_free_with_mappings_in_the_producer_and_elsewhere_names_the_other_process() {
    let own = "p: alloc a 64\np: get a -> h\np: open h -> n\np: put h\n";
    let found = expect(&format!("{own}p: free a\np: close n"), &["freed-while-open"]);
    assert!(found[0].message.contains("the same process"), "{}", found[0].message);
    let both = own.replace("p: put", "c: open h -> m\np: put");
    let found = expect(&format!("{both}p: free a\np: close n\nc: close m"), &["freed-while-open"]);
    let message = &found[0].message;
    assert!(
        message.contains("c (pid 200) has it open") && message.contains(", and the same process has it open"),
        "{message}"
    );
    assert_ne!(found[0].other.unwrap().process, found[0].at.process);
}

#[test]
fn bytes_outlive_their_put() {
    let scenario = "p: alloc a 64\np: get a -> h\np: put h\nc: open h -> m\np: free a\nc: close m";
    let found = expect(scenario, &["use-after-put", "freed-while-open"]);
    assert_eq!(found[0].severity, Severity::Warning);
}

#[test]
fn equal_bytes_of_another_host_are_unknown() {
    expect("p: alloc a 64\np: get a -> h\nc@2: open h -> m\np: put h\np: free a\nc@2: close m", &["untraced-peer"]);
    expect(
        "p: alloc a 64\np: get a -> h\nc@2: open h -> m\np: put h\nc@2: close m + 8\nc@2: close m",
        &["close-of-unknown", "untraced-peer"],
    );
}

#[test]
fn every_open_of_a_pointer_needs_its_close() {
    expect("p: get a -> h\nc: open h -> m\nc: open h -> m\nc: close m\nc: close m\np: put h", &[]);
    let found =
        expect("p: get a -> h\nc: open h -> m\nc: open h -> m\nc: close m\np: put h\nc: exit", &["leaked-mapping"]);
    assert!(found[0].message.contains("opened it 2 times and closed it once"), "{}", found[0].message);
    expect(
        "p: get a -> h\nc: open h -> m\nc: open h -> m\nc: close m\nc: close m\nc: close m\np: put h",
        &["double-close"],
    );
    expect("p: get a -> h\nc: open h -> m\nc: close m begins\nc/2: open h -> m\nc: returns\nc: close m\np: put h", &[]);
    expect("p: get a -> h\nc: open h -> m\nc: close m fails\nc: close m\np: put h", &[]);
}

#[test]
fn each_mismatch_is_one_finding_whatever_the_adapter_returns() {
    let scenario = "p: alloc a 64\np: get a -> h\nc: open h -> m in x\np: put h\n";
    let mismatch = "open-close-mismatch";
    for (violation, rule) in [("close m in y", "wrong-context"), ("close m + 8 in x", mismatch), ("free m", mismatch)] {
        for outcome in ["", " fails"] {
            let found = expect(&format!("{scenario}c: {violation}{outcome}"), &[rule]);
            assert!(found[0].other.is_some() && found[0].size == Some(64), "{:#?}", found[0]);
        }
        // After a refusal the mapping stays open, and is then closed correctly.
        expect(&format!("{scenario}c: {violation} fails\nc: close m in x"), &[rule]);
    }
    expect(&format!("{scenario}c: close m in y\nc: close m in x"), &["wrong-context", "double-close"]);
    expect(&format!("{scenario}c: close m + 64 in x\nc: close m in x"), &["close-of-unknown"]);
}

#[test]
fn an_export_of_an_interior_pointer_shows_what_lies_behind_it() {
    let scenario = "p: alloc a 64\np: get a + 48 -> h\nc: open h -> m\np: put h\n";
    expect(&format!("{scenario}c: close m + 15"), &["open-close-mismatch"]);
    expect(&format!("{scenario}c: close m + 16\nc: close m"), &["close-of-unknown"]);
    expect(&format!("{scenario}p: free a\nc: close m"), &["freed-while-open"]);
}

#[test]
fn what_a_child_inherits_is_its_own_copy() {
    let scenario = "p: alloc a 64\np: get a -> h\np: open h -> m\np: get a -> g\np: put g\np: fork q\n";
    expect(&format!("{scenario}q: put h\nq: close m\nq: fork r\nr: close m\np: close m\np: put h"), &[]);
    // What was over before the fork is over in the copy, too.
    expect(&format!("{scenario}q: put g\np: close m\np: put h"), &["double-put"]);
    expect(&format!("{scenario}p: close m\np: put h"), &[]);
    expect(&format!("{scenario}p: close m\np: put h\np: exit\nq: put h"), &[]);
    expect(&format!("{scenario}q: get a -> k\np: close m\np: put h"), &["leaked-handle"]);
    expect(&format!("{scenario}q: put u\np: close m\np: put h"), &["put-of-unknown"]);
    expect("p: get a -> h\np: exit\nq: get a -> x\nq: put x\nq: put h", &["leaked-handle", "put-of-unknown"]);
}

#[test]
fn the_end_of_a_process_grades_what_it_leaves() {
    let scenario = "p: get a -> h\nc: open h -> m\n";
    let found = expect(&format!("{scenario}c: killed\np: killed"), &["leaked-mapping", "leaked-handle"]);
    assert!(found.iter().all(|finding| finding.severity == Severity::Note));
    assert!(found.iter().all(|finding| finding.message.contains("killed before it could")));
    let found =
        expect(&format!("{scenario}c: incomplete\np: exit"), &["leaked-mapping", "calls-lost", "leaked-handle"]);
    assert_eq!(found[0].severity, Severity::Note);
    assert!(found[0].message.contains("incomplete"), "{}", found[0].message);
    assert_eq!(found[2].severity, Severity::Warning);
    expect(&format!("{scenario}c: running\np: running"), &[]);
}

#[test]
fn a_killed_process_may_hold_memory_until_it_is_gone() {
    let scenario = "p: alloc a 64\np: get a -> h\nc: open h -> m\np: put h\n";
    let found = expect(&format!("{scenario}c: killed\np: free a"), &["leaked-mapping", "freed-while-open"]);
    assert_eq!(found[1].severity, Severity::Note);
    assert!(found[1].message.contains("may have it open"), "{}", found[1].message);
    expect(&format!("{scenario}c: killed\nc: gone\np: free a"), &["leaked-mapping"]);
    let found = expect(&format!("{scenario}c: killed\np: free a\nc: seen"), &["leaked-mapping", "freed-while-open"]);
    assert_eq!(found[1].severity, Severity::Error, "it was seen running after the free");
    let found =
        expect(&format!("{scenario}c: killed\nc: seen\np: free a\nc: gone"), &["leaked-mapping", "freed-while-open"]);
    assert_eq!(found[1].severity, Severity::Note, "it ended before or after the free");
    expect(&format!("{scenario}c: exit\np: free a"), &["leaked-mapping"]);
    let found =
        expect(&format!("{scenario}c: incomplete\np: free a"), &["leaked-mapping", "calls-lost", "freed-while-open"]);
    assert_eq!(found[2].severity, Severity::Note);
    let live =
        "p: alloc a 64\np: get a -> h\nc: open h -> m\nd: open h -> n\np: put h\nc: killed\np: free a\nd: close n";
    let found = expect(live, &["leaked-mapping", "freed-while-open"]);
    assert_eq!(found[1].severity, Severity::Error, "one holder is certain");
    assert!(
        found[1].message.contains("d (pid 300) has it open")
            && found[1].message.contains("c (pid 200) may have it open")
    );
    expect(&format!("{scenario}p: free a\nc: killed"), &["freed-while-open", "leaked-mapping"]);
}

#[test]
fn a_mapping_may_outlive_the_applications_last_reference_to_its_context() {
    let scenario =
        "c: context x\nc: retain x\np: alloc a 64\np: get a -> h\nc: open h -> m in x\np: put h\nc: release x\n";
    expect(&format!("{scenario}c: close m in x\nc: release x"), &[]);
    expect(&format!("{scenario}c: release x\nc: close m in x\np: free a"), &[]);
    let found = expect(&format!("{scenario}c: release x\np: free a\nc: close m in x"), &["freed-while-open"]);
    assert_eq!(found[0].severity, Severity::Note, "the mapping may have been gone");
    let found = expect(&format!("{scenario}c: release x\nc: exit"), &["leaked-mapping"]);
    assert!(found[0].message.contains(", and its context was released in call 5"), "{}", found[0].message);
    assert_ne!(found[0].other.unwrap().process, found[0].at.process, "the producer is the other side");
    expect(&format!("{scenario}c: release x fails\nc: close m in x\nc: release x"), &[]);
    // Its creation was not observed, so its references cannot be counted.
    expect("p: get a -> h\nc: open h -> m in y\nc: release y\nc: close m in y\np: put h", &[]);
}

#[test]
fn a_mapping_at_an_address_of_freed_memory_is_no_freed_memory() {
    let scenario = "p: alloc q 64\np: get q -> h\nc: alloc a 64\nc: free a\nc: open h -> a\n";
    expect(&format!("{scenario}c: get a -> g fails\nc: close a\np: put h"), &["export-of-import"]);
}

#[test]
fn a_process_that_becomes_another_program_has_not_exited() {
    let found = expect("p: alloc a 64\np: get a -> h\np: exec", &["leaked-handle"]);
    assert_eq!(found[0].severity, Severity::Warning);
    assert!(found[0].message.contains("the process has become another program"), "{}", found[0].message);
    let found =
        expect("p: alloc a 64\np: get a -> h\nc: open h -> m\np: put h\np: exec\nc: close m", &["exporter-gone"]);
    assert!(found[0].message.contains("p (pid 100) becomes another program while"), "{}", found[0].message);
}

#[test]
fn a_get_of_other_memory_than_device_usm_of_its_context_is_a_warning() {
    for usm in ["host", "shared"] {
        let found = expect(&format!("p: alloc a 64 as {usm}\np: get a -> h\np: put h"), &["wrong-usm"]);
        assert!(found[0].message.contains(&format!("it is {usm} USM")), "{}", found[0].message);
    }
    expect("p: alloc a 64 in x\np: get a -> h in y\np: put h in y", &["wrong-usm"]);
    // A queue has a context of its own, which is not known.
    expect("p: alloc a 64 queued\np: get a -> h in y\np: put h in y", &[]);
}

#[test]
fn an_open_that_fails_returns_nothing() {
    let scenario = "p: alloc a 64\np: get a -> h\nc: open h -> m\nc: open h -> m fails\nc: close m\nc: exit\np: put h";
    let found = expect(scenario, &["refused-open"]);
    assert_eq!(found[0].severity, Severity::Note);
    expect(&scenario.replace("fails", "fails 40"), &["refused-open"]);
}

#[test]
fn success_without_a_result_is_no_birth_and_null_is_no_handle() {
    let nothing = "success-without-result";
    expect("p: get a\nc: open u", &[nothing, nothing]);
    expect("p: get a\np: put h", &[nothing, "put-of-unknown"]);
}

#[test]
fn very_many_left_handles_are_counted_in_one_finding() {
    use std::fmt::Write as _;
    let mut scenario = String::new();
    for n in 0..1000 {
        writeln!(scenario, "p: get a{} -> h{n}", n % 10).unwrap();
    }
    let found = play(&scenario);
    assert_eq!(found.len(), 256);
    assert_eq!(found.iter().map(|finding| finding.count).sum::<u64>(), 1000);
}

#[test]
fn an_open_after_the_free_is_one_finding_that_depends_on_the_present_memory() {
    let scenario = "p: alloc a 64\np: get a + 8 -> h\np: put h\np: free a\n";
    let found = expect(&format!("{scenario}c: open h -> m fails"), &["use-after-free"]);
    assert_eq!((found[0].severity, found[0].size), (Severity::Error, Some(56)));
    assert_ne!(found[0].other.unwrap().process, found[0].at.process, "the free is the other side");
    expect(&format!("{scenario}c: open h -> m\nc: close m"), &["use-after-free"]);
    // The open would map the memory that is now around the old address.
    let found = expect(&format!("{scenario}p: alloc a 1024\nc: open h -> m\nc: close m"), &["stale-handle"]);
    assert!(found[0].message.contains("allocated in call 5"), "{}", found[0].message);
    expect(&format!("{scenario}p: alloc b 1024\nc: open h -> m fails"), &["use-after-free"]);
    // The same bytes may belong to live memory.
    expect(&format!("{scenario}p: alloc a 64\np: get a + 8 -> g\nc: open h -> m\nc: close m\np: put g"), &[]);
    // The handle ended with the free although it was not put.
    expect(
        "p: alloc a 64\np: get a -> h\np: free a\nc: open h -> m\nc: close m",
        &["freed-while-exported", "use-after-free"],
    );
    // The free has not returned.
    expect(
        "p: alloc a 64\np: get a -> h\np: put h\np: free a begins\nc: open h -> m\np: returns\nc: close m",
        &["use-after-put", "freed-while-open"],
    );
}

#[test]
fn an_open_and_a_free_that_overlap_are_a_finding_in_every_order() {
    let scenario = "p: alloc a 64\np: get a -> h\n";
    let error = |end: &str, at: &str| {
        let found = expect(&format!("{scenario}{end}\nc: close m"), &["freed-while-exported", "freed-while-open"]);
        assert_eq!(found[1].severity, Severity::Error, "{end}");
        assert!(found[1].message.contains(at), "{}", found[1].message);
    };
    // The open returns after the free.
    error("c: open h -> m begins\np: free a\nc: returns", "while c (pid 200) opens it as");
    // It returns while the free is under way: the mapping is there before the memory is gone.
    let both = format!("{scenario}c: open h -> m begins\np: free a begins\nc: returns\np: returns\nc: close m");
    let found = expect(&both, &["freed-while-open"]);
    assert!(found[0].message.contains("c (pid 200) has it open"), "{}", found[0].message);
    expect(&format!("{scenario}c: open h -> m begins\nc: returns\nc: close m\np: put h\np: free a"), &[]);
}

#[test]
fn memory_is_freed_by_a_queue_and_with_its_pool() {
    let shared = |alloc: &str| {
        format!("p: pool q\np: retain-pool q\np: alloc {alloc}\np: get a -> h\nc: open h -> m\np: put h\n")
    };
    let pooled = shared("a 64 from q");
    expect(&format!("{pooled}p: release-pool q\nc: close m\np: release-pool q"), &[]);
    let found = expect(&format!("{pooled}p: release-pool q\np: release-pool q\nc: close m"), &["freed-while-open"]);
    assert!(found[0].message.contains("with its pool"), "{}", found[0].message);
    expect(&format!("{pooled}p: release-pool q\np: release-pool q fails\nc: close m\np: release-pool q"), &[]);
    let queued = shared("a 64 queued");
    let found = expect(&format!("{queued}p: free a queued\nc: close m"), &["freed-while-open"]);
    assert_eq!(found[0].severity, Severity::Error);
    let found = expect(&format!("{queued}p: free a queued waits\nc: close m"), &["freed-while-open"]);
    assert_eq!(found[0].severity, Severity::Note, "the queue may wait for the consumer");
    let event = format!("p: event e ipc\n{queued}p: free a queued\nc: close m\np: release-event e");
    assert_eq!(expect(&event, &["freed-while-open"])[0].severity, Severity::Note);
    // What is allocated by a queue at an old address is new memory, and its handles end with a free by a queue.
    expect(
        "p: alloc a 64\np: free a\np: alloc a 64 queued\np: get a -> h\np: free a queued",
        &["freed-while-exported"],
    );
    expect("p: alloc a 64 queued\np: free a queued\np: get a -> h fails", &["get-of-freed"]);
}

#[test]
fn a_context_that_is_released_with_memory_that_others_have_open_is_a_note() {
    let scenario = "p: context x\np: alloc a 64 in x\np: get a -> h in x\nc: open h -> m\np: put h in x\n";
    let found = expect(&format!("{scenario}p: release x\nc: close m"), &["freed-while-open"]);
    assert_eq!(found[0].severity, Severity::Note);
    assert!(found[0].message.contains("may free the memory with its context"), "{}", found[0].message);
    expect(&format!("{scenario}c: close m\np: release x"), &[]);
    // At the end of a process exporter-gone reports the same.
    expect(&format!("{scenario}p: release x\np: exit\nc: close m"), &["exporter-gone"]);
}

#[test]
fn a_pointer_into_freed_memory_is_known_until_its_addresses_are_used_again() {
    let scenario = "p: alloc a 64\np: free a\n";
    let found = expect(&format!("{scenario}p: get a + 8 -> h\np: put h"), &["get-of-freed"]);
    assert_eq!(found[0].severity, Severity::Note, "it may have been allocated where we do not see");
    assert!(found[0].message.contains("8 bytes into USM"), "{}", found[0].message);
    let found = expect(&format!("{scenario}p: get a + 8 -> h fails"), &["get-of-freed"]);
    assert_eq!(found[0].severity, Severity::Error);
    expect(&format!("{scenario}p: get a + 64 -> h fails"), &[]);
    expect(&format!("{scenario}p: alloc a 4096\np: get a + 8 -> h\np: put h"), &[]);
    expect("p: alloc a 64\np: free a fails\np: get a -> h\np: put h", &[]);
    expect("p: alloc a 64\np: free a begins\np/2: get a -> h fails\np: returns", &[]);
}

#[test]
fn a_closed_pointer_is_distinguished_from_memory_of_unknown_origin() {
    let scenario = "p: alloc a 64\np: get a -> h\nc: open h -> m\nc: close m\np: put h\n";
    for violation in ["get m -> g fails", "free m fails"] {
        let found = expect(&format!("{scenario}c: {violation}"), &["use-after-close"]);
        assert_eq!(found[0].fingerprint, play("p: get a -> h")[0].fingerprint);
    }
    expect(&format!("{scenario}c: get m -> g\nc: put g"), &[]);
    expect(&format!("{scenario}c: free m"), &[]);
    expect(
        &format!("{scenario}c: open h -> m\nc: get m + 8 -> g fails\nc: close m"),
        &["use-after-put", "export-of-import"],
    );
}

#[test]
fn a_get_of_opened_memory_is_a_note_by_any_of_its_addresses() {
    let scenario = "p: alloc a 64\np: get a -> h\nc: open h -> m\n";
    for violation in ["get m -> g fails", "get m + 63 -> g fails"] {
        let found = expect(&format!("{scenario}c: {violation}\nc: close m\np: put h"), &["export-of-import"]);
        assert_eq!(found[0].severity, Severity::Note);
        assert!(found[0].answer.is_some());
    }
    expect(&format!("{scenario}c: get m + 64 -> g fails\nc: close m\np: put h"), &[]);
}

#[test]
fn an_end_with_memory_that_others_have_open_is_a_note_whatever_they_do_later() {
    let scenario = "p: alloc a 64\np: get a -> h\nc: open h -> m\nd: open h -> n\np: put h\n";
    let found = expect(&format!("{scenario}p: exit\nc: close m\nd: close n"), &["exporter-gone"]);
    let message = &found[0].message;
    assert!(message.contains("p (pid 100) exits while c (pid 200)") && message.contains("1 mapping more"), "{message}");
    let found = expect(&format!("{scenario}p: killed\nc: close m\nd: close n"), &["exporter-gone"]);
    assert!(found[0].message.contains("was killed, and its trace stops"), "{}", found[0].message);
    expect(&format!("{scenario}p: incomplete\nc: close m\nd: close n"), &["calls-lost"]);
    expect(&format!("{scenario}c: close m\nd: killed\np: exit"), &["leaked-mapping"]);
    expect(&format!("{scenario}p: free a\np: exit\nc: close m\nd: close n"), &["freed-while-open"]);
    // Its own mappings are leaks.
    expect("p: alloc a 64\np: get a -> h\np: open h -> m\np: put h", &["leaked-mapping"]);
}

#[test]
fn an_export_that_an_untraced_process_may_have_opened_is_not_reported() {
    let scenario = "p: get a -> h\np: get b -> g\np: put h\np: put g\n\
                 c: get x -> y\nq: open y -> z\nq: close z\nc: put y\n";
    let found = expect(scenario, &["get-without-open"]);
    assert_eq!((found[0].count, found[0].severity), (2, Severity::Note));
    for unseen in ["c: killed", "c: incomplete", "c: running"] {
        let found = play(&format!("{scenario}{unseen}"));
        assert!(found.iter().all(|finding| finding.rule.code != "get-without-open"), "{unseen}: {found:#?}");
    }
    let found = play(&format!("{scenario}c: open unknown -> m fails"));
    assert_eq!(found.iter().map(|finding| finding.rule.code).collect::<Vec<_>>(), ["garbage-handle"]);
    // With one process, nothing is known of others.
    assert_eq!(play("p: alloc a 64\np: get a -> h\np: put h").len(), 0);
}

#[test]
fn opens_in_the_producer_are_one_note() {
    let cycle = "p: open h -> m\np: close m\n";
    let found = expect(&format!("p: get a -> h\n{cycle}{cycle}{cycle}p: put h"), &["open-in-producer"]);
    assert!(found[0].message.contains("did this 3 times in total"), "{}", found[0].message);
    let killed = play(&format!("p: get a -> h\n{cycle}p: put h\np: killed"));
    assert!(killed.is_empty(), "{killed:#?}");
}

#[test]
fn a_mapping_that_went_with_its_context_is_not_the_next_one_at_its_address() {
    let start = "p: get a -> h\np: get b -> g\nc: context x\nc: open h -> m in x\nc: release x\n";
    let end = "p: put h\np: put g\np: free a\np: free b\nc: exit";
    let found = expect(&format!("{start}c: open g -> m\nc: close m\n{end}"), &["leaked-mapping"]);
    assert!(found[0].message.contains("and never closed it"), "{}", found[0].message);
    assert_eq!(found[0].other.unwrap().call.map(u64::from), Some(1));
    // Without a release it may be one mapping.
    let in_other = start.replace("c: release x\n", "");
    let found =
        expect(&format!("{in_other}c: open g -> m\nc: close m\n{end}"), &["freed-while-open", "leaked-mapping"]);
    assert!(found[1].message.contains("opened it 2 times and closed it once"), "{}", found[1].message);
}

#[test]
fn new_memory_where_a_mapping_went_with_its_context_is_no_mapping() {
    let start = "p: get a -> h\nc: context x\nc: open h -> m in x\n";
    let use_of_new = "c: alloc m 4096\nc: get m -> k\np: open k -> n\np: close n\nc: put k\nc: free m\n";
    let end = "p: put h\np: free a\nc: exit";
    expect(&format!("{start}c: release x\n{use_of_new}{end}"), &["leaked-mapping"]);
}

#[test]
fn a_close_of_memory_at_the_address_of_a_closed_mapping_is_no_double_close() {
    let start = "p: get a -> h\nc: open h -> m\nc: close m\n";
    let end = "p: put h\np: free a\nc: exit";
    let found = expect(&format!("{start}c: alloc m 4096\nc: close m fails\nc: free m\n{end}"), &["close-of-unknown"]);
    assert!(found[0].other.unwrap().call > found[0].at.call.map(|_| std::num::NonZeroU64::MIN), "{found:#?}");
}
