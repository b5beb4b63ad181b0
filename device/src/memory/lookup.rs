//! The live allocations of this process, by address.
//!
//! Every append and every query reads this, so a lookup takes a shared lock and descends a tree once. Must never drop
//! an allocation under the lock, because that unmaps memory.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::RwLock;

use super::{Allocation, allocation::Origin};
use crate::ffi::result::{Outcome, ZeResult};

static LIVE: RwLock<BTreeMap<usize, Arc<Allocation>>> = RwLock::new(BTreeMap::new());

/// Adds an allocation, and returns its base address.
pub(crate) fn insert(allocation: Allocation) -> usize {
    let base = allocation.base();
    LIVE.write().insert(base, Arc::new(allocation));
    base
}

/// The allocation that contains `address`.
pub(crate) fn find(address: usize) -> Option<Arc<Allocation>> {
    let live = LIVE.read();
    let (base, allocation) = live.range(..=address).next_back()?;
    (address - base < allocation.size).then(|| Arc::clone(allocation))
}

/// The allocation whose file has this descriptor and holds nothing else.
pub(crate) fn exported(descriptor: i32) -> Option<Arc<Allocation>> {
    LIVE.read().values().find(|allocation| allocation.descriptor() == Some(descriptor)).map(Arc::clone)
}

/// Removes the allocation that begins at `base`: `INVALID_ARGUMENT` if there is none, or if `accepts` is false for its
/// origin.
pub(crate) fn remove(base: usize, accepts: impl FnOnce(&Origin) -> bool) -> Outcome<Arc<Allocation>> {
    let mut live = LIVE.write();
    if !live.get(&base).is_some_and(|allocation| accepts(&allocation.origin)) {
        return Err(ZeResult::INVALID_ARGUMENT);
    }
    live.remove(&base).ok_or(ZeResult::INVALID_ARGUMENT)
}
