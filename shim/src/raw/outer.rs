//! The call of Unified Runtime that this thread is in: what the runtime calls meanwhile is a part of it.

use super::variables;

/// Says that this thread is in a call now, by a word that is not 0, or in none; returns what it was in before.
#[inline]
pub fn replace(call: u64) -> u64 {
    variables::own().outer.replace(call)
}

/// What this thread is in; 0 if it is in no call.
#[inline]
pub fn get() -> u64 {
    variables::own().outer.get()
}
