//! Which functions a process called from which call stacks. Call stacks are few, and calls are many.

use std::collections::BTreeSet;

use urscope_schema::api::Function;

/// The call stacks of a process that are kept, by their numbers.
const KEPT: u64 = 1 << 12;

/// The most functions of stacks from which several functions were called. A line of Python may call many.
const MORE_KEPT: usize = 1 << 12;

/// The functions that were called from each call stack of a process.
#[derive(Clone, Default)]
pub(crate) struct Callers {
    /// The first function of each stack. Nearly all stacks have only one.
    first: Vec<Option<Function>>,
    more: BTreeSet<(u64, Function)>,
}

impl Callers {
    /// Notes a call.
    #[inline]
    pub(crate) fn note(&mut self, function: Function, stack: Option<u64>) {
        let Some(number) = stack.filter(|number| *number < KEPT) else { return };
        match self.first.get_mut(number as usize) {
            Some(Some(known)) if *known == function => {}
            Some(Some(_)) => {
                if self.more.len() < MORE_KEPT {
                    self.more.insert((number, function));
                }
            }
            Some(first) => *first = Some(function),
            None => {
                self.first.resize(number as usize, None);
                self.first.push(Some(function));
            }
        }
    }

    /// The functions and the numbers of their stacks.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u64, Function)> {
        let first = (0..).zip(&self.first).filter_map(|(number, function)| Some((number, (*function)?)));
        first.chain(self.more.iter().copied())
    }

    /// Frees the memory that is not needed for what was noted.
    pub(super) fn shrink(&mut self) {
        self.first.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_of_a_stack_is_kept_once() {
        let mut callers = Callers::default();
        let free = Function::urUSMFree;
        let put = Function::urIPCPutMemHandleExp;
        for (function, stack) in [(free, Some(3)), (put, Some(3)), (free, Some(3)), (put, Some(1)), (put, Some(3))] {
            callers.note(function, stack);
        }
        callers.note(free, None);
        callers.note(free, Some(u64::MAX));
        callers.shrink();
        assert_eq!(callers.all().collect::<Vec<_>>(), [(1, put), (3, free), (3, put)]);
    }
}
