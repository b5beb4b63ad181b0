//! The text form of a report: the verdict, the findings by descending severity, the processes, and what the verdict
//! does not cover.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};

use urscope_rules::Severity;

use urscope_schema::api::Function;
use urscope_schema::host::ranks::{listed, process_name};
use urscope_schema::{counted, short_size, since};

use super::paint::{Paint, wrapped};
use super::{brief, spans};
use crate::analysis::{
    Ended, Excuse, FoundFinding, Frame, Judgement, Location, Occurrence, ProcessSummary, Verdict, file_name,
};

/// The number of processes that are listed without being asked for.
const MANY: usize = 8;

/// The number of findings from which on they are listed again, a line each.
const SUMMED_UP: usize = 4;

/// The number of findings at the same lines, with other callers, that are shown without being asked for.
const ALIKE: usize = 3;

/// The maximum number of hosts of a finding that are named in forms with limited space.
pub(super) const HOSTS: usize = 8;

pub(super) fn write(judgement: &Judgement, out: &mut String, paint: Paint) -> fmt::Result {
    if let Some(headline) = happened(judgement, paint) {
        writeln!(out, "{headline}")?;
    }
    writeln!(out, "{}", headline(judgement, paint))?;
    if let Some(reason) = reason(judgement) {
        writeln!(out, "  {}", wrapped(reason, "  ", paint.width))?;
    }
    if let Some(runs) = runs(judgement) {
        writeln!(out, "  {}", wrapped(&runs, "  ", paint.width))?;
    }
    let mut alike: BTreeMap<(Severity, &str, Vec<&str>), usize> = BTreeMap::new();
    let mut rules: BTreeSet<&str> = BTreeSet::new();
    for finding in judgement.findings.iter().filter(|finding| finding.excuse.is_none()) {
        // Without call sites, nothing says that they are at the same lines.
        let sites: Option<Vec<&str>> = finding.locations().map(|side| side.site.as_deref()).collect();
        let earlier = sites.map(|sites| alike.entry((finding.severity, finding.rule.as_str(), sites)).or_insert(0));
        let earlier = earlier.map_or(0, |earlier| {
            *earlier += 1;
            *earlier
        });
        if earlier <= ALIKE || paint.whole {
            writeln!(out)?;
            // What the times of a report count from is said once.
            let times = if rules.is_empty() { " since the start" } else { "" };
            write_with_times(finding, times, out, paint)?;
            if rules.insert(&finding.rule) {
                writeln!(out, "  {} urscope explain {}", paint.faint("= why:"), finding.rule)?;
            }
        }
    }
    for ((severity, rule, sites), count) in alike.iter().filter(|(_, count)| **count > ALIKE && !paint.whole) {
        let site = sites.first().map_or_else(String::new, |site| format!(" in {site}"));
        let head = paint.severity(*severity, format!("{severity}: {rule}"));
        let more = count - ALIKE;
        writeln!(out, "\n{head}{site}: {more} more from other callers; --verbose shows them")?;
    }
    write_summary(judgement, out, paint)?;
    write_excused(judgement, out, paint)?;
    write_processes(judgement, out, paint)?;
    // If nothing was judged, the reason contains this list already.
    if !judgement.unseen.is_empty() && judgement.verdict != Verdict::NotJudged {
        writeln!(out, "\n{}", paint.strong("not seen"))?;
        for unseen in &judgement.unseen {
            writeln!(out, "  {}", wrapped(unseen, "    ", paint.width))?;
        }
    }
    if judgement.skipped_lines > 0 {
        writeln!(out, "\n{} ({})", paint.strong("lines that could not be used"), judgement.skipped_lines)?;
        for line in &judgement.skipped {
            writeln!(out, "  {} (byte {}): {}", line.place(), line.offset, line.why)?;
        }
    }
    Ok(())
}

/// Writes a line for each finding that counts, if they are many.
fn write_summary(judgement: &Judgement, out: &mut String, paint: Paint) -> fmt::Result {
    let counting: Vec<_> = judgement.findings.iter().filter(|finding| finding.excuse.is_none()).collect();
    if counting.len() <= SUMMED_UP {
        return Ok(());
    }
    writeln!(out, "\n{}", paint.strong("summary"))?;
    for finding in counting {
        let head = paint.severity(finding.severity, format!("{} {}", finding.severity, finding.rule));
        writeln!(out, "  {head}: {}", judgement.sentence(finding))?;
    }
    Ok(())
}

/// The processes that did not end as usual; with `--verbose` all of them, and the calls that share something.
fn write_processes(judgement: &Judgement, out: &mut String, paint: Paint) -> fmt::Result {
    let all = ordered(&judgement.processes);
    let is_unusual = |process: &&ProcessSummary| process.ended != Ended::Exited || process.torn || process.lost > 0;
    let most = if paint.whole { all.len() } else { MANY };
    let several = runs(judgement).is_some();
    let is_listed = |process: &&ProcessSummary| paint.whole || several || is_unusual(process);
    let listed: Vec<_> = all.iter().copied().filter(is_listed).take(most).collect();
    if listed.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", paint.strong("processes"))?;
    let width = listed.iter().map(|process| named(process).chars().count()).max().unwrap_or(0);
    for process in &listed {
        let name = named(process);
        let run = if several { format!("; run {:?}", process.run) } else { String::new() };
        writeln!(out, "  {name:<width$}  {}{run}", fate(process))?;
    }
    if listed.len() < all.len() {
        writeln!(out, "  and {}; --verbose lists all", counted(all.len() - listed.len(), "process"))?;
    }
    let is_ipc = |name: &str| Function::from_name(name).is_some_and(Function::is_ipc);
    let ipc = judgement.calls.iter().filter(|(name, _)| paint.whole && is_ipc(name));
    let list: Vec<_> = ipc.map(|(name, count)| format!("{name} {count}")).collect();
    if !list.is_empty() {
        writeln!(out, "\n{}\n  {}", paint.strong("calls"), wrapped(&list.join(", "), "  ", paint.width))?;
    }
    Ok(())
}

/// The reason of a judgement, unless its headline says it.
pub(super) fn reason(judgement: &Judgement) -> Option<&str> {
    judgement.reason.as_deref().filter(|_| judgement.failures_only().is_none())
}

/// That the traces are of several runs, if they are.
pub(super) fn runs(judgement: &Judgement) -> Option<String> {
    let mut runs: BTreeMap<&str, usize> = BTreeMap::new();
    for process in &judgement.processes {
        *runs.entry(&process.run).or_default() += 1;
    }
    let named: Vec<_> =
        runs.iter().map(|(run, processes)| format!("{run:?} ({})", counted(*processes, "process"))).collect();
    let count = named.len();
    let named = named.join(", ");
    (count > 1)
        .then(|| format!("these are traces of {count} runs, judged together: {named}; --run NAME judges one alone"))
}

/// Writes how many findings do not count, and the use of the exemptions.
fn write_excused(judgement: &Judgement, out: &mut String, paint: Paint) -> fmt::Result {
    if !judgement.suppressions.is_empty() {
        writeln!(out, "\n{}", paint.strong("suppressions"))?;
        let is_suppressed = |finding: &&FoundFinding| matches!(finding.excuse, Some(Excuse::Suppression { .. }));
        let count = judgement.findings.iter().filter(is_suppressed).count();
        writeln!(out, "  {} suppressed", counted(count, "finding"))?;
    }
    for unused in judgement.suppressions.iter().filter(|suppression| suppression.count == 0) {
        writeln!(out, "  {} was not needed: {}", unused.place, unused.text)?;
    }
    let Some(compared) = &judgement.baseline else { return Ok(()) };
    writeln!(out, "\n{} {}", paint.strong("baseline"), compared.file)?;
    writeln!(out, "  {} new, {} fixed, {} unchanged", compared.new, compared.gone.len(), compared.known)?;
    for gone in &compared.gone {
        writeln!(
            out,
            "    {}",
            wrapped(&format!("fixed: {} {}: {}", gone.severity, gone.rule, gone.message), "      ", paint.width)
        )?;
    }
    Ok(())
}

/// The most severe finding as one sentence with its place, if findings make the verdict.
pub(super) fn happened(judgement: &Judgement, paint: Paint) -> Option<String> {
    let (headline, worst) = judgement.happened().zip(judgement.worst())?;
    Some(format!("{} {}", paint.strong("urscope:"), paint.severity(worst.severity, headline)))
}

/// The verdict in one line.
pub(super) fn headline(judgement: &Judgement, paint: Paint) -> String {
    let calls: u64 = judgement.calls.values().sum();
    let total = format!("{}, {}", counted(judgement.processes.len(), "process"), counted(calls, "call"));
    format!("{} {} {}", paint.strong("urscope:"), verdict(judgement, paint), paint.faint(format!("({total})")))
}

/// A finding with all details.
pub(super) fn details(finding: &FoundFinding) -> String {
    let mut text = String::new();
    // Writing to a String never fails.
    let _ = write_finding(finding, &mut text, false.into());
    text
}

/// The number of findings of each severity that count, or a word for the verdict.
pub(super) fn verdict(judgement: &Judgement, paint: Paint) -> String {
    let counts: Vec<_> = Severity::ALL
        .into_iter()
        .rev()
        .filter_map(|severity| {
            let counts = |finding: &&FoundFinding| finding.excuse.is_none() && finding.severity == severity;
            let count = judgement.findings.iter().filter(counts).count();
            (count > 0).then(|| counted(count, severity.name()))
        })
        .collect();
    let worst = judgement.worst().map_or(Severity::Note, |finding| finding.severity);
    let clean = if judgement.is_running() { "clean so far" } else { "clean" };
    let notes = if counts.is_empty() { String::new() } else { format!(", {}", counts.join(", ")) };
    match (judgement.verdict, judgement.failures_only()) {
        (_, Some(deaths)) => format!("{}{notes}", paint.severity(Severity::Warning, format!("{clean}, but {deaths}"))),
        (Verdict::Clean, _) => format!("{}{notes}", paint.good(clean)),
        (Verdict::Findings, _) => paint.severity(worst, counts.join(", ")),
        (Verdict::PartlyJudged, _) => paint.severity(Severity::Warning, "partly judged"),
        (Verdict::NotJudged, _) => paint.severity(Severity::Warning, "not judged"),
    }
}

pub(super) fn write_finding(finding: &FoundFinding, out: &mut String, paint: Paint) -> fmt::Result {
    write_with_times(finding, "", out, paint)
}

/// Writes a finding; `times` is what its times count from.
fn write_with_times(finding: &FoundFinding, times: &str, out: &mut String, paint: Paint) -> fmt::Result {
    let head = paint.severity(finding.severity, format!("{}: {}", finding.severity, finding.rule));
    let site = finding
        .process
        .call_site()
        .map_or_else(String::new, |frame| format!(" in {}{}", paint.strong(frame.brief()), finding.process.via()));
    let count = repeated(finding).map_or_else(String::new, |count| format!(" ({count}, the first:)"));
    writeln!(out, "{}", wrapped(&format!("{head}{site}{count}"), "    ", paint.width))?;
    let message = if paint.whole { Some(finding.message.clone()) } else { brief::message(finding) };
    if let Some(message) = message {
        writeln!(out, "  {}", wrapped(&message, "  ", paint.width))?;
    }
    spans::write(finding, out, paint)?;
    if paint.whole {
        write_stacks(finding, out, paint)?;
    }
    let mut line = |name: &str, text: &str| {
        let text = wrapped(text, "    ", paint.width);
        writeln!(out, "  {} {text}", paint.faint(format!("= {name}:")))
    };
    if let Some(hosts) = hosts(finding, HOSTS) {
        line("hosts", &hosts)?;
    }
    line("help", &finding.advice)?;
    if let Some(bytes) = finding.fingerprint.as_ref().filter(|_| paint.whole) {
        line("history", &format!("urscope handle {bytes}"))?;
    }
    let calls: Vec<String> = finding.locations().map(facts).collect();
    let calls = format!("= {}{times}", calls.join("; "));
    writeln!(out, "  {}", paint.faint(wrapped(&calls, "    ", paint.width)))?;
    if paint.all && finding.count > 1 { write_occurrences(finding, out, paint) } else { Ok(()) }
}

/// Writes the call stacks of both sides, with the frames of the runtime.
fn write_stacks(finding: &FoundFinding, out: &mut String, paint: Paint) -> fmt::Result {
    for (label, side) in ["here ", "there"].into_iter().zip(finding.locations()) {
        writeln!(out, "  {} {}", paint.faint(label), place(side))?;
        for frame in &side.stack {
            writeln!(out, "        {} {}", paint.faint("at"), written(frame))?;
        }
    }
    Ok(())
}

/// How often a finding occurred, and in which processes, if it occurred several times.
pub(super) fn repeated(finding: &FoundFinding) -> Option<String> {
    let of = |occurrence: &Occurrence| (occurrence.host.clone(), occurrence.pid, occurrence.executable.clone());
    let processes = finding.occurrences.iter().map(of).collect::<BTreeSet<_>>().len();
    let ranks: Vec<u32> = finding.occurrences.iter().filter_map(|occurrence| occurrence.rank).collect();
    let ranks = if ranks.is_empty() { String::new() } else { format!(": ranks {}", listed(ranks)) };
    let of = |severity: &Severity| {
        finding.severities.get(severity.name()).map(|count| format!("{} as {severity}", counted(*count, "time")))
    };
    let severities: Vec<_> = Severity::ALL.iter().rev().filter_map(of).collect();
    let severities = if severities.is_empty() { String::new() } else { format!(": {}", severities.join(", ")) };
    let count = counted(finding.count, "time");
    match (finding.count, processes) {
        (..=1, _) => None,
        (_, ..=1) => Some(format!("{count}{severities}")),
        (_, processes) => Some(format!("{count} in {}{ranks}{severities}", counted(processes, "process"))),
    }
}

/// The occurrences of a finding, as a table.
fn write_occurrences(finding: &FoundFinding, out: &mut String, paint: Paint) -> fmt::Result {
    writeln!(out, "  {}", paint.faint("all occurrences"))?;
    let name = |it: &Occurrence| process_name(&it.executable, it.pid, it.rank);
    let width = finding.occurrences.iter().map(|it| name(it).chars().count()).max().unwrap_or(0);
    for occurrence in &finding.occurrences {
        let call = occurrence.call.map_or_else(String::new, |call| format!(", call {call}"));
        let subject = occurrence.subject.as_ref().map_or_else(String::new, |subject| format!(", {subject}"));
        let size = occurrence.size.map_or_else(String::new, |size| format!(", {}", short_size(size)));
        let count = if occurrence.count > 1 { format!(" ({} times)", occurrence.count) } else { String::new() };
        let name = name(occurrence);
        let at = since(occurrence.time_ns);
        writeln!(out, "        {at:<12} {name:<width$}  thread {}{call}{subject}{size}{count}", occurrence.tid)?;
    }
    let listed: u64 = finding.occurrences.iter().map(|occurrence| occurrence.count).sum();
    match finding.count.saturating_sub(listed) {
        0 => Ok(()),
        more => writeln!(out, "        and {more} more, which were counted only"),
    }
}

/// The hosts of a finding with the count on each, at most `limit` by name; `None` if the run has one node.
pub(super) fn hosts(finding: &FoundFinding, limit: usize) -> Option<String> {
    let named = finding.hosts.iter().take(limit).map(|(host, count)| format!("{host} ({count})"));
    let more = finding.hosts.len().saturating_sub(limit);
    let more = (more > 0).then(|| format!("and {more} more"));
    let hosts: Vec<_> = named.chain(more).collect();
    (!hosts.is_empty()).then(|| hosts.join(", "))
}

/// A function's name, without its parameters if it is longer than [`NAME`].
fn short(name: &str) -> String {
    match name.split_once('(') {
        Some((before, _)) if name.len() > NAME && !before.is_empty() => format!("{before}(…)"),
        _ => name.to_owned(),
    }
}

/// The longest name that is shown with its parameters, in bytes.
const NAME: usize = 60;

/// A frame as one line of text.
pub(super) fn written(frame: &Frame) -> String {
    let function = frame.function.as_deref().map_or_else(|| frame.offset.clone(), short);
    match (&frame.file, frame.line) {
        (Some(file), Some(line)) => format!("{function} ({file}:{line})"),
        (Some(file), None) => format!("{function} ({file})"),
        (None, _) => format!("{function} in {}", file_name(&frame.module)),
    }
}

/// The time and place of a side.
pub(super) fn place(side: &Location) -> String {
    format!("{:<12} {}", since(side.time_ns), whereabouts(side))
}

/// The place of a side: process, thread, call and function.
pub(super) fn whereabouts(side: &Location) -> String {
    let thread = if [0, side.pid].contains(&side.tid) { String::new() } else { format!(", thread {}", side.tid) };
    let call = side.call.map_or_else(String::new, |call| format!(", call {call}"));
    let function = side.function.as_ref().map_or_else(String::new, |function| format!(" {}", unversioned(function)));
    let who = process_name(&side.executable, side.pid, side.rank);
    let role = side.role.as_ref().map_or_else(String::new, |role| format!("{role}, "));
    format!("{role}{who}{thread}{call}{function}")
}

/// The call of a side in few words: `pid 12, call 5 urUSMFree, +199.586 ms`.
fn facts(side: &Location) -> String {
    let whole = whereabouts(side);
    let name = process_name(&side.executable, side.pid, None);
    let brief =
        whole.split_once(&name).filter(|_| side.rank.is_none()).map(|(_, rest)| format!("pid {}{rest}", side.pid));
    format!("{}, {}", brief.unwrap_or(whole), since(side.time_ns))
}

/// The name of a function as documents have it: `cuMemFree` for `cuMemFree_v2`.
fn unversioned(function: &str) -> &str {
    match function.rsplit_once("_v") {
        Some((name, version)) if version.parse::<u32>().is_ok() => name,
        _ => function,
    }
}

/// The call counts of a process, and how it ended.
pub(super) fn fate(process: &ProcessSummary) -> String {
    let ended = match process.ended {
        Ended::Exited => "exited",
        Ended::Killed if process.signal.is_some() => "died",
        Ended::Killed => "killed",
        Ended::Running => "still running",
        Ended::Exec => "became another program",
        Ended::Incomplete if process.signal.is_some() => "incomplete trace, died",
        Ended::Incomplete => "incomplete trace",
    };
    let signal = process.signal.as_ref().map_or_else(String::new, |signal| format!(" of {signal}"));
    let inside = process.inside.as_ref().map_or_else(String::new, |inside| format!(" inside {inside}"));
    let torn = if process.torn { ", last line cut short" } else { "" };
    let lost = if process.lost > 0 { format!(", {} lost", counted(process.lost, "record")) } else { String::new() };
    let calls = counted(process.calls, "call");
    format!("{calls}, {} of them IPC; {ended}{signal}{inside}{torn}{lost}", process.ipc_calls)
}

/// The name of a process, and its program where the name does not have it.
pub(super) fn named(process: &ProcessSummary) -> String {
    let program = process.rank.map_or("", |_| file_name(&process.executable));
    let name = process.name();
    if program.is_empty() { name } else { format!("{name} {program}") }
}

/// The processes in the order in which lists show them: by rank, then by pid, and those without a rank first, in the
/// order in which they began.
pub(super) fn ordered(processes: &[ProcessSummary]) -> Vec<&ProcessSummary> {
    let mut ordered: Vec<_> = processes.iter().collect();
    ordered.sort_by_key(|process| process.rank.map(|rank| (rank, process.pid)));
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A finding with one occurrence in each of these ranks.
    fn of_ranks(ranks: [u32; 3]) -> FoundFinding {
        let stack = vec![Frame::new("exchange_halo(int)", "/src/ring.cpp", 37)];
        let process =
            Location { pid: 12, rank: Some(12), executable: "/app".into(), tid: 12, stack, ..Location::default() };
        let occurrence = |rank| Occurrence { pid: rank, rank: Some(rank), count: 1, ..Occurrence::default() };
        let occurrences = ranks.map(occurrence).to_vec();
        FoundFinding { rule: "double-put".into(), count: 4, occurrences, ..FoundFinding::note_at(process) }
    }

    #[test]
    fn a_finding_opens_with_its_call_site_and_its_ranks() {
        let text = details(&of_ranks([3, 4, 12]));
        let head =
            "note: double-put in exchange_halo, ring.cpp:37 (4 times in 3 processes: ranks 3-4,12, the first:)\n";
        assert!(text.starts_with(head), "{text}");
        assert!(!text.contains("all occurrences"), "{text}");
    }

    #[test]
    fn occurrences_of_several_severities_are_counted_together() {
        let severities = [("warning".to_owned(), 3), ("note".to_owned(), 1)].into();
        let found = FoundFinding { severities, severity: Severity::Warning, ..of_ranks([3, 4, 12]) };
        let count = "4 times in 3 processes: ranks 3-4,12: 3 times as warning, 1 time as note";
        assert_eq!(repeated(&found).unwrap(), count);
    }

    #[test]
    fn many_processes_and_findings_alike_are_shown_on_demand() {
        let summary = |rank| ProcessSummary { rank: Some(rank), ended: Ended::Exited, ..ProcessSummary::default() };
        let mut processes: Vec<_> = (0..12).map(summary).collect();
        processes[7].ended = Ended::Killed;
        let findings = (0..5).map(|rank| FoundFinding { occurrences: Vec::new(), ..of_ranks([rank; 3]) }).collect();
        let mut judgement = Judgement { processes, findings, ..Judgement::default() };
        let shown = |judgement: &Judgement, whole| {
            let mut text = String::new();
            write(judgement, &mut text, Paint { whole, ..false.into() }).unwrap();
            text
        };
        let apart = shown(&judgement, false);
        assert_eq!(apart.matches("note: double-put").count(), 5, "without call sites they may be anywhere: {apart}");
        for finding in &mut judgement.findings {
            finding.process.site = Some("exchange_halo, ring.cpp:37".into());
        }
        let brief = shown(&judgement, false);
        assert_eq!(brief.matches("note: double-put in exchange_halo, ring.cpp:37 (").count(), ALIKE, "{brief}");
        let more =
            "\nnote: double-put in exchange_halo, ring.cpp:37: 2 more from other callers; --verbose shows them\n";
        assert!(brief.contains(more), "{brief}");
        let listed = "  rank 7 (pid 0)  0 calls, 0 of them IPC; killed\n  and 11 processes; --verbose lists all\n";
        assert!(brief.contains(&format!("\nprocesses\n{listed}")), "{brief}");
        let whole = shown(&judgement, true);
        assert!(whole.contains("rank 11 (pid 0)") && !whole.contains("--verbose"), "{whole}");
        assert_eq!(whole.matches("note: double-put in exchange_halo").count(), 5, "{whole}");
    }

    #[test]
    fn all_occurrences_are_listed_as_far_as_they_are_kept() {
        let mut text = String::new();
        write_finding(&of_ranks([3, 4, 12]), &mut text, Paint { all: true, ..false.into() }).unwrap();
        let listed: Vec<_> = text.lines().skip_while(|line| *line != "  all occurrences").skip(1).collect();
        let expected = [
            "        +0.000 ms    rank 3 (pid 3)    thread 0",
            "        +0.000 ms    rank 4 (pid 4)    thread 0",
            "        +0.000 ms    rank 12 (pid 12)  thread 0",
            "        and 1 more, which were counted only",
        ];
        assert_eq!(listed, expected);
    }
}
