//! Selects the frames of a call stack that reports show and that identify a finding across runs.

use urscope_schema::{handle::fingerprint, trace::records::is_of_runtime};

use crate::analysis::{FoundFinding, Frame, Location};

/// The directories of the headers of the C++ library and of the SYCL runtime, whose functions are compiled into programs.
const HEADERS: [&str; 2] = ["/usr/include/", "/include/sycl/"];

/// The number of frames of a stack that are shown.
const FRAMES: usize = 4;

impl Frame {
    /// The frame in one line: its function and place, as far as they are known.
    pub fn line(&self) -> String {
        let Self { function, file, line, module, offset } = self;
        match (function, file, line) {
            (Some(function), Some(file), Some(line)) => format!("{function} ({file}:{line})"),
            (Some(function), ..) => format!("{function} ({module})"),
            _ => format!("{offset} ({module})"),
        }
    }
}

impl Location {
    /// The frames that reports show: those of the program, or those of the runtime if there are no others.
    pub fn shown_frames(&self) -> impl Iterator<Item = &Frame> {
        let of_program = |frame: &Frame| {
            let header = frame.file.as_ref().is_some_and(|file| HEADERS.iter().any(|place| file.contains(place)));
            !is_of_runtime(&frame.module) && !header
        };
        let runtime_only = !self.stack.iter().any(of_program);
        self.stack.iter().filter(move |frame| runtime_only || of_program(frame)).take(FRAMES)
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

    /// A hash of what is the same in every run: the rule, and for both sides the program, the Unified Runtime function, and the
    /// shown frames by function and source file, or by module and offset. It excludes process ids and addresses, line numbers,
    /// which change with every edit above them, and directories, which differ between machines.
    pub(crate) fn identity_of(&self) -> String {
        let mut words = vec![self.rule.as_str()];
        for side in self.locations() {
            words.extend([SIDE, file_name(&side.executable), side.function.as_deref().unwrap_or_default()]);
            for frame in side.shown_frames() {
                words.extend(match (&frame.function, &frame.file) {
                    (Some(function), file) => [function.as_str(), file.as_deref().map_or("", file_name)],
                    (None, _) => [frame.offset.as_str(), file_name(&frame.module)],
                });
            }
        }
        format!("{:016x}", fingerprint(words.join("\n").as_bytes()))
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

    fn frame(function: &str, line: u32) -> Frame {
        let (module, offset) = ("/build/app".to_owned(), format!("{line:#x}"));
        let file = Some("/src/app.cpp".to_owned());
        Frame { module, offset, function: Some(function.to_owned()), file, line: Some(line) }
    }

    fn finding() -> FoundFinding {
        let stack = vec![frame("inner", 7), frame("main", 9)];
        let (executable, function) = ("/build/app".to_owned(), Some("urUSMFree".to_owned()));
        let process =
            Location { host: String::new(), pid: 1, rank: None, executable, tid: 1, time_ns: 5, function, call: Some(3), stack };
        let other = Some(Location { pid: 2, stack: Vec::new(), ..process.clone() });
        FoundFinding {
            rule: "double-put".into(),
            severity: Severity::Error,
            process,
            other,
            time_ns: 5,
            function: None,
            call: None,
            message: String::new(),
            advice: String::new(),
            count: 1,
            subject: None,
            kind: None,
            size: None,
            fingerprint: None,
            hosts: std::collections::BTreeMap::new(),
            identity: String::new(),
            fails: true,
            excuse: None,
        }
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
