//! Numbers the calls of a process in their order.
//!
//! The recorder hands out numbers to threads in blocks, so they say which records belong together, but not how many
//! calls there were.

use std::collections::VecDeque;

use urscope_rules::tracker::records::MAX_COMMANDS;
use urscope_schema::trace::packed::{PackedCall, renumber};

/// The numbers of a process.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    /// How many calls have begun.
    begun: u64,
    /// The calls that have not returned: the number in the trace, and the one in order.
    pending: Vec<(u64, u64)>,
    /// The latest commands, likewise: those that a free, a close or an execution can name.
    commands: VecDeque<(u64, u64)>,
}

impl Numbers {
    /// Changes the numbers in packed calls, which follow those of the last time.
    pub(super) fn apply(&mut self, mut words: &mut [u64]) {
        while let Some(call) = PackedCall::first_of(words) {
            let size = call.size();
            let number = self.number(&call);
            let commands = &self.commands;
            renumber(words, number, |command| find(commands.iter(), command).map_or(0, |(_, number)| number));
            words = words.get_mut(size..).unwrap_or_default();
        }
    }

    /// The number in order of one of the latest commands.
    pub(super) fn command(&self, in_trace: u64) -> Option<u64> {
        find(self.commands.iter(), in_trace).map(|(_, number)| number)
    }

    /// The number of a call in order; 0 if its beginning is not in the trace.
    fn number(&mut self, call: &PackedCall<'_>) -> u64 {
        let in_trace = call.number();
        if call.is_inner() {
            return find(self.pending.iter(), in_trace).map_or(0, |(_, number)| number);
        }
        if !call.enters() {
            let index = self.pending.iter().rposition(|(known, _)| *known == in_trace);
            return index.map_or(0, |index| self.pending.swap_remove(index).1);
        }
        self.begun += 1;
        self.pending.push((in_trace, self.begun));
        if call.function().is_command() {
            if self.commands.len() >= MAX_COMMANDS {
                self.commands.pop_front();
            }
            self.commands.push_back((in_trace, self.begun));
        }
        self.begun
    }
}

fn find<'n>(numbers: impl DoubleEndedIterator<Item = &'n (u64, u64)>, in_trace: u64) -> Option<(u64, u64)> {
    numbers.rev().find(|(known, _)| *known == in_trace).copied()
}
