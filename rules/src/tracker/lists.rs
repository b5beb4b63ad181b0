//! The command lists of a process: what was added to each. It is enqueued each time a queue executes the list.

use urscope_schema::call::Synchronization;
use urscope_schema::operation::Command;

use super::maps::Map;
use crate::place::Place;

/// How much is remembered of a list.
const LIMIT: usize = 1024;

/// What was added to a list.
#[derive(Clone, Copy, Debug)]
pub(super) enum Added {
    /// A command, by the call at this place.
    Command(Place, Command),
    /// What orders commands.
    Order(Synchronization),
}

/// A list.
#[derive(Clone, Debug, Default)]
struct List {
    added: Vec<Added>,
    /// Whether something was added that is not remembered.
    lacks_some: bool,
}

/// Of a process.
#[derive(Clone, Debug, Default)]
pub(super) struct Lists {
    by_handle: Map<u64, List>,
}

impl Lists {
    /// The handle is that of a new list.
    pub(super) fn list(&mut self, handle: u64) {
        self.by_handle.insert(handle, List::default());
    }

    /// The handle is that of a new queue.
    pub(super) fn queue(&mut self, handle: u64) {
        self.by_handle.remove(&handle);
    }

    /// Adds to a list; false if the handle is that of no list.
    pub(super) fn add(&mut self, handle: Option<u64>, added: Added) -> bool {
        let Some(list) = handle.and_then(|handle| self.by_handle.get_mut(&handle)) else { return false };
        if list.added.len() < LIMIT {
            list.added.push(added);
        } else {
            list.lacks_some = true;
        }
        true
    }

    /// Whether the handle is that of a list.
    pub(super) fn has(&self, handle: u64) -> bool {
        self.by_handle.contains_key(&handle)
    }

    /// A list is empty again.
    pub(super) fn reset(&mut self, handle: u64) {
        if let Some(list) = self.by_handle.get_mut(&handle) {
            *list = List::default();
        }
    }

    /// The call at a place has added nothing.
    pub(super) fn refused(&mut self, is_it: impl Fn(Place) -> bool) {
        for list in self.by_handle.values_mut() {
            list.added.retain(|added| !matches!(added, Added::Command(place, _) if is_it(*place)));
        }
    }

    /// All that was added to a list; `None` if that is not known.
    pub(super) fn contents(&self, handle: u64) -> Option<Vec<Added>> {
        self.by_handle.get(&handle).filter(|list| !list.lacks_some).map(|list| list.added.clone())
    }

    /// Something may have been added to each list that is not recorded.
    pub(super) fn forget(&mut self) {
        self.by_handle.values_mut().for_each(|list| *list = List { added: Vec::new(), lacks_some: true });
    }
}
