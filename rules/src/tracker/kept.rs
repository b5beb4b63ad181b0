//! Places and numbers as the tracker keeps them, of which it has many: in little more than half of the memory.

use std::fmt;

use urscope_schema::{api::Function, call::Nanos};

use super::ProcessId;
use crate::finding::Place;

/// A place in four words. Call stacks have numbers of up to 48 bits here, far more than a trace has call stacks; one with another number
/// is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptPlace {
    time: Nanos,
    /// The number of the call, if there is one.
    call: u64,
    process: ProcessId,
    tid: u32,
    /// The number of the call stack, or [`NO_STACK`].
    stack: u32,
    stack_high: u16,
    has_call: bool,
    function: Option<Function>,
}

/// No call stack.
const NO_STACK: u64 = 0xffff_ffff_ffff;

impl KeptPlace {
    /// What is kept of a place.
    #[expect(clippy::inline_always, reason = "what the place has is a constant of many callers")]
    #[inline(always)]
    pub const fn of(place: Place) -> Self {
        let Place { process, tid, time, call, function, stack } = place;
        let (call, has_call) = match call {
            Some(call) => (call, true),
            None => (0, false),
        };
        let stack = match stack {
            Some(stack) if stack < NO_STACK => stack,
            _ => NO_STACK,
        };
        let stack_high = (stack >> 32) as u16;
        Self { time, call, process, tid, stack: stack as u32, stack_high, has_call, function }
    }

    /// The place.
    #[inline]
    pub const fn place(self) -> Place {
        let Self { time, call, process, tid, stack, stack_high, has_call, function } = self;
        let call = if has_call { Some(call) } else { None };
        let stack = (stack_high as u64) << 32 | stack as u64;
        let stack = if stack == NO_STACK { None } else { Some(stack) };
        Place { process, tid, time, call, function, stack }
    }
}

const _: () = assert!(size_of::<Option<KeptPlace>>() == 32);

/// A number that may be missing, in nine bytes that may lie anywhere. An `Option` takes sixteen.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct KeptNumber {
    /// Zeros if there is none.
    bytes: [u8; 8],
    is_there: bool,
}

impl KeptNumber {
    /// The number.
    #[inline]
    pub const fn get(self) -> Option<u64> {
        if self.is_there { Some(u64::from_ne_bytes(self.bytes)) } else { None }
    }

    /// What is kept of a number.
    #[inline]
    pub const fn of(number: Option<u64>) -> Self {
        match number {
            Some(number) => Self { bytes: number.to_ne_bytes(), is_there: true },
            None => Self { bytes: [0; 8], is_there: false },
        }
    }
}

impl From<Option<u64>> for KeptNumber {
    #[inline]
    fn from(number: Option<u64>) -> Self {
        Self::of(number)
    }
}

impl fmt::Debug for KeptNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_kept_as_it_was() {
        for number in [None, Some(0), Some(u64::MAX)] {
            assert_eq!(KeptNumber::of(number).get(), number);
            assert_eq!(KeptNumber::from(number) == KeptNumber::default(), number.is_none());
        }
    }

    #[test]
    fn a_place_is_kept_as_it_was() {
        let (process, tid, time) = (ProcessId(u32::MAX), 7, Nanos(u64::MAX));
        for call in [None, Some(0), Some(u64::MAX)] {
            for stack in [None, Some(0), Some(3), Some(NO_STACK - 1)] {
                for function in [None, Some(Function::urIPCGetMemHandleExp)] {
                    let place = Place { process, tid, time, call, function, stack };
                    assert_eq!(KeptPlace::of(place).place(), place);
                }
            }
        }
        let (call, function) = (Some(1), Some(Function::urUSMFree));
        let huge = Place { process, tid, time, call, function, stack: Some(NO_STACK) };
        assert_eq!(KeptPlace::of(huge).place(), Place { stack: None, ..huge });
    }
}
