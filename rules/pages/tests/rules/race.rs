//! Commands of different processes that the device has executed at the same time.

use urscope_rules::{Finding, Severity};

use crate::scenarios;

/// Two processes copy to and from the same memory, perhaps one after the other, and the device executes that so. What
/// is found.
#[track_caller]
fn executed(steps: &str) -> Vec<Finding> {
    let begin = "p: alloc a 4096\np: get a -> h\nc: open h -> m\np: copy a sized 4096\np: may-know\nc: copy m sized 4096\nc: may-know\n";
    let end = "p: host-waits\nc: host-waits\nc: close m\np: put h\np: free a";
    scenarios::play(&format!("{begin}{steps}\n{end}"))
}

/// Whether something is found, which must be a race.
#[track_caller]
fn is_race(steps: &str) -> bool {
    let found = executed(steps);
    assert!(found.len() < 2 && found.iter().all(|finding| finding.rule.code == "race"), "{found:#?}");
    !found.is_empty()
}

#[test]
fn both_commands_and_what_they_have_in_common_are_named() {
    let found = executed("p: ran a writes 4096 since 1\nc: ran a reads 100 since 3 + 3000");
    let [race] = &found[..] else { panic!("{found:#?}") };
    assert_eq!((race.severity, race.at.process.0, race.other.unwrap().process.0), (Severity::Error, 0, 1));
    for part in [
        "p (pid 100) writes USM allocation",
        "in call 3 (urEnqueueUSMMemcpy",
        "while c (pid 200) reads it in call 2",
        "for 1 us, and have 100 bytes in common",
    ] {
        assert!(race.message.contains(part), "{}", race.message);
    }
}

#[test]
fn what_a_kernel_may_do_is_a_note() {
    for (steps, expected) in [
        ("p: ran a may-write 4096 since 1\nc: ran a reads 100 since 3 + 3000", true),
        ("p: ran a may-read 4096 since 1\nc: ran a writes 100 since 3 + 3000", true),
        ("p: ran a may-write 4096 since 1\nc: ran a may-read 100 since 3 + 3000", true),
        ("p: ran a may-read 4096 since 1\nc: ran a reads 100 since 3 + 3000", false),
        ("p: ran a may-write 4096 since 1\nc: ran a reads 100 since 1 + 3000", false),
        ("p: ran a may-write 3000 since 1\nc: ran a reads 100 since 3 + 3000", false),
    ] {
        let found = executed(steps);
        assert!(found.iter().all(|finding| finding.severity == Severity::Note), "{steps}: {found:#?}");
        assert_eq!(found.len(), usize::from(expected), "{steps}: {found:#?}");
        let names = |finding: &Finding| {
            finding.message.contains(" may ") && finding.message.contains("and may have 100 bytes in common")
        };
        assert!(found.iter().all(names), "{steps}: {found:#?}");
    }
}

#[test]
fn only_an_overlap_in_time_of_different_processes_with_a_write_is_a_race() {
    assert!(is_race("p: ran a writes 64 since 1\nc: ran a writes 64 since 2"));
    assert!(!is_race("p: ran a reads 64 since 1\nc: ran a reads 64 since 2"), "nobody writes");
    assert!(!is_race("p: ran a writes 64 since 1\nc: ran a reads 64 since 1"), "one after the other");
    assert!(!is_race("p: ran a writes 64 since 1\np: ran a writes 64 since 2"), "one process");
    assert!(!is_race("p: ran a writes 64 since 1\nc: ran b reads 64 since 2"), "other memory");
    assert!(
        !is_race("p: ran a writes 64 since 1\nother@2: copy x sized 8\nother@2: ran a writes 64 since 4"),
        "another host"
    );
    assert!(
        is_race("other: alloc x 8\nother: ran a writes 64 since 4\np: ran a writes 64 since 4"),
        "of no recorded call"
    );
}

#[test]
fn ranges_that_touch_in_one_byte_are_a_race_and_neighbours_are_none() {
    assert!(!is_race("p: ran a writes 64 since 1 + 64\nc: ran a reads 64 since 2"));
    assert!(is_race("p: ran a writes 64 since 1 + 63\nc: ran a reads 64 since 2"));
    assert!(!is_race("p: ran a writes 64 since 1\nc: ran a reads 64 since 2 + 64"));
    assert!(is_race("p: ran a writes 64 since 1\nc: ran a reads 64 since 2 + 63"));
}

#[test]
fn rows_are_a_race_where_they_meet() {
    let reads = "c: ran a reads 16 since 2 rows 8 64";
    assert!(!is_race(&format!("p: ran a writes 48 since 1 + 16 rows 8 64\n{reads}")), "side by side");
    assert!(is_race(&format!("p: ran a writes 49 since 1 + 16 rows 8 64\n{reads}")));
    assert!(!is_race(&format!("p: ran a writes 48 since 1 + 16\n{reads}")), "between two rows");
    assert!(!is_race(&format!("p: ran a writes 50 since 1 + 464\n{reads}")), "behind the last row");
    let found = executed(&format!("p: ran a writes 32 since 1 + 8 rows 4 128\n{reads}"));
    assert!(found[0].message.contains("32 bytes in common"), "{}", found[0].message);
    let found = executed(&format!("p: ran a writes 512 since 1\n{reads}"));
    assert!(found[0].message.contains("128 bytes in common"), "{}", found[0].message);
    // Numbers that no device has.
    let most = u64::MAX;
    is_race(&format!("p: ran a writes 1 since 1 rows {most} 2\nc: ran a reads 1 since 2 + 1 rows {most} 2"));
    is_race(&format!(
        "p: ran a writes {most} since 1 + {most} rows {most} 0\nc: ran a reads {most} since 2 rows {most} {most}"
    ));
}

#[test]
fn a_flag_that_is_polled_is_a_note() {
    for (write, read, expected) in [
        ("8", "8", Severity::Note),
        ("4 since 1 + 4", "8", Severity::Note),
        ("9", "8", Severity::Error),
        ("8 since 1 + 4", "8", Severity::Error),
    ] {
        let (write, read) =
            if write.contains("since") { (write.to_owned(), read) } else { (format!("{write} since 1"), read) };
        let found = executed(&format!("p: ran a writes {write}\nc: ran a reads {read} since 2"));
        assert_eq!(found[0].severity, expected, "{write}");
    }
}

#[test]
fn each_execution_of_a_list_counts() {
    let again = "c: ran a reads 64 since 1\np: ran a writes 64 since 1\n";
    assert!(!is_race(again));
    assert_eq!(executed(&format!("{again}c: ran a reads 64 since 2\nc: ran a reads 64 since 3")).len(), 2);
}

#[test]
fn of_many_accesses_the_latest_are_compared() {
    let others = |count: u32| format!("{count} times\np: ran a writes 64 since 1\nend\n");
    let slow = |since: u32| format!("c: ran a reads 64 since {since}");
    assert_eq!(executed(&format!("{}{}", others(64), slow(80))).len(), 64);
    assert_eq!(executed(&format!("{}{}", others(80), slow(90))).len(), 64);
    // Of 4,096 memories one more is remembered only if another one is forgotten.
    let memories = "4200 times\nc: ran b$ reads 64 since 1\nend\n";
    assert!(!is_race(&format!("p: ran a writes 64 since 1\n{memories}c: ran a reads 64 since 5000")));
    let memories = "4000 times\nc: ran b$ reads 64 since 1\nend\n";
    assert!(is_race(&format!("p: ran a writes 64 since 1\n{memories}c: ran a reads 64 since 5000")));
}

/// Two processes share memory of the CUDA driver, and do this with it. What is found.
#[track_caller]
fn in_order(steps: &str) -> Vec<Finding> {
    let begin = "p: alloc a 4096 cuda\np: get a -> h cuda\nc: open h -> m cuda\n";
    let end = "p: host-waits\nc: host-waits\nc: close m cuda\np: free a cuda";
    scenarios::play(&format!("{begin}{steps}\n{end}"))
}

#[test]
fn a_command_is_not_ordered_before_the_host_knows_of_the_other_one() {
    let found = in_order("p: copy a sized 4096 cuda\nc: copy m + 4000 sized 96 cuda\np: host-waits");
    let [race] = &found[..] else { panic!("{found:#?}") };
    assert_eq!((race.severity, race.at.process.0, race.other.unwrap().process.0), (Severity::Error, 1, 0));
    for part in [
        "c (pid 200) writes mapping",
        "in call 2 (cuMemcpyDtoD_v2",
        "nothing orders that and p (pid 100), which writes it in call 3",
        "it was enqueued 1 us before p (pid 100) knew that its command had completed, and 96 bytes are in common",
    ] {
        assert!(race.message.contains(part), "{}", race.message);
    }
}

#[test]
fn what_a_host_or_something_else_may_have_ordered_is_no_race() {
    let unordered = "p: copy a sized 64 cuda\nc: copy m sized 64 cuda";
    assert_eq!(in_order(unordered).len(), 1);
    let known_before = "p: copy a sized 4096 cuda\np: host-waits\nc: copy m sized 4096 cuda";
    let neighbours = "p: copy a sized 64 cuda\nc: copy m + 64 sized 64 cuda";
    let refused = "p: copy a sized 64 cuda fails\nc: copy m sized 64 cuda";
    let second_refused = "p: copy a sized 64 cuda\nc: copy m sized 64 cuda fails";
    let a_flag =
        "p: alloc f 64 as shared cuda\np: copy a sized 64 cuda\np: copy f sized 8 cuda\nc: copy m sized 64 cuda";
    let several_contexts = "p: context x\np: context y\np: copy a sized 64 cuda\nc: copy m sized 64 cuda";
    let an_event = "p: event e ipc cuda\np: get-event e -> g cuda\nc: open-event g -> f cuda\np: copy a sized 64 cuda\nc: wait f cuda\n\
                    c: copy m sized 64 cuda\nc: release-event f cuda\np: release-event e cuda";
    for steps in [known_before, neighbours, refused, second_refused, a_flag, several_contexts, an_event] {
        let found = in_order(steps);
        assert!(found.iter().all(|finding| finding.rule.code != "race"), "{steps}: {found:#?}");
    }
}

/// Two processes share memory of Unified Runtime. How many races are found between `first` and a copy of the other
/// process, with `then` behind that.
#[track_caller]
fn races_of_unified_runtime(first: &str, then: &str) -> usize {
    let begin = "p: alloc a 4096\np: get a -> h\nc: open h -> m\n";
    let end = "p: host-waits of s\np: may-know\nc: may-know\nc: close m\np: put h\np: free a";
    let found = scenarios::play(&format!("{begin}{first}\nc: copy m sized 64 queue q\n{then}\n{end}"));
    assert!(found.iter().all(|finding| finding.rule.code == "race"), "{found:#?}");
    found.len()
}

#[test]
fn in_a_queue_out_of_order_an_event_is_for_one_command() {
    let copy = "p: copy a sized 64 queue s";
    assert_eq!(races_of_unified_runtime(copy, ""), 1);
    assert_eq!(races_of_unified_runtime(&format!("{copy}\np: signals for e of s\np: host-waits for e"), ""), 0);
    let kernel = "p: not-followed of s\np: signals for k of s";
    for (first, expected) in [
        ("p: in-order of s\n{kernel}\np: host-waits for k\n{copy}", 1),
        ("p: out-of-order of s\n{kernel}\np: host-waits for k\n{copy}", 1),
        ("p: out-of-order of s\n{kernel}\n{kernel}2\np: host-waits for k\n{copy}", 0),
        (
            "p: in-order of s\n{kernel}\np: copy x sized 8 queue s\np: signals for e of s\np: host-waits for e\n{copy}",
            1,
        ),
        (
            "p: out-of-order of s\n{kernel}\np: copy x sized 8 queue s\np: signals for e of s\np: host-waits for e\n{copy}",
            0,
        ),
        ("p: out-of-order of s\n{kernel}\np: host-waits of s\n{copy}", 1),
        ("p: out-of-order of s\n65 times\n{kernel}$\nend\np: host-waits for k65\n{copy}", 0),
        ("p: out-of-order of s\n65 times\n{kernel}$\nend\np: host-waits of s\n{copy}", 1),
    ] {
        let steps = first.replace("{kernel}", kernel).replace("{copy}", copy);
        assert_eq!(races_of_unified_runtime(&steps, ""), expected, "{first}");
    }
}

#[test]
fn in_a_queue_out_of_order_a_command_is_behind_what_it_waits_for() {
    // More bytes than a flag has.
    let with_event = |memory: &str, event: &str| {
        format!("p: copy {memory} sized 128 queue s begins\np: signals for {event} of s\np: returns")
    };
    let write = with_event("a", "e");
    let other = with_event("x", "f");
    let wait = "p: host-waits for f";
    for (steps, expected) in [
        (format!("{write}\n{other}\n{wait}"), 1),
        (format!("{write}\n{other}\np: host-waits for e"), 0),
        (format!("{write}\np: awaits for e of s\n{other}\n{wait}"), 0),
        (format!("{write}\np: barrier of s\n{other}\n{wait}"), 0),
        (format!("{write}\np: copy x sized 128 queue s\np: signals for f of s\n{wait}"), 0),
        (format!("{write}\np: copy x sized 128 queue s fails\np: signals for f of s\n{wait}"), 0),
        (format!("{other}\n{write}\n{wait}"), 1),
        (format!("{write}\np: awaits for e of t\np: copy x sized 128 queue t\np: host-waits of t"), 0),
        (format!("{other}\np: awaits for f of t\n{write}\np: host-waits of t"), 1),
        // An event is for the kernel, unless a barrier or another call has signalled it.
        (format!("{write}\np: not-followed of s\np: signals for f of s\n{wait}"), 1),
        (format!("{write}\np: not-followed of s\np: awaits for e of s\np: signals for f of s\n{wait}"), 0),
        (format!("{write}\np: not-followed of s\np: barrier of s\np: signals for f of s\n{wait}"), 0),
        (format!("{write}\np: not-followed of s\np: get a -> g\np: signals for f of s\n{wait}\np: put g"), 0),
        // Another thread is in a call.
        (format!("{write}\np/2: copy x sized 128 queue s begins\np: signals for f of s\np/2: returns\n{wait}"), 0),
    ] {
        assert_eq!(races_of_unified_runtime(&format!("p: out-of-order of s\n{steps}"), ""), expected, "{steps}");
        let in_order = races_of_unified_runtime(&format!("p: in-order of s\n{steps}"), "");
        assert_eq!(in_order, expected * usize::from(!steps.starts_with(&write)), "{steps}");
    }
}

/// How many races are found between `first` of one process and a copy of another one, with `then` behind that.
#[track_caller]
fn races(first: &str, then: &str) -> usize {
    let found = in_order(&format!("{first}\nc: copy m sized 64 cuda queue q\n{then}"));
    assert!(found.iter().all(|finding| finding.rule.code == "race"), "{found:#?}");
    found.len()
}

#[test]
fn a_wait_is_for_what_it_names() {
    let copy = "p: copy a sized 64 cuda queue s";
    for (wait, expected) in [
        ("p: host-waits", 0),
        ("p: host-waits of s", 0),
        ("p: may-know of s", 0),
        ("p: host-waits of t", 1),
        ("p: signals for e of s\np: host-waits for e", 0),
        ("p: signals for e of t\np: host-waits for e", 1),
        ("p: host-waits for e", 0),
        ("p: signals for e of s\np: awaits for e of t\np: host-waits of t", 0),
        ("p: awaits for e of t\np: signals for e of s\np: host-waits for e\np: host-waits of t", 0),
        ("p: awaits for f of t\np: host-waits of t", 0),
        ("p: signals for e of t\np: awaits for e of s\np: host-waits of t", 1),
    ] {
        assert_eq!(races(&format!("{copy}\n{wait}"), ""), expected, "{wait}");
    }
    let in_front = "p: signals for e of s\np: copy a sized 64 cuda queue s\np: host-waits for e";
    assert_eq!(races(in_front, ""), 1, "the event was signalled in front of it");
}

#[test]
fn the_default_stream_waits_for_those_that_are_not_non_blocking() {
    let event = "p: signals for e of null\np: host-waits for e";
    assert_eq!(races(&format!("p: copy a sized 64 cuda queue s\n{event}"), ""), 0);
    assert_eq!(races(&format!("p: copy a sized 64 cuda queue s non-blocking\n{event}"), ""), 1);
    let again = "p: copy x sized 64 cuda queue s non-blocking\np: copy a sized 64 cuda queue s";
    assert_eq!(races(&format!("{again}\n{event}"), ""), 0, "another stream has the handle");
    let behind = "p: copy a sized 64 cuda\np: copy x sized 64 cuda queue t\np: host-waits of t";
    assert_eq!(races(behind, ""), 0);
    assert_eq!(races(&behind.replace("queue t", "queue t non-blocking"), ""), 1);
}

#[test]
fn what_is_not_followed_counts_until_a_wait_was_certainly_for_it() {
    let copy = "p: copy a sized 64 cuda queue s";
    for (first, then, expected) in [
        ("p: not-followed", "", 0),
        ("p: not-followed of s", "", 0),
        ("p: not-followed of t", "", 1),
        ("p: not-followed of t\np: signals for e of t\np: awaits for e of s", "", 0),
        ("p: not-followed of s\np: host-waits of s", "", 1),
        ("p: not-followed of s\np: may-know of s", "", 0),
        ("p: not-followed of s\np: signals for e of s\np: host-waits for e", "", 1),
        ("p: signals for e of s\np: not-followed of s\np: host-waits for e", "", 0),
        ("p: not-followed\np: host-waits of s", "", 0),
        ("p: not-followed\np: host-waits", "", 1),
        ("c: not-followed of q", "", 0),
        ("c: not-followed of q\nc: host-waits of q", "", 1),
        ("", "p: not-followed of s", 1),
    ] {
        assert_eq!(races(&format!("{first}\n{copy}"), then), expected, "{first} {then}");
    }
    assert_eq!(races(&format!("{copy}\np: not-followed of s"), ""), 0, "it may write a flag");
    assert_eq!(races(&format!("{copy}\np: not-followed of t"), ""), 1);
}

#[test]
fn what_is_in_a_list_is_enqueued_when_it_is_executed() {
    let list = "p: list of l\np: copy a sized 64 cuda queue l";
    let executes = "p: executes for l of s";
    for (steps, expected) in [
        ("{list}", 0),
        ("{list}\n{executes}", 1),
        ("{list}\n{executes}\np: host-waits of s", 0),
        ("{list}\n{executes}\np: host-waits of t", 1),
        ("{list}\n{executes}\np: host-waits of s\n{executes}", 1),
        ("{list}\np: signals for e of l\n{executes}\np: host-waits for e", 0),
        ("{list}\n{executes}\np: signals for e of s\np: host-waits for e", 0),
        ("{list}\np: not-followed of l\n{executes}", 0),
        ("{list}\np: resets of l\n{executes}", 0),
        ("{list}\np: in-order of l\np: copy a sized 64 cuda queue l", 1),
        ("p: list of l\np: copy a sized 64 cuda queue l fails\n{executes}", 0),
        ("p: list of l\np: awaits for e of l\np: copy a sized 64 cuda queue l\n{executes}", 0),
        ("p: signals for e of t\np: list of l\np: awaits for e of l\np: copy a sized 64 cuda queue l\n{executes}", 1),
    ] {
        let steps = steps.replace("{list}", list).replace("{executes}", executes);
        assert_eq!(races(&steps, ""), expected, "{steps}");
    }
}

#[test]
fn a_list_whose_contents_are_not_known_is_not_followed() {
    let copy = "p: copy a sized 64 cuda queue s";
    let list = "p: list of l\np: copy x sized 8 cuda queue l";
    let long = "p: list of l\n1025 times\np: copy x sized 8 cuda queue l\nend";
    for (steps, expected) in [
        ("{list}\np: executes for l of s\n{copy}", 1),
        ("{list}\np: shares\np: executes for l of s\n{copy}", 0),
        ("{list}\np: shares\np: resets of l\np: executes for l of s\n{copy}", 1),
        ("{list}\np: shares\np: executes for l of t\n{copy}", 1),
        ("{long}\np: executes for l of s\n{copy}", 0),
        ("p: executes for l of s\n{copy}", 0),
        ("{copy}\np: executes for l of s", 0),
    ] {
        let steps = steps.replace("{list}", list).replace("{long}", long).replace("{copy}", copy);
        assert_eq!(races(&steps, ""), expected, "{steps}");
    }
}

#[test]
fn a_host_may_signal_an_event_that_no_queue_has_signalled() {
    let copy = "p: awaits for e of s\np: copy a sized 64 cuda queue s";
    for (steps, expected) in [
        ("{copy}", 0),
        ("p: signals for e of t\n{copy}", 1),
        ("p: signals for e of t\np: resets for e\n{copy}", 0),
        ("p: resets for e\np: signals for e of t\n{copy}", 1),
        ("p: list of l\np: signals for e of t\np: resets for e of l\n{copy}", 1),
        ("p: list of l\np: resets for e of l\np: signals for e of t\np: executes for l of t\n{copy}", 0),
    ] {
        assert_eq!(races(&steps.replace("{copy}", copy), ""), expected, "{steps}");
    }
}

#[test]
fn a_process_that_never_waits_for_its_command_orders_nothing() {
    let begin = "p: alloc a 64\np: get a -> h\nc: open h -> m\nc: copy m sized 64";
    let overwrites = "p: copy a sized 64\np: host-waits";
    let races = |steps: &str| {
        let found = scenarios::play(&format!("{begin}\n{steps}\np: put h\np: free a"));
        let races: Vec<_> = found.into_iter().filter(|finding| finding.rule.code == "race").collect();
        races.into_iter().map(|race| race.message).collect::<Vec<_>>()
    };
    let found = races(&format!("{overwrites}\nc: close m\nc: exit"));
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("c (pid 200) ended without having waited for its command, and 64 bytes"), "{found:?}");
    for (steps, expected) in [
        ("{overwrites}\nc: close m\nc: exec", 1),
        ("{overwrites}\nc: close m\nc: host-waits\nc: exit", 1),
        ("c: host-waits\n{overwrites}\nc: close m\nc: exit", 0),
        // Whoever was told of its end may have overwritten the memory.
        ("c: close m\nc: exit\n{overwrites}", 0),
        // When it ended is not known.
        ("{overwrites}\nc: killed", 0),
        // The end of a context may wait.
        ("c: release x\n{overwrites}\nc: exit", 0),
        ("{overwrites}\nc: release x\nc: exit", 1),
    ] {
        let steps = steps.replace("{overwrites}", overwrites);
        let context = if steps.contains(" x") { "c: context x\n" } else { "" };
        assert_eq!(races(&format!("{context}{steps}")).len(), expected, "{steps}");
    }
}

#[test]
fn where_not_all_commands_are_recorded_nothing_is_judged() {
    let copy = "p: copy a sized 64 cuda queue s";
    for limited in ["p", "c"] {
        assert_eq!(races(&format!("{limited}: limit\n{copy}"), ""), 0, "{limited}");
        assert_eq!(races(copy, &format!("{limited}: limit")), usize::from(limited == "c"), "{limited}");
    }
    assert_eq!(races(&format!("p: limit\np: host-waits\n{copy}"), ""), 0);
}

#[test]
fn a_wait_for_a_shared_event_may_have_been_for_the_signal_of_another_process() {
    let event = "p: event e ipc cuda\np: get-event e -> g cuda\n";
    let steps = "p: not-followed of s\np: signals for e of s\np: host-waits for e\np: copy a sized 64 cuda queue s";
    assert_eq!(races(steps, ""), 1);
    let found = in_order(&format!("{event}{steps}\nc: copy m sized 64 cuda queue q"));
    assert!(found.iter().all(|finding| finding.rule.code != "race"), "{found:#?}");
}

#[test]
fn what_was_forgotten_is_in_front_of_all_else() {
    let streams = "4100 times\np: signals for e of s$\nend";
    assert_eq!(races(&format!("p: copy a sized 64 cuda queue s\n{streams}\np: host-waits"), ""), 0);
    assert_eq!(races(&format!("p: copy a sized 64 cuda queue s\n{streams}\np: host-waits of s"), ""), 0);
}

#[test]
fn a_flag_that_a_copy_writes_may_order_what_is_behind_it() {
    let flag = "p: copy a sized 64 cuda queue s\np: copy a + 4088 sized 8 cuda queue s";
    let polled = "c: copy m + 4088 sized 8 cuda queue q";
    let found = in_order(&format!("{flag}\n{polled}\nc: copy m sized 64 cuda queue q"));
    let severities: Vec<_> = found.iter().map(|finding| finding.severity).collect();
    assert_eq!(severities, [Severity::Note], "{found:#?}");
    assert_eq!(races(flag, ""), 1);
}
