//! Memory budgets: one for each device and one for the host.
//!
//! Must never count an allocation twice or forget to return its bytes: a charge is a value that the allocation owns.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A limit in bytes, and how much of it is in use.
#[derive(Debug)]
pub(crate) struct Budget {
    /// The limit, in bytes.
    pub(crate) limit: u64,
    used: AtomicU64,
    /// The budget that this one is a part of.
    whole: Option<Arc<Self>>,
}

/// Bytes charged to a budget. Dropping it returns them.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<Budget>,
    bytes: u64,
    _whole: Option<Box<Self>>,
}

impl Budget {
    /// A budget of `limit` bytes.
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicU64::new(0), whole: None })
    }

    /// A budget of `limit` bytes, whose charges are charges of this one, too.
    pub(crate) fn part(self: &Arc<Self>, limit: u64) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicU64::new(0), whole: Some(Arc::clone(self)) })
    }

    /// Charges `bytes`, or returns `None` if fewer are left.
    pub(crate) fn charge(self: &Arc<Self>, bytes: u64) -> Option<Charge> {
        let whole = match &self.whole {
            Some(whole) => Some(Box::new(whole.charge(bytes)?)),
            None => None,
        };
        let fits = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        Some(Charge { budget: Arc::clone(self), bytes, _whole: whole })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_charge_is_available_again() {
        let budget = Budget::new(100);
        let most = budget.charge(60);
        assert!(most.is_some());
        assert!(budget.charge(41).is_none());
        assert!(budget.charge(u64::MAX).is_none());
        drop(most);
        assert!(budget.charge(100).is_some());
    }

    #[test]
    fn a_part_has_its_own_limit_and_uses_the_whole() {
        let whole = Budget::new(100);
        let parts = [whole.part(50), whole.part(50)];
        let first = parts[0].charge(40);
        assert!(first.is_some() && parts[0].charge(11).is_none());
        // A charge that the part refuses is not charged to the whole.
        let second = whole.charge(60);
        assert!(second.is_some() && parts[1].charge(1).is_none());
        drop(first);
        assert!(parts[1].charge(40).is_some());
    }
}
