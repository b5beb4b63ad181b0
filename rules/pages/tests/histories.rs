//! Any correct history yields no finding; any one fault in it yields just what that fault is.
//!
//! Histories are made by letting random numbers choose what three processes of three threads do next, among what is
//! allowed. Calls overlap, are refused, and an address is used again from the moment its end begins.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test stops where it is surprised"
)]

mod scenarios;

use std::collections::{BTreeMap, BTreeSet};

use proptest::{prelude::*, strategy::ValueTree as _};
use scenarios::{choices, pick};

const PROCESSES: usize = 3;
const THREADS: usize = 3;

/// A line, with what a fault needs to know of it.
#[derive(Clone, Debug)]
struct Act {
    process: usize,
    text: String,
    kind: What,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    /// A put that returned at once, well: of which handle and which memory, and whether it was the last of these bytes.
    Put(String, usize, bool),
    /// Likewise a close, of which mapping, of which memory; it was the last of its pointer.
    LastClose(String, usize),
    /// Likewise a free, of which memory.
    Free(String, usize),
    Other,
}

#[derive(Clone, Debug)]
struct Memory {
    generation: usize,
    name: String,
    process: usize,
    /// Calls under way and opens that need it to live.
    busy: usize,
    handles: usize,
}

#[derive(Clone, Debug)]
struct HandleData {
    name: String,
    generation: usize,
    offset: u64,
    process: usize,
    /// Calls under way that use its bytes.
    busy: usize,
}

/// What a call under way does when it returns.
#[derive(Clone, Debug)]
enum Then {
    Nothing,
    Born(Memory),
    Gets(HandleData),
    Opens {
        process: usize,
        mapping: String,
        generation: usize,
        handle: String,
    },
    /// The end was refused: the object is back.
    Puts(HandleData),
    Closes {
        process: usize,
        mapping: String,
        generation: usize,
    },
    Frees(usize),
}

struct History {
    choices: std::vec::IntoIter<u32>,
    acts: Vec<Act>,
    memory: Vec<Memory>,
    got: Vec<HandleData>,
    /// Opens by process and mapping: the memory and how many.
    open: BTreeMap<(usize, String), (usize, usize)>,
    under_way: BTreeMap<(usize, usize), (bool, Then)>,
    names: BTreeMap<&'static str, BTreeSet<(usize, usize)>>,
    generations: usize,
    freed: BTreeSet<usize>,
    /// Whether memory may be freed before its handles are put, and how often it was.
    early: bool,
    early_frees: usize,
    /// Who exported which memory; what of it was tried to open, and by whom; and who opened his own.
    exported: BTreeMap<usize, usize>,
    tried: BTreeMap<usize, BTreeSet<usize>>,
    opened_own: BTreeSet<usize>,
}

impl History {
    fn of(choices: Vec<u32>, early: bool) -> Self {
        let mut history = Self {
            choices: choices.into_iter(),
            acts: Vec::new(),
            memory: Vec::new(),
            got: Vec::new(),
            open: BTreeMap::new(),
            under_way: BTreeMap::new(),
            names: BTreeMap::new(),
            generations: 0,
            freed: BTreeSet::new(),
            early,
            early_frees: 0,
            exported: BTreeMap::new(),
            tried: BTreeMap::new(),
            opened_own: BTreeSet::new(),
        };
        while history.choices.len() > 0 {
            history.step();
        }
        history.tidy_up();
        history
    }

    fn choose(&mut self, among: usize) -> usize {
        self.choices.next().unwrap_or(1) as usize % among.max(1)
    }

    /// The lowest free name of a sort: so that addresses come again as soon as they can.
    fn name(&mut self, sort: &'static str, process: usize) -> String {
        let taken = self.names.entry(sort).or_default();
        let number = (0..usize::MAX).find(|number| !taken.contains(&(process, *number))).unwrap();
        taken.insert((process, number));
        format!("{sort}{process}{number}")
    }

    fn give_back(&mut self, sort: &'static str, process: usize, name: &str) {
        let number = name[sort.len() + 1..].parse().unwrap();
        self.names.entry(sort).or_default().remove(&(process, number));
    }

    fn tell(&mut self, process: usize, thread: usize, text: &str, kind: What) {
        self.acts.push(Act { process, text: format!("p{process}/{}: {text}", thread + 1), kind });
    }

    fn step(&mut self) {
        let (process, thread) = (self.choose(PROCESSES), self.choose(THREADS));
        if let Some((well, then)) = self.under_way.remove(&(process, thread)) {
            self.tell(process, thread, if well { "returns" } else { "fails" }, What::Other);
            self.settle(well, then);
            return;
        }
        let (what, which, how) = (self.choose(6), self.choose(8), self.choose(6));
        // 0 and 1: it takes its time; 1 and 2: it is refused.
        let (slow, well) = (how < 2, how == 0 || how > 2);
        let mine = |of: usize| of == process;
        match what {
            0 => {
                self.generations += 1;
                let name = self.name("a", process);
                let memory = Memory { generation: self.generations, name, process, busy: 0, handles: 0 };
                self.call(process, thread, &format!("alloc {} 4096", memory.name), (slow, well), Then::Born(memory));
            }
            1 => {
                let Some(index) = pick(&self.memory, which, |memory| mine(memory.process)) else { return };
                self.memory[index].busy += 1;
                let (generation, from) = (self.memory[index].generation, self.memory[index].name.clone());
                let offset = [0, 0, 64][which % 3];
                let got = HandleData { name: self.name("h", process), generation, offset, process, busy: 0 };
                let text = format!("get {from} + {offset} -> {}", got.name).replace("+ 0 ", "");
                self.call(process, thread, &text, (slow, well), Then::Gets(got));
            }
            2 => {
                let Some(index) = pick(&self.got, which, |got| got.busy == 0 && mine(got.process)) else { return };
                self.put(index, thread, slow, well);
            }
            3 => {
                let alive: Vec<_> = self.memory.iter().map(|memory| memory.generation).collect();
                let Some(index) = pick(&self.got, which, |got| alive.contains(&got.generation)) else { return };
                self.got[index].busy += 1;
                let HandleData { name: handle, generation, offset, .. } = self.got[index].clone();
                let memory = self.memory.iter_mut().find(|memory| memory.generation == generation).unwrap();
                memory.busy += 1;
                self.tried.entry(generation).or_default().insert(process);
                let mapping = format!("m{process}{}x{offset}", memory.name);
                let text = format!("open {handle} -> {mapping}");
                self.call(process, thread, &text, (slow, well), Then::Opens { process, mapping, generation, handle });
            }
            4 => {
                let open: Vec<_> = self.open.keys().filter(|(holder, _)| mine(*holder)).cloned().collect();
                if let Some((_, mapping)) = open.get(which % open.len().max(1)) {
                    self.close(process, mapping, thread, slow, well);
                }
            }
            _ => {
                let early = self.early;
                let free = |memory: &Memory| mine(memory.process) && memory.busy == 0 && (early || memory.handles == 0);
                if let Some(index) = pick(&self.memory, which, free) {
                    self.free(index, thread, slow, well);
                }
            }
        }
    }

    fn call(&mut self, process: usize, thread: usize, text: &str, (slow, well): (bool, bool), then: Then) {
        let how = if slow {
            " begins"
        } else if well {
            ""
        } else {
            " fails"
        };
        self.tell(process, thread, &format!("{text}{how}"), What::Other);
        if slow {
            self.under_way.insert((process, thread), (well, then));
        } else {
            self.settle(well, then);
        }
    }

    fn settle(&mut self, well: bool, then: Then) {
        match then {
            Then::Nothing => {}
            Then::Born(memory) if well => self.memory.push(memory),
            Then::Born(memory) => self.give_back("a", memory.process, &memory.name),
            Then::Gets(got) => {
                let memory = self.memory.iter_mut().find(|memory| memory.generation == got.generation).unwrap();
                memory.busy -= 1;
                if well {
                    memory.handles += 1;
                    self.exported.insert(got.generation, got.process);
                    self.got.push(got);
                } else {
                    self.give_back("h", got.process, &got.name);
                }
            }
            Then::Opens { process, mapping, generation, handle } => {
                self.got.iter_mut().find(|got| got.name == handle).unwrap().busy -= 1;
                if well {
                    self.open.entry((process, mapping)).or_insert((generation, 0)).1 += 1;
                    let owner = self.memory.iter().find(|memory| memory.generation == generation).unwrap().process;
                    self.opened_own.extend((owner == process).then_some(process));
                } else {
                    self.unbusy(generation);
                }
            }
            Then::Puts(got) => {
                if let Some(memory) = self.memory.iter_mut().find(|memory| memory.generation == got.generation) {
                    memory.busy -= 1;
                }
                self.got.push(got);
            }
            Then::Closes { process, mapping, generation } => {
                self.open.entry((process, mapping)).or_insert((generation, 0)).1 += 1;
            }
            Then::Frees(generation) => self.unbusy(generation),
        }
    }

    fn unbusy(&mut self, generation: usize) {
        self.memory.iter_mut().find(|memory| memory.generation == generation).unwrap().busy -= 1;
    }

    fn put(&mut self, index: usize, thread: usize, slow: bool, well: bool) {
        let got = self.got.remove(index);
        if let Some(memory) = self.memory.iter_mut().find(|memory| memory.generation == got.generation) {
            // A put that will be refused needs the memory: whether a free meanwhile comes before its put is nobody's guess.
            if well { memory.handles -= 1 } else { memory.busy += 1 }
        }
        let (process, text) = (got.process, format!("put {}", got.name));
        if well {
            self.give_back("h", process, &got.name);
        }
        if well && !slow {
            let equal = |other: &HandleData| (other.generation, other.offset) == (got.generation, got.offset);
            let last = !self.got.iter().any(equal);
            self.tell(process, thread, &text, What::Put(got.name, got.generation, last));
        } else {
            self.call(process, thread, &text, (slow, well), if well { Then::Nothing } else { Then::Puts(got) });
        }
    }

    fn close(&mut self, process: usize, mapping: &str, thread: usize, slow: bool, well: bool) {
        let key = (process, mapping.to_owned());
        let (generation, opens) = self.open.get_mut(&key).unwrap();
        let generation = *generation;
        *opens -= 1;
        let last = *opens == 0;
        if last {
            self.open.remove(&key);
        }
        let text = format!("close {mapping}");
        if well {
            self.unbusy(generation);
        }
        if well && !slow {
            let kind = if last { What::LastClose(mapping.to_owned(), generation) } else { What::Other };
            self.tell(process, thread, &text, kind);
        } else {
            let back = Then::Closes { process, mapping: mapping.to_owned(), generation };
            self.call(process, thread, &text, (slow, well), if well { Then::Nothing } else { back });
        }
    }

    fn free(&mut self, index: usize, thread: usize, slow: bool, well: bool) {
        let memory = &mut self.memory[index];
        let (process, generation, text) = (memory.process, memory.generation, format!("free {}", memory.name));
        if well {
            let memory = self.memory.remove(index);
            self.give_back("a", process, &memory.name);
            self.freed.insert(generation);
            self.early_frees += usize::from(memory.handles > 0);
        } else {
            memory.busy += 1;
        }
        if well && !slow {
            let name = text["free ".len()..].to_owned();
            return self.tell(process, thread, &text, What::Free(name, generation));
        }
        self.call(process, thread, &text, (slow, well), if well { Then::Nothing } else { Then::Frees(generation) });
    }

    fn tidy_up(&mut self) {
        while let Some(((process, thread), (well, then))) = self.under_way.pop_first() {
            self.tell(process, thread, if well { "returns" } else { "fails" }, What::Other);
            self.settle(well, then);
        }
        while let Some((process, mapping)) = self.open.keys().next().cloned() {
            self.close(process, &mapping, 0, false, true);
        }
        while !self.got.is_empty() {
            self.put(0, 0, false, true);
        }
        // Memory that is never freed is no violation of IPC.
        while self.memory.len() > 1 {
            self.free(0, 0, false, true);
        }
    }

    fn play(&self) -> (String, Vec<&'static str>) {
        scenarios::history(self.acts.iter().map(|act| act.text.as_str()))
    }

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
