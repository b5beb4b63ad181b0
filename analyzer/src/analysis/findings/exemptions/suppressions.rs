//! The suppressions file: lines `RULE:PATTERN`, read, applied and written.
//!
//! Both sides of a finding are looked at, all frames of their stacks. Texts are compared as they are shown, without
//! characters that steer, so that what a report says can be copied into the file.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use urscope_rules::catalog::RULES;
use urscope_schema::handle::Kind;

use super::{ExemptionError, pattern::Pattern};
use crate::{
    analysis::{Excuse, FoundFinding, Judgement, SuppressionUse, file_name},
    explain::nearest,
    plain::plain,
};

/// What somebody has looked at and lets pass.
#[derive(Clone, Debug, Default)]
pub struct Suppressions {
    path: PathBuf,
    lines: Vec<Suppression>,
}

#[derive(Clone, Debug)]
struct Suppression {
    line: u64,
    text: String,
    rule: Pattern,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    /// The kind of the object.
    Kind(&'static str),
    /// A function, a source file or a module of either side.
    Place(Pattern),
}

impl Suppressions {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, ExemptionError> {
        let expected = "lines RULE:PATTERN";
        let text = fs::read_to_string(path);
        let text = text.map_err(|source| ExemptionError::Unreadable { path: path.to_owned(), source, expected })?;
        Self::parse(path, &text)
    }

    /// Reads the text of a file.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ExemptionError> {
        let mut lines = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let wrong = |found| ExemptionError::Line { path: path.to_owned(), line, found };
            let (rule, what) = parts(text).map_err(wrong)?;
            lines.push(Suppression { line, text: plain(text), rule, what });
        }
        Ok(Self { path: path.to_owned(), lines })
    }

    /// Excuses what is covered, each finding by the first line that covers it.
    pub(crate) fn apply(&self, findings: &mut [FoundFinding]) -> Vec<SuppressionUse> {
        let file = self.path.display();
        let used = self.lines.iter().map(|line| (format!("{file}:{}", line.line), line.text.clone()));
        let mut used: Vec<_> = used.map(|(place, text)| SuppressionUse { place, text, count: 0 }).collect();
        for finding in findings {
            let covering = self.lines.iter().zip(&mut used).find(|(line, _)| line.covers(finding));
            if let Some((_, used)) = covering {
                used.count += 1;
                finding.excuse = Some(Excuse::Suppression { place: used.place.clone(), text: used.text.clone() });
            }
        }
        used
    }
}

impl Suppression {
    fn covers(&self, finding: &FoundFinding) -> bool {
        self.rule.covers(&finding.rule)
            && match &self.what {
                What::Kind(kind) => finding.kind.as_deref() == Some(kind),
                What::Place(pattern) => places(finding).any(|place| pattern.covers(&plain(place))),
            }
    }
}

/// All that a pattern may cover.
fn places(finding: &FoundFinding) -> impl Iterator<Item = &str> {
    finding.locations().flat_map(|side| {
        let frames = side.stack.iter().flat_map(|frame| {
            frame.function.as_deref().into_iter().chain(frame.file.as_deref()).chain([frame.module.as_str()])
        });
        frames.chain(side.function.as_deref()).chain([side.executable.as_str()])
    })
}

fn parts(text: &str) -> Result<(Pattern, What), String> {
    let Some((rule, what)) = text.split_once(':').map(|(rule, what)| (rule.trim(), what.trim())) else {
        return Err(format!("expected RULE:PATTERN, found {:?}; comments begin with #", plain(text)));
    };
    let of_rule = Pattern::whole(rule);
    if !RULES.iter().any(|known| of_rule.covers(known.code)) {
        return Err(format!("no rule is named {:?}; did you mean {}?", plain(rule), nearest(rule).join(", ")));
    }
    if what.is_empty() {
        return Err("no pattern stands behind the rule; * covers every finding of it".into());
    }
    let Some(kind) = what.strip_prefix("kind=") else { return Ok((of_rule, What::Place(Pattern::of(what)))) };
    let kinds = Kind::ALL.map(Kind::name);
    match kinds.into_iter().find(|known| *known == kind) {
        Some(known) => Ok((of_rule, What::Kind(known))),
        None => Err(format!("{:?} is no kind of object; there are {}", plain(kind), kinds.join(", "))),
    }
}

/// The text of a suppressions file with which the same run has no finding.
pub fn suppressing(judgement: &Judgement) -> String {
    let mut text = String::from(
        "# Findings that are known and let pass: RULE:PATTERN, where * is any text, ^ the start and $ the end of the name of\n\
         # a function, a source file or a module, or RULE:kind=KIND. Made by urscope --write-suppressions.\n",
    );
    let mut written = BTreeSet::new();
    for finding in &judgement.findings {
        let line = format!("{}:{}", plain(&finding.rule), covering(finding));
        if written.insert(line.clone()) {
            let _ = writeln!(text, "\n# {}: {}\n{line}", finding.severity, plain(&finding.message));
        }
    }
    text
}

/// The narrowest pattern that covers a finding, also in the next run.
fn covering(finding: &FoundFinding) -> String {
    let side = &finding.process;
    let function =
        side.shown_frames().find_map(|frame| frame.function.as_deref()).map(|name| format!("^{}$", plain(name)));
    let module =
        || side.shown_frames().map(|frame| frame.module.as_str()).chain([side.executable.as_str()]).find_map(ending);
    function.or_else(module).or_else(|| finding.kind.as_ref().map(|kind| format!("kind={kind}"))).unwrap_or("*".into())
}

fn ending(path: &str) -> Option<String> {
    let name = plain(file_name(path));
    let slash = if path.contains('/') { "/" } else { "^" };
    (!name.is_empty()).then(|| format!("{slash}{name}$"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Suppressions::parse(Path::new("ci/known.txt"), text).unwrap_err().to_string()
    }

    #[test]
    fn comments_and_empty_lines_are_none() {
        let read =
            Suppressions::parse(Path::new("f"), "# a:b\n\n  leaked-*:^main$  \n\t# c\n*:kind=mem-handle").unwrap();
        let lines: Vec<_> = read.lines.iter().map(|line| (line.line, line.text.as_str())).collect();
        assert_eq!(lines, [(3, "leaked-*:^main$"), (5, "*:kind=mem-handle")]);
    }

    #[test]
    fn what_is_no_suppression_is_refused_with_its_place() {
        let said = refused("# fine\nleaked-handle");
        assert!(said.starts_with("ci/known.txt:2: expected RULE:PATTERN, found \"leaked-handle\""), "{said}");
        let said = refused("leaked-handel:main");
        assert!(said.contains("no rule is named \"leaked-handel\"; did you mean leaked-handle"), "{said}");
        assert!(refused("leaked-handle: ").contains("* covers every"));
        let said = refused("leaked-handle:kind=file");
        assert!(said.contains("no kind of object") && said.contains("mem-handle"), "{said}");
        assert!(!refused("\x1b[2J:\u{202e}").contains(crate::plain::steers));
    }
}
