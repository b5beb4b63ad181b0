//! The places of a finding in their source, as compilers show them: each line with its number, and what is meant
//! underlined, with words behind it.

use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use urscope_rules::Severity;
use urscope_schema::{
    api::{Effect, Function},
    duration,
};

use super::paint::Paint;
use crate::analysis::{FoundFinding, Frame, Location};

/// The longest line of source that is shown, in characters.
const WIDEST: usize = 110;

/// The most passed frames whose source is shown.
const PASSED: usize = 2;

/// A place with its words.
struct Span<'a> {
    side: &'a Location,
    frame: &'a Frame,
    label: String,
    is_here: bool,
}

/// Writes the places of both sides, and where the other one ended what it held.
pub(super) fn write(finding: &FoundFinding, out: &mut String, paint: Paint) -> fmt::Result {
    let spans = spans(finding);
    let digits = spans.iter().filter_map(|span| span.frame.line).max().unwrap_or(0).to_string().len();
    let mut known: Option<&str> = None;
    for span in &spans {
        let Frame { file, line, source, .. } = span.frame;
        let here = spans.iter().find(|other| other.is_here && other.frame.file == *file).unwrap_or(span);
        let (Some(source), Some(line)) = (source, line) else {
            writeln!(out, "{:digits$}{} {} {}", "", paint.faint("-->"), place(span.frame), span.label)?;
            known = None;
            continue;
        };
        if known != file.as_deref() {
            writeln!(out, "{:digits$}{} {}", "", paint.faint("-->"), place(here.frame))?;
            known = file.as_deref();
        }
        write_line(span, source, *line, digits, finding.severity, out, paint)?;
    }
    if spans.iter().any(|span| span.side.excerpt.as_ref().is_some_and(|excerpt| excerpt.changed)) {
        writeln!(out, "  {} the file was changed after the run: lines may have moved", paint.faint("="))?;
    }
    let with_source = |frame: &&Frame| frame.source.is_some();
    for frame in finding.process.passed_frames().filter(with_source).take(PASSED) {
        let source = frame.source.as_deref().unwrap_or_default();
        writeln!(out, "  {} via {}: {}", paint.faint("="), frame.through(), cut(source.trim(), 80))?;
    }
    if spans.iter().any(|span| span.frame.line.is_none()) {
        writeln!(out, "  {} built without line information: compile with -g1", paint.faint("="))?;
    }
    Ok(())
}

/// The place of a frame, as editors open it: `src/ring.cpp:37:11`.
fn place(frame: &Frame) -> String {
    match (frame.file.as_deref().map(relative), frame.line, frame.column) {
        (Some(file), Some(line), Some(column)) => format!("{file}:{line}:{column}"),
        (Some(file), Some(line), None) => format!("{file}:{line}"),
        (Some(file), None, _) => file,
        (None, ..) => frame.brief(),
    }
}

fn write_line(
    span: &Span<'_>,
    source: &str,
    line: u32,
    digits: usize,
    severity: Severity,
    out: &mut String,
    paint: Paint,
) -> fmt::Result {
    let (from, to) = underlined(source, span.frame.column);
    writeln!(out, "{} {}", paint.faint(format!("{line:>digits$} |")), cut(source, WIDEST).trim_end())?;
    let marks = if span.is_here { "^" } else { "-" }.repeat(to.saturating_sub(from).max(1));
    let marked = format!("{marks} {}", span.label);
    let marked = if span.is_here { paint.severity(severity, marked) } else { paint.other(marked) };
    writeln!(out, "{} {:from$}{marked}", paint.faint(format!("{:digits$} |", "")), "")
}

/// The columns of the name of what is called: compilers mean the parenthesis behind it. Without a column, the whole
/// line.
fn underlined(source: &str, column: Option<u32>) -> (usize, usize) {
    let text: Vec<char> = source.chars().collect();
    let begin = text.iter().take_while(|c| c.is_whitespace()).count();
    let whole = (begin.min(WIDEST), text.len().clamp(begin, WIDEST));
    let Some(at) = column.and_then(|column| (column as usize).checked_sub(1)).filter(|at| *at < text.len()) else {
        return whole;
    };
    let is_word = |c: &char| c.is_alphanumeric() || *c == '_';
    let is_part = |c: &char| is_word(c) || matches!(c, '.' | ':' | '-' | '>');
    let before = text.get(..at).unwrap_or_default().iter().rev().take_while(|c| is_part(c)).count();
    let behind = text.get(at..).unwrap_or_default().iter().take_while(|c| is_word(c)).count();
    let from = at - before;
    let to = at + behind;
    if from == to { (at, at + 1) } else { (from.min(WIDEST), to.min(WIDEST)) }
}

fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most { text.to_owned() } else { text.chars().take(most - 1).chain(['…']).collect() }
}

/// The places of a finding: where it happened, the other one, and where the other one ended what it held.
fn spans(finding: &FoundFinding) -> Vec<Span<'_>> {
    let labels = labels(finding);
    let sides = finding.locations().chain(&finding.later).zip(labels).enumerate();
    let spans = sides.filter_map(|(at, (side, label))| {
        let through = side.passed_frames().last().filter(|_| at == 1);
        let label = label + &through.map_or_else(String::new, |frame| format!(", via {}", frame.through()));
        Some(Span { side, frame: side.call_site()?, label, is_here: at == 0 })
    });
    let mut spans: Vec<Span<'_>> = spans.collect();
    // The lines of one file in their order, and those of the file of the finding first.
    let file = finding.process.call_site().and_then(|frame| frame.file.as_deref());
    spans.sort_by_key(|span| {
        let own = span.frame.file.as_deref();
        let line = span.frame.line.filter(|_| span.frame.source.is_some());
        (own != file, own, line)
    });
    // One place is shown once.
    let place = |span: &Span<'_>| (span.frame.file.clone(), span.frame.line, span.frame.column);
    spans.dedup_by(|later, earlier| {
        let is_same = place(later) == place(earlier);
        if is_same && (later.is_here || earlier.is_here) {
            let label = if later.is_here { &later.label } else { &earlier.label };
            earlier.label = format!("{label}, as before");
            earlier.is_here = true;
        } else if is_same {
            earlier.label = format!("{}, {}", earlier.label, later.label);
        }
        is_same
    });
    spans
}

/// What happened at each place, in few words.
pub(super) fn labels(finding: &FoundFinding) -> Vec<String> {
    let word = |side: &Location| side.function.as_deref().and_then(Function::from_name).map_or("called", done);
    let here = word(&finding.process);
    let left = match finding.rule.as_str() {
        "leaked-mapping" => ", never closed",
        "leaked-handle" => ", never put",
        rule if rule.starts_with("leaked-") => ", never released",
        _ => "",
    };
    let is_same = |other: &Location| word(other) == here && other.time_ns <= finding.process.time_ns;
    let again = if finding.other.as_ref().is_some_and(is_same) { " again" } else { "" };
    let mut labels = vec![format!("{here}{again} here{left}")];
    labels.extend(finding.other.as_ref().map(|other| {
        let who = if other.is_of(&finding.process) { String::new() } else { by(other) };
        let never = if finding.never_ends { ", never closed" } else { "" };
        format!("{} here{who}{never}", word(other))
    }));
    if let (None, Some(_)) = (&finding.other, &finding.later) {
        labels.push(String::new());
    }
    labels.extend(finding.later.as_ref().map(|later| {
        let late = later.time_ns.saturating_sub(finding.process.time_ns);
        format!("{} only here, {} later", word(later), duration(late))
    }));
    labels
}

fn by(side: &Location) -> String {
    side.short_name().map_or_else(String::new, |name| format!(" by {name}"))
}

/// What a call has done, as a participle.
fn done(function: Function) -> &'static str {
    match function.effect() {
        Effect::Allocates(_) => "allocated",
        Effect::Creates(_) => "created",
        Effect::Exports(_) | Effect::MayExport(_) => "exported",
        Effect::Opens(_) => "opened",
        Effect::Maps(_) => "mapped",
        Effect::Frees(_) | Effect::FreesLater(_) => "freed",
        Effect::Destroys(_) => "destroyed",
        Effect::Resets(_) => "reset",
        Effect::Releases(_) => "released",
        Effect::Puts(_) => "put",
        Effect::Closes(_) => "closed",
        Effect::Unmaps(_) => "unmapped",
        Effect::Enqueues(_) | Effect::Migrates(_) | Effect::Performs(_) | Effect::Launches(_) => "used",
        Effect::Submits(_) | Effect::Executes(_) => "executed",
        Effect::Signals(_) => "signalled",
        Effect::Waits(_) => "waited",
        _ => "called",
    }
}

/// A path below the current directory relative to it.
pub(super) fn relative(path: &str) -> String {
    static CURRENT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let current = CURRENT.get_or_init(|| std::env::current_dir().ok().filter(|path| path.parent().is_some()));
    let below = current.as_ref().and_then(|current| Path::new(path).strip_prefix(current).ok());
    below.map_or_else(|| path.to_owned(), |below| below.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_what_is_called_is_underlined() {
        for (line, column, meant) in [
            ("  gpu.free(memory);", Some(11), "gpu.free"),
            ("  void *p = app::open(bytes, gpu);", Some(22), "app::open"),
            ("  shared->put();", Some(14), "shared->put"),
            ("  (is_child ? child : parent)(other);", Some(30), "("),
            ("    release(p)  # later", None, "release(p)  # later"),
            ("  f();", Some(99), "f();"),
        ] {
            let (from, to) = underlined(line, column);
            let shown: String = line.chars().skip(from).take(to - from).collect();
            assert_eq!(shown, meant, "{line}");
        }
    }

    #[test]
    fn long_lines_are_cut() {
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("abcd", 4), "abcd");
    }
}
