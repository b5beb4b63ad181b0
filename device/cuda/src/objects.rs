//! The live objects of one kind, by their handles.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;

use crate::result::{Code, Outcome};

pub(crate) struct Objects<T>(Mutex<BTreeMap<usize, Arc<T>>>);

impl<T> Objects<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// Adds an object, and returns its handle.
    pub(crate) fn add(&self, object: T) -> usize {
        let object = Arc::new(object);
        // Its address: an address is used again, as those of the driver's objects are.
        let handle = Arc::as_ptr(&object) as usize;
        self.0.lock().insert(handle, object);
        handle
    }

    /// `INVALID_HANDLE` if there is none.
    pub(crate) fn get(&self, handle: usize) -> Outcome<Arc<T>> {
        self.0.lock().get(&handle).map(Arc::clone).ok_or(Code::INVALID_HANDLE)
    }

    /// `INVALID_HANDLE` if there is none.
    pub(crate) fn remove(&self, handle: usize) -> Outcome<Arc<T>> {
        self.0.lock().remove(&handle).ok_or(Code::INVALID_HANDLE)
    }

    pub(crate) fn all(&self) -> Vec<(usize, Arc<T>)> {
        self.0.lock().iter().map(|(handle, object)| (*handle, Arc::clone(object))).collect()
    }
}
