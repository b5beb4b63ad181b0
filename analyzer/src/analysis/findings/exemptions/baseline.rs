//! The baseline: an earlier report, whose findings are known.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::ExemptionError;
use crate::analysis::{
    Compared, Excuse, FoundFinding, GoneFinding, Judgement, VERSION, Wrappers, findings::report_text,
    symbols::FoundWrappers,
};

/// The findings of an earlier report.
#[derive(Clone, Debug)]
pub struct Baseline {
    path: PathBuf,
    findings: Vec<FoundFinding>,
}

/// The part of a report that is parsed first.
#[derive(Deserialize)]
struct Head {
    version: u32,
}

/// The part of a report that is compared.
#[derive(Deserialize)]
struct Earlier {
    findings: Vec<FoundFinding>,
}

impl Baseline {
    /// Reads a report in JSON.
    pub fn read(path: &Path) -> Result<Self, ExemptionError> {
        let expected = "a report in JSON";
        let text = report_text(path);
        let text = text.map_err(|source| ExemptionError::Unreadable { path: path.to_owned(), source, expected })?;
        Self::parse(path, &text)
    }

    /// The findings of a judgement, with `path` as the name of its report.
    pub fn from_judgement(path: &Path, judgement: &Judgement) -> Self {
        Self { path: path.to_owned(), findings: judgement.findings.clone() }
    }

    /// Parses the text of a report; `path` names it in errors.
    pub fn parse(path: &Path, text: &[u8]) -> Result<Self, ExemptionError> {
        let no_report = |found: String| ExemptionError::NoReport { path: path.to_owned(), found };
        let head: Head = serde_json::from_slice(text).map_err(|error| no_report(error.to_string()))?;
        if head.version > VERSION {
            return Err(no_report(format!("it has version {}, and this urscope reads up to {VERSION}", head.version)));
        }
        let earlier: Earlier = serde_json::from_slice(text).map_err(|error| no_report(error.to_string()))?;
        Ok(Self { path: path.to_owned(), findings: earlier.findings })
    }

    /// Excuses known findings, each as often as the baseline has it, and returns those that are gone. A known finding
    /// with a higher severity is new.
    ///
    /// The calls of another run may show other wrappers, so both are compared with the wrappers of either.
    pub(crate) fn compare(&self, findings: &mut [FoundFinding]) -> Compared {
        let mut wrappers = FoundWrappers::default();
        for side in self.findings.iter().chain(&*findings).flat_map(FoundFinding::locations) {
            side.stack.iter().filter(|frame| frame.wrapper).for_each(|frame| wrappers.add(frame));
        }
        let marked = |finding: &FoundFinding| {
            let mut finding = finding.clone();
            finding.locations_mut().for_each(|side| Wrappers::default().mark(side, &wrappers));
            finding.identity = finding.identity_of();
            finding
        };
        let earlier: Vec<_> = self.findings.iter().map(marked).collect();
        let mut before: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, finding) in earlier.iter().enumerate() {
            before.entry(finding.identity_of_function()).or_default().push(index);
        }
        let is_exact: fn(&FoundFinding, &FoundFinding) -> bool = FoundFinding::is_at;
        let mut new: Vec<_> = findings.iter_mut().map(|finding| (marked(finding), finding)).collect();
        // Those at the same lines first, so that what has moved is not taken for them.
        for is_same in [is_exact, FoundFinding::may_be] {
            new.retain_mut(|(here, finding)| {
                let Some(known) = before.get_mut(&here.identity_of_function()) else { return true };
                let is_known = |one: &FoundFinding| one.severity >= finding.severity && is_same(here, one);
                let at = known.iter().position(|index| earlier.get(*index).is_some_and(is_known));
                if let Some(at) = at {
                    known.remove(at);
                    finding.excuse = Some(Excuse::Baseline);
                }
                at.is_none()
            });
        }
        let left: BTreeSet<usize> = before.into_values().flatten().collect();
        let gone = left.into_iter().filter_map(|index| earlier.get(index)).map(GoneFinding::from_finding).collect();
        Compared { file: self.path.display().to_string(), known: 0, new: 0, gone }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{Frame, Location};

    /// A finding whose call goes through a wrapper from a line of `exchange`.
    fn found(line: u32) -> FoundFinding {
        let stack = vec![
            Frame::new("Gpu::free(void*)", "/src/gpu.hpp", 3),
            Frame::new("exchange(int)", "/src/ring.cpp", line),
            Frame::new("main", "/src/ring.cpp", 99),
        ];
        let function = Some("urUSMFree".to_owned());
        let process = Location { executable: "/app".into(), function, stack, ..Location::default() };
        FoundFinding { rule: "freed-while-open".into(), ..FoundFinding::note_at(process) }
    }

    /// A finding at this line of a run that shows the wrapper, and these lines.
    fn compared(line: u32, lines: &[u64]) -> FoundFinding {
        let mut found = found(line);
        found.process.stack[0].wrapper = true;
        found.process.stack[1].places = lines.to_vec();
        found
    }

    /// The lines of the findings that the baseline does not excuse, and the number of those that are gone.
    fn new(before: &[FoundFinding], mut now: Vec<FoundFinding>) -> (Vec<u32>, usize) {
        let gone = Baseline { path: PathBuf::new(), findings: before.to_vec() }.compare(&mut now).gone.len();
        let new = now.iter().filter(|found| found.excuse.is_none());
        (new.filter_map(|found| found.process.stack[1].line).collect(), gone)
    }

    #[test]
    fn a_baseline_of_an_urscope_that_looked_for_no_wrappers_excuses_what_it_has() {
        assert_eq!(new(&[found(40)], vec![compared(40, &[40, 50])]), (vec![], 0));
        assert_eq!(new(&[found(40)], vec![compared(43, &[43, 53])]), (vec![], 0));
        let both = vec![compared(50, &[40, 50]), compared(40, &[40, 50])];
        assert_eq!(new(&[found(40)], both), (vec![50], 0), "the one at the same line");
    }

    #[test]
    fn a_mistake_in_the_same_function_is_new() {
        assert_eq!(new(&[found(40)], vec![compared(50, &[40, 50])]), (vec![50], 1));
        assert_eq!(new(&[compared(40, &[40, 50])], vec![compared(50, &[40, 50])]), (vec![50], 1));
        // All lines have moved.
        assert_eq!(new(&[compared(40, &[40, 50])], vec![compared(50, &[50, 60])]), (vec![], 0));
        assert_eq!(new(&[compared(40, &[40, 50])], vec![compared(60, &[50, 60])]), (vec![60], 1));
    }

    #[test]
    fn a_run_that_shows_no_wrapper_is_compared_with_those_of_the_other() {
        assert_eq!(new(&[compared(40, &[40, 50])], vec![found(40)]), (vec![], 0));
        assert_eq!(new(&[compared(40, &[])], vec![found(41)]), (vec![], 0));
    }
}
