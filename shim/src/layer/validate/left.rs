//! What a thread leaves of a step of validation for another one to take.

use urscope_rules::tracker::usual::{Begins, Returns};
use urscope_schema::packed::PackedCall;

use crate::raw::backlog::{Time, Timed};

/// A step that is left to another thread.
#[derive(Clone, Copy)]
pub(super) enum Left {
    /// A packed call. One with more values is not left.
    Call([u64; 14]),
    /// What may be a usual one.
    Begins(Begins),
    Returns(Returns),
}

const _: () = assert!(size_of::<Left>() <= 120, "a place for one takes two lines of the cache");

impl Timed for Left {
    #[inline]
    fn time(&self) -> Time {
        match self {
            Self::Call(words) => {
                PackedCall::first_of(words).map_or(Time::new(0, false), |call| Time::new(call.time().0, call.enters()))
            }
            Self::Begins(begins) => Time::new(begins.time().0, true),
            Self::Returns(returns) => Time::new(returns.time().0, false),
        }
    }
}

impl Left {
    /// Whose step it is.
    #[inline]
    pub(super) fn thread(&self) -> u32 {
        match self {
            Self::Call(words) => PackedCall::first_of(words).map_or(0, |call| call.tid()),
            Self::Begins(begins) => begins.tid(),
            Self::Returns(returns) => returns.tid(),
        }
    }
}
