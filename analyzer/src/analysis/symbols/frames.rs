//! Selects the frames of a call stack that reports show and that identify a finding across runs.

use std::{borrow::Cow, fmt::Write as _};

use urscope_schema::{handle::fingerprint, trace::records::is_of_runtime};

use super::{found_wrappers::is_of_library, wrappers::own_site};
use crate::analysis::{Excerpt, FoundFinding, Frame, Location, ProcessSummary};

/// The directories of the headers of the C++ library, of the SYCL runtime and of the CUDA toolkit, whose functions are
/// compiled into programs.
const HEADERS: [&str; 5] =
    ["/usr/include/", "/include/sycl/", "/include/c++/", "/cuda/include/", "/targets/x86_64-linux/include/"];

/// How the names of functions begin that nvcc puts into programs: local ones of the static runtime, and what launches a
/// kernel.
const OF_CUDA: [&str; 4] = ["libcudart_static_", "__cudart", KERNEL_STUB, "__cudaLaunch"];

/// How the name of a function begins that passes the arguments of a kernel to the runtime.
pub(super) const KERNEL_STUB: &str = "__device_stub_";

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

/// The name of a function as people know it: without parameters, the result of a template, and what compilers add;
/// `double_put, in a lambda` for a lambda in `double_put`.
pub(super) fn plain_name(function: &str) -> String {
    if let Some(outer) = function.strip_prefix(LAMBDA_IN)
        && !function.contains("lambda")
    {
        let outer = plain_name(outer);
        if outer == A_LAMBDA {
            return outer;
        }
        return if outer.ends_with(IN_LAMBDA) { outer } else { outer + IN_LAMBDA };
    }
    let name = function.replace("(anonymous namespace)::", "").replace("[abi:cxx11]", "");
    let lambda = ["::{lambda(", "::<lambda("].into_iter().filter_map(|mark| name.find(mark)).min();
    let Some(lambda) = lambda else {
        let name = without_result(bare(&name));
        return if name.starts_with(LAMBDA) || name == OF_POINTER { A_LAMBDA.into() } else { name.to_owned() };
    };
    let outer = name.get(..lambda).unwrap_or_default();
    let outer = without_result(bare(innermost(outer)));
    format!("{outer}{IN_LAMBDA}")
}

const IN_LAMBDA: &str = ", in a lambda";
const A_LAMBDA: &str = "a lambda";

/// The function to which a pointer to a lambda leads.
pub(super) const OF_POINTER: &str = "_FUN";

/// How the symbolizer names one that was inlined.
const LAMBDA_IN: &str = "operator() in ";

/// How the name of a lambda begins where a compiler gives no other.
const LAMBDA: &str = "operator()";

/// The last argument of the template in which a text ends.
fn innermost(text: &str) -> &str {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices().rev() {
        match c {
            ')' | '>' => depth += 1,
            '(' | '<' if depth > 0 => depth -= 1,
            '<' | ',' if depth == 0 => return text.get(at + 1..).unwrap_or_default().trim_start(),
            _ => {}
        }
    }
    text
}

/// The name of an instance of a template without its result, which stands in front.
fn without_result(name: &str) -> &str {
    let mut depth = 0_usize;
    let mut begin = 0;
    for (at, c) in name.char_indices() {
        match c {
            '(' | '<' | '{' => depth += 1,
            ')' | '>' | '}' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 && !name.get(..at).is_some_and(|before| before.ends_with("operator")) => begin = at + 1,
            _ => {}
        }
    }
    name.get(begin..).unwrap_or(name)
}

impl Frame {
    /// Whether it is of the program, not of the runtime, of Python or of the headers of either.
    pub(super) fn is_of_program(&self) -> bool {
        let header = self.file.as_ref().is_some_and(|file| HEADERS.iter().any(|place| file.contains(place)));
        !(is_of_runtime(&self.module) || header || self.is_of_static_cudart() || self.is_of_test_runner())
    }

    /// Whether it is of the CUDA runtime that nvcc links statically. Its exported functions have names and no lines.
    fn is_of_static_cudart(&self) -> bool {
        let function = self.function.as_deref().unwrap_or_default();
        let exported =
            function.strip_prefix("cuda").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()));
        OF_CUDA.iter().any(|begin| function.starts_with(begin)) || exported && self.file.is_none()
    }

    /// Whether it is of pytest, which runs the program's tests.
    fn is_of_test_runner(&self) -> bool {
        self.offset.is_empty() && ["/_pytest/", "/pluggy/", "/pytest/"].iter().any(|part| self.module.contains(part))
    }

    /// The function and the line of the frame in few words: `exchange_halo, ring.cpp:37`.
    pub fn brief(&self) -> String {
        let function = self.function.as_deref().map(plain_name);
        let function = function.unwrap_or_else(|| format!("{} in {}", self.offset, file_name(&self.module)));
        match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{function}, {}:{line}", file_name(file)),
            (Some(file), None) => format!("{function}, {}", file_name(file)),
            (None, _) => function,
        }
    }
}

impl Frame {
    /// The function without its parameters, and the line in parentheses: `app::Gpu::free (ipc_app.hpp:37)`.
    pub fn through(&self) -> String {
        match (self.function.as_deref(), &self.file, self.line) {
            (Some(function), Some(file), Some(line)) => {
                format!("{} ({}:{line})", plain_name(function), file_name(file))
            }
            _ => self.brief(),
        }
    }
}

impl Excerpt {
    /// The lines with their numbers.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (u32, &str)> {
        (self.first..).zip(self.lines.iter().map(String::as_str))
    }
}

impl Location {
    /// Whether it is in a process.
    pub(crate) fn is_in(&self, process: &ProcessSummary) -> bool {
        (&self.host, self.pid, &self.executable) == (&process.host, process.pid, &process.executable)
    }

    /// Whether it is in the process of another location.
    pub(crate) fn is_of(&self, other: &Self) -> bool {
        (self.pid, &self.host) == (other.pid, &other.host)
    }

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

    /// The innermost frame of the program that is no wrapper, which is where a person looks first; `None` if the stack
    /// shows none.
    pub fn call_site(&self) -> Option<&Frame> {
        self.shown_frames().next().filter(|frame| frame.is_of_program() && !frame.module.is_empty())
    }

    /// The line of the call site, as `ring.cpp:37`.
    pub(crate) fn call_line(&self) -> Option<String> {
        let frame = self.call_site()?;
        Some(format!("{}:{}", file_name(frame.file.as_deref()?), frame.line?))
    }

    /// The frames of the program that were passed on the way from the call to its call site, innermost first.
    pub fn passed_frames(&self) -> impl Iterator<Item = &Frame> {
        let site = self.call_site();
        let is_site = move |frame: &&Frame| site.is_none_or(|site| std::ptr::eq(site, *frame));
        self.frames().take_while(move |frame| !is_site(frame)).filter(|frame| !is_of_library(frame))
    }

    /// The functions that were passed, from the call site on: `, via app::Gpu::free (ipc_app.hpp:37)`, or nothing.
    pub(crate) fn via(&self) -> String {
        let mut passed: Vec<String> = self.passed_frames().map(Frame::through).collect();
        passed.reverse();
        if passed.is_empty() { String::new() } else { format!(", via {}", passed.join(" and ")) }
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

    /// The locations, to be changed, also those of further processes, and where the other one ended what it held.
    pub(crate) fn locations_mut(&mut self) -> impl Iterator<Item = &mut Location> {
        std::iter::once(&mut self.process).chain(&mut self.other).chain(&mut self.others).chain(&mut self.later)
    }

    /// A hash of what is the same in every run: the rule, and for both sides the program, the function of C, and all
    /// frames of the program, by function and source file, or by module and offset; and where in its function the call
    /// site is, or each frame of a program without lines. It excludes process ids and addresses, line numbers, which
    /// change with every edit above the function, directories, which differ between machines, and whatever else ran or
    /// was asked for.
    pub(crate) fn identity_of(&self) -> String {
        self.hash(true)
    }

    /// The hash of [`Self::identity_of`] without the place of the call site in its function.
    pub(crate) fn identity_of_function(&self) -> String {
        self.hash(false)
    }

    fn hash(&self, places: bool) -> String {
        let mut words: Vec<Cow<'_, str>> = vec![self.rule.as_str().into()];
        for side in self.locations() {
            let function = side.function.as_deref().unwrap_or_default();
            words.extend([SIDE, file_name(&side.executable), function].map(Cow::from));
            for frame in side.frames() {
                words.extend(match (&frame.function, &frame.file) {
                    (Some(function), file) => [function.as_str(), file.as_deref().map_or("", file_name)].map(Cow::from),
                    (None, _) => [frame.offset.as_str(), file_name(&frame.module)].map(Cow::from),
                });
            }
            let site = own_site(&side.stack);
            // Which function of a program without lines is a wrapper is not known.
            let is_site = |(at, frame): &(usize, &Frame)| {
                Some(*at) == site || frame.line.is_none() && frame.is_of_program() && frame.module == side.executable
            };
            let sites = side.stack.iter().enumerate().filter(is_site).filter(|_| places);
            words.extend(sites.filter_map(|(_, site)| site.within).map(|within| within.to_string().into()));
        }
        format!("{:016x}", fingerprint(words.join("\n").as_bytes()))
    }

    /// Whether a finding of another run with the same [`Self::identity_of_function`] may be this one. Both have the
    /// same marks.
    pub(crate) fn may_be(&self, other: &Self) -> bool {
        self.call_frames().zip(other.call_frames()).all(|frames| match frames {
            (Some(own), Some(other)) => own.may_be_at(other),
            _ => true,
        })
    }

    /// Whether its call sites have the same lines as those of another finding.
    pub(crate) fn is_at(&self, other: &Self) -> bool {
        let places =
            |finding: &Self| finding.call_frames().map(|frame| frame.and_then(Frame::place)).collect::<Vec<_>>();
        places(self) == places(other)
    }

    /// The first shown frame of each side.
    fn call_frames(&self) -> impl Iterator<Item = Option<&Frame>> {
        self.locations().map(|side| side.shown_frames().next())
    }

    /// What findings at one call site have in common: the rule and the object's kind, and for both sides the program,
    /// the function of Unified Runtime, and all frames of the program with their lines. So mistakes are told apart that
    /// share a wrapper.
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
    use crate::analysis::{Wrappers, symbols::FoundWrappers};

    fn frame(function: &str, line: u32) -> Frame {
        let offset = format!("{line:#x}");
        Frame { module: "/build/app".into(), offset, ..Frame::new(function, "/src/app.cpp", line) }
    }

    fn finding() -> FoundFinding {
        let stack = vec![frame("inner", 7), frame("main", 9)];
        let executable = "/build/app".to_owned();
        let function = Some("urUSMFree".to_owned());
        let process =
            Location { pid: 1, executable, tid: 1, time_ns: 5, function, call: Some(3), stack, ..Location::default() };
        let other = Some(Location { pid: 2, stack: Vec::new(), ..process.clone() });
        let rule = "double-put".into();
        let severity = Severity::Error;
        FoundFinding { rule, severity, other, time_ns: 5, fails: true, ..FoundFinding::note_at(process) }
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
    fn a_function_has_the_name_that_people_know() {
        for (function, name) in [
            ("(anonymous namespace)::double_put()::{lambda()#1}::operator()() const", "double_put, in a lambda"),
            ("operator() in __invoke_impl<void, (anonymous namespace)::f(int)::<lambda()>&>", "f, in a lambda"),
            ("app::run(int, char**)::{lambda()#1}::operator()() const", "app::run, in a lambda"),
            ("void app::each<int, std::string>(int)", "app::each<int, std::string>"),
            ("app::outcome[abi:cxx11](std::function<void ()> const&)", "app::outcome"),
            ("operator() in operator() in work", "work, in a lambda"),
            ("operator()", "a lambda"),
            ("operator() in _FUN", "a lambda"),
            ("app::Vector::operator bool() const", "app::Vector::operator bool"),
            ("Loader.err", "Loader.err"),
            ("<module>", "<module>"),
        ] {
            assert_eq!(plain_name(function), name, "{function}");
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
        assert_eq!(found.process.site, None);
        Wrappers::new(["my_free"]).mark(&mut found.process, &FoundWrappers::default());
        assert_eq!(found.process.site.as_deref(), Some("exchange_halo, app.cpp:37"));
        assert_eq!(site(&found).as_deref(), Some("exchange_halo, app.cpp:37"));
        assert_eq!(found.process.source(), Some(("/src/app.cpp", Some(37))));
        Wrappers::new(["*"]).mark(&mut found.process, &FoundWrappers::default());
        assert_eq!(site(&found).as_deref(), Some("my_free, app.cpp:3"), "there is no other frame");
        found.process.stack = vec![runtime];
        assert_eq!(site(&found), None);
    }

    #[test]
    fn mistakes_that_share_a_wrapper_have_different_call_sites() {
        let mut one = finding();
        let mut two = finding();
        let deep = |line| (0..8).map(|_| frame("wrapper", 3)).chain([frame("main", line)]).collect();
        (one.process.stack, two.process.stack) = (deep(9), deep(10));
        assert_ne!(one.call_site(), two.call_site());
        (two.process.stack, two.process.pid) = (deep(9), 77);
        assert_eq!(one.call_site(), two.call_site());
    }

    #[test]
    fn a_finding_has_the_same_identity_in_a_run_on_another_machine() {
        let one = finding();
        let mut again = finding();
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
    fn mistakes_in_one_function_have_different_identities_and_are_told_apart_after_its_lines_have_moved() {
        let at = |own: u32, places: &[u32]| {
            let mut found = finding();
            let places = places.iter().copied().map(u64::from).collect();
            let within = Some(u64::from(own) - 30);
            found.process.stack = vec![Frame { within, places, ..frame("exchange", own) }, frame("main", 99)];
            found
        };
        let first = at(40, &[40, 50]);
        let second = at(50, &[40, 50]);
        assert_ne!(first.identity_of(), second.identity_of());
        assert_eq!(first.identity_of_function(), second.identity_of_function());
        let mut moved = at(47, &[47, 57]);
        moved.process.stack[0].within = Some(10);
        assert_eq!(first.identity_of(), moved.identity_of());
        assert_eq!(first.identity_of(), at(40, &[]).identity_of(), "another run did not come to the second one");
        for (other, may_be) in [
            (at(40, &[40, 50]), true),
            (at(50, &[40, 50]), false),
            // All lines have moved, by as much as two of them are apart.
            (at(50, &[50, 60]), true),
            (at(60, &[50, 60]), false),
            // The other run came to one of the two only.
            (at(40, &[]), true),
            (at(50, &[]), false),
            (at(45, &[]), true),
            // A third call was added.
            (at(40, &[30, 40, 50]), true),
            (at(30, &[30, 40, 50]), false),
        ] {
            assert_eq!(first.may_be(&other), may_be, "{other:?}");
            assert_eq!(other.may_be(&first), may_be, "{other:?}");
        }
    }

    #[test]
    fn an_identity_does_not_depend_on_what_else_ran_or_was_asked_for() {
        let alone = finding();
        let mut among = finding();
        for frame in &mut among.process.stack {
            (frame.wrapper, frame.places) = (true, vec![3, 7]);
        }
        among.process.site = Some("elsewhere".into());
        assert_eq!(alone.identity_of(), among.identity_of());
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
