//! What happened in one sentence with its place: `rank 7 freed 8 MiB while rank 6 had it open: ring.cpp:37`.

use std::collections::BTreeSet;

use urscope_rules::Rule;
use urscope_schema::{counted, grouped, host::ranks::process_name, short_size};

use crate::analysis::{FoundFinding, Frame, Judgement, Location, ProcessSummary, Verdict};

impl Judgement {
    /// The most severe finding that counts, and of several the first one.
    pub(crate) fn worst(&self) -> Option<&FoundFinding> {
        self.findings.iter().find(|finding| finding.excuse.is_none())
    }

    /// The headline, if findings make the verdict: it is the sentence of the worst one.
    pub fn happened(&self) -> Option<&str> {
        (self.verdict == Verdict::Findings).then_some(self.headline.as_str())
    }

    /// What happened, in one line: the sentence of the first finding that counts, or the verdict with its reason.
    pub(crate) fn headline_of(&self) -> String {
        if let Some(failures) = self.failures_only() {
            return format!("clean, but {failures}");
        }
        match (self.verdict, self.worst(), &self.reason) {
            (Verdict::Findings, Some(worst), _) => self.sentence(worst),
            (verdict, _, Some(reason)) => format!("{}: {reason}", verdict.name().replace('-', " ")),
            (_, _, None) if self.is_running() => "clean so far".to_owned(),
            (verdict, _, None) => verdict.name().replace('-', " "),
        }
    }

    /// A finding of this judgement in one sentence, with its place. If it occurred in several processes, the sentence
    /// says in how many: `3 of 16 ranks freed 8 MiB while rank 6 had it open: ring.cpp:37`. [`FoundFinding::message`]
    /// has the details.
    pub fn sentence(&self, finding: &FoundFinding) -> String {
        let who = self.many(finding).unwrap_or_else(|| finding.process.name());
        let Some(rule) = Rule::named(&finding.rule) else {
            return format!("{who}: {}{}", finding.rule, place(&finding.process));
        };
        let same = |other: &&Location| !other.is_of(&finding.process);
        let other = finding.other.as_ref().filter(same);
        let other = other.map_or_else(|| "a process".to_owned(), |other| other_name(&finding.process, other));
        let other = match finding.others.len() as u64 {
            0 => other,
            1 => format!("{other} and one more"),
            others => format!("{other} and {} others", grouped(others)),
        };
        let what = finding.size.map_or_else(|| noun(finding.kind.as_deref()).to_owned(), short_size);
        let what = rule.sentence.replace("{what}", &what).replace("{other}", &other);
        let what = what.replace("handle data for handle data", "handle data");
        let only =
            if finding.severity < rule.severity { format!(" ({} only)", finding.severity) } else { String::new() };
        format!("{who} {what}{only}{}", place(&finding.process))
    }

    /// In how many processes a finding occurred, if in several.
    fn many(&self, finding: &FoundFinding) -> Option<String> {
        let ranks = |ranks: &mut dyn Iterator<Item = Option<u32>>| ranks.flatten().collect::<BTreeSet<u32>>().len();
        let found = ranks(&mut finding.occurrences.iter().map(|occurrence| occurrence.rank));
        if found > 1 {
            let all = ranks(&mut self.processes.iter().map(|process: &ProcessSummary| process.rank));
            return Some(format!("{} of {} ranks", grouped(found as u64), grouped(all as u64)));
        }
        let processes: BTreeSet<_> = finding.occurrences.iter().map(|it| (&it.host, it.pid, &it.executable)).collect();
        (processes.len() > 1).then(|| counted(processes.len(), "process"))
    }
}

impl Location {
    /// Its process in few words: its rank, its role, or its program and pid.
    pub(crate) fn name(&self) -> String {
        self.short_name().unwrap_or_else(|| process_name(&self.executable, self.pid, None))
    }

    /// The rank or the role of its process.
    pub(crate) fn short_name(&self) -> Option<String> {
        self.rank.map(|rank| format!("rank {rank}")).or_else(|| self.role.clone())
    }
}

/// The process on the other side. The program is named only if it is another one.
fn other_name(side: &Location, other: &Location) -> String {
    let is_same = other.short_name().is_none() && side.rank.is_none() && side.executable == other.executable;
    if is_same { format!("pid {}", other.pid) } else { other.name() }
}

/// The source line of the call site, or its function where the source is not known.
fn place(side: &Location) -> String {
    let line = side.call_line().or_else(|| side.call_site().map(Frame::brief));
    line.map_or_else(String::new, |line| format!(": {line}"))
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
    use crate::analysis::{Limit, LimitCause, Occurrence};

    fn found() -> FoundFinding {
        let stack = vec![Frame::new("exchange_halo(int)", "/src/ring.cpp", 37)];
        let here = Location { pid: 12, rank: Some(7), executable: "/app".into(), stack, ..Location::default() };
        let other = Some(Location { pid: 11, rank: Some(6), ..here.clone() });
        let rule = "freed-while-open".into();
        let size = Some(8 << 20);
        FoundFinding { rule, other, size, severity: Severity::Error, ..FoundFinding::note_at(here) }
    }

    #[test]
    fn a_finding_is_a_sentence_with_its_place() {
        let mut found = found();
        assert_eq!(Judgement::default().sentence(&found), "rank 7 freed 8 MiB while rank 6 had it open: ring.cpp:37");
        found.others = vec![Location::default(); 3];
        let among = "rank 7 freed 8 MiB while rank 6 and 3 others had it open: ring.cpp:37";
        assert_eq!(Judgement::default().sentence(&found), among);
    }

    #[test]
    fn what_is_not_known_is_not_claimed() {
        let mut found = found();
        found.severity = Severity::Note;
        (found.size, found.kind) = (None, Some("usm".into()));
        found.other = Some(found.process.clone());
        found.process.rank = None;
        found.process.stack.clear();
        assert_eq!(
            Judgement::default().sentence(&found),
            "app (pid 12) freed memory while a process had it open (note only)"
        );
    }

    #[test]
    fn the_sentence_of_every_rule_is_complete() {
        for rule in RULES {
            let text = Judgement::default().sentence(&FoundFinding {
                rule: rule.code.into(),
                severity: rule.severity,
                ..found()
            });
            assert!(text.starts_with("rank 7 ") && text.ends_with(": ring.cpp:37"), "{text}");
            assert!(!text.contains(['{', '}']) && !rule.sentence.ends_with('.'), "{text}");
        }
    }

    #[test]
    fn the_scale_is_in_the_sentence() {
        let summary = |rank| ProcessSummary { rank: Some(rank), ..ProcessSummary::default() };
        let occurrence = |rank| Occurrence { pid: rank, rank: Some(rank), ..Occurrence::default() };
        let mut found = FoundFinding { occurrences: (0..1000).map(occurrence).collect(), ..found() };
        let mut judgement = Judgement { processes: (0..1200).map(summary).collect(), ..Judgement::default() };
        let expected = "1,000 of 1,200 ranks freed 8 MiB while rank 6 had it open: ring.cpp:37";
        assert_eq!(judgement.sentence(&found), expected);
        for occurrence in &mut found.occurrences {
            occurrence.rank = None;
        }
        assert_eq!(judgement.sentence(&found), "1,000 processes freed 8 MiB while rank 6 had it open: ring.cpp:37");
        found.occurrences.truncate(1);
        (judgement.verdict, judgement.findings) = (Verdict::Findings, vec![found]);
        assert_eq!(judgement.headline_of(), "rank 7 freed 8 MiB while rank 6 had it open: ring.cpp:37");
    }

    #[test]
    fn a_run_that_could_not_be_judged_says_why() {
        let limit = Limit { cause: LimitCause::NotTraced, text: "only the ranks 0-3 were traced (--ranks)".into() };
        let clean = Judgement { verdict: Verdict::Clean, ..Judgement::default() };
        assert_eq!(clean.headline_of(), "clean");
        let partly = clean.limited([limit]);
        assert_eq!(partly.headline, "partly judged: only the ranks 0-3 were traced (--ranks)");
    }
}
