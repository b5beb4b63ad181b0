//! The suppressions file: reads, applies and writes lines `RULE:PATTERN`.
//!
//! A pattern is compared with all stack frames of both sides of a finding. It is compared with the text that a report
//! shows, without control characters, so that a name can be copied from a report into the file.
//!
//! `here=A <- B <- C` compares frame by frame instead: the first is the function of Unified Runtime, the others are the
//! frames of the program, innermost first. `there=` compares the other side, and ` && ` joins the two. This is what is
//! written, because a function through which every free goes does not tell two mistakes apart.

use std::path::{Path, PathBuf};
use std::{collections::BTreeSet, fmt::Write as _, io};

use urscope_rules::catalog::RULES;
use urscope_schema::handle::Kind;

use super::ExemptionError;
use crate::analysis::{Excuse, FoundFinding, Judgement, Location, SuppressionUse, file_name, pattern::Pattern};
use crate::{files, nearest::suggestion, plain::plain};

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
    /// The frames of the two sides, from the innermost on.
    Sides { here: Option<Vec<Pattern>>, there: Option<Vec<Pattern>> },
}

/// Between the two sides, and between their frames.
const AND: &str = " && ";
const CALLED_BY: &str = " <- ";

/// The largest suppressions file that is read, in bytes.
pub const LARGEST_SUPPRESSIONS: u64 = 16 << 20;

impl Suppressions {
    /// Reads a suppressions file.
    pub fn read(path: &Path) -> Result<Self, ExemptionError> {
        let expected = "lines RULE:PATTERN";
        let text = files::read(path, LARGEST_SUPPRESSIONS)
            .and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other));
        let text = text.map_err(|source| ExemptionError::Unreadable { path: path.to_owned(), source, expected })?;
        Self::parse(path, &text)
    }

    /// Parses the text of a suppressions file; `path` names it in errors. They quote nothing of it: it may be another
    /// file, with secrets, and reports of continuous integration are public.
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
                What::Sides { here, there } => {
                    let covers = |frames: &[Pattern], side: &Location| {
                        let own = texts(side);
                        frames.len() <= own.len() && frames.iter().zip(own).all(|(frame, text)| frame.covers(&text))
                    };
                    here.as_ref().is_none_or(|frames| covers(frames, &finding.process))
                        && there.as_ref().is_none_or(|frames| match &finding.other {
                            Some(other) => covers(frames, other),
                            None => frames.is_empty(),
                        })
                }
            }
    }
}

/// The texts of a side with which the patterns of frames are compared: the function of Unified Runtime, then the frames
/// of the program; its program if there are none.
fn texts(side: &Location) -> Vec<String> {
    let frames = side.frames().map(|frame| match (&frame.function, &frame.file) {
        (Some(function), Some(file)) => format!("{function} in {}", file_name(file)),
        (Some(function), None) => function.clone(),
        (None, _) => format!("{} in {}", frame.offset, file_name(&frame.module)),
    });
    let program = side.stack.is_empty().then(|| file_name(&side.executable).to_owned());
    side.function.iter().cloned().chain(frames).chain(program).map(|text| plain(&text)).collect()
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
        return Err("expected RULE:PATTERN; comments begin with #".into());
    };
    let of_rule = Pattern::whole(rule);
    if !RULES.iter().any(|known| of_rule.covers(known.code)) {
        return Err(format!("no rule has the name before the colon{}", suggestion(rule)));
    }
    if what.is_empty() {
        return Err("expected a pattern after the rule; * covers every finding of the rule".into());
    }
    if what.starts_with("here=") || what.starts_with("there=") {
        return Ok((of_rule, sides(what)?));
    }
    let Some(kind) = what.strip_prefix("kind=") else { return Ok((of_rule, What::Place(Pattern::parse(what)))) };
    let kinds: Vec<_> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    match kinds.iter().copied().find(|known| *known == kind) {
        Some(known) => Ok((of_rule, What::Kind(known))),
        None => Err(format!("kind= names no kind of object; expected one of {}", kinds.join(", "))),
    }
}

/// Parses `here=A <- B && there=none`.
fn sides(text: &str) -> Result<What, String> {
    let mut here = None;
    let mut there = None;
    for part in text.split(AND).map(str::trim) {
        let frames = |text: &str| match text {
            "none" => Vec::new(),
            text => text.split(CALLED_BY).map(|frame| Pattern::parse(frame.trim())).collect(),
        };
        match (part.strip_prefix("here="), part.strip_prefix("there=")) {
            (Some(text), _) if here.is_none() && !text.is_empty() && text != "none" => here = Some(frames(text)),
            (None, Some(text)) if there.is_none() && !text.is_empty() => there = Some(frames(text)),
            _ => return Err("expected here=FRAME <- FRAME && there=FRAME, or there=none".into()),
        }
    }
    Ok(What::Sides { here, there })
}

/// The text of a suppressions file that covers every finding of a run.
pub fn suppressing(judgement: &Judgement) -> String {
    let mut text = String::from(
        "# Known findings, which do not count. Written by urscope --write-suppressions. Each line is RULE:here=FRAMES && there=FRAMES: the\n\
         # function of Unified Runtime and the functions of the program that led to it, on both sides. RULE:PATTERN is for all findings with\n\
         # a function, a source file or a module of that name, and RULE:kind=KIND for a kind of object. In a pattern, * matches any text, ^\n\
         # the start and $ the end. Lines of the source are not compared.\n",
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
    let side = |side: &Location| {
        let frames: Vec<_> = texts(side).into_iter().take(FRAMES).map(|text| quoted(&text)).collect();
        frames.join(CALLED_BY)
    };
    let there = finding.other.as_ref().map_or_else(|| "none".to_owned(), side);
    format!("here={}{AND}there={there}", side(&finding.process))
}

/// The longest list of frames that is written for one side.
const FRAMES: usize = 24;

/// A pattern that matches this text only. What would separate frames is matched by a star, and so is an address in a
/// module, which differs between builds.
fn quoted(text: &str) -> String {
    let text = text.replace('*', "\\*").replace(CALLED_BY.trim(), "*").replace(AND.trim(), "*");
    let text = match text.split_once(" in ") {
        Some((offset, module)) if offset.starts_with("0x") => format!("* in {module}"),
        _ => text,
    };
    format!("^{text}$")
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
        assert!(message.starts_with("ci/known.txt:2: expected RULE:PATTERN; comments"), "{message}");
        let message = error("leaked-handel:main");
        assert!(message.contains("no rule has the name before the colon (did you mean leaked-handle"), "{message}");
        assert!(error("leaked-handle: ").contains("* covers every"));
        for wrong in ["here=", "here=a && here=b", "here=a && else=b", "here=none", "there="] {
            assert!(error(&format!("leaked-handle:{wrong}")).contains("expected here=FRAME"), "{wrong}");
        }
        let message = error("leaked-handle:kind=file");
        assert!(message.contains("no kind of object") && message.contains("mem-handle"), "{message}");
    }

    #[test]
    fn an_error_quotes_nothing_of_the_file() {
        for secret in ["hunter2", "hunter2:hunter2", "leaked-handle:kind=hunter2", "leaked-handle:here=a && hunter2"] {
            assert!(!error(secret).contains("hunter2"), "{secret}");
        }
    }
}
