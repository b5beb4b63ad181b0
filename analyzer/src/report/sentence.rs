//! A finding as one sentence with its place: `rank 7 freed 8 MiB while rank 6 had it open, ring.cpp:37`.

use urscope_rules::Rule;
use urscope_schema::{ranks::process_name, short_size};

use crate::analysis::{FoundFinding, Location, file_name};

/// The finding in one sentence. The rest of its text is [`FoundFinding::message`].
pub(super) fn sentence(finding: &FoundFinding) -> String {
    let who = name(&finding.process);
    let Some(rule) = Rule::named(&finding.rule) else {
        return format!("{who}: {}{}", finding.rule, place(&finding.process));
    };
    let same = |other: &&Location| (other.pid, &other.host) != (finding.process.pid, &finding.process.host);
    let other = finding.other.as_ref().filter(same).map_or_else(|| "a process".to_owned(), name);
    let what = finding.size.map_or_else(|| noun(finding.kind.as_deref()).to_owned(), short_size);
    let what = rule.sentence.replace("{what}", &what).replace("{other}", &other);
    let unproved = if finding.severity < rule.severity { " (not proved)" } else { "" };
    format!("{who} {what}{unproved}{}", place(&finding.process))
}

/// A process in few words: its rank, or its program and pid.
fn name(side: &Location) -> String {
    side.rank.map_or_else(|| process_name(&side.executable, side.pid, None), |rank| format!("rank {rank}"))
}

/// The source line of the call site, or its function where the source is not known.
fn place(side: &Location) -> String {
    let Some(frame) = side.call_site() else { return String::new() };
    match (&frame.file, frame.line) {
        (Some(file), Some(line)) => format!(", {}:{line}", file_name(file)),
        _ => format!(", {}", frame.brief()),
    }
}

/// What a finding is about where its size is not known.
fn noun(kind: Option<&str>) -> &'static str {
    match kind {
        Some("usm") => "memory",
        Some("mapping") => "a mapping",
        Some("physical-mem") => "physical memory",
        Some("event") => "an event",
        Some("mem-handle" | "physical-mem-handle" | "event-handle") => "handle data",
        _ => "an object",
    }
}

#[cfg(test)]
mod tests {
    use urscope_rules::{Severity, catalog::RULES};

    use super::*;
    use crate::analysis::Frame;

    fn found() -> FoundFinding {
        let stack = vec![Frame::of("exchange_halo(int)", "/src/ring.cpp", 37)];
        let here = Location { pid: 12, rank: Some(7), executable: "/app".into(), stack, ..Location::default() };
        let other = Some(Location { pid: 11, rank: Some(6), ..here.clone() });
        let (rule, size) = ("freed-while-open".into(), Some(8 << 20));
        FoundFinding { rule, other, size, severity: Severity::Error, ..FoundFinding::of(here) }
    }

    #[test]
    fn a_finding_is_a_sentence_with_its_place() {
        assert_eq!(sentence(&found()), "rank 7 freed 8 MiB while rank 6 had it open, ring.cpp:37");
    }

    #[test]
    fn what_is_not_known_is_not_claimed() {
        let mut found = found();
        found.severity = Severity::Note;
        (found.size, found.kind) = (None, Some("usm".into()));
        found.other = Some(found.process.clone());
        found.process.rank = None;
        found.process.stack.clear();
        assert_eq!(sentence(&found), "app (pid 12) freed memory while a process had it open (not proved)");
    }

    #[test]
    fn the_sentence_of_every_rule_is_complete() {
        for rule in RULES {
            let text = sentence(&FoundFinding { rule: rule.code.into(), severity: rule.severity, ..found() });
            assert!(text.starts_with("rank 7 ") && text.ends_with(", ring.cpp:37"), "{text}");
            assert!(!text.contains(['{', '}']) && !rule.sentence.ends_with('.'), "{text}");
        }
    }
}
