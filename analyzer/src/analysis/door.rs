//! The entry points of processes. Those of a run are mostly equal, and are kept once then.

use std::{
    collections::VecDeque,
    ops::Deref,
    sync::{Arc, Mutex},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use urscope_schema::trace::records::EntryPoint;

use super::once::{Last, kept_once};

/// An entry point, as `urscope_door` records have it. Copies of it, and most of those that are equal to it, share its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Door(Arc<EntryPoint>);

impl From<EntryPoint> for Door {
    fn from(entry_point: EntryPoint) -> Self {
        static LAST: Last<EntryPoint> = Mutex::new(VecDeque::new());
        Self(kept_once(&LAST, entry_point))
    }
}

impl Deref for Door {
    type Target = EntryPoint;

    fn deref(&self) -> &EntryPoint {
        &self.0
    }
}

impl Serialize for Door {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Door {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        EntryPoint::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_doors_are_kept_once_and_written_as_they_were() {
        let entry_point = |library: &str| EntryPoint { library: library.into(), slots: 3, ..EntryPoint::default() };
        let (one, same, other) =
            (Door::from(entry_point("one")), Door::from(entry_point("one")), Door::from(entry_point("other")));
        assert!(Arc::ptr_eq(&one.0, &same.0));
        assert_ne!(one, other);
        let written = serde_json::to_string(&one).unwrap();
        assert_eq!(written, serde_json::to_string(&entry_point("one")).unwrap());
        assert_eq!(serde_json::from_str::<Door>(&written).unwrap(), one);
    }
}
