//! Wrappers: functions of the program that pass a call on, such as its own allocator. They are no call sites.
//!
//! A function that is short and calls at its beginning is one by itself ([`Frame::is_thin`]), whatever else ran. The
//! calls of a run show others, and a person may name some.

use super::{
    FoundWrappers,
    found_wrappers::{HEADERS, is_of_library},
    frames::{OF_POINTER, bare},
};
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
    pub(crate) fn mark(&self, side: &mut Location, found: &FoundWrappers) {
        self.mark_frames(&mut side.stack, found);
        for frame in &mut side.stack {
            frame.program = frame.is_of_program();
        }
        side.site = side.call_site().map(Frame::brief);
    }

    /// Marks the frames of a call stack that are no call sites: those of these wrappers, and the innermost ones of the
    /// program as long as they are of a wrapper that was found, of a library that calls for others, or thin.
    fn mark_frames(&self, stack: &mut [Frame], found: &FoundWrappers) {
        for frame in &mut *stack {
            frame.wrapper = covers(&self.named, frame) && !covers(&self.never, frame);
        }
        for at in self.passed(stack, found, |frame| frame.wrapper) {
            stack.get_mut(at).into_iter().for_each(|frame| frame.wrapper = true);
        }
    }

    /// The innermost frames of the program that are passed: those that are `marked`, too.
    fn passed(&self, stack: &[Frame], found: &FoundWrappers, marked: impl Fn(&Frame) -> bool) -> Vec<usize> {
        let own: Vec<usize> =
            stack.iter().enumerate().filter(|(_, frame)| frame.is_of_program()).map(|(at, _)| at).collect();
        let passes = |nth: usize, at: usize| {
            let Some(frame) = stack.get(at) else { return false };
            let outside = || own.get(nth + 1).and_then(|next| stack.get(at + 1..=*next)).unwrap_or_default();
            marked(frame)
                || (is_of_library(frame) || found.has(frame) || frame.is_thin(outside())) && !covers(&self.never, frame)
        };
        let passed: Vec<usize> =
            own.iter().enumerate().map_while(|(nth, at)| passes(nth, *at).then_some(*at)).collect();
        // If there is nothing else, the innermost frame is as good as any.
        if passed.len() < own.len() { passed } else { Vec::new() }
    }
}

/// The call site of a stack by what its functions are, whatever else the run shows.
pub(super) fn own_site(stack: &[Frame]) -> Option<usize> {
    let passed = Wrappers::default().passed(stack, &FoundWrappers::default(), |_| false);
    stack.iter().enumerate().find(|(at, frame)| frame.is_of_program() && !passed.contains(at)).map(|(at, _)| at)
}

/// The most lines of a thin function: from its declaration to the call, and to its end.
const THIN: (u64, u64) = (2, 6);

/// Those of a function in a header that a source calls.
const THIN_IN_HEADER: (u64, u64) = (5, 10);

/// Those of a function of Python, from its first statement on.
const THIN_IN_PYTHON: (u64, u64) = (0, 6);

/// Parts of the names of functions of the C++ library that call what they are given.
const INVOKES: [&str; 5] = ["std::function<", "std::_Function_handler", "std::__invoke", "std::invoke", "std::thread"];

impl Frame {
    /// Whether its function only passes a call on: it is short, and calls at its beginning. `outside` are the frames
    /// from its caller up to the next one of the program. What a wrapper or the main function of the same source
    /// calls is a task of the program, however short it is.
    fn is_thin(&self, outside: &[Self]) -> bool {
        let (Some(caller), Some(within), Some(rest)) = (outside.last(), self.within, self.rest) else { return false };
        let is_below = |(to_call, to_end)| within <= to_call && within + u64::from(rest) <= to_end;
        let is_helper = self.is_in_header() && !caller.is_in_header();
        let is_short = if self.is_of_python() {
            is_below(THIN_IN_PYTHON)
        } else {
            is_below(THIN) || is_helper && is_below(THIN_IN_HEADER)
        };
        let is_main = |name: &str| name == "<module>" || bare(name) == "main";
        let name = caller.function.as_deref().unwrap_or_default();
        let starts = name == "_start" || self.file == caller.file && is_main(name);
        let is_task = starts
            || self.takes_function()
            || outside.iter().any(Self::invokes)
            || !self.is_in_header() && caller.takes_function();
        is_short && !is_task
    }

    /// Whether it calls what it is given, on behalf of the C++ library or of Python's.
    fn invokes(&self) -> bool {
        let name = self.function.as_deref().unwrap_or_default();
        self.is_of_python() && !self.is_of_program()
            || name == OF_POINTER
            || INVOKES.iter().any(|part| name.contains(part))
    }

    /// Whether it is a function of Python.
    fn is_of_python(&self) -> bool {
        self.offset.is_empty() && !self.module.is_empty()
    }

    /// Whether one of its parameters is a function.
    pub(super) fn takes_function(&self) -> bool {
        let name = self.function.as_deref().unwrap_or_default();
        let parameters = name.strip_prefix(bare(name)).unwrap_or_default();
        ["std::function<", "(*)(", "{lambda("].iter().any(|part| parameters.contains(part))
    }

    /// Whether its source holds what several others need.
    fn is_in_header(&self) -> bool {
        self.file.as_ref().is_some_and(|file| HEADERS.iter().any(|ending| file.ends_with(ending)))
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
        Frame::new(function, "/src/app.cpp", 3)
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
        let mut found = FoundWrappers::default();
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

    /// A frame from a text: its function, its place, and how far it is from the declaration and from the end.
    fn thin(text: &str) -> Frame {
        let (function, place) = text.split_once(" @ ").unwrap();
        let mut words = place.split(' ');
        let (file, line) = words.next().unwrap().split_once(':').unwrap();
        let mut number = || words.next().map(|word| word.parse().unwrap());
        let within = number().map(u64::from);
        let rest = number();
        let frame = Frame { within, rest, ..Frame::new(function, file, line.parse().unwrap()) };
        if file.rsplit('.').next() == Some("py") {
            Frame { module: file.into(), ..frame }
        } else {
            Frame { offset: "0x10".into(), ..frame }
        }
    }

    /// The call site of a stack in which nothing else shows wrappers, and what leads to it.
    fn site(frames: &[&str]) -> String {
        let mut side = Location { stack: frames.iter().copied().map(thin).collect(), ..Location::default() };
        Wrappers::default().mark(&mut side, &FoundWrappers::default());
        format!("{}{}", side.site.clone().unwrap_or_default(), side.via())
    }

    #[test]
    fn a_function_that_only_passes_a_call_on_is_passed() {
        let main = "main @ app.cpp:50 9 9";
        let step = "step @ app.cpp:14 6 2";
        let found = site(&["Gpu::free(void*) @ gpu.hpp:37 0 0", step, main]);
        assert_eq!(found, "step, app.cpp:14, via Gpu::free (gpu.hpp:37)");
        // Also in a source, and several of them.
        let found = site(&["Gpu::free @ app.cpp:3 1 1", "release @ app.cpp:9 2 4", step, main]);
        assert_eq!(found, "step, app.cpp:14, via release (app.cpp:9) and Gpu::free (app.cpp:3)");
        // One in a header that a source calls may be longer.
        assert_eq!(site(&["Gpu::open @ gpu.hpp:9 5 5", step, main]), "step, app.cpp:14, via Gpu::open (gpu.hpp:9)");
        assert_eq!(site(&["open @ app.cpp:9 5 5", step, main]), "open, app.cpp:9");
        for long in ["Gpu::map @ gpu.hpp:9 6 1", "Gpu::map @ gpu.hpp:9 1 10", "Gpu::map @ gpu.hpp:9"] {
            assert_eq!(site(&[long, step, main]), "Gpu::map, gpu.hpp:9");
        }
    }

    #[test]
    fn of_a_function_of_python_the_first_statement_counts() {
        let module = "<module> @ app.py:50 9 9";
        let step = "step @ app.py:20 4 0";
        assert_eq!(site(&["Gpu.free @ app.py:3 0 0", step, module]), "step, app.py:20, via Gpu.free (app.py:3)");
        assert_eq!(site(&["Gpu.free @ gpu.py:3 0 0", module]), "<module>, app.py:50, via Gpu.free (gpu.py:3)");
        assert_eq!(site(&["open_the_shop @ app.py:3 1 0", step, module]), "open_the_shop, app.py:3");
        let thread = "Thread.run @ /usr/lib/python3.11/threading.py:975 0 3";
        assert_eq!(site(&["work @ app.py:3 0 0", thread, module]), "work, app.py:3");
    }

    #[test]
    fn a_short_function_is_a_place_if_nothing_of_the_program_called_it() {
        assert_eq!(site(&["main @ app.cpp:50 1 1"]), "main, app.cpp:50");
        assert_eq!(site(&["main @ app.cpp:50 1 1", "_start @ start.c:3"]), "main, app.cpp:50");
        let invoked = "std::function<void ()>::operator()() const @ /usr/include/c++/12/bits/std_function.h:591 4 0";
        let run = "run(std::function<void ()> const&) @ run.hpp:9 8 3";
        assert_eq!(site(&["consumer @ app.cpp:20 2 4", invoked, run, "main @ app.cpp:50 0 0"]), "consumer, app.cpp:20");
        // The main function of a source starts its tasks; a helper in a header is none.
        assert_eq!(site(&["consumer @ app.cpp:20 2 4", "main @ app.cpp:50 9 9"]), "consumer, app.cpp:20");
        let found = site(&["Gpu::free @ gpu.hpp:3 0 0", "main @ app.cpp:50 9 9"]);
        assert_eq!(found, "main, app.cpp:50, via Gpu::free (gpu.hpp:3)");
        // A pointer to a function is called without a library between.
        let run = "run(void (*)(int)) @ run.hpp:9 8 3";
        assert_eq!(site(&["consumer @ app.cpp:20 2 4", run, "main @ app.cpp:50 0 0"]), "consumer, app.cpp:20");
        assert_eq!(site(&["Gpu::free @ gpu.hpp:3 0 0", run]), "run, run.hpp:9, via Gpu::free (gpu.hpp:3)");
    }

    #[test]
    fn a_thin_function_can_be_made_a_place() {
        let stack = ["Gpu::free(void*) @ gpu.hpp:37 0 0", "step @ app.cpp:14 6 2", "main @ app.cpp:50 9 9"];
        let mut side = Location { stack: stack.map(thin).into(), ..Location::default() };
        Wrappers::new(["!Gpu::free"]).mark(&mut side, &FoundWrappers::default());
        assert_eq!(side.site.as_deref(), Some("Gpu::free, gpu.hpp:37"));
    }
}
