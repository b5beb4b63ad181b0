//! A program before its steps have an order: steps, and which of them must come after which. `schedule.rs` orders them.

use super::expectation::{Expectation, There};
use super::{Stage, processes::Life, random::Random};

/// A step of the draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id(pub(super) usize);

/// A process of the program, by its number in the script.
pub(super) type Process = usize;

/// A context of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) process: Process,
    pub(super) context: usize,
    /// The step after which the context exists.
    pub(super) ready: Id,
}

/// What a step does.
pub(super) fn first_word(step: &str) -> &str {
    step.split(' ').next().unwrap_or_default()
}

/// One step and its place in the order.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) process: Process,
    pub(super) thread: usize,
    /// As in a scenario.
    pub(super) step: String,
    pub(super) after: Vec<Id>,
    /// Nothing else happens at the same time.
    pub(super) alone: bool,
    /// The step that follows without any other in between.
    pub(super) glued: Option<Id>,
    /// Behind all other steps of its process.
    pub(super) last: bool,
    pub(super) removed: bool,
}

/// What exists once per program.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) random: Random,
    pub(super) stage: Stage,
    pub(super) nodes: Vec<Node>,
    pub(super) expected: Vec<Expectation<Id>>,
    /// One in this many steps has others beside it.
    pub(super) concurrency: usize,
    pub(super) lives: Vec<Life>,
    /// No process shares events: a command of a queue might wait for one of another process.
    pub(super) without_events: bool,
    registers: usize,
    /// Steps that wait for the end of a process.
    pub(super) ends: Vec<(Id, Process)>,
}

impl Draft {
    /// A program of some processes, which process 0 starts.
    pub(super) fn new(seed: u64, stage: Stage) -> Self {
        let random = Random::new(seed);
        let mut draft = Self {
            random,
            stage,
            nodes: Vec::new(),
            expected: Vec::new(),
            concurrency: 1,
            lives: Vec::new(),
            without_events: false,
            registers: 0,
            ends: Vec::new(),
        };
        draft.concurrency = draft.random.choose(&[1, 4, 4, 1000]);
        draft.enter(None, None);
        for _ in 0..draft.random.choose(&[1, 1, 2, 3]) {
            draft.spawn();
        }
        draft
    }

    /// A number for an object or a message.
    pub(super) fn register(&mut self) -> usize {
        self.registers += 1;
        self.registers
    }

    /// Adds a step.
    pub(super) fn add(&mut self, process: Process, step: String, after: &[Id]) -> Id {
        let alone =
            matches!(first_word(&step), "context" | "fork" | "exec" | "exit" | "killed" | "incomplete" | "host-waits");
        let thread = match self.lives.get(process) {
            Some(life) if !alone => self.random.below(life.threads),
            _ => 0,
        };
        let after = after.iter().copied().chain(self.lives.get(process).and_then(|life| life.start)).collect();
        self.nodes.push(Node { process, thread, step, after, alone, glued: None, last: false, removed: false });
        Id(self.nodes.len() - 1)
    }

    /// The program must yield a finding, written as "severity rule".
    pub(super) fn expect(
        &mut self,
        finding: &str,
        here: impl IntoIterator<Item = Id>,
        there: impl IntoIterator<Item = Id>,
    ) {
        let (here, there): (Vec<Id>, Vec<Id>) = (here.into_iter().collect(), there.into_iter().collect());
        let there = if there.is_empty() { There::Nowhere } else { There::OneOf(there) };
        self.expected.push(Expectation { finding: finding.to_owned(), here, there, optional: false });
    }

    /// The last expectation names any location as the other one.
    pub(super) fn anywhere(&mut self) {
        self.expected.last_mut().expect("something is expected").there = There::Anywhere;
    }

    /// The last expectation may be missing.
    pub(super) fn optional(&mut self) {
        self.expected.last_mut().expect("something is expected").optional = true;
    }

    /// A step must come after another one.
    pub(super) fn order(&mut self, earlier: Id, later: Id) {
        self.nodes[later.0].after.push(earlier);
    }

    /// A step need not come after another one.
    pub(super) fn release(&mut self, earlier: Id, later: Id) {
        self.nodes[later.0].after.retain(|step| *step != earlier);
    }

    /// Leaves out a step. What came after it comes after the steps before it.
    pub(super) fn remove(&mut self, step: Id) {
        self.nodes[step.0].removed = true;
    }

    /// Lets the runtime refuse a call.
    pub(super) fn refusable(&mut self, step: Id) {
        self.nodes[step.0].step += " may-fail";
    }

    /// The runtime returns success from an open, and no result.
    pub(super) fn without_result(&mut self, open: Id) {
        let step = &mut self.nodes[open.0].step;
        let (open, rest) = step.split_once(" -> ").expect("an open has a result");
        let (_, context) = rest.split_once(' ').expect("an open is in a context");
        *step = format!("{open} {}", context.trim_end_matches(" may-fail"));
    }

    /// Puts a step behind all others of its process.
    pub(super) fn last(&mut self, step: Id) {
        self.nodes[step.0].last = true;
    }

    /// No step comes between these two.
    pub(super) fn glue(&mut self, first: Id, second: Id) {
        let others: Vec<Id> = self.nodes[second.0].after.iter().copied().filter(|step| *step != first).collect();
        self.nodes[first.0].after.extend(others);
        self.order(first, second);
        self.nodes[first.0].glued = Some(second);
        self.nodes[first.0].alone = true;
        self.nodes[second.0].alone = true;
    }
}
