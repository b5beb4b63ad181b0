//! A usual get or put moves the tracker as the general way does, and nothing is found otherwise.
//!
//! Every run is played twice: once as always, and once with a consumer that wants all facts, so that no call takes a shortcut. After each
//! record both trackers are compared, with all that they keep.

use std::collections::BTreeSet;

use proptest::prelude::*;
use urscope_rule_pages::scenario::{Event, Scenario};
use urscope_rules::{
    Checker, End, Finding, Tracker,
    tracker::{
        fact::{Fact, FactConsumer, FactKind, What},
        usual::{Begins, Returns},
    },
};

use crate::scenarios::{choices, overlapping::History};

/// A checker that gets the facts of usual calls, too, or does not; and how many gets it has seen.
struct Consumer {
    checker: Checker,
    wants_all: bool,
    gets: usize,
}

impl FactConsumer for Consumer {
    fn consume(&mut self, fact: &Fact<'_>) {
        self.gets += usize::from(matches!(fact.what, What::Exported(_)));
        if self.checker.wants(fact.what.kind()) {
            self.checker.consume(fact);
        }
    }

    fn wants(&self, kind: FactKind) -> bool {
        self.wants_all || self.checker.wants(kind)
    }
}

/// One of the two.
struct Side {
    tracker: Tracker,
    consumer: Consumer,
}

impl Side {
    fn new(wants_all: bool) -> Self {
        Self { tracker: Tracker::new(), consumer: Consumer { checker: Checker::new(), wants_all, gets: 0 } }
    }

    fn take(&mut self, event: &Event) {
        let Self { tracker, consumer } = self;
        match event {
            Event::Begin(process, _) => {
                tracker.begin(process.clone());
            }
            Event::Enter(who, enter) => {
                assert!(Begins::of(enter).is_none_or(|begins| begins.record() == *enter), "{enter:?}");
                tracker.enter(*who, enter, consumer);
            }
            Event::Exit(who, exit) => {
                assert!(Returns::of(exit).is_none_or(|returns| returns.record() == *exit), "{exit:?}");
                tracker.exit(*who, exit, consumer);
            }
            Event::Device(who, handle, index, name) => tracker.device(*who, *handle, *index, name),
            Event::Descriptors(who, open, at) => tracker.descriptors(*who, *open, *at, consumer),
            Event::Observed(who, alive, gone) => tracker.observed(*who, *alive, *gone),
            Event::End(who, how, at) => {
                tracker.missing(*who, u64::from(*how == End::Incomplete), 0);
                tracker.end(*who, *how, *at, consumer);
            }
        }
    }

    fn found(&mut self) -> Vec<Finding> {
        self.consumer.checker.take()
    }
}

/// Plays a scenario in both ways. Returns how many gets have taken the shortcut, and which rules have found something.
fn play(text: &str) -> (usize, BTreeSet<&'static str>) {
    let events = text.parse::<Scenario>().and_then(|scenario| scenario.events());
    let events = events.unwrap_or_else(|error| panic!("{error} of\n{text}"));
    let (mut short, mut general) = (Side::new(false), Side::new(true));
    let mut codes = BTreeSet::new();
    let mut compare = |short: &mut Side, general: &mut Side, event: &dyn std::fmt::Debug| {
        let found = short.found();
        let [ours, theirs] = [&found, &general.found()].map(|found| format!("{found:#?}"));
        assert_eq!(ours, theirs, "{event:?} of\n{text}");
        codes.extend(found.iter().map(|finding| finding.rule.code));
        let [a, b] = [&*short, &*general].map(|side| format!("{:?}", side.tracker));
        if a != b {
            let at = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count().saturating_sub(200);
            let [a, b] = [a, b].map(|text| text.chars().skip(at).take(400).collect::<String>());
            panic!("after {event:?}:\n{a}\n\n{b}\n\nof\n{text}");
        }
    };
    for event in &events {
        for side in [&mut short, &mut general] {
            side.take(event);
        }
        compare(&mut short, &mut general, event);
    }
    for side in [&mut short, &mut general] {
        side.tracker.finish(&mut side.consumer);
    }
    compare(&mut short, &mut general, &"the end");
    (general.consumer.gets - short.consumer.gets, codes)
}

/// Any calls that share memory, right or wrong, of two processes of two threads. Most are gets and puts.
fn any_calls(choices: &[u32]) -> String {
    let mut lines = vec![
        "p: context x on d".to_owned(),
        "p: context y".to_owned(),
        "p: alloc a 4096 in x on d".to_owned(),
        "p: alloc b 4096 in y".to_owned(),
        "q: context z".to_owned(),
    ];
    // Whose threads are inside of a call.
    let mut inside = BTreeSet::new();
    for numbers in choices.chunks_exact(4) {
        let pick = |index: usize, among: u32| numbers[index] / 7 % among;
        let thread = if numbers[0] % 16 == 0 { "q" } else { ["p", "p/2", "p/3"][pick(0, 3) as usize] };
        if inside.remove(thread) {
            let how = if pick(1, 6) == 0 { "fails" } else { "returns" };
            lines.push(format!("{thread}: {how}"));
            continue;
        }
        let memory = ["a", "a", "a", "b", "c"][pick(1, 5) as usize];
        let handle = ["h", "h", "h", "i", "j"][pick(2, 5) as usize];
        let context = ["", " in x", " in x", " in y"][pick(3, 4) as usize];
        if numbers[2] % 4 == 0 {
            let pair = format!("{thread}: get {memory} -> {handle}\n{thread}: put {handle}");
            lines.extend((0..3).map(|_| pair.clone()));
            continue;
        }
        let call = match numbers[3] % 64 {
            0..=23 => format!("get {memory} -> {handle}{context}"),
            24..=43 => format!("put {handle}{context}"),
            44 => format!("get {memory} -> {handle} + 64"),
            45 => format!("get {memory} -> {handle} exposes 4096"),
            46 => format!("get {memory} -> {handle} exposes 65536"),
            47 => format!("get {memory} -> {handle} ze"),
            48 => format!("put {handle} ze"),
            49 => format!("get {memory}"),
            50..=52 => format!("free {memory}"),
            53..=55 => format!("alloc {memory} 4096{context}"),
            56 => format!("alloc {memory} 4096 as host"),
            57 => format!("open {handle} -> m{context}"),
            58 => "close m".to_owned(),
            59 => format!("get {memory} -> {handle} takes 20"),
            60 => format!("retain {}", ["x", "y"][pick(1, 2) as usize]),
            61 => format!("release {}", ["x", "y"][pick(1, 2) as usize]),
            62 if pick(1, 8) == 0 => "support memory -> no on d".to_owned(),
            62 => format!("close {handle}"),
            _ => "put null".to_owned(),
        };
        let fate = match pick(3, 8) {
            0 => " fails",
            1 | 2 => " begins",
            _ => "",
        };
        if fate == " begins" {
            inside.insert(thread);
        }
        lines.push(format!("{thread}: {call}{fate}"));
    }
    lines.join("\n")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_shortcut_moves_the_tracker_as_the_general_way_does(choices in choices()) {
        play(&any_calls(&choices));
    }

    #[test]
    fn so_it_does_in_correct_histories(choices in choices(), early: bool) {
        let history = History::of(choices, early);
        let text: Vec<_> = history.lines.iter().map(|line| line.text.as_str()).collect();
        play(&text.join("\n"));
    }
}

#[test]
fn most_gets_of_a_loop_take_the_shortcut() {
    let (usual, codes) = play("p: alloc a 4096\n150 times\np: get a -> h\np: put h\nend");
    // Not the first one, and not the one with which it is often.
    assert_eq!(usual, 148);
    assert!(codes.contains("churn"), "{codes:?}");
}

#[test]
fn unusual_gets_and_puts_are_found_in_a_loop() {
    let in_a_loop = |before: &str, inside: &str, after: &str| {
        play(&format!("p: context x\n{before}\n5 times\np: get a -> h in x\np: put h in x\n{inside}\nend\n{after}")).1
    };
    let own = "p: alloc a 4096 in x";
    for (before, inside, after, code) in [
        (own, "", "p: put h in x", "double-put"),
        (own, "p: put h in x", "", "double-put"),
        (own, "", "p: get a -> h in x", "leaked-handle"),
        (own, "", "300 times\np: get a -> h$ in x\nend", "unreturned-gets"),
        (
            own,
            "",
            "255 times\np: get a -> h$ in x\nend\n3 times\np: get a -> i in x\np: put i in x\nend",
            "unreturned-gets",
        ),
        (own, "", "p: free a\np: get a -> h in x", "get-of-freed"),
        (own, "", "p/2: free a begins\np: get a -> h in x", "leaked-handle"),
        (own, "", "p: get a -> h in x\np/2: put h in x begins\np: put h in x", "double-put"),
        (own, "p: get a -> i in x\nq: put i\np: put i in x", "", "put-of-unknown"),
        ("p: alloc a 4096 as host", "", "", "wrong-usm"),
        ("p: context y\np: alloc a 4096 in y", "", "", "wrong-usm"),
        (own, "p: alloc b 64 in x\np: get a -> i in x exposes 536870912\np: put i in x", "", "slab-exposed"),
        ("p: support memory -> no on d\np: alloc a 4096 in x on d", "", "", "unsupported-device"),
    ] {
        let codes = in_a_loop(before, inside, after);
        assert!(codes.contains(code), "{codes:?} instead of {code}");
    }
}

#[test]
fn any_calls_are_of_all_kinds() {
    use proptest::strategy::ValueTree as _;

    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut usual, mut codes) = (0, BTreeSet::new());
    for _ in 0..50 {
        let (shortcuts, found) = play(&any_calls(&choices().new_tree(&mut runner).unwrap().current()));
        usual += shortcuts;
        codes.extend(found);
    }
    assert!(usual > 50 * 5, "{usual} gets took the shortcut");
    for code in ["double-put", "get-of-freed", "wrong-usm", "leaked-handle", "wrong-kind"] {
        assert!(codes.contains(code), "{code} is not in {codes:?}");
    }
}
