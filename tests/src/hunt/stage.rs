//! The implementations that a program runs on: the two released adapters, and our own backend in front of each of them.

use std::fmt;

/// One implementation of the entry points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The v1 adapter.
    V1,
    /// The v2 adapter.
    V2,
    /// Our own backend, with v1.
    OursOnV1,
    /// Our own backend, with v2.
    OursOnV2,
}

impl Stage {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::V1, Self::V2, Self::OursOnV1, Self::OursOnV2];

    /// The stage with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.to_string() == name)
    }

    /// v1 alone has no physical memory to share.
    pub(super) fn shares_physical_memory(self) -> bool {
        self != Self::V1
    }

    /// v1 cannot signal an event twice, so our backend has no event to share there either.
    pub(super) fn shares_events(self) -> bool {
        matches!(self, Self::V2 | Self::OursOnV2)
    }

    /// Whether our backend serves the calls.
    pub fn is_ours(self) -> bool {
        matches!(self, Self::OursOnV1 | Self::OursOnV2)
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
            Self::OursOnV1 => "ours-on-v1",
            Self::OursOnV2 => "ours-on-v2",
        })
    }
}
