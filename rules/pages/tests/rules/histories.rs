//! A correct history has no finding, and one fault in it has exactly its findings.
//!
//! The histories are those of `scenarios/overlapping.rs`.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use crate::scenarios::overlapping::{History, Line, PROCESSES, What};
use crate::scenarios::{self, choices};

impl History {
    /// The processes with a note on unopened handle data, with the count; and those with a note on opens of their own
    /// memory.
    fn noted(&self) -> [BTreeMap<usize, u64>; 2] {
        let text: Vec<_> = self.lines.iter().map(|line| line.text.as_str()).collect();
        let found = scenarios::play(&text.join("\n"));
        let first = |process: usize| self.lines.iter().position(|line| line.process == process);
        let mut order: Vec<_> = (0..PROCESSES).filter(|process| first(*process).is_some()).collect();
        order.sort_by_key(|process| first(*process));
        scenarios::OF_RUNS.map(|rule| {
            let of_rule = found.iter().filter(|finding| finding.rule.code == rule);
            of_rule.map(|finding| (order[finding.at.process.0 as usize], finding.count)).collect()
        })
    }

    /// The expected result of [`Self::noted`].
    fn to_be_noted(&self) -> [BTreeMap<usize, u64>; 2] {
        let by_others = |(export, who): (&_, &BTreeSet<usize>)| who.iter().any(|who| self.exported[export] != *who);
        let exchanging = self.tried.iter().any(by_others);
        let mut unopened = BTreeMap::new();
        for (_, process) in self.exported.iter().filter(|(export, _)| exchanging && !self.tried.contains_key(export)) {
            *unopened.entry(*process).or_default() += 1;
        }
        [unopened, self.opened_own.iter().map(|process| (*process, 1)).collect()]
    }

    /// Inserts a line of a thread that is outside of calls.
    fn insert(&mut self, index: usize, process: usize, text: &str) {
        self.lines.insert(index, Line { process, text: format!("p{process}/9: {text}"), kind: What::Other });
    }

    /// Inserts an open and its close.
    fn open_late(&mut self, index: usize, process: usize, handle: &str) {
        self.insert(index, process, "close late");
        self.insert(index, process, &format!("open {handle} -> late"));
    }

    /// How many closes of a mapping are under way at that line.
    fn closes_under_way(&self, index: usize, mapping: &str) -> usize {
        let mut inside = BTreeMap::new();
        for line in &self.lines[..index] {
            let (thread, what) = line.text.split_once(": ").unwrap();
            inside.insert(thread, what);
        }
        inside.values().filter(|what| **what == format!("close {mapping} begins")).count()
    }

    /// The last handle data that was got for the memory that is freed there.
    fn handle_of(&self, index: usize, memory: &str) -> Option<String> {
        let words: Vec<Vec<&str>> =
            self.lines[..index].iter().map(|line| line.text.split(' ').skip(1).collect()).collect();
        let born = words.iter().rposition(|words| words[0] == "alloc" && words[1] == memory)?;
        if words[born].len() > 3 {
            return None; // The allocation did not return at once.
        }
        let got = |words: &Vec<&str>| words[0] == "get" && words[1] == memory && words[words.len() - 2] == "->";
        let at = born + words[born..].iter().rposition(got)?;
        let handle = *words[at].last()?;
        let again = words[at + 1..].iter().any(|words| words.windows(2).any(|two| two == ["->", handle]));
        (!again).then(|| handle.to_owned())
    }

    /// Adds one fault at one of the possible places. Returns the expected findings.
    fn violation(&mut self, fault: usize, place: usize) -> Option<Vec<&'static str>> {
        let never_again = |index: usize, name: &str| {
            let again = format!("-> {name}");
            !self.lines[index..].iter().any(|line| line.text.split(" begins").next().unwrap().ends_with(&again))
        };
        let fits = |index: &usize| match (&self.lines[*index].kind, fault) {
            (What::Put(name, ..), 0) | (What::LastClose(name, _), 3) => never_again(*index, name),
            (What::Put(.., last), 9) => *last,
            (What::LastClose(name, _), 10) => self.closes_under_way(*index, name) == 0,
            (What::Free(name, _), 12 | 13) => self.handle_of(*index, name).is_some(),
            (What::Put(..), 1 | 2) | (What::LastClose(..), 4..=8) | (What::Free(..), 11) => true,
            _ => false,
        };
        let places: Vec<_> = (0..self.lines.len()).filter(fits).collect();
        let index = *places.get(place % places.len().max(1))?;
        let line = self.lines[index].clone();
        let (What::Put(name, generation, _) | What::LastClose(name, generation) | What::Free(name, generation)) =
            &line.kind
        else {
            return None;
        };
        let freed = self.freed.contains(generation);
        let thread = line.text.split_once(": ").unwrap().0;
        match fault {
            0 => {
                self.lines.remove(index);
                Some(vec![if freed { "freed-while-exported" } else { "leaked-handle" }])
            }
            1 => {
                self.lines.insert(index + 1, line);
                Some(vec!["double-put"])
            }
            2 => {
                let other = (line.process + 1) % PROCESSES;
                self.insert(index, other, &format!("put {name}"));
                Some(vec!["put-of-unknown"])
            }
            3 => {
                self.lines.remove(index);
                // Memory that is never freed ends with its process; processes end in the order in which they began.
                let owner = name[2..].strip_prefix('a')?[..1].parse().ok()?;
                let first = |process: usize| self.lines.iter().position(|line| line.process == process);
                let outlived = !freed && owner != line.process && first(owner) < first(line.process);
                let beside = [(freed, "freed-while-open"), (outlived, "exporter-gone")];
                let beside = beside.into_iter().filter_map(|(so, code)| so.then_some(code));
                Some(beside.chain(["leaked-mapping"]).collect())
            }
            4 => {
                self.lines.insert(index + 1, line);
                Some(vec!["double-close"])
            }
            5 => {
                self.lines[index].text += " + 1";
                Some(vec!["open-close-mismatch"])
            }
            6 => {
                self.lines[index].text += " in elsewhere";
                Some(vec!["wrong-context"])
            }
            7 => {
                let text = format!("{thread}: free {name} fails");
                self.lines.insert(index, Line { text, kind: What::Other, ..line });
                Some(vec!["open-close-mismatch"])
            }
            9 => {
                self.open_late(index + 1, (line.process + 1) % PROCESSES, name);
                Some(vec!["use-after-put"])
            }
            10 | 11 => {
                self.insert(index + 1, line.process, &format!("get {name} -> never fails"));
                Some(vec![if fault == 10 { "use-after-close" } else { "get-of-freed" }])
            }
            12 => {
                let handle = self.handle_of(index, name)?;
                self.open_late(index + 1, (line.process + 1) % PROCESSES, &handle);
                Some(vec!["use-after-free"])
            }
            13 => {
                let handle = self.handle_of(index, name)?;
                self.insert(index + 1, line.process, &format!("free {name}"));
                self.open_late(index + 1, (line.process + 1) % PROCESSES, &handle);
                self.insert(index + 1, line.process, &format!("alloc {name} 4096"));
                Some(vec!["stale-handle"])
            }
            _ => {
                let other = (line.process + 1) % PROCESSES;
                self.insert(index, other, &format!("close {name}"));
                Some(vec!["close-of-unknown"])
            }
        }
    }
}

const FAULTS: usize = 14;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_correct_history_has_no_finding(choices in choices()) {
        let (text, codes) = History::from_choices(choices, false).play();
        prop_assert!(codes.is_empty(), "{codes:?}\n{text}");
    }

    #[test]
    fn unopened_handle_data_and_opens_in_the_producer_are_the_only_notes(choices in choices(), early: bool) {
        let history = History::from_choices(choices, early);
        prop_assert_eq!(history.noted(), history.to_be_noted(), "{}", history.play().0);
    }

    #[test]
    fn a_free_before_its_put_is_only_a_note(choices in choices()) {
        let history = History::from_choices(choices, true);
        let (text, codes) = history.play();
        prop_assert_eq!(codes, vec!["freed-while-exported"; history.early_frees], "{}", text);
    }

    #[test]
    fn one_fault_has_exactly_its_findings(choices in choices(), fault in 0..FAULTS, place: usize) {
        let mut history = History::from_choices(choices, false);
        let Some(expected) = history.violation(fault, place) else { return Ok(()) };
        let (text, codes) = history.play();
        prop_assert_eq!(codes, expected, "fault {}\n{}", fault, text);
    }
}

#[test]
fn histories_are_long_and_every_fault_occurs() {
    let of = |choices| History::from_choices(choices, false);
    let is_possible = |history: &mut History, fault| history.violation(fault, 1).is_some();
    scenarios::every_fault_occurs([50, FAULTS, 25], of, |history| history.lines.len(), is_possible);
}
