//! A static that can be replaced in the child of a `fork`. Values are never freed: threads may be using them.

use super::super::signals::interruptions;
use super::super::signals::sync::{AtomicPtr, Ordering};

/// A value that is made at its first use and can be replaced. The old value is never freed.
pub struct ForkReset<T: 'static> {
    value: AtomicPtr<T>,
    make: fn() -> T,
}

impl<T: Send + Sync> ForkReset<T> {
    /// A value that `make` makes.
    pub const fn new(make: fn() -> T) -> Self {
        Self { value: AtomicPtr::new(std::ptr::null_mut()), make }
    }

    /// The value.
    #[inline]
    pub fn get(&self) -> &'static T {
        let value = self.value.load(Ordering::Acquire);
        if value.is_null() {
            return self.first();
        }
        // SAFETY: only leaked boxes are ever stored, and none is freed.
        unsafe { &*value }
    }

    /// The value, if it has been made.
    pub fn made(&self) -> Option<&'static T> {
        // SAFETY: as above; null before the first use.
        unsafe { self.value.load(Ordering::Acquire).as_ref() }
    }

    /// Replaces the value.
    pub fn reset(&self, value: T) {
        self.value.store(Box::leak(Box::new(value)), Ordering::Release);
    }

    #[cold]
    fn first(&self) -> &'static T {
        let _held_off = interruptions::hold_off();
        let new = Box::into_raw(Box::new((self.make)()));
        match self.value.compare_exchange(std::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: just leaked, and never freed.
            Ok(_) => unsafe { &*new },
            Err(existing) => {
                // SAFETY: no other thread has seen `new`; `existing` was stored as a leaked box.
                unsafe {
                    drop(Box::from_raw(new));
                    &*existing
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_value_stays_valid_for_its_users() {
        let text = ForkReset::new(|| "old".to_owned());
        let old = text.get();
        assert!(std::ptr::eq(old, text.get()));
        text.reset("new".to_owned());
        assert_eq!((old.as_str(), text.get().as_str()), ("old", "new"));
    }
}
