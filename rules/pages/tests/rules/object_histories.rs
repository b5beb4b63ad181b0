//! A correct history of physical memory and events has no finding, and one fault in it has exactly its findings.
//!
//! Random numbers choose what three processes of two threads do next, among what is allowed. Calls overlap or are
//! refused, and an address is used again as soon as its end has returned.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use crate::scenarios::{self, choices, pick};

const PROCESSES: usize = 3;
const THREADS: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sort {
    Physical,
    Event,
}

use Sort::{Event, Physical};

impl Sort {
    fn word(self) -> &'static str {
        if self == Physical { "physical" } else { "event" }
    }

    fn other(self) -> Self {
        if self == Physical { Event } else { Physical }
    }

    /// The rule of one that was opened and left.
    fn leak(self) -> &'static str {
        if self == Physical { "leaked-physical-memory" } else { "leaked-event" }
    }
}

/// A line, with what a fault needs to know of it.
#[derive(Clone, Debug)]
struct Line {
    process: usize,
    text: String,
    kind: What,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    /// A put that returned at once and succeeded, of which handle. It was the last of its bytes.
    Put(Sort, String),
    /// The release or close that ended an object that had been opened.
    EndOfImport(Sort, String),
    /// An object was made that can be shared.
    Made(Sort, String),
    /// It was opened.
    Opened(Sort, String),
    /// Physical memory was unmapped from these addresses.
    Unmapped(Sort, String),
    Other,
}

#[derive(Clone, Debug)]
struct Object {
    sort: Sort,
    process: usize,
    name: String,
    opened: bool,
    references: usize,
    /// Handle data that is not put, and calls under way.
    busy: usize,
}

#[derive(Clone, Debug)]
struct HandleData {
    sort: Sort,
    process: usize,
    name: String,
    object: String,
    busy: usize,
}

/// Physical memory at addresses.
#[derive(Clone, Debug)]
struct Mapped {
    process: usize,
    addresses: String,
    object: String,
}

/// What a call under way does when it returns.
#[derive(Clone, Debug)]
enum Then {
    Made(Object),
    Opened(Object, String),
    HandleData(HandleData),
    /// The end was refused, or a reference is one more: what it was about is left as it is here.
    Puts(HandleData),
    Referred(Object),
    Maps(Mapped),
    /// As with a put. One that succeeds counts as soon as it begins.
    Unmaps(Mapped),
}

#[derive(Default)]
struct History {
    choices: std::vec::IntoIter<u32>,
    lines: Vec<Line>,
    objects: Vec<Object>,
    got: Vec<HandleData>,
    mapped: Vec<Mapped>,
    under_way: BTreeMap<(usize, usize), (bool, Then)>,
    names: BTreeSet<String>,
}

impl History {
    fn from_choices(choices: Vec<u32>) -> Self {
        let mut history = Self { choices: choices.into_iter(), ..Self::default() };
        while history.choices.len() > 0 {
            history.step();
        }
        history.tidy_up();
        history
    }

    fn choose(&mut self, among: usize) -> usize {
        self.choices.next().unwrap_or(1) as usize % among.max(1)
    }

    fn name(&mut self, what: &str, process: usize) -> String {
        scenarios::name(&mut self.names, what, process)
    }

    fn add_line(&mut self, process: usize, thread: usize, text: &str, kind: What) {
        self.lines.push(Line { process, text: format!("p{process}/{}: {text}", thread + 1), kind });
    }

    fn step(&mut self) {
        let process = self.choose(PROCESSES);
        let thread = self.choose(THREADS);
        if let Some((success, then)) = self.under_way.remove(&(process, thread)) {
            self.add_line(process, thread, if success { "returns" } else { "fails" }, What::Other);
            return self.settle(success, then);
        }
        let what = self.choose(9);
        let which = self.choose(8);
        let how = self.choose(6);
        // 0 and 1: the call overlaps others; 1 and 2: it is refused.
        let how = (how < 2, how == 0 || how > 2);
        let sort = if which.is_multiple_of(2) { Physical } else { Event };
        match what {
            0 => {
                let name = self.name("o", process);
                let object = Object { sort, process, name, opened: false, references: 1, busy: 0 };
                let text = format!("{} {} ipc", sort.word(), object.name);
                let kind = What::Made(sort, object.name.clone());
                self.call((process, thread), &text, kind, how, Then::Made(object));
            }
            1 => {
                // An opened object can be shared again, unless it is an event.
                let fits = |object: &Object| object.process == process && !(object.opened && object.sort == Event);
                let Some(index) = pick(&self.objects, which, fits) else { return };
                self.objects[index].busy += 1;
                let Object { sort, name: object, .. } = self.objects[index].clone();
                let got = HandleData { sort, process, name: self.name("h", process), object, busy: 0 };
                let text = format!("get-{} {} -> {}", sort.word(), got.object, got.name);
                self.call((process, thread), &text, What::Other, how, Then::HandleData(got));
            }
            2 => {
                let Some(index) = pick(&self.got, which, |got| got.process == process && got.busy == 0) else { return };
                self.put(index, thread, how);
            }
            3 | 4 => {
                let Some(index) = pick(&self.got, which, |_| true) else { return };
                self.got[index].busy += 1;
                let HandleData { sort, name: handle, .. } = self.got[index].clone();
                let name = self.name("i", process);
                let text = format!("open-{} {handle} -> {name}", sort.word());
                let object = Object { sort, process, name, opened: true, references: 1, busy: 0 };
                let kind = What::Opened(sort, object.name.clone());
                self.call((process, thread), &text, kind, how, Then::Opened(object, handle));
            }
            5 => {
                let Some(index) = pick(&self.objects, which, |object| object.process == process) else { return };
                let object = &mut self.objects[index];
                object.busy += 1;
                object.references += usize::from(how.1);
                let text = format!("retain-{} {}", object.sort.word(), object.name);
                let then = object.clone();
                self.call((process, thread), &text, What::Other, how, Then::Referred(then));
            }
            6 => {
                let fits = |object: &Object| object.process == process && object.sort == Physical;
                let Some(index) = pick(&self.objects, which, fits) else { return };
                self.objects[index].busy += 1;
                let object = self.objects[index].name.clone();
                let mapped = Mapped { process, addresses: self.name("v", process), object };
                let text = format!("map {} -> {}", mapped.object, mapped.addresses);
                self.call((process, thread), &text, What::Other, how, Then::Maps(mapped));
            }
            7 => {
                let Some(index) = pick(&self.mapped, which, |mapped| mapped.process == process) else { return };
                self.unmap(index, thread, how);
            }
            _ => {
                let mapped = |object: &Object| self.mapped.iter().any(|mapped| mapped.object == object.name);
                let may_end = |object: &Object| object.references > 1 || !mapped(object);
                let idle = |object: &Object| object.process == process && object.busy == 0;
                if let Some(index) = pick(&self.objects, which, |object| idle(object) && may_end(object)) {
                    self.release(index, thread, how);
                }
            }
        }
    }

    fn call(
        &mut self,
        (process, thread): (usize, usize),
        text: &str,
        kind: What,
        (slow, success): (bool, bool),
        then: Then,
    ) {
        let how = match (slow, success) {
            (true, _) => " begins",
            (false, true) => "",
            (false, false) => " fails",
        };
        let kind = if success && !slow { kind } else { What::Other };
        self.add_line(process, thread, &format!("{text}{how}"), kind);
        if slow {
            self.under_way.insert((process, thread), (success, then));
        } else {
            self.settle(success, then);
        }
    }

    fn settle(&mut self, success: bool, then: Then) {
        match then {
            Then::Made(object) if success => self.objects.push(object),
            Then::Made(object) => drop(self.names.remove(&object.name)),
            Then::Opened(object, handle) => {
                self.got.iter_mut().find(|got| got.name == handle).unwrap().busy -= 1;
                self.settle(success, Then::Made(object));
            }
            Then::HandleData(got) if success => self.got.push(got),
            Then::HandleData(got) => {
                self.names.remove(&got.name);
                self.object(&got.object).busy -= 1;
            }
            Then::Puts(got) if success => {
                self.names.remove(&got.name);
                self.object(&got.object).busy -= 1;
            }
            Then::Puts(got) => self.got.push(got),
            Then::Referred(object) => self.object(&object.name).busy -= 1,
            Then::Maps(mapped) => {
                self.object(&mapped.object).busy -= 1;
                if success {
                    self.mapped.push(mapped);
                } else {
                    self.names.remove(&mapped.addresses);
                }
            }
            Then::Unmaps(mapped) if success => drop(self.names.remove(&mapped.addresses)),
            Then::Unmaps(mapped) => {
                self.object(&mapped.object).busy -= 1;
                self.mapped.push(mapped);
            }
        }
    }

    fn object(&mut self, name: &str) -> &mut Object {
        self.objects.iter_mut().find(|object| object.name == name).unwrap()
    }

    fn put(&mut self, index: usize, thread: usize, how: (bool, bool)) {
        let got = self.got.remove(index);
        let process = got.process;
        let text = format!("put-{} {}", got.sort.word(), got.name);
        // All handle data of one object has equal bytes in a scenario.
        let last = !self.got.iter().any(|other| other.object == got.object);
        let kind = if last { What::Put(got.sort, got.name.clone()) } else { What::Other };
        self.call((process, thread), &text, kind, how, Then::Puts(got));
    }

    fn unmap(&mut self, index: usize, thread: usize, how: (bool, bool)) {
        let mapped = self.mapped.remove(index);
        if !how.1 {
            self.object(&mapped.object).busy += 1;
        }
        let process = mapped.process;
        let text = format!("unmap {}", mapped.addresses);
        let kind = What::Unmapped(Physical, mapped.addresses.clone());
        self.call((process, thread), &text, kind, how, Then::Unmaps(mapped));
    }

    fn release(&mut self, index: usize, thread: usize, (slow, success): (bool, bool)) {
        let object = self.objects[index].clone();
        let verb = if object.opened && object.sort == Physical { "close" } else { "release" };
        let text = format!("{verb}-{} {}", object.sort.word(), object.name);
        let last = object.references == 1;
        let kind =
            if last && object.opened { What::EndOfImport(object.sort, object.name.clone()) } else { What::Other };
        if success && last {
            // Its address may be made again once it has returned; here, at once.
            self.objects.remove(index);
            self.names.remove(&object.name);
            return self.add_line(object.process, thread, &text, kind);
        }
        let object = &mut self.objects[index];
        object.references -= usize::from(success);
        object.busy += 1;
        let then = object.clone();
        self.call((then.process, thread), &text, kind, (slow, success), Then::Referred(then));
    }

    fn tidy_up(&mut self) {
        while let Some(((process, thread), (success, then))) = self.under_way.pop_first() {
            self.add_line(process, thread, if success { "returns" } else { "fails" }, What::Other);
            self.settle(success, then);
        }
        while !self.got.is_empty() {
            self.put(0, 0, (false, true));
        }
        while !self.mapped.is_empty() {
            self.unmap(0, 0, (false, true));
        }
        while !self.objects.is_empty() {
            self.release(0, 0, (false, true));
        }
    }

    fn play(&self) -> (String, Vec<&'static str>) {
        scenarios::history(self.lines.iter().map(|line| line.text.as_str()))
    }

    /// Inserts a line of a thread that is outside of calls.
    fn insert(&mut self, index: usize, process: usize, text: &str) {
        self.lines.insert(index, Line { process, text: format!("p{process}/9: {text}"), kind: What::Other });
    }

    /// Adds one fault at one of the possible places. Returns the expected findings.
    fn violation(&mut self, fault: usize, place: usize) -> Option<Vec<&'static str>> {
        let never_again = |index: usize, name: &str| {
            let born = |text: &str| {
                let text = text.split(" begins").next().unwrap();
                text.ends_with(&format!("-> {name}")) || text.ends_with(&format!(" {name} ipc"))
            };
            !self.lines[index + 1..].iter().any(|line| born(&line.text))
        };
        let fits = |index: &usize| match (&self.lines[*index].kind, fault) {
            (What::Put(_, name), 0)
            | (What::EndOfImport(_, name), 3)
            | (What::EndOfImport(Physical, name), 4)
            | (What::Unmapped(_, name), 9) => never_again(*index, name),
            (What::Put(..), 1 | 2)
            | (What::Made(Physical, _), 5)
            | (What::Opened(Event, _), 6)
            | (What::Made(..), 7)
            | (What::Opened(Physical, _), 8) => true,
            _ => false,
        };
        let places: Vec<_> = (0..self.lines.len()).filter(fits).collect();
        let index = *places.get(place % places.len().max(1))?;
        let line = self.lines[index].clone();
        let (What::Put(sort, name)
        | What::EndOfImport(sort, name)
        | What::Made(sort, name)
        | What::Opened(sort, name)
        | What::Unmapped(sort, name)) = &line.kind
        else {
            return None;
        };
        let process = line.process;
        let other = (line.process + 1) % PROCESSES;
        match fault {
            // The handle data is never put, but its object is released.
            0 => {
                self.lines.remove(index);
                Some(vec!["freed-while-exported", "leaked-handle"])
            }
            1 => {
                let word = sort.word();
                let ends = if *sort == Physical { "close" } else { "release" };
                self.insert(index + 1, other, &format!("open-{word} {name} -> late"));
                self.insert(index + 2, other, &format!("{ends}-{word} late"));
                Some(vec!["use-after-put"])
            }
            2 => {
                self.insert(index, process, &format!("put-{} {name} fails", sort.other().word()));
                Some(vec!["wrong-kind"])
            }
            3 => {
                self.lines.remove(index);
                Some(vec![sort.leak()])
            }
            4 => {
                self.insert(index + 1, process, &format!("close-physical {name}"));
                Some(vec!["double-release"])
            }
            5 => {
                self.insert(index + 1, process, &format!("close-physical {name} fails"));
                Some(vec!["close-of-unknown"])
            }
            6 => {
                self.insert(index + 1, process, &format!("get-event {name} -> never fails"));
                Some(vec!["export-of-import"])
            }
            7 => {
                self.insert(index + 1, process, &format!("get-{} {name} -> never fails", sort.other().word()));
                Some(vec!["wrong-kind"])
            }
            9 => {
                self.lines.remove(index);
                Some(vec!["released-while-mapped"])
            }
            _ => {
                let handle = line.text.split("open-physical ").nth(1)?.split(' ').next()?.to_owned();
                self.insert(index, other, &format!("open-event {handle} -> never fails"));
                Some(vec!["wrong-kind"])
            }
        }
    }
}

const FAULTS: usize = 10;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_correct_history_has_no_finding(choices in choices()) {
        let (text, codes) = History::from_choices(choices).play();
        prop_assert!(codes.is_empty(), "{codes:?}\n{text}");
    }

    #[test]
    fn one_fault_has_exactly_its_findings(choices in choices(), fault in 0..FAULTS, place: usize) {
        let mut history = History::from_choices(choices);
        let Some(expected) = history.violation(fault, place) else { return Ok(()) };
        let (text, codes) = history.play();
        prop_assert_eq!(codes, expected, "fault {}\n{}", fault, text);
    }
}

#[test]
fn histories_are_long_and_every_fault_occurs() {
    let is_possible = |history: &mut History, fault| history.violation(fault, 1).is_some();
    scenarios::every_fault_occurs([60, FAULTS, 20], History::from_choices, |history| history.lines.len(), is_possible);
}
