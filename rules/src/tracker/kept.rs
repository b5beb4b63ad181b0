//! Places as the tracker keeps them, of which it has many: in little more than half of the memory.

use urscope_schema::{api::Function, call::Nanos};

use super::ProcessId;
use crate::finding::Place;

/// A place in four words. Call stacks have numbers of up to 48 bits here, far more than a trace has call stacks; one with another number
/// is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptPlace {
    time: Nanos,
    /// Its number, and that of the call stack, where `has` says that there is one.
    call: u64,
    process: ProcessId,
    tid: u32,
    stack: u32,
    stack_high: u16,
    /// [`CALL`], [`STACK`], or both.
    has: u8,
    function: Option<Function>,
}

/// There is the number of a call.
const CALL: u8 = 1;

/// There is the number of a call stack.
const STACK: u8 = 2;

impl KeptPlace {
    /// What is kept of a place.
    #[inline]
    pub const fn of(place: Place) -> Self {
        let Place { process, tid, time, call, function, stack } = place;
        let (call, has_call) = match call {
            Some(call) => (call, CALL),
            None => (0, 0),
        };
        let (stack, has_stack) = match stack {
            Some(stack) if stack >> 48 == 0 => (stack, STACK),
            _ => (0, 0),
        };
        let stack_high = (stack >> 32) as u16;
        Self { time, call, process, tid, stack: stack as u32, stack_high, has: has_call | has_stack, function }
    }

    /// The place.
    #[inline]
    pub const fn place(self) -> Place {
        let Self { time, call, process, tid, stack, stack_high, has, function } = self;
        let call = if has & CALL == 0 { None } else { Some(call) };
        let stack = if has & STACK == 0 { None } else { Some((stack_high as u64) << 32 | stack as u64) };
        Place { process, tid, time, call, function, stack }
    }
}

const _: () = assert!(size_of::<Option<KeptPlace>>() == 32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_kept_as_it_was() {
        let (process, tid, time) = (ProcessId(u32::MAX), 7, Nanos(u64::MAX));
        for call in [None, Some(0), Some(u64::MAX)] {
            for stack in [None, Some(0), Some(3), Some(0xabcd_1234_5678)] {
                for function in [None, Some(Function::urIPCGetMemHandleExp)] {
                    let place = Place { process, tid, time, call, function, stack };
                    assert_eq!(KeptPlace::of(place).place(), place);
                }
            }
        }
        let (call, function) = (Some(1), Some(Function::urUSMFree));
        let huge = Place { process, tid, time, call, function, stack: Some(1 << 48) };
        assert_eq!(KeptPlace::of(huge).place(), Place { stack: None, ..huge });
    }
}
