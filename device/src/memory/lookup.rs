//! All live allocations of this process by address.
//!
//! Asked on every append and every query, so reading takes a shared lock and one descent of a tree. Must never drop an
//! allocation under its lock: that unmaps memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;

use super::Allocation;
use super::allocation::Origin;
use crate::ffi::result::{Outcome, ZeResult};

static LIVE: RwLock<BTreeMap<usize, Arc<Allocation>>> = RwLock::new(BTreeMap::new());

/// Makes an allocation findable, and gives its address.
pub(crate) fn insert(allocation: Allocation) -> usize {
    let base = allocation.base();
    LIVE.write().insert(base, Arc::new(allocation));
    base
}

/// The allocation that `address` lies in, if it is one of ours.
pub(crate) fn find(address: usize) -> Option<Arc<Allocation>> {
    let live = LIVE.read();
    let (base, allocation) = live.range(..=address).next_back()?;
    (address - base < allocation.size).then(|| Arc::clone(allocation))
}

/// The allocation that was made to be exported and has this descriptor.
pub(crate) fn exported(descriptor: i32) -> Option<Arc<Allocation>> {
    LIVE.read().values().find(|allocation| allocation.descriptor() == Some(descriptor)).map(Arc::clone)
}

/// Takes out the allocation that begins at `base`: `INVALID_ARGUMENT` if there is none, or if it does not come from
/// where `wanted` says.
pub(crate) fn remove(base: usize, wanted: impl FnOnce(&Origin) -> bool) -> Outcome<Arc<Allocation>> {
    let mut live = LIVE.write();
    if !live.get(&base).is_some_and(|allocation| wanted(allocation.origin())) {
        return Err(ZeResult::INVALID_ARGUMENT);
    }
    live.remove(&base).ok_or(ZeResult::INVALID_ARGUMENT)
}
