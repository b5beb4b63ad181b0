//! Any correct history yields no finding; any one fault in it yields just what that fault is.
//!
//! The histories are those of `scenarios/overlapping.rs`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test stops where it is surprised"
)]

mod scenarios;

use std::collections::{BTreeMap, BTreeSet};

use proptest::{prelude::*, strategy::ValueTree as _};
use scenarios::{
    choices,
    overlapping::{Act, History, PROCESSES, What},
};

impl History {
    /// The processes that are noted for handle data that nobody opened, with how much of it, and for opens of their own.
    fn noted(&self) -> [BTreeMap<usize, u64>; 2] {
        let text: Vec<_> = self.acts.iter().map(|act| act.text.as_str()).collect();
        let found = scenarios::play(&text.join("\n"));
        let first = |process: usize| self.acts.iter().position(|act| act.process == process);
        let mut order: Vec<_> = (0..PROCESSES).filter(|process| first(*process).is_some()).collect();
        order.sort_by_key(|process| first(*process));
        scenarios::OF_RUNS.map(|rule| {
            let of_rule = found.iter().filter(|finding| finding.rule.code == rule);
            of_rule.map(|finding| (order[finding.at.process.0 as usize], finding.count)).collect()
        })
    }

    /// Who should be.
    fn to_be_noted(&self) -> [BTreeMap<usize, u64>; 2] {
        let by_others = |(export, who): (&_, &BTreeSet<usize>)| who.iter().any(|who| self.exported[export] != *who);
        let exchanging = self.tried.iter().any(by_others);
        let mut unopened = BTreeMap::new();
        for (_, process) in self.exported.iter().filter(|(export, _)| exchanging && !self.tried.contains_key(export)) {
            *unopened.entry(*process).or_default() += 1;
        }
        [unopened, self.opened_own.iter().map(|process| (*process, 1)).collect()]
    }

    /// Puts a line in, of a thread that is inside of no call.
    fn insert(&mut self, index: usize, process: usize, text: &str) {
        self.acts.insert(index, Act { process, text: format!("p{process}/9: {text}"), kind: What::Other });
    }

    /// Puts an open and its close in.
    fn open_late(&mut self, index: usize, process: usize, handle: &str) {
        self.insert(index, process, "close late");
        self.insert(index, process, &format!("open {handle} -> late"));
    }

    /// How many closes of a mapping have begun by then that have not returned.
    fn closes_under_way(&self, index: usize, mapping: &str) -> usize {
        let mut inside = BTreeMap::new();
        for act in &self.acts[..index] {
            let (thread, what) = act.text.split_once(": ").unwrap();
            inside.insert(thread, what);
        }
        inside.values().filter(|what| **what == format!("close {mapping} begins")).count()
    }

    /// Handle data that was last got of the memory that is freed there.
    fn handle_of(&self, index: usize, memory: &str) -> Option<String> {
        let words: Vec<Vec<&str>> =
            self.acts[..index].iter().map(|act| act.text.split(' ').skip(1).collect()).collect();
        let born = words.iter().rposition(|words| words[0] == "alloc" && words[1] == memory)?;
        if words[born].len() > 3 {
            return None; // It was not there at once.
        }
        let got = |words: &Vec<&str>| words[0] == "get" && words[1] == memory && words[words.len() - 2] == "->";
        let at = born + words[born..].iter().rposition(got)?;
        let handle = *words[at].last()?;
        let again = words[at + 1..].iter().any(|words| words.windows(2).any(|two| two == ["->", handle]));
        (!again).then(|| handle.to_owned())
    }

    /// Puts one fault in, at one of the places where it can be, and says what should be found.
    fn violation(&mut self, fault: usize, place: usize) -> Option<Vec<&'static str>> {
        let never_again = |index: usize, name: &str| {
            let again = format!("-> {name}");
            !self.acts[index..].iter().any(|act| act.text.split(" begins").next().unwrap().ends_with(&again))
        };
        let fits = |index: &usize| match (&self.acts[*index].kind, fault) {
            (What::Put(name, ..), 0) | (What::LastClose(name, _), 3) => never_again(*index, name),
            (What::Put(.., last), 9) => *last,
            (What::LastClose(name, _), 10) => self.closes_under_way(*index, name) == 0,
            (What::Free(name, _), 12 | 13) => self.handle_of(*index, name).is_some(),
            (What::Put(..), 1 | 2) | (What::LastClose(..), 4..=8) | (What::Free(..), 11) => true,
            _ => false,
        };
        let places: Vec<_> = (0..self.acts.len()).filter(fits).collect();
        let index = *places.get(place % places.len().max(1))?;
        let act = self.acts[index].clone();
        let (What::Put(name, generation, _) | What::LastClose(name, generation) | What::Free(name, generation)) =
            &act.kind
        else {
            return None;
        };
        let freed = self.freed.contains(generation);
        let thread = act.text.split_once(": ").unwrap().0;
        match fault {
            0 => {
                self.acts.remove(index);
                Some(vec![if freed { "freed-while-exported" } else { "leaked-handle" }])
            }
            1 => {
                self.acts.insert(index + 1, act);
                Some(vec!["double-put"])
            }
            2 => {
                let other = (act.process + 1) % PROCESSES;
                let text = format!("p{other}/9: put {name}");
                self.acts.insert(index, Act { process: other, text, kind: What::Other });
                Some(vec!["put-of-unknown"])
            }
            3 => {
                self.acts.remove(index);
                // What is never freed goes with its process; they end in the order in which they began.
                let owner = name[2..].strip_prefix('a')?[..1].parse().ok()?;
                let first = |process: usize| self.acts.iter().position(|act| act.process == process);
                let outlived = !freed && owner != act.process && first(owner) < first(act.process);
                let beside = [(freed, "freed-while-open"), (outlived, "exporter-gone")];
                let beside = beside.into_iter().filter_map(|(so, code)| so.then_some(code));
                Some(beside.chain(["leaked-mapping"]).collect())
            }
            4 => {
                self.acts.insert(index + 1, act);
                Some(vec!["double-close"])
            }
            5 => {
                self.acts[index].text += " + 1";
                Some(vec!["open-close-mismatch"])
            }
            6 => {
                self.acts[index].text += " in elsewhere";
                Some(vec!["wrong-context"])
            }
            7 => {
                let text = format!("{thread}: free {name} fails");
                self.acts.insert(index, Act { text, kind: What::Other, ..act });
                Some(vec!["open-close-mismatch"])
            }
            9 => {
                self.open_late(index + 1, (act.process + 1) % PROCESSES, name);
                Some(vec!["use-after-put"])
            }
            10 | 11 => {
                self.insert(index + 1, act.process, &format!("get {name} -> never fails"));
                Some(vec![if fault == 10 { "use-after-close" } else { "get-of-freed" }])
            }
            12 => {
                let handle = self.handle_of(index, name)?;
                self.open_late(index + 1, (act.process + 1) % PROCESSES, &handle);
                Some(vec!["use-after-free"])
            }
            13 => {
                let handle = self.handle_of(index, name)?;
                self.insert(index + 1, act.process, &format!("free {name}"));
                self.open_late(index + 1, (act.process + 1) % PROCESSES, &handle);
                self.insert(index + 1, act.process, &format!("alloc {name} 4096"));
                Some(vec!["stale-handle"])
            }
            _ => {
                let other = (act.process + 1) % PROCESSES;
                let text = format!("p{other}/9: close {name}");
                self.acts.insert(index, Act { process: other, text, kind: What::Other });
                Some(vec!["close-of-unknown"])
            }
        }
    }
}

const FAULTS: usize = 14;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_faultless_history_yields_nothing(choices in choices()) {
        let (text, codes) = History::of(choices, false).play();
        prop_assert!(codes.is_empty(), "{codes:?}\n{text}");
    }

    #[test]
    fn what_nobody_opens_and_what_is_opened_at_home_is_noted_and_nothing_else(choices in choices(), early: bool) {
        let history = History::of(choices, early);
        prop_assert_eq!(history.noted(), history.to_be_noted(), "{}", history.play().0);
    }

    #[test]
    fn a_free_before_its_put_is_a_note_and_no_more(choices in choices()) {
        let history = History::of(choices, true);
        let (text, codes) = history.play();
        prop_assert_eq!(codes, vec!["freed-while-exported"; history.early_frees], "{}", text);
    }

    #[test]
    fn one_fault_yields_just_that(choices in choices(), fault in 0..FAULTS, place: usize) {
        let mut history = History::of(choices, false);
        let Some(expected) = history.violation(fault, place) else { return Ok(()) };
        let (text, codes) = history.play();
        prop_assert_eq!(codes, expected, "fault {}\n{}", fault, text);
    }
}

#[test]
fn histories_are_worth_the_name() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut calls, mut faults) = (0, [0; FAULTS]);
    for _ in 0..50 {
        let choices = choices().new_tree(&mut runner).unwrap().current();
        let history = History::of(choices.clone(), false);
        calls += history.acts.len();
        for (fault, count) in faults.iter_mut().enumerate() {
            *count += usize::from(History::of(choices.clone(), false).violation(fault, 1).is_some());
        }
    }
    assert!(calls > 50 * 40, "{calls} lines");
    assert!(faults.iter().all(|count| *count > 25), "{faults:?}");
}
