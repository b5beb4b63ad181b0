//! A correct history of memory of three processes of three threads, whose calls overlap.
//!
//! Random numbers choose what is done next among what is allowed. Calls are refused, too, and an address is used again
//! from the moment its end begins.

use std::collections::{BTreeMap, BTreeSet};

use super::pick;

pub(crate) const PROCESSES: usize = 3;
const THREADS: usize = 3;

/// A line, with what a fault needs to know of it.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) process: usize,
    pub(crate) text: String,
    pub(crate) kind: What,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    /// A put that returned at once and succeeded: of which handle and which memory, and whether it was the last of
    /// these bytes.
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

#[derive(Default)]
pub(crate) struct History {
    choices: std::vec::IntoIter<u32>,
    pub(crate) lines: Vec<Line>,
    memory: Vec<Memory>,
    got: Vec<HandleData>,
    /// Opens by process and mapping: the memory and how many.
    open: BTreeMap<(usize, String), (usize, usize)>,
    under_way: BTreeMap<(usize, usize), (bool, Then)>,
    names: BTreeSet<String>,
    generations: usize,
    pub(crate) freed: BTreeSet<usize>,
    /// Whether memory may be freed before its handles are put, and how often it was.
    early: bool,
    pub(crate) early_frees: usize,
    /// The exporter of each memory, the processes that tried to open it, and the processes that opened memory of their
    /// own.
    pub(crate) exported: BTreeMap<usize, usize>,
    pub(crate) tried: BTreeMap<usize, BTreeSet<usize>>,
    pub(crate) opened_own: BTreeSet<usize>,
}

impl History {
    pub(crate) fn from_choices(choices: Vec<u32>, early: bool) -> Self {
        let mut history = Self { choices: choices.into_iter(), early, ..Self::default() };
        while history.choices.len() > 0 {
            history.step();
        }
        history.tidy_up();
        history
    }

    fn choose(&mut self, among: usize) -> usize {
        self.choices.next().unwrap_or(1) as usize % among.max(1)
    }

    fn name(&mut self, sort: &str, process: usize) -> String {
        super::name(&mut self.names, sort, process)
    }

    fn add_line(&mut self, process: usize, thread: usize, text: &str, kind: What) {
        self.lines.push(Line { process, text: format!("p{process}/{}: {text}", thread + 1), kind });
    }

    fn step(&mut self) {
        let process = self.choose(PROCESSES);
        let thread = self.choose(THREADS);
        if let Some((success, then)) = self.under_way.remove(&(process, thread)) {
            self.add_line(process, thread, if success { "returns" } else { "fails" }, What::Other);
            self.settle(success, then);
            return;
        }
        let what = self.choose(6);
        let which = self.choose(8);
        let how = self.choose(6);
        // 0 and 1: the call overlaps others; 1 and 2: it is refused.
        let slow = how < 2;
        let success = how == 0 || how > 2;
        let mine = |of: usize| of == process;
        match what {
            0 => {
                self.generations += 1;
                let name = self.name("a", process);
                let memory = Memory { generation: self.generations, name, process, busy: 0, handles: 0 };
                self.call(process, thread, &format!("alloc {} 4096", memory.name), (slow, success), Then::Born(memory));
            }
            1 => {
                let Some(index) = pick(&self.memory, which, |memory| mine(memory.process)) else { return };
                self.memory[index].busy += 1;
                let generation = self.memory[index].generation;
                let from = self.memory[index].name.clone();
                let offset = [0, 0, 64][which % 3];
                let got = HandleData { name: self.name("h", process), generation, offset, process, busy: 0 };
                let text = format!("get {from} + {offset} -> {}", got.name).replace("+ 0 ", "");
                self.call(process, thread, &text, (slow, success), Then::Gets(got));
            }
            2 => {
                let Some(index) = pick(&self.got, which, |got| got.busy == 0 && mine(got.process)) else { return };
                self.put(index, thread, slow, success);
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
                self.call(
                    process,
                    thread,
                    &text,
                    (slow, success),
                    Then::Opens { process, mapping, generation, handle },
                );
            }
            4 => {
                let open: Vec<_> = self.open.keys().filter(|(holder, _)| mine(*holder)).cloned().collect();
                if let Some((_, mapping)) = open.get(which % open.len().max(1)) {
                    self.close(process, mapping, thread, slow, success);
                }
            }
            _ => {
                let early = self.early;
                let free = |memory: &Memory| mine(memory.process) && memory.busy == 0 && (early || memory.handles == 0);
                if let Some(index) = pick(&self.memory, which, free) {
                    self.free(index, thread, slow, success);
                }
            }
        }
    }

    fn call(&mut self, process: usize, thread: usize, text: &str, (slow, success): (bool, bool), then: Then) {
        let how = if slow { " begins" } else { ["", " fails"][usize::from(!success)] };
        self.add_line(process, thread, &format!("{text}{how}"), What::Other);
        if slow {
            self.under_way.insert((process, thread), (success, then));
        } else {
            self.settle(success, then);
        }
    }

    fn settle(&mut self, success: bool, then: Then) {
        match then {
            Then::Nothing => {}
            Then::Born(memory) if success => self.memory.push(memory),
            Then::Born(memory) => drop(self.names.remove(&memory.name)),
            Then::Gets(got) => {
                let memory = self.memory.iter_mut().find(|memory| memory.generation == got.generation).unwrap();
                memory.busy -= 1;
                if success {
                    memory.handles += 1;
                    self.exported.insert(got.generation, got.process);
                    self.got.push(got);
                } else {
                    self.names.remove(&got.name);
                }
            }
            Then::Opens { process, mapping, generation, handle } => {
                self.got.iter_mut().find(|got| got.name == handle).unwrap().busy -= 1;
                if success {
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

    fn put(&mut self, index: usize, thread: usize, slow: bool, success: bool) {
        let got = self.got.remove(index);
        if let Some(memory) = self.memory.iter_mut().find(|memory| memory.generation == got.generation) {
            // A put that will be refused needs the memory: the order of that put and a free in the meantime is not
            // defined.
            if success { memory.handles -= 1 } else { memory.busy += 1 }
        }
        let process = got.process;
        let text = format!("put {}", got.name);
        if success {
            self.names.remove(&got.name);
        }
        if success && !slow {
            let equal = |other: &HandleData| (other.generation, other.offset) == (got.generation, got.offset);
            let last = !self.got.iter().any(equal);
            self.add_line(process, thread, &text, What::Put(got.name, got.generation, last));
        } else {
            self.call(process, thread, &text, (slow, success), if success { Then::Nothing } else { Then::Puts(got) });
        }
    }

    fn close(&mut self, process: usize, mapping: &str, thread: usize, slow: bool, success: bool) {
        let key = (process, mapping.to_owned());
        let (generation, opens) = self.open.get_mut(&key).unwrap();
        let generation = *generation;
        *opens -= 1;
        let last = *opens == 0;
        if last {
            self.open.remove(&key);
        }
        let text = format!("close {mapping}");
        if success {
            self.unbusy(generation);
        }
        if success && !slow {
            let kind = if last { What::LastClose(mapping.to_owned(), generation) } else { What::Other };
            self.add_line(process, thread, &text, kind);
        } else {
            let back = Then::Closes { process, mapping: mapping.to_owned(), generation };
            self.call(process, thread, &text, (slow, success), if success { Then::Nothing } else { back });
        }
    }

    fn free(&mut self, index: usize, thread: usize, slow: bool, success: bool) {
        let memory = &mut self.memory[index];
        let process = memory.process;
        let generation = memory.generation;
        let text = format!("free {}", memory.name);
        if success {
            let memory = self.memory.remove(index);
            self.names.remove(&memory.name);
            self.freed.insert(generation);
            self.early_frees += usize::from(memory.handles > 0);
        } else {
            memory.busy += 1;
        }
        if success && !slow {
            let name = text["free ".len()..].to_owned();
            return self.add_line(process, thread, &text, What::Free(name, generation));
        }
        self.call(
            process,
            thread,
            &text,
            (slow, success),
            if success { Then::Nothing } else { Then::Frees(generation) },
        );
    }

    fn tidy_up(&mut self) {
        while let Some(((process, thread), (success, then))) = self.under_way.pop_first() {
            self.add_line(process, thread, if success { "returns" } else { "fails" }, What::Other);
            self.settle(success, then);
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

    pub(crate) fn play(&self) -> (String, Vec<&'static str>) {
        super::history(self.lines.iter().map(|line| line.text.as_str()))
    }
}
