//! Rules about the bytes that opens receive, about what devices support, and about repeated calls: when they report,
//! with which severity, and when they report nothing.

use urscope_rules::Severity;

use crate::scenarios::expect;

const GET: &str = "p: alloc a 64\np: get a -> h\n";

#[test]
fn a_size_mismatch_is_a_size_of_no_get_that_is_refused_for_it() {
    expect(&format!("{GET}c: open h -> m sized 7 fails 4\np: put h"), &["size-mismatch"]);
    // If it is accepted, or refused for another reason, the bytes belong to an untraced process.
    expect(&format!("{GET}c: open h -> m sized 7\nc: close m\np: put h"), &["untraced-peer"]);
    expect(&format!("{GET}c: open h -> m sized 7 fails 45\np: put h"), &["garbage-handle"]);
    // The size is not known for another kind or host.
    expect(&format!("{GET}c: open-event h -> m sized 7 fails 4\np: put h"), &["garbage-handle"]);
    expect(&format!("{GET}c@2: open h -> m sized 7 fails 4\np: put h"), &["garbage-handle"]);
    // Two adapters give two sizes.
    let two = format!("{GET}p: event e ipc\np: get-event e -> f\nq: event e ipc\nq: get-event e -> g sized 48\n");
    let end = "q: put-event g\nq: release-event e\np: put-event f\np: release-event e\np: put h";
    expect(&format!("{two}c: open-event f -> m sized 48 fails 4\n{end}"), &["garbage-handle"]);
    expect(&format!("{two}c: open-event f -> m sized 47 fails 4\n{end}"), &["size-mismatch"]);
}

#[test]
fn unknown_bytes_are_reported_once_per_process_unless_the_get_may_be_missing() {
    let open = "c: open h -> m\nc: close m\nc: open i -> m\nc: close m\n";
    let found =
        expect(&format!("{open}c: open j -> m fails\nc: open k -> m fails"), &["garbage-handle", "untraced-peer"]);
    assert!(found.iter().all(|finding| finding.severity == Severity::Note && finding.message.contains("2 times")));
    expect(&format!("{open}d: open h -> m\nd: close m"), &["untraced-peer", "untraced-peer"]);
    // A trace lacks calls, which may include the get.
    expect(&format!("{open}c: open j -> m fails\np: get a -> l\np: put l\np: incomplete"), &["calls-lost"]);
    // These results do not depend on the bytes.
    for answer in [38, 44, 48] {
        expect(&format!("c: open j -> m fails {answer}"), &[]);
    }
    expect("c: open j", &["success-without-result"]);
}

#[test]
fn bytes_that_an_open_has_overwritten_are_not_unknown() {
    let scenario = format!(
        "{GET}c: open h -> m\nc: open changed -> m\nc: close m\nc: close m\nc: open h -> m\nc: close m\nc: open changed -> m\nc: close m\n"
    );
    expect(&format!("{scenario}p: put h"), &[]);
}

#[test]
fn a_refusal_is_a_permission_problem_only_if_a_barrier_is_known() {
    let apart = "p: uid 1\nc: uid 2\n";
    let scenario = |rights: &str, end: &str| format!("{rights}{GET}{end}");
    let denied = "c: open h -> m fails\np: put h";
    let with = |rights: &str| scenario(&format!("{apart}c: traces-any 0\n{rights}"), denied);
    let found = expect(&with(""), &["permission-denied"]);
    assert!(found[0].message.contains("is user 1, the consumer user 2"), "{}", found[0].message);
    expect(&scenario(&format!("{apart}c: traces-any 1\n"), denied), &[]);
    expect(&scenario(apart, denied), &[]);
    for (rights, severity, text) in [
        ("p: pid-namespace 1\nc: pid-namespace 2\n", Severity::Warning, "different pid namespaces"),
        ("c: traces-any 0\np: dumpable 0\n", Severity::Warning, "PR_SET_DUMPABLE"),
        ("c: traces-any 0\nc: ptrace-scope 2\n", Severity::Warning, "ptrace_scope is 2"),
        ("c: traces-any 1\nc: ptrace-scope 3\n", Severity::Warning, "ptrace_scope is 3"),
        ("c: traces-any 0\nc: ptrace-scope 1\n", Severity::Note, "PR_SET_PTRACER"),
        ("c: traces-any 0\nc: seccomp 2\n", Severity::Note, "seccomp"),
    ] {
        let found = expect(&scenario(rights, denied), &["permission-denied"]);
        assert_eq!(found[0].severity, severity, "{rights}");
        assert!(found[0].message.contains(text), "{}", found[0].message);
        // An open that succeeds was permitted.
        expect(&scenario(rights, "c: open h -> m\nc: close m\np: put h"), &[]);
    }
    // It applies to live data only: other rules report data that was put or freed, or whose process has ended.
    expect(&with("").replace(denied, "p: put h\nc: open h -> m fails"), &["use-after-put"]);
    expect(&with("").replace(denied, "p: killed\nc: open h -> m fails"), &["leaked-handle"]);
    // Own data needs no permission. A success without a result counts as a refusal.
    expect(&with("").replace(denied, "p: open h -> m fails\np: put h"), &[]);
    expect(&with("").replace(denied, "c: open h\np: put h"), &["permission-denied", "success-without-result"]);
}

#[test]
fn the_latest_answer_of_a_device_counts() {
    let no = "p: support memory -> no\n";
    let found = expect(&format!("{no}{GET}p: put h"), &["unsupported-device"]);
    assert_eq!(found[0].severity, Severity::Warning);
    expect(&format!("{no}p: support memory -> yes\n{GET}p: put h"), &[]);
    let found = expect(&format!("{no}p: alloc a 64\np: get a -> h fails 44"), &["unsupported-device"]);
    assert_eq!(found[0].severity, Severity::Note);
    expect(&format!("{GET}c: support memory -> no\nc: open h -> m\nc: close m\np: put h"), &["unsupported-device"]);
    // It applies to sharing only, in the process that queried the device.
    expect(&format!("{no}c: alloc b 64\nc: get b -> i\nc: put i\np: alloc a 64\np: free a"), &[]);
    let physical = "p: support physical -> no\np: support events -> no\n";
    expect(&format!("{physical}{GET}p: put h\np: physical m\np: event e\np: release-physical m"), &[]);
    let shared = "p: physical m ipc\np: event e ipc\np: release-physical m\np: release-event e\n";
    expect(&format!("{physical}{GET}p: put h\n{shared}"), &["unsupported-device", "unsupported-device"]);
}

#[test]
fn calls_that_wait_for_others_and_few_calls_have_no_outliers() {
    let loops = |times: u32, slow: &str| format!("{GET}{times} times\np: get a -> i\np: put i\nend\n{slow}p: put h");
    let slow = "p: get a -> i takes 2000\np: put i\n";
    let found = expect(&loops(1000, slow), &["slow-call"]);
    assert!(found[0].message.contains("waited 2 s for call 2003 (urIPCGetMemHandleExp"), "{}", found[0].message);
    expect(&loops(990, slow), &[]);
    expect(&loops(1000, "p: get a -> i takes 400\np: put i\n"), &[]);
    // Calls that are slow most of the time are not outliers.
    expect(&loops(1000, &format!("1100 times\n{slow}end\n")), &[]);
}

#[test]
fn growing_descriptors_are_attributed_by_the_objects_held() {
    let grow = |each: &str, limit: &str| {
        let step =
            |number: u32| format!("{}p: descriptors {}\n", each.replace('#', &number.to_string()), 20 + 5 * number);
        let steps = (0..24).map(step).collect::<Vec<_>>().concat();
        format!("{limit}{GET}{steps}")
    };
    let others = expect(
        &grow("p: get a -> i\np: put i\n", "p: descriptor-limit 235\n"),
        &["descriptor-growth", "leaked-handle"],
    );
    let message = &others[0].message;
    assert!(
        message.contains("only 0 more handles")
            && message.contains("the limit of 235 is reached after 40 more such calls"),
        "{message}"
    );
    let own = (0..24)
        .map(|n| {
            format!(
                "p: get a + {n} -> i{n}\np: get a + {n} -> j{n}\np: get a + {n} -> k{n}\np: descriptors {}\n",
                20 + 5 * n
            )
        })
        .collect::<Vec<_>>()
        .concat();
    let found = expect(&format!("{GET}{own}p: free a"), &["freed-while-exported", "descriptor-growth"]);
    assert!(found[1].message.contains("the program leaves them open"), "{}", found[1].message);
}

fn garbage(scenario: &str, change: impl Fn(&mut urscope_schema::call::Values)) -> String {
    use urscope_rule_pages::scenario::{Event, Scenario, judge};
    let mut events = scenario.parse::<Scenario>().unwrap().events().unwrap();
    for event in &mut events {
        if let Event::Enter(_, enter) = event
            && enter.function.effect().opens().is_some()
        {
            change(&mut enter.values);
        }
    }
    let found = judge(events, urscope_rules::Checker::new());
    found.iter().find(|finding| finding.rule.code == "garbage-handle").unwrap().message.clone()
}

#[test]
fn garbage_is_described_by_its_size_and_by_the_process_that_it_names() {
    let message = garbage(&format!("{GET}c: open x -> m sized 7 fails 45\np: put h"), |_| {});
    assert!(message.contains("; they are 7 bytes, and a get of p (pid 100) returned 120, in call 2 ("), "{message}");
    let named = |pid: u64| {
        garbage(&format!("{GET}c: open x -> m fails 45\np: put h"), move |values| {
            (values.exporter, values.exported) = (Some(pid), Some(0x77));
        })
    };
    for (pid, text) in [
        (100, "; they name 0x77 of p (pid 100), which got no handle data of memory there"),
        (4242, "; they name process 4242, which was not traced"),
        (0, "; they name 0 as the process that exported them, and no process has that number"),
        (1 << 22, "; they name 4194304 as the process that exported them, and no process has that number"),
    ] {
        let message = named(pid);
        assert!(message.ends_with(text), "{message}");
    }
    // Nothing is known of bytes of the usual size without a header.
    let message = garbage(&format!("{GET}c: open x -> m fails 45\np: put h"), |_| {});
    assert!(message.ends_with("which returned UR_RESULT_ERROR_INVALID_ARGUMENT (45)"), "{message}");
}
