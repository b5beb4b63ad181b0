//! Opens of IPC handles of Level Zero: whose descriptor their bytes name.

use urscope_rule_pages::scenario::{Event, Scenario, judge};
use urscope_rules::{Checker, Finding};
use urscope_schema::api::Function;
use urscope_schema::handle::{descriptor_data, named_fingerprint};

/// How an open got its bytes.
#[derive(Clone, Copy)]
enum Bytes {
    /// As the get of the process with this number returned them.
    AsGot(u32),
    /// A descriptor of its own process is stored in them, and the other is left.
    Replaced(u32),
    /// A driver has made them that does not write which of the two it is.
    Unsaid(u32),
}

/// The descriptor of every handle: like processes have equal numbers.
const DESCRIPTOR: u32 = 1024;

/// The records of a scenario where every get returns that descriptor and every open has it. The file of it in the
/// process that opens is that of the handle that the scenario opens.
fn events(scenario: &str, bytes: Bytes) -> Vec<Event> {
    let mut events = scenario.parse::<Scenario>().unwrap().events().unwrap();
    let data = Some(descriptor_data(DESCRIPTOR));
    for event in &mut events {
        match event {
            Event::Exit(_, exit) if exit.function == Function::zeMemGetIpcHandle => exit.values.data = data,
            Event::Enter(_, enter) if enter.function == Function::zeMemPutIpcHandle => enter.values.data = data,
            Event::Enter(_, enter) if enter.function == Function::zeMemOpenIpcHandle => {
                let (process, exported) = match bytes {
                    Bytes::AsGot(process) => {
                        enter.values.fingerprint = Some(named_fingerprint(process.into(), DESCRIPTOR));
                        (process, data)
                    }
                    Bytes::Replaced(process) => (process, Some(descriptor_data(DESCRIPTOR + 1))),
                    Bytes::Unsaid(process) => (process, None),
                };
                (enter.values.data, enter.values.exporter, enter.values.exported) =
                    (data, Some(process.into()), exported);
            }
            _ => {}
        }
    }
    events
}

fn found(scenario: &str, bytes: Bytes) -> Vec<Finding> {
    judge(events(scenario, bytes), Checker::new())
}

fn codes(scenario: &str, bytes: Bytes) -> Vec<&'static str> {
    found(scenario, bytes).iter().map(|finding| finding.rule.code).collect()
}

/// Two like processes: the numbers of `a` and `b` are 100 and 200. `b` opens its own bytes, as far as its files tell.
const LIKE: &str = "a: alloc m 64 ze\na: get m -> h ze\nb: alloc n 64 ze\nb: get n -> i ze\n";

fn like(rest: &str) -> String {
    format!("{LIKE}{rest}")
}

#[test]
fn bytes_as_they_were_got_are_those_of_their_exporter() {
    let opened = like("b: put i ze\nb: open i -> o ze\nb: close o ze\na: put h ze");
    assert!(codes(&opened, Bytes::AsGot(100)).is_empty());
    let freed = like("a: free m ze\nb: open i -> o ze fails\nb: put i ze");
    assert_eq!(codes(&freed, Bytes::AsGot(100)), ["use-after-free"]);
    let put = like("a: put h ze\nb: open i -> o ze fails\nb: put i ze");
    assert_eq!(codes(&put, Bytes::AsGot(100)), ["use-after-put"]);
    let ended = like("a: exit\nb: open i -> o ze fails\nb: put i ze");
    assert_eq!(codes(&ended, Bytes::AsGot(100)), ["refused-open"]);
}

#[test]
fn a_stored_descriptor_is_known_by_its_file() {
    let opened = like("a: put h ze\nb: open i -> o ze\nb: close o ze\nb: put i ze");
    assert_eq!(codes(&opened, Bytes::Replaced(100)), ["open-in-producer"]);
}

#[test]
fn the_number_of_an_untraced_process_belongs_to_nobody() {
    let opened = like("b: open i -> o ze\nb: close o ze\nb: put i ze");
    let found = found(&opened, Bytes::AsGot(777));
    assert_eq!(found.iter().map(|finding| finding.rule.code).collect::<Vec<_>>(), ["untraced-peer"]);
    assert!(found[0].message.contains("that no traced process of this host exported"), "{}", found[0].message);
}

#[test]
fn where_the_driver_does_not_say_it_is_one_of_two() {
    let opened = like("b: open i -> o ze\nb: close o ze\nb: put i ze\na: put h ze");
    let found = found(&opened, Bytes::Unsaid(100));
    assert_eq!(found.iter().map(|finding| finding.rule.code).collect::<Vec<_>>(), ["untraced-peer"]);
    let message = &found[0].message;
    assert!(message.contains("that is one of these, what a (pid 100) got in call 2 ("), "{message}");
    assert!(message.contains("or what b (pid 200) got in call 2 ("), "{message}");
    // One of them alone leaves no doubt: a file that nobody has exported, or a process that nobody traced.
    let busy = like("b: open other -> o ze\nb: close o ze\nb: put i ze\na: put h ze");
    assert!(codes(&busy, Bytes::Unsaid(100)).is_empty());
    assert_eq!(codes(&opened, Bytes::Unsaid(777)), ["open-in-producer"]);
}

#[test]
fn a_number_means_a_process_of_the_same_namespace() {
    // Both have the number 100 in a namespace of their own, and `b` has put its handle.
    let found_from = |namespace: u32| {
        let begin = format!("a: pid-namespace 1\nb: pid-namespace 2\nc: pid-namespace {namespace}\n");
        let rest = "b: put i ze\nc: open other -> o ze\nc: close o ze\na: put h ze";
        let mut events = events(&format!("{begin}{}", like(rest)), Bytes::AsGot(100));
        for event in &mut events {
            if let Event::Begin(process, _) = event {
                process.pid = process.pid.min(100);
            }
        }
        judge(events, Checker::new()).iter().map(|finding| finding.rule.code).collect::<Vec<_>>()
    };
    assert!(found_from(1).is_empty());
    assert_eq!(found_from(2), ["use-after-put"]);
    // Nothing says which of the two it is.
    assert_eq!(found_from(3), ["untraced-peer"]);
}
