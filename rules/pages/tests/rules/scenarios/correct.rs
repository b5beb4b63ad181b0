//! A correct history of memory and physical memory of three processes, call by call. Tests put faults into it.
//!
//! Random numbers choose what is done next among what is allowed. Each call returns at once, and an address is used
//! again as soon as it is free.

use std::collections::BTreeSet;

use super::pick;
use What::{Close, End, Get, Make, Map, Open, Put, Unmap};

pub(crate) const PROCESSES: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    Make,
    Get,
    Put,
    Open,
    Close,
    End,
    Map,
    Unmap,
}

/// A call that returns at once.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) process: usize,
    pub(crate) thread: usize,
    pub(crate) what: What,
    /// Physical memory, not USM.
    pub(crate) physical: bool,
    /// The life of the memory that it is about.
    pub(crate) life: usize,
    /// The number of the get that made the handle data, in a put and an open.
    pub(crate) handle: usize,
    /// The address of the memory, in its process; of the handle data; of the mapping or the opened object.
    pub(crate) memory: String,
    pub(crate) data: String,
    pub(crate) opened: String,
    /// Where physical memory is mapped, in a map and an unmap.
    pub(crate) addresses: String,
}

impl Call {
    pub(crate) fn text(&self) -> String {
        let Self { process, thread, memory, data, opened, addresses, .. } = self;
        let object = if opened.is_empty() { memory } else { opened };
        let text = match (self.what, self.physical) {
            (Make, false) => format!("alloc {memory} 4096"),
            (Make, true) => format!("physical {memory} ipc"),
            (Get, false) => format!("get {memory} -> {data}"),
            (Get, true) => format!("get-physical {memory} -> {data}"),
            (Put, false) => format!("put {data}"),
            (Put, true) => format!("put-physical {data}"),
            (Open, false) => format!("open {data} -> {opened}"),
            (Open, true) => format!("open-physical {data} -> {opened}"),
            (Close, false) => format!("close {opened}"),
            (Close, true) => format!("close-physical {opened}"),
            (End, false) => format!("free {memory}"),
            (End, true) => format!("release-physical {memory}"),
            (Map, _) => format!("map {object} -> {addresses}"),
            (Unmap, _) => format!("unmap {addresses}"),
        };
        format!("p{process}/{}: {text}", thread + 1)
    }

    /// Whether both are about one mapping, or one opened object.
    pub(crate) fn same_opened(&self, other: &Self) -> bool {
        (self.process, &self.opened) == (other.process, &other.opened)
    }
}

/// Memory that lives while a history is made.
struct Memory {
    made: Call,
    handles: Vec<Call>,
    opens: Vec<Call>,
    maps: Vec<Call>,
}

#[derive(Default)]
pub(crate) struct History {
    pub(crate) calls: Vec<Call>,
    memory: Vec<Memory>,
    names: BTreeSet<String>,
    lives: usize,
    gets: usize,
}

impl History {
    pub(crate) fn from_choices(choices: Vec<u32>) -> Self {
        let mut history = Self::default();
        let mut choices = choices.into_iter().map(|choice| choice as usize);
        while let (Some(what), Some(which), Some(who)) = (choices.next(), choices.next(), choices.next()) {
            history.step(what % 9, which, who);
        }
        while !history.memory.is_empty() {
            history.tidy();
        }
        history
    }

    fn name(&mut self, what: &str, process: usize) -> String {
        super::name(&mut self.names, what, process)
    }

    fn step(&mut self, what: usize, which: usize, who: usize) {
        let process = who % PROCESSES;
        let thread = who / PROCESSES % 3;
        let physical = who.is_multiple_of(2);
        match what {
            0 => {
                self.lives += 1;
                let memory = self.name(if physical { "o" } else { "a" }, process);
                let data = String::new();
                let opened = String::new();
                let addresses = String::new();
                let life = self.lives;
                let made =
                    Call { process, thread, what: Make, physical, life, handle: 0, memory, data, opened, addresses };
                self.calls.push(made.clone());
                self.memory.push(Memory { made, handles: Vec::new(), opens: Vec::new(), maps: Vec::new() });
            }
            1 | 2 => {
                let Some(at) = pick(&self.memory, which, |_| true) else { return };
                let made = self.memory[at].made.clone();
                self.gets += 1;
                let data = self.name(if made.physical { "g" } else { "h" }, made.process);
                let got = Call { thread, what: Get, data, handle: self.gets, ..made };
                self.calls.push(got.clone());
                self.memory[at].handles.push(got);
            }
            3 | 4 => {
                let Some(at) = pick(&self.memory, which, |memory| !memory.handles.is_empty()) else { return };
                let memory = &self.memory[at];
                let got = memory.handles[who % memory.handles.len()].clone();
                // A mapping has one address however often it is opened; an object has one each time.
                let opened = if got.physical { self.name("n", process) } else { format!("m{process}of{}", got.memory) };
                let open = Call { process, thread, what: Open, opened, ..got };
                self.calls.push(open.clone());
                self.memory[at].opens.push(open);
            }
            5 => {
                if let Some(at) = pick(&self.memory, which, |memory| !memory.handles.is_empty()) {
                    self.put(at, who);
                } else {
                    self.end(which);
                }
            }
            6 => self.map(which, who),
            7 => {
                let Some(at) = pick(&self.memory, which, |memory| !memory.maps.is_empty()) else { return };
                let map = who % self.memory[at].maps.len();
                self.unmap(at, map);
            }
            _ => {
                if let Some(at) = pick(&self.memory, which, |memory| !memory.opens.is_empty()) {
                    self.close(at, who);
                } else {
                    self.end(which);
                }
            }
        }
    }

    fn put(&mut self, at: usize, who: usize) {
        let handles = &mut self.memory[at].handles;
        let got = handles.remove(who % handles.len());
        self.names.remove(&got.data);
        self.calls.push(Call { what: Put, ..got });
    }

    /// Maps physical memory that was made here or opened.
    fn map(&mut self, which: usize, who: usize) {
        let Some(at) = pick(&self.memory, which, |memory| memory.made.physical) else { return };
        let memory = &self.memory[at];
        let of = memory.opens.get(who % (memory.opens.len() + 1)).unwrap_or(&memory.made).clone();
        let map = Call { what: Map, addresses: self.name("v", of.process), ..of };
        self.calls.push(map.clone());
        self.memory[at].maps.push(map);
    }

    fn unmap(&mut self, at: usize, map: usize) {
        let map = self.memory[at].maps.remove(map);
        self.names.remove(&map.addresses);
        self.calls.push(Call { what: Unmap, ..map });
    }

    /// Unmaps an object everywhere.
    fn unmap_all(&mut self, at: usize, object: &Call) {
        while let Some(map) = self.memory[at].maps.iter().position(|map| map.same_opened(object)) {
            self.unmap(at, map);
        }
    }

    fn close(&mut self, at: usize, who: usize) {
        let opens = &mut self.memory[at].opens;
        let open = opens.remove(who % opens.len());
        self.unmap_all(at, &open);
        self.names.remove(&open.opened);
        self.calls.push(Call { what: Close, ..open });
    }

    fn end(&mut self, which: usize) {
        let idle = |memory: &Memory| memory.handles.is_empty() && memory.opens.is_empty();
        let Some(at) = pick(&self.memory, which, idle) else { return };
        self.unmap_all(at, &self.memory[at].made.clone());
        let made = self.memory.remove(at).made;
        self.names.remove(&made.memory);
        self.calls.push(Call { what: End, ..made });
    }

    /// Memory that is never freed is no violation of IPC: every third is left.
    fn tidy(&mut self) {
        let memory = &self.memory[0];
        if !memory.opens.is_empty() {
            self.close(0, 0);
        } else if !memory.handles.is_empty() {
            self.put(0, 0);
        } else if memory.made.life.is_multiple_of(3) {
            self.memory.remove(0);
        } else {
            self.unmap_all(0, &self.memory[0].made.clone());
            let made = self.memory.remove(0).made;
            self.names.remove(&made.memory);
            self.calls.push(Call { what: End, ..made });
        }
    }
}
