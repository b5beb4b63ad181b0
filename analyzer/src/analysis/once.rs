//! Keeps equal values once: most of what the traces of a run say of their processes is equal.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

/// The values that were made last.
pub(crate) type Last<T> = Mutex<VecDeque<Arc<T>>>;

/// So many of them are compared with a new one.
const REMEMBERED: usize = 16;

/// A value, or an equal one that is among the last.
pub(crate) fn kept_once<T: PartialEq>(last: &Last<T>, value: T) -> Arc<T> {
    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(equal) = last.iter().find(|known| ***known == value) {
        return Arc::clone(equal);
    }
    let new = Arc::new(value);
    last.truncate(REMEMBERED - 1);
    last.push_front(Arc::clone(&new));
    new
}
