//! Selects the frames of a call stack that reports show and that identify a finding across runs.

use std::fmt::Write as _;

use urscope_schema::{handle::fingerprint, trace::records::is_of_runtime};

use crate::analysis::{FoundFinding, Frame, Location};

/// The directories of the headers of the C++ library and of the SYCL runtime, whose functions are compiled into programs.
const HEADERS: [&str; 3] = ["/usr/include/", "/include/sycl/", "/include/c++/"];

/// The number of frames of a stack that are shown.
const FRAMES: usize = 4;

impl Frame {
    /// The frame in one line: its function and place, as far as they are known.
    pub fn line(&self) -> String {
        let Self { function, file, line, module, offset, .. } = self;
        match (function, file, line) {
            (Some(function), Some(file), Some(line)) => format!("{function} ({file}:{line})"),
            (Some(function), ..) => format!("{function} ({module})"),
            _ => format!("{offset} ({module})"),
        }
    }
}

/// The name of a function without its parameters and what follows them.
pub(crate) fn bare(function: &str) -> &str {
    let Some(end) = function.rfind(')') else { return function };
    // After parameters comes nothing, or a word as in ` const`.
    if !function.get(end + 1..).is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')) {
        return function;
    }
    let mut depth = 0_usize;
    for (at, c) in function.get(..=end).unwrap_or_default().char_indices().rev() {
        match c {
            ')' => depth += 1,
            '(' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            let name = function.get(..at).unwrap_or_default();
            return if name.is_empty() || name.ends_with("operator") { function } else { name };
        }
    }
    function
}

impl Frame {
    /// Whether it is of the program, not of the runtime, of Python or of the headers of either.
    fn is_of_program(&self) -> bool {
        let header = self.file.as_ref().is_some_and(|file| HEADERS.iter().any(|place| file.contains(place)));
        !is_of_runtime(&self.module) && !header
    }

    /// The function and the line of the frame in few words: `exchange_halo, ring.cpp:37`.
    pub fn brief(&self) -> String {
        let function = self.function.as_deref().map(bare);
        let function =
            function.map_or_else(|| format!("{} in {}", self.offset, file_name(&self.module)), str::to_owned);
        match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{function}, {}:{line}", file_name(file)),
            (Some(file), None) => format!("{function}, {}", file_name(file)),
            (None, _) => function,
        }
    }
}

impl Location {
    /// The frames of the program, innermost first, or those of the runtime if there are no others.
    pub(crate) fn frames(&self) -> impl Iterator<Item = &Frame> {
        let runtime_only = !self.stack.iter().any(Frame::is_of_program);
        self.stack.iter().filter(move |frame| runtime_only || frame.is_of_program())
    }

    /// The frames that reports show: those of [`Self::frames`] that are no wrappers, or all if there are no others.
    pub fn shown_frames(&self) -> impl Iterator<Item = &Frame> {
        let wrappers_only = self.frames().all(|frame| frame.wrapper);
        self.frames().filter(move |frame| wrappers_only || !frame.wrapper).take(FRAMES)
    }

    /// The innermost frame of the program that is no wrapper, which is where a person looks first; `None` if the stack shows none.
    pub fn call_site(&self) -> Option<&Frame> {
        self.shown_frames().next().filter(|frame| frame.is_of_program() && !frame.module.is_empty())
    }

    /// The source file and line of the innermost shown frame that has a source file.
    pub fn source(&self) -> Option<(&str, Option<u32>)> {
        self.shown_frames().find_map(|frame| Some((frame.file.as_deref()?, frame.line)))
    }
}

impl FoundFinding {
    /// The location of the finding, and the other location if there is one.
    pub fn locations(&self) -> impl Iterator<Item = &Location> {
        std::iter::once(&self.process).chain(&self.other)
    }

    /// Marks the frames that are of the program.
    pub(crate) fn mark_program(&mut self) {
        for side in std::iter::once(&mut self.process).chain(&mut self.other) {
            for frame in &mut side.stack {
                frame.program = frame.is_of_program();
            }
        }
    }

    /// A hash of what is the same in every run: the rule, and for both sides the program, the Unified Runtime function, and the
    /// shown frames by function and source file, or by module and offset. It excludes process ids and addresses, line numbers,
    /// which change with every edit above them, and directories, which differ between machines.
    pub(crate) fn identity_of(&self) -> String {
        let mut words = vec![self.rule.as_str()];
        for side in self.locations() {
            words.extend([SIDE, file_name(&side.executable), side.function.as_deref().unwrap_or_default()]);
            for frame in side.frames().take(FRAMES) {
                words.extend(match (&frame.function, &frame.file) {
                    (Some(function), file) => [function.as_str(), file.as_deref().map_or("", file_name)],
                    (None, _) => [frame.offset.as_str(), file_name(&frame.module)],
                });
            }
        }
        format!("{:016x}", fingerprint(words.join("\n").as_bytes()))
    }

    /// What findings at one call site have in common: the rule and the object's kind, and for both sides the program, the function of
    /// Unified Runtime, and all frames of the program with their lines. So mistakes are told apart that share a wrapper.
    pub(crate) fn call_site(&self) -> String {
        let mut site = format!("{}\n{}", self.rule, self.kind.as_deref().unwrap_or_default());
        for side in self.locations() {
            let function = side.function.as_deref().unwrap_or_default();
            let _ = write!(site, "\n{SIDE} {} {function}", file_name(&side.executable));
            for Frame { module, offset, function, file, line, .. } in side.frames() {
                let _ = match (function, line) {
                    (Some(function), Some(line)) => {
                        write!(site, "\n{function} {}:{line}", file.as_deref().map_or("", file_name))
                    }
                    _ => write!(site, "\n{offset} {}", file_name(module)),
                };
            }
        }
        site
    }
}

/// Precedes the words of each side in the hashed text.
const SIDE: &str = "side";

/// The last part of a path.
pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use urscope_rules::Severity;

    use super::*;
    use crate::analysis::Wrappers;

    fn frame(function: &str, line: u32) -> Frame {
        Frame { module: "/build/app".into(), offset: format!("{line:#x}"), ..Frame::of(function, "/src/app.cpp", line) }
    }

    fn finding() -> FoundFinding {
        let stack = vec![frame("inner", 7), frame("main", 9)];
        let (executable, function) = ("/build/app".to_owned(), Some("urUSMFree".to_owned()));
        let process =
            Location { pid: 1, executable, tid: 1, time_ns: 5, function, call: Some(3), stack, ..Location::default() };
        let other = Some(Location { pid: 2, stack: Vec::new(), ..process.clone() });
        let rule = "double-put".into();
        FoundFinding { rule, severity: Severity::Error, other, time_ns: 5, fails: true, ..FoundFinding::of(process) }
    }

    #[test]
    fn a_function_is_named_without_its_parameters() {
        for (function, name) in [
            ("app::free(void*)", "app::free"),
            ("f(int (*)(void*)) const", "f"),
            ("(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
            ("(anonymous namespace)::f", "(anonymous namespace)::f"),
            ("F::operator()(int) const", "F::operator()"),
            ("F::operator()", "F::operator()"),
            ("main::{lambda(int)#1}", "main::{lambda(int)#1}"),
            ("operator() in main", "operator() in main"),
            ("main", "main"),
            (")", ")"),
            ("", ""),
        ] {
            assert_eq!(bare(function), name, "{function}");
        }
    }

    #[test]
    fn the_call_site_is_the_first_frame_of_the_program_that_is_no_wrapper() {
        let runtime = Frame { module: "/lib/libur_loader.so.0".into(), ..frame("urUSMFree", 1) };
        let mut found = finding();
        found.process.stack =
            vec![runtime.clone(), frame("my_free(void*)", 3), frame("exchange_halo(int)", 37), frame("main", 9)];
        let site = |found: &FoundFinding| found.process.call_site().map(Frame::brief);
        assert_eq!(site(&found).as_deref(), Some("my_free, app.cpp:3"));
        let identity = found.identity_of();
        Wrappers::new(["my_free"]).mark(&mut found);
        assert_eq!(site(&found).as_deref(), Some("exchange_halo, app.cpp:37"));
        assert_eq!(found.process.source(), Some(("/src/app.cpp", Some(37))));
        assert_eq!(found.identity_of(), identity, "a report with other wrappers can be the baseline");
        Wrappers::new(["*"]).mark(&mut found);
        assert_eq!(site(&found).as_deref(), Some("my_free, app.cpp:3"), "there is no other frame");
        found.process.stack = vec![runtime];
        assert_eq!(site(&found), None);
    }

    #[test]
    fn mistakes_that_share_a_wrapper_have_different_call_sites() {
        let (mut one, mut two) = (finding(), finding());
        let deep = |line| (0..8).map(|_| frame("wrapper", 3)).chain([frame("main", line)]).collect();
        (one.process.stack, two.process.stack) = (deep(9), deep(10));
        assert_ne!(one.call_site(), two.call_site());
        (two.process.stack, two.process.pid) = (deep(9), 77);
        assert_eq!(one.call_site(), two.call_site());
    }

    #[test]
    fn a_finding_has_the_same_identity_in_a_run_on_another_machine() {
        let (one, mut again) = (finding(), finding());
        (again.process.pid, again.process.tid, again.process.time_ns, again.process.call) = (8, 9, 10, Some(11));
        again.process.executable = "/elsewhere/app".into();
        for frame in &mut again.process.stack {
            (frame.line, frame.module, frame.offset) = (Some(70), "/elsewhere/app".into(), "0x99".into());
            frame.file = Some("../src/app.cpp".into());
        }
        (again.message, again.count) = ("at 0x1234".into(), 12);
        assert_eq!(one.identity_of(), again.identity_of());
    }

    #[test]
    fn different_findings_have_different_identities() {
        let mut known = std::collections::HashSet::from([finding().identity_of()]);
        let mut new = |change: &dyn Fn(&mut FoundFinding)| {
            let mut finding = finding();
            change(&mut finding);
            assert!(known.insert(finding.identity_of()), "{finding:?}");
        };
        new(&|finding| finding.rule = "double-close".into());
        new(&|finding| finding.process.executable = "/build/other".into());
        new(&|finding| finding.process.function = Some("urIPCPutMemHandleExp".into()));
        new(&|finding| finding.process.stack[0].function = Some("another".into()));
        new(&|finding| finding.process.stack[0].file = Some("other.cpp".into()));
        new(&|finding| finding.process.stack.truncate(1));
        new(&|finding| finding.process.stack[0].function = None);
        new(&|finding| {
            finding.process.stack[0].function = None;
            finding.process.stack[0].offset = "0x8".into();
        });
        new(&|finding| finding.other = None);
    }
}
