//! One call of a correct history is left out, made twice, or made after those of other processes. A table states the
//! findings for each kind of call; nothing else is found.
//!
//! The table does not use the tracker. It computes the findings from the calls of the history alone.

use std::collections::{BTreeMap, BTreeSet};

use What::{Close, End, Get, Make, Map, Open, Put, Unmap};
use proptest::{prelude::*, strategy::ValueTree as _};

use crate::scenarios::correct::{Call, History, What};
use crate::scenarios::{self, choices};

type Codes = BTreeSet<&'static str>;

/// What is found in these calls.
fn play(calls: &[Call]) -> (String, Codes) {
    let lines: Vec<_> = calls.iter().map(Call::text).collect();
    let (text, found) = scenarios::history(lines.iter().map(String::as_str));
    (text, found.into_iter().collect())
}

/// The table: the findings to expect of a mutation of these calls.
struct Table<'a>(&'a [Call]);

impl Table<'_> {
    fn first(&self, process: usize) -> Option<usize> {
        self.0.iter().position(|call| call.process == process)
    }

    fn ends(&self, life: usize) -> bool {
        self.0.iter().any(|call| call.what == End && call.life == life)
    }

    /// What handle data that is not put leaves.
    fn left_handle(&self, got: &Call) -> Codes {
        match (got.physical, self.ends(got.life)) {
            (false, true) => ["freed-while-exported"].into(),
            (true, true) => ["freed-while-exported", "leaked-handle"].into(),
            (_, false) => ["leaked-handle"].into(),
        }
    }

    /// What an open that is not closed leaves.
    fn left_open(&self, open: &Call) -> Codes {
        if open.physical {
            return ["leaked-physical-memory"].into();
        }
        let mut codes = Codes::from(["leaked-mapping"]);
        codes.extend(self.ends(open.life).then_some("freed-while-open"));
        // Memory that is never freed ends with its process; processes end in the order in which they began. The mapping
        // then belongs to what was opened there last.
        let last = self.0.iter().rfind(|call| call.what == Open && call.same_opened(open)).unwrap_or(open);
        let owner = self.0.iter().find(|call| call.what == Make && call.life == last.life).unwrap().process;
        let outlived = owner != open.process && self.first(owner) < self.first(open.process);
        codes.extend((!self.ends(last.life) && outlived).then_some("exporter-gone"));
        codes
    }

    /// What an open at a place shows whose get is not there, or whose handle data has been put. `gone` is the place of
    /// a call that is to be ignored.
    fn bytes_at(&self, place: usize, open: &Call, gone: usize) -> Option<&'static str> {
        let before = || self.0[..place].iter().enumerate().filter(|(at, _)| *at != gone).map(|(_, call)| call);
        let producer = self.0.iter().find(|call| call.what == Get && call.handle == open.handle).unwrap();
        // Handle data of physical memory is equal if it has the same address, of USM in any case.
        let equal = |call: &&Call| {
            call.what == Get
                && (call.process, &call.memory) == (producer.process, &producer.memory)
                && (!open.physical || call.data == producer.data)
        };
        let is_put = |got: &Call| before().any(|call| call.what == Put && call.handle == got.handle);
        // In a scenario, bytes are known by the name of their handle data.
        let is_known = before().any(|call| call.what == Get && call.data == open.data);
        let Some(latest) = before().rfind(equal).filter(|_| is_known) else {
            // A process that opened known bytes may have known bytes that the adapter has overwritten.
            let known = |call: &Call| call.what == Open && call.handle != open.handle;
            let opened_known = before().any(|call| known(call) && call.process == open.process);
            return (!opened_known).then_some("untraced-peer");
        };
        let alive = before().filter(equal).any(|got| got.life == latest.life && !is_put(got));
        match (latest.life == open.life || open.physical, alive) {
            (true, true) => None,
            (true, false) => Some("use-after-put"),
            (false, _) => Some("stale-handle"),
        }
    }

    /// The finding for the first end of something that does not exist any more; it may have existed before.
    fn ended(&self, at: usize, call: &Call) -> Codes {
        let mut balance = 0_i64;
        let mut lived = false;
        for (place, other) in self.0.iter().enumerate().filter(|(place, other)| *place != at && other.same_opened(call))
        {
            lived |= other.what == Open && place != at;
            balance += i64::from(other.what == Open) - i64::from(other.what == Close);
            if balance < 0 {
                break;
            }
        }
        match (lived, call.physical) {
            (true, false) => ["double-close"].into(),
            (true, true) => ["double-release"].into(),
            (false, false) => ["close-of-unknown"].into(),
            // The object may have been made by a function that is not intercepted.
            (false, true) => Codes::new(),
        }
    }

    /// Whether other handle data lay where a get gave some. Without the get, an open there would be one of those.
    fn has_been_another(&self, at: usize) -> bool {
        let Call { data, memory, .. } = &self.0[at];
        let before = |call: &Call| call.what == Get && call.data == *data && call.memory != *memory;
        self.0[..at].iter().any(before)
    }

    /// The call is left out.
    fn dropped(&self, at: usize) -> Option<Codes> {
        let call = &self.0[at];
        let earlier =
            |what, same: &dyn Fn(&Call) -> bool| self.0[..at].iter().any(|call| call.what == what && same(call));
        let reborn = |same: &dyn Fn(&Call) -> bool| self.0[at + 1..].iter().any(same);
        match call.what {
            // If the creation of memory was not observed, only the earlier use of its address is known.
            Make if call.physical => None,
            Make => (!earlier(Make, &|other| other.memory == call.memory)).then(Codes::new),
            Get if self.has_been_another(at) => None,
            Get => {
                let put = earlier(Put, &|other| other.data == call.data);
                let mut codes = Codes::from([if put { "double-put" } else { "put-of-unknown" }]);
                let opens =
                    self.0.iter().enumerate().filter(|(_, open)| open.what == Open && open.handle == call.handle);
                codes.extend(opens.filter_map(|(place, open)| self.bytes_at(place, open, at)));
                Some(codes)
            }
            Put if reborn(&|other| other.what == Get && other.data == call.data) => None,
            Put => Some(self.left_handle(call)),
            Open => Some(self.ended(at, call)),
            Close if call.physical && reborn(&|other| other.what == Open && other.same_opened(call)) => None,
            Close => Some(self.left_open(call)),
            Unmap if reborn(&|other| other.what == Map && other.addresses == call.addresses) => None,
            // Its own process may leave the memory to its end.
            Unmap if call.opened.is_empty() && !self.ends(call.life) => Some(Codes::new()),
            Unmap => Some(["released-while-mapped"].into()),
            End | Map => Some(Codes::new()),
        }
    }

    /// The call is made once more, right behind the first time.
    fn doubled(&self, at: usize) -> Codes {
        let call = &self.0[at];
        match call.what {
            Get => self.left_handle(call),
            Put => ["double-put"].into(),
            Open => self.left_open(call),
            Close if !call.physical => ["double-close"].into(),
            Close | End if call.physical => ["double-release"].into(),
            _ => Codes::new(),
        }
    }

    /// The call comes behind the calls of other processes up to `to`.
    fn moved(&self, at: usize, to: usize) -> Codes {
        let call = &self.0[at];
        let mut codes = Codes::new();
        let crossed = self.0[..=to].iter().enumerate().skip(at + 1);
        match call.what {
            Get => {
                let opens = crossed.filter(|(_, other)| other.what == Open && other.handle == call.handle);
                codes.extend(opens.filter_map(|(place, open)| self.bytes_at(place, open, at)));
            }
            Open => codes.extend(self.bytes_at(to + 1, call, at)),
            Close if !call.physical => {
                let freed = crossed.into_iter().any(|(_, other)| other.what == End && other.life == call.life);
                codes.extend(freed.then_some("freed-while-open"));
            }
            _ => {}
        }
        codes
    }
}

/// The place behind the last call that follows and is of another process.
fn reach(calls: &[Call], at: usize) -> usize {
    let mine = calls[at + 1..].iter().position(|call| call.process == calls[at].process);
    mine.map_or(calls.len() - 1, |mine| at + mine)
}

fn mutate(calls: &[Call], mutation: usize, at: usize) -> Option<(Vec<Call>, Codes)> {
    let table = Table(calls);
    let mut mutated = calls.to_vec();
    match mutation {
        0 => {
            mutated.remove(at);
            Some((mutated, table.dropped(at)?))
        }
        1 => {
            let mut again = calls[at].clone();
            // Another get gives other handle data, and another open of an object another object.
            match again.what {
                Get => "again".clone_into(&mut again.data),
                Open if again.physical => "again".clone_into(&mut again.opened),
                _ => {}
            }
            mutated.insert(at + 1, again);
            Some((mutated, table.doubled(at)))
        }
        _ => {
            let to = reach(calls, at);
            let call = mutated.remove(at);
            mutated.insert(to, call);
            // Where a process comes later than another one, it also ends later; and there must be something to cross.
            let first = calls[..at].iter().all(|other| other.process != calls[at].process);
            let becomes = |other: &Call| other.what == Get && other.data == calls[at].data;
            let unknown = match calls[at].what {
                Get => table.has_been_another(at),
                // A late open would use the handle data that is there by then.
                Open => calls[at..=to].iter().any(becomes),
                _ => false,
            };
            (to > at && !first && !unknown).then(|| (mutated, table.moved(at, to)))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_correct_history_has_no_finding(choices in choices()) {
        let (text, found) = play(&History::from_choices(choices).calls);
        prop_assert!(found.is_empty(), "{found:?}\n{text}");
    }

    #[test]
    fn a_mutation_has_the_findings_of_the_table(choices in choices(), mutation in 0..3_usize, place: usize) {
        let calls = History::from_choices(choices).calls;
        prop_assume!(!calls.is_empty());
        let at = place % calls.len();
        let Some((mutated, expected)) = mutate(&calls, mutation, at) else { return Ok(()) };
        let (text, found) = play(&mutated);
        prop_assert_eq!(found, expected, "mutation {} of {}\n{}", mutation, calls[at].text(), text);
    }
}

/// Each mutation of each kind of call happens, and each violation that it may be is found somewhere.
#[test]
fn every_row_of_the_table_is_used() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut rows = BTreeMap::<_, usize>::new();
    let mut seen = Codes::new();
    for _ in 0..80 {
        let calls = History::from_choices(choices().new_tree(&mut runner).unwrap().current()).calls;
        for (at, mutation) in (0..calls.len()).flat_map(|at| (0..3).map(move |mutation| (at, mutation))) {
            let Some((_, expected)) = mutate(&calls, mutation, at) else { continue };
            *rows.entry((mutation, calls[at].what, calls[at].physical)).or_default() += 1;
            seen.extend(expected);
        }
    }
    // Nothing is reported for physical memory whose creation was not observed. Only physical memory is mapped.
    assert_eq!(rows.len(), 3 * (6 * 2 + 2) - 1, "{rows:#?}");
    assert!(rows.values().all(|times| *times > 10), "{rows:#?}");
    let all = [
        "close-of-unknown",
        "double-close",
        "double-put",
        "double-release",
        "exporter-gone",
        "freed-while-exported",
        "freed-while-open",
        "leaked-handle",
        "leaked-mapping",
        "leaked-physical-memory",
        "put-of-unknown",
        "released-while-mapped",
        "stale-handle",
        "untraced-peer",
        "use-after-put",
    ];
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), all);
}
