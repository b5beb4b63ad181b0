//! Wrappers: functions of the program through which many calls go, such as its own allocator. They are no call sites.

use super::{Dispatchers, dispatchers::is_of_library, frames::bare};
use crate::analysis::{Frame, Location, pattern::Pattern};

/// Patterns of functions that are wrappers. `*` matches any text; a pattern without parameters matches every overload.
/// Functions that a pattern behind `!` matches are none, whatever the calls of a run show.
#[derive(Clone, Debug, Default)]
pub struct Wrappers {
    named: Vec<Pattern>,
    never: Vec<Pattern>,
}

impl Wrappers {
    /// The wrappers with these patterns. Every text is a valid pattern.
    pub fn new<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Self {
        let mut wrappers = Self::default();
        for pattern in patterns {
            match pattern.strip_prefix('!') {
                Some(pattern) => wrappers.never.push(Pattern::whole(pattern)),
                None => wrappers.named.push(Pattern::whole(pattern)),
            }
        }
        wrappers
    }

    /// Marks the frames of a location that are no call sites, and those that are of the program, and notes its place.
    pub(crate) fn mark(&self, side: &mut Location, found: &Dispatchers) {
        self.mark_frames(&mut side.stack, found);
        for frame in &mut side.stack {
            frame.program = frame.is_of_program();
        }
        side.site = side.call_site().map(Frame::brief);
    }

    /// Marks the frames of a call stack that are no call sites: those of these wrappers, and the innermost ones of the
    /// program as long as they are of a wrapper, of a dispatcher that was found, or of a library that calls for others.
    fn mark_frames(&self, stack: &mut [Frame], found: &Dispatchers) {
        for frame in &mut *stack {
            frame.wrapper = covers(&self.named, frame) && !covers(&self.never, frame);
        }
        let own = || stack.iter().enumerate().filter(|(_, frame)| frame.is_of_program());
        let passes =
            |frame: &Frame| frame.wrapper || (is_of_library(frame) || found.has(frame)) && !covers(&self.never, frame);
        let passed: Vec<usize> = own().take_while(|(_, frame)| passes(frame)).map(|(at, _)| at).collect();
        // If there is nothing else, the innermost frame is as good as any.
        if passed.len() < own().count() {
            for at in passed {
                stack.get_mut(at).into_iter().for_each(|frame| frame.wrapper = true);
            }
        }
    }
}

/// Whether one of the patterns matches the function of a frame.
fn covers(patterns: &[Pattern], frame: &Frame) -> bool {
    let covers =
        |function: &str| patterns.iter().any(|pattern| pattern.covers(function) || pattern.covers(bare(function)));
    frame.function.as_deref().is_some_and(covers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str) -> Frame {
        Frame::of(function, "/src/app.cpp", 3)
    }

    #[test]
    fn a_wrapper_is_named_with_or_without_its_parameters() {
        let wrappers = Wrappers::new(["app::Gpu::*", "my_free", "f(int)"]);
        for function in ["app::Gpu::free(void*)", "my_free(void*)", "my_free", "f(int)"] {
            assert!(covers(&wrappers.named, &frame(function)), "{function}");
        }
        for function in ["app::gpu()", "my_free_all(void*)", "f(long)", "main"] {
            assert!(!covers(&wrappers.named, &frame(function)), "{function}");
        }
    }

    #[test]
    fn what_is_named_has_the_last_word() {
        let mut found = Dispatchers::default();
        found.add(&frame("release(void*)"));
        let mut side = Location { stack: ["release(void*)", "step", "main"].map(frame).into(), ..Location::default() };
        let mut site = |patterns: &[&str]| {
            Wrappers::new(patterns.iter().copied()).mark(&mut side, &found);
            side.site.take().unwrap()
        };
        assert_eq!(site(&[]), "step, app.cpp:3");
        assert_eq!(site(&["step"]), "main, app.cpp:3");
        assert_eq!(site(&["!release"]), "release, app.cpp:3");
        assert_eq!(site(&["*", "!release"]), "release, app.cpp:3");
    }
}
