//! What processes end on: an adapter, and a form of the trace.

use std::fmt;

use crate::{Adapter, Release, TestRun};

/// An adapter, and the form in which its calls are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    adapter: Adapter,
    binary: bool,
}

impl Stage {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self { adapter: Adapter::V1, binary: false },
        Self { adapter: Adapter::V2, binary: true },
        Self { adapter: Adapter::V2, binary: false },
        Self { adapter: Adapter::V1, binary: true },
    ];

    /// The stage with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.to_string() == name)
    }

    /// A run of a program on it.
    pub(super) fn test_run(self, app: &str) -> TestRun {
        let form = if self.binary { "binary" } else { "chrome" };
        TestRun::new(app, Release::R2026_2, self.adapter).env("URSCOPE_FORMAT", form).env("URSCOPE_QUIET", "1")
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let adapter = match self.adapter {
            Adapter::V1 => "v1",
            Adapter::V2 => "v2",
        };
        write!(f, "{adapter}-{}", if self.binary { "binary" } else { "chrome" })
    }
}
