//! Collects the tables of calls, lifetimes and processes during an analysis.

use super::calls::{CallTable, Row};
use super::lifetimes::LifetimeTable;
use urscope_analyzer::analysis::{Ended, Stacks};
use urscope_analyzer::lifetimes::{EndReason, EventSink, FinishedCall, Lifetime, ProcessIndex, ProcessStart};

/// The time span of a process, in nanoseconds since the first process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) began_ns: u64,
    /// When it ended, or the latest time known of it.
    pub(super) ended_ns: u64,
}

#[derive(Clone)]
pub(super) struct TableBuilder {
    pub(super) calls: CallTable,
    pub(super) lives: LifetimeTable,
    /// The time span of each process of the judgement, in the same order.
    pub(super) spans: Vec<Span>,
    pub(super) process_index: ProcessIndex,
    pub(super) stacks: Vec<Stacks>,
}

impl TableBuilder {
    /// Tables that keep at most that many calls and lifetimes.
    pub(super) fn new(calls: usize, lives: usize) -> Self {
        Self {
            calls: CallTable::new(calls),
            lives: LifetimeTable::new(lives),
            spans: Vec::new(),
            process_index: ProcessIndex::default(),
            stacks: Vec::new(),
        }
    }
}

impl EventSink for TableBuilder {
    fn process(&mut self, began: &ProcessStart<'_>) {
        self.process_index.enter(began);
        self.spans.push(Span { began_ns: began.at, ended_ns: began.at });
    }

    fn stacks(&mut self, _: u32, stacks: &Stacks) {
        self.stacks.push(stacks.clone());
    }

    fn call(&mut self, call: &FinishedCall<'_>) {
        self.calls.put(Row::from_call(call));
    }

    fn birth(&mut self, life: &Lifetime) {
        self.lives.born(life);
    }

    fn death(&mut self, life: &Lifetime, at: u64, how: EndReason) {
        self.lives.died(life, at, how);
    }

    fn freed(&mut self, _: u32, memory: u64, at: u64) {
        self.lives.freed(memory, at);
    }

    fn end(&mut self, process: u32, at: u64, _: Ended) {
        if let Some(span) = self.spans.get_mut(process as usize) {
            span.ended_ns = span.ended_ns.max(at);
        }
    }
}
