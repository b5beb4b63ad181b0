//! Physical memory, events and handle data of every kind: what differs between them, and what is the same for all.

use urscope_rules::Severity;

use crate::scenarios::{expect, play};

#[test]
fn the_last_reference_to_physical_memory_ends_it() {
    let begin = "p: physical m ipc\np: get-physical m -> h\np: put-physical h\n";
    let play = |rest: &str, codes: &[&str]| expect(&format!("{begin}{rest}"), codes);
    play("p: retain-physical m\np: release-physical m\np: release-physical m", &[]);
    play("p: retain-physical m fails\np: release-physical m\np: release-physical m", &["double-release"]);
    play("p: release-physical m fails\np: release-physical m", &[]);
    play("p: release-physical m\np: physical m\np: release-physical m", &[]);
    play("p: release-physical m begins\np/2: release-physical m\np: returns", &["double-release"]);
    play("p: close-physical m\np: close-physical m", &["close-of-unknown", "double-release"]);
    // Its creation was not observed, so its references cannot be counted.
    play("p: release-physical x\np: release-physical x\np: release-physical m", &[]);
    play("p: fork c\nc: release-physical m\nc: release-physical m", &[]);
}

#[test]
fn references_to_events_are_not_judged() {
    expect("p: event e ipc\np: get-event e -> h\np: put-event h\np: release-event e\np: release-event e", &[]);
}

#[test]
fn handle_data_of_every_kind_is_put_once() {
    for kind in ["physical", "event"] {
        let play = |rest: &str, codes: &[&str]| {
            expect(
                &format!("p: {kind} m ipc\np: get-{kind} m -> h\n{}", rest.replace("put", &format!("put-{kind}"))),
                codes,
            )
        };
        play("p: put h", &[]);
        play("p: put h\np: put h", &["double-put"]);
        play("p: put h\np: put x", &["put-of-unknown"]);
        play("p: put h fails\np: put h", &[]);
        let severity = if kind == "event" { Severity::Note } else { Severity::Warning };
        assert_eq!(play("", &["leaked-handle"])[0].severity, severity);
    }
}

#[test]
fn a_get_is_judged_by_how_its_object_was_made() {
    expect("p: event e\np: get-event e -> h fails", &["export-without-flag"]);
    expect("p: event e\np: event e ipc\np: get-event e -> h\np: put-event h", &[]);
    // An unknown object may have been made before tracing began.
    expect("p: get-event e -> h\np: put-event h", &[]);
    expect("p: get-physical m -> h\np: put-physical h", &[]);
}

#[test]
fn events_without_the_flag_are_forgotten_in_time() {
    use std::fmt::Write as _;
    let mut scenario = String::from("p: event first\np: event e0 ipc\np: get-event e0 -> h\np: put-event h\n");
    for n in 0..2000 {
        writeln!(scenario, "p: event plain{n}").unwrap();
    }
    scenario.push_str("p: get-event first -> h fails\np: get-event plain1999 -> h fails");
    expect(&scenario, &["export-without-flag"]);
}

#[test]
fn handle_data_outlive_the_applications_last_reference_to_their_context() {
    let kinds = [
        ("p: alloc a 64 in x\np: get a -> h in x", "put", Severity::Warning),
        ("p: physical m ipc in x\np: get-physical m -> h in x", "put-physical", Severity::Warning),
        // The get of an event names no context: it uses that of the event.
        ("p: event e ipc in x\np: get-event e -> h", "put-event", Severity::Note),
    ];
    for (get, put, severity) in kinds {
        let scenario = format!("p: context x\np: retain x\n{get}\np: release x\n");
        expect(&format!("{scenario}p: {put} h\np: release x"), &[]);
        expect(&format!("{scenario}p: release x\np: {put} h"), &[]);
        let found = expect(&format!("{scenario}p: release x"), &["leaked-handle"]);
        assert_eq!(found[0].severity, severity, "{get}");
        assert!(found[0].message.contains(", and its context was released in call "), "{}", found[0].message);
        expect(&format!("{scenario}p: release x fails\np: {put} h"), &[]);
    }
    expect("p: context x\np: alloc a 64 in x\np: get a -> h in x\np: free a\np: release x", &["freed-while-exported"]);
    // What was got during the release belongs to the reborn context.
    expect("p: context x\np: release x begins\np/2: context x\np/2: get a -> h in x\np: returns\np: put h", &[]);
}

#[test]
fn what_was_opened_outlives_the_applications_last_reference_to_its_context() {
    for (kind, leak, ends) in
        [("physical", "leaked-physical-memory", "close-physical"), ("event", "leaked-event", "release-event")]
    {
        let begin = format!("p: {kind} m ipc\np: get-{kind} m -> h\nc: context x\nc: open-{kind} h -> n in x\n");
        let end = format!("p: put-{kind} h\np: release-{kind} m");
        let play = |rest: &str, codes: &[&str]| expect(&format!("{begin}{rest}\n{end}"), codes);
        play(&format!("c: {ends} n\nc: release x"), &[]);
        play(&format!("c: release x\nc: {ends} n"), &[]);
        let found = play("c: release x", &[leak]);
        assert!(found[0].message.contains(", and its context was released in call 3"), "{}", found[0].message);
        assert_ne!(found[0].other.unwrap().process, found[0].at.process, "the producer is the other side");
        play(&format!("c: release x fails\nc: {ends} n\nc: release x"), &[]);
        let found = play(&format!("c: retain-{kind} n\nc: retain-{kind} n\nc: {ends} n"), &[leak]);
        assert!(found[0].message.contains("with 2 references left"), "{}", found[0].message);
        play(&format!("c: {ends} n fails"), &[leak]);
        let found = play("c: killed", &[leak]);
        assert_eq!((found[0].severity, found[0].at.call.map(u64::from)), (Severity::Note, Some(2)));
        play("c: fork d\nd: exit\nc: running", &[]);
        // An own object that is never released violates no rule about sharing.
        expect(&format!("p: context y\np: {kind} k ipc in y\np: release y"), &["no-calls-seen"]);
    }
}

#[test]
fn very_many_left_objects_are_counted_by_their_kind() {
    use std::fmt::Write as _;
    let mut scenario = String::from("p: physical m ipc\np: get-physical m -> h\np: event e ipc\np: get-event e -> g\n");
    for n in 0..300 {
        writeln!(scenario, "c: open-physical h -> n{n}\nc: open-event g -> f{n}").unwrap();
    }
    let found = play(&format!("{scenario}p: put-physical h\np: put-event g"));
    for rule in ["leaked-physical-memory", "leaked-event"] {
        let counts: Vec<u64> = found.iter().filter(|found| found.rule.code == rule).map(|found| found.count).collect();
        assert_eq!((counts.len(), counts.iter().sum::<u64>()), (256, 300), "{rule}");
    }
}

#[test]
fn an_open_after_the_put_is_graded_by_its_result() {
    for (kind, worked) in [("", Severity::Warning), ("-physical", Severity::Warning), ("-event", Severity::Note)] {
        let (make, end) = match kind {
            "" => ("alloc m 64", "close"),
            "-physical" => ("physical m ipc", "close-physical"),
            _ => ("event m ipc", "release-event"),
        };
        let begin = format!("p: {make}\np: get{kind} m -> h\np: put{kind} h\n");
        let found = expect(&format!("{begin}c: open{kind} h -> n\nc: {end} n"), &["use-after-put"]);
        assert_eq!(found[0].severity, worked, "{kind}");
        assert_eq!(found[0].other.unwrap().call.map(u64::from), Some(3), "the put");
        assert_ne!(found[0].other.unwrap().process, found[0].at.process);
        let found = expect(&format!("{begin}c: open{kind} h -> n fails"), &["use-after-put"]);
        assert_eq!(found[0].severity, Severity::Error, "{kind}");
        // A success without a result counts as a refusal.
        let found = expect(&format!("{begin}c: open{kind} h"), &["success-without-result", "use-after-put"]);
        assert_eq!(found[1].severity, Severity::Error, "{kind}");
        // The same in the producer itself, and during the put.
        expect(&format!("{begin}p: open{kind} h -> n\np: {end} n"), &["use-after-put"]);
        let slow = begin.replace(" h\n", " h begins\n").replace("-> h begins", "-> h");
        expect(&format!("{slow}c: open{kind} h -> n\np: returns\nc: {end} n"), &["use-after-put"]);
    }
}

#[test]
fn bytes_are_valid_until_the_last_handle_with_them_is_put() {
    let two = "p: alloc a 64\np: get a -> h\np: get a -> g\np: put h\n";
    expect(&format!("{two}c: open h -> m\nc: close m\np: put g"), &[]);
    expect(&format!("{two}p: put g\nc: open h -> m\nc: close m"), &["use-after-put"]);
    expect(&format!("{two}p: put g\np: get a -> k\nc: open h -> m\nc: close m\np: put k"), &[]);
    expect(&format!("{two}p: put g fails\nc: open h -> m\nc: close m\np: put g"), &[]);
    // Another pointer into the same memory has other bytes.
    expect(&format!("{two}p: get a + 8 -> k\np: put g\nc: open k -> m\nc: close m\np: put k"), &[]);
    // Equal bytes of earlier memory whose handle was never put: the open may be of either.
    let twice = "p: alloc a 64\np: get a -> h\np: free a\np: alloc a 64\np: get a -> g\np: put g\n";
    expect(&format!("{twice}c: open h -> m\nc: close m"), &["freed-while-exported"]);
    // An open that began before the put is correct.
    expect("p: get a -> h\nc: open h -> m begins\np: put h\nc: returns\nc: close m", &[]);
    // Equal bytes of another host are unknown.
    expect("p: get a -> h\np: put h\nc@2: open h -> m\nc@2: close m", &["untraced-peer"]);
    // Handle data that was never put stays valid when its process has ended.
    expect("p: get a -> h\np: killed\nc: open h -> m\nc: close m", &["leaked-handle"]);
    // The address is reborn, and so are the bytes.
    let reborn = "p: physical m ipc\np: get-physical m -> h\np: put-physical h\np: release-physical m\n\
                  p: physical m ipc\np: get-physical m -> h\nc: open-physical h -> n\nc: close-physical n\n";
    expect(&format!("{reborn}p: put-physical h"), &[]);
}

#[test]
fn a_wrong_kind_is_the_only_finding_of_its_call() {
    let begin = "p: physical m ipc\np: get-physical m -> h\np: event e ipc\np: get-event e -> g\n\
                 p: alloc a 64\np: get a -> k\n";
    let end = "p: put-physical h\np: put-event g\np: put k";
    let wrong = "wrong-kind";
    let play = |violation: &str| {
        for outcome in ["", " fails"] {
            let found = expect(&format!("{begin}p: {violation}{outcome}\n{end}"), &[wrong]);
            assert!(found[0].other.is_some() && found[0].answer.is_some(), "{found:#?}");
        }
    };
    for violation in ["put-event h", "put-physical k", "put g", "put m", "close h", "close e", "free g", "free m"] {
        play(violation);
    }
    for violation in ["release-physical e", "close-physical e", "release-physical h", "close-physical k"] {
        play(violation);
    }
    // Objects that were ended in this way are not reported as leaked or unknown, too.
    for (put, instead) in
        [("put-physical h", "put-event h"), ("put-event g", "put-physical g"), ("put k", "put-event k")]
    {
        expect(&format!("{begin}{}", end.replace(put, instead)), &[wrong]);
    }
    expect("p: alloc a 64\np: get a -> k\np: put-event k\np: free a", &[wrong]);
    for violation in ["get-event m -> x fails", "get-physical e -> x fails", "get e -> x fails"] {
        expect(&format!("{begin}p: {violation}\n{end}"), &[wrong]);
    }
    for violation in ["open-event h", "open-physical k", "open g"] {
        let found = expect(&format!("{begin}c: {violation} -> x fails\n{end}"), &[wrong]);
        assert_ne!(found[0].other.unwrap().process, found[0].at.process, "the get");
        assert_eq!(found[0].answer.unwrap().0, 4, "INVALID_VALUE");
    }
    // An address belongs to the object that was made there last.
    let reborn = "p: physical m ipc\np: get-physical m -> h\np: put-physical h\np: event e ipc\np: get-event e -> h\n";
    expect(&format!("{reborn}p: put-physical h\np: put-event h"), &[wrong]);
    expect(&format!("{reborn}p: put-event h\np: put-event h"), &["double-put"]);
    // An unknown object has no kind.
    expect(&format!("{begin}p: put-event u\n{end}"), &["put-of-unknown"]);
    expect(&format!("{begin}p: fork q\nq: put-event h\n{end}"), &["put-of-unknown"]);
}

#[test]
fn an_object_released_before_its_put_is_a_note() {
    for kind in ["physical", "event"] {
        let begin = format!("p: {kind} m ipc\np: retain-{kind} m\np: get-{kind} m -> h\np: release-{kind} m\n");
        expect(&format!("{begin}p: put-{kind} h\np: release-{kind} m"), &[]);
        let found = expect(&format!("{begin}p: release-{kind} m\np: put-{kind} h"), &["freed-while-exported"]);
        assert_eq!(found[0].severity, Severity::Note);
        expect(&format!("{begin}p: release-{kind} m fails\np: put-{kind} h"), &[]);
        // Its handles do not end with it.
        expect(&format!("{begin}p: release-{kind} m"), &["freed-while-exported", "leaked-handle"]);
    }
}

#[test]
fn an_own_object_is_released_and_not_closed() {
    let found = expect("p: physical m ipc\np: close-physical m", &["close-of-unknown"]);
    assert_eq!((found[0].severity, found[0].size), (Severity::Warning, Some(65_536)));
    // It may have been opened before tracing began.
    expect("p: close-physical m", &[]);
}

#[test]
fn a_wait_is_noted_if_it_never_returned_and_its_producer_has_ended() {
    let scenario = "p: event e ipc\np: get-event e -> h\nc: open-event h -> i\np: put-event h\np: release-event e\n";
    for (rest, text) in [
        ("p: exit\nc: wait i begins\nc: running", Some("had already exited")),
        ("c: wait i begins\nc: running\np: killed", Some("has been killed")),
        ("c: wait i begins\nc: running\np: running", None),
        ("c: wait i begins\nc: running\np: incomplete", None),
        ("p: exit\nc: wait i\nc: running", None),
        ("p: exit\nc: wait x begins\nc: running", None),
    ] {
        let lost: &[_] = if rest.contains("incomplete") { &["calls-lost"] } else { &[] };
        let found = expect(&format!("{scenario}{rest}"), if text.is_some() { &["never-signalled"] } else { lost });
        assert!(text.is_none_or(|text| found[0].message.ends_with(text)), "{found:#?}");
    }
    // Nobody else has opened it.
    expect("p: event e ipc\np: get-event e -> h\np: wait e begins\np: running", &[]);
}

#[test]
fn a_wait_is_noted_only_if_no_process_is_left_that_could_signal() {
    let scenario = "p: event e ipc\np: get-event e -> h\nc: open-event h -> i\nd: open-event h -> j\np: put-event h\n";
    let waits = |rest: &str| {
        let found = play(&format!("{scenario}{rest}"));
        found
            .into_iter()
            .filter(|finding| finding.rule.code == "never-signalled")
            .map(|it| it.message)
            .collect::<Vec<_>>()
    };
    // The maker waits for those that opened it.
    let made = waits("c: release-event i\nc: exit\np: wait e begins\nd: killed\np: running");
    let [message] = &made[..] else { panic!("{made:?}") };
    let parts =
        ["p (pid ", " waits for event ", "; c (pid ", ", which opened the event in call 1 (urIPCOpenEventHandleExp, "];
    assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    assert!(
        message.contains(", had already exited, and d (pid ") && message.ends_with(" has been killed"),
        "{message}"
    );
    // Somebody is left.
    assert_eq!(waits("c: exit\np: wait e begins\np: running\nd: running"), [""; 0]);
    assert_eq!(waits("p: exit\nc: wait i begins\nc: running\nd: running"), [""; 0]);
    // Those who are left wait, too.
    assert_eq!(waits("p: exit\nc: wait i begins\nd: wait j begins\nc: running\nd: running").len(), 2);
    assert_eq!(
        waits("p: wait e begins\nc: wait i begins\nd: wait j begins\np: running\nc: running\nd: running"),
        [""; 0]
    );
}
