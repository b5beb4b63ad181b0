//! Wrappers: functions of the program through which many calls go, such as its own allocator. They are no call sites.

use super::frames::bare;
use crate::analysis::{FoundFinding, Frame, pattern::Pattern};

/// Patterns of functions that are wrappers. `*` matches any text; a pattern without parameters matches every overload.
#[derive(Clone, Debug, Default)]
pub struct Wrappers(Vec<Pattern>);

impl Wrappers {
    /// The wrappers with these patterns. Every text is a valid pattern.
    pub fn new<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Self {
        Self(patterns.into_iter().map(Pattern::whole).collect())
    }

    fn covers(&self, function: &str) -> bool {
        self.0.iter().any(|pattern| pattern.covers(function) || pattern.covers(bare(function)))
    }

    /// Marks the frames of a finding that are wrappers.
    pub(crate) fn mark(&self, finding: &mut FoundFinding) {
        if self.0.is_empty() {
            return;
        }
        for side in std::iter::once(&mut finding.process).chain(&mut finding.other) {
            self.mark_frames(&mut side.stack);
        }
    }

    /// Marks the frames of a call stack that are wrappers.
    pub(super) fn mark_frames(&self, stack: &mut [Frame]) {
        for frame in stack {
            frame.wrapper = frame.function.as_deref().is_some_and(|function| self.covers(function));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapper_is_named_with_or_without_its_parameters() {
        let wrappers = Wrappers::new(["app::Gpu::*", "my_free", "f(int)"]);
        for function in ["app::Gpu::free(void*)", "my_free(void*)", "my_free", "f(int)"] {
            assert!(wrappers.covers(function), "{function}");
        }
        for function in ["app::gpu()", "my_free_all(void*)", "f(long)", "main"] {
            assert!(!wrappers.covers(function), "{function}");
        }
    }
}
