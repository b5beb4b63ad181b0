//! The suppressions file: reads, applies and writes lines `RULE:PATTERN`.
//!
//! A pattern is compared with all stack frames of both sides of a finding. It is compared with the text that a report shows,
//! without control characters, so that a name can be copied from a report into the file.

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

/// The suppressions of a file.
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
    /// A function, source file or module of either side.
    Place(Pattern),
}

impl Suppressions {
    /// Reads a suppressions file.
    pub fn read(path: &Path) -> Result<Self, ExemptionError> {
        let expected = "lines RULE:PATTERN";
        let text = fs::read_to_string(path);
        let text = text.map_err(|source| ExemptionError::Unreadable { path: path.to_owned(), source, expected })?;
        Self::parse(path, &text)
    }

    /// Parses the text of a suppressions file; `path` names it in errors.
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

    /// Excuses each finding by the first line that covers it.
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

/// The texts of a finding with which a pattern is compared.
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
        return Err("expected a pattern after the rule; * covers every finding of the rule".into());
    }
    let Some(kind) = what.strip_prefix("kind=") else { return Ok((of_rule, What::Place(Pattern::of(what)))) };
    let kinds = Kind::ALL.map(Kind::name);
    match kinds.into_iter().find(|known| *known == kind) {
        Some(known) => Ok((of_rule, What::Kind(known))),
        None => Err(format!("{:?} is not a kind of object; expected one of {}", plain(kind), kinds.join(", "))),
    }
}

/// The text of a suppressions file that covers every finding of a run.
pub fn suppressing(judgement: &Judgement) -> String {
    let mut text = String::from(
        "# Known findings, which do not count: RULE:PATTERN or RULE:kind=KIND. In a pattern, * matches any text, ^ the start and\n\
         # $ the end of the name of a function, a source file or a module. Written by urscope --write-suppressions.\n",
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

/// The narrowest pattern that covers a finding in this run and in later ones.
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

    fn error(text: &str) -> String {
        Suppressions::parse(Path::new("ci/known.txt"), text).unwrap_err().to_string()
    }

    #[test]
    fn comments_and_empty_lines_are_skipped() {
        let read =
            Suppressions::parse(Path::new("f"), "# a:b\n\n  leaked-*:^main$  \n\t# c\n*:kind=mem-handle").unwrap();
        let lines: Vec<_> = read.lines.iter().map(|line| (line.line, line.text.as_str())).collect();
        assert_eq!(lines, [(3, "leaked-*:^main$"), (5, "*:kind=mem-handle")]);
    }

    #[test]
    fn an_invalid_suppression_is_rejected_with_its_place() {
        let message = error("# fine\nleaked-handle");
        assert!(message.starts_with("ci/known.txt:2: expected RULE:PATTERN, found \"leaked-handle\""), "{message}");
        let message = error("leaked-handel:main");
        assert!(message.contains("no rule is named \"leaked-handel\"; did you mean leaked-handle"), "{message}");
        assert!(error("leaked-handle: ").contains("* covers every"));
        let message = error("leaked-handle:kind=file");
        assert!(message.contains("not a kind of object") && message.contains("mem-handle"), "{message}");
        assert!(!error("\x1b[2J:\u{202e}").contains(crate::plain::is_unprintable));
    }
}
