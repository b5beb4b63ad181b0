//! The line below a hearing: what was found, what was not seen, and the verdict.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
};

use urscope_rules::{Finding, Place, ProcessId, Severity, When, catalog::NO_CALLS_SEEN};
use urscope_schema::{api::Function, trace::records::Module};

use super::{
    Ended, FoundFinding, Frame, Judgement, Options, Seen, Side, VERSION, Verdict,
    court::{Court, Party},
    symbols::Symbols,
};

/// Draws it.
pub(super) fn draw(court: &mut Court, sides: &mut Sides<'_>, paths: &[PathBuf], options: &Options) -> Judgement {
    let found = std::mem::take(&mut court.tally.findings);
    let court = &*court;
    let sins = found.into_iter().filter(|finding| finding.rule != NO_CALLS_SEEN);
    let mut findings: Vec<FoundFinding> =
        sins.map(|finding| excused(court, finding)).map(|finding| sides.finding(court, &finding)).collect();
    findings.sort_by(|a, b| b.severity.cmp(&a.severity).then(a.time_ns.cmp(&b.time_ns)));
    let seen_any = court.world.ipc_calls() > 0;
    let (suppressions, baseline) = options.exemptions.apply(&mut findings);
    // Where nothing was seen, nothing is gone.
    let baseline = baseline.filter(|_| seen_any);
    for finding in &mut findings {
        finding.fails = finding.excuse.is_none() && finding.severity >= options.fail_on;
    }
    let mut calls = BTreeMap::new();
    for (function, count) in court.parties.iter().flat_map(|party| Function::ALL.iter().zip(&party.notes.calls)) {
        if *count > 0 {
            *calls.entry(function.name().to_owned()).or_insert(0) += count;
        }
    }
    let failed = findings.iter().any(|finding| finding.fails);
    let reason = match seen_any {
        false => Some(reason(court, paths)),
        true if failed => None,
        true => gaps(court),
    };
    let verdict = match (&reason, failed) {
        (Some(_), _) => Verdict::NotJudged,
        (None, true) => Verdict::Findings,
        (None, false) => Verdict::Clean,
    };
    let unseen = unseen(court);
    let skipped_lines = court.parties.iter().map(|party| party.notes.skipped_lines).sum();
    let skipped = court.parties.iter().flat_map(|party| &party.notes.skipped).cloned().collect();
    let processes = court.parties.iter().map(seen).collect();
    let exit = verdict.exit_code();
    Judgement {
        version: VERSION,
        verdict,
        exit,
        reason,
        processes,
        calls,
        findings,
        unseen,
        skipped,
        skipped_lines,
        suppressions,
        baseline,
    }
}

/// What cannot be proved, because calls are missing that could excuse it, is a note.
fn excused(court: &Court, finding: Finding) -> Finding {
    let gap = |place: Place| party(court, place).filter(|party| party.has_gaps());
    // What was left is graded by the world already, and its other side is no part of the proof.
    let other = finding.other.filter(|_| finding.rule.when != When::End);
    match gap(finding.at).or(other.and_then(gap)) {
        Some(party) if finding.severity > Severity::Note => {
            let message =
                format!("{}; not proved, for calls are missing in the trace of {}", finding.message, name(party));
            Finding { severity: Severity::Note, message, ..finding }
        }
        _ => finding,
    }
}

fn party(court: &Court, place: Place) -> Option<&Party> {
    court.parties.get(*court.by_id.get(place.process.0 as usize)?)
}

fn name(party: &Party) -> String {
    let header = &party.header;
    let file = header.executable.rsplit('/').next().unwrap_or_default();
    format!("{} (pid {})", if file.is_empty() { "a process" } else { file }, header.pid)
}

/// When the first process of each host began.
fn starts(court: &Court) -> HashMap<u64, u64> {
    let mut starts = HashMap::new();
    for party in &court.parties {
        let began = party.began().0;
        starts.entry(party.host).and_modify(|start: &mut u64| *start = began.min(*start)).or_insert(began);
    }
    starts
}

/// What places are called in a report.
pub(super) struct Sides<'a> {
    starts: HashMap<u64, u64>,
    /// Of the processes that were named so far.
    modules: HashMap<ProcessId, Vec<Module>>,
    symbols: Symbols<'a>,
}

impl<'a> Sides<'a> {
    pub(super) fn new(court: &Court, symbols: &'a [PathBuf]) -> Self {
        Self { starts: starts(court), modules: HashMap::new(), symbols: Symbols::new(symbols) }
    }

    fn finding(&mut self, court: &Court, finding: &Finding) -> FoundFinding {
        let process = self.side(court, finding.at);
        let mut found = FoundFinding {
            rule: finding.rule.code.to_owned(),
            severity: finding.severity,
            time_ns: process.time_ns,
            function: process.function.clone(),
            call: process.call,
            process,
            other: finding.other.map(|other| self.side(court, other)),
            message: finding.message.clone(),
            advice: finding.advice.clone(),
            count: finding.count,
            subject: finding.subject.map(|subject| subject.to_string()),
            kind: finding.subject.map(|subject| subject.kind.name().to_owned()),
            size: finding.size,
            fingerprint: finding.fingerprint.map(|bytes| format!("{bytes:#x}")),
            identity: String::new(),
            fails: false,
            excuse: None,
        };
        found.identity = found.known_by();
        found
    }

    pub(super) fn side(&mut self, court: &Court, place: Place) -> Side {
        let party = party(court, place);
        let start = party.and_then(|party| self.starts.get(&party.host)).copied().unwrap_or_default();
        Side {
            pid: party.map_or(0, |party| party.header.pid),
            executable: party.map_or_else(String::new, |party| party.header.executable.clone()),
            tid: place.tid,
            time_ns: place.time.0.saturating_sub(start),
            function: place.function.map(|function| function.name().to_owned()),
            call: place.call,
            stack: party.map_or_else(Vec::new, |party| self.stack(party, place)),
        }
    }

    fn stack(&mut self, party: &Party, place: Place) -> Vec<Frame> {
        let shelf = &party.notes.shelf;
        let Some(addresses) = place.stack.and_then(|number| shelf.stack(number)) else { return Vec::new() };
        let modules = self.modules.entry(place.process).or_insert_with(|| shelf.modules());
        self.symbols.frames(modules, &addresses)
    }
}

fn seen(party: &Party) -> Seen {
    let Party { header, notes, .. } = party;
    let calls = || Function::ALL.iter().zip(&notes.calls);
    Seen {
        pid: header.pid,
        host: header.host.clone(),
        executable: header.executable.clone(),
        command: header.command.clone(),
        began_ns: header.clock.monotonic_ns,
        calls: calls().map(|(_, n)| n).sum(),
        ipc_calls: calls().filter(|(f, _)| f.is_ipc()).map(|(_, n)| n).sum(),
        lost: party.lost(),
        ended: party.ended,
        inside: party.inside.and_then(|place| place.function).map(|function| function.name().to_owned()),
        torn: notes.torn,
        doors: notes.doors.clone(),
        file: notes.shelf.path.display().to_string(),
    }
}

/// Why nothing was judged: there were no traces, no door opened, or nothing went through.
fn reason(court: &Court, paths: &[PathBuf]) -> String {
    if court.parties.is_empty() && court.empty.is_empty() {
        let places: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        let places = if places.is_empty() { String::new() } else { format!(" in {}", places.join(", ")) };
        return format!(
            "no trace files{places}: no process loaded a Unified Runtime adapter under urscope; expected urscope-*.json files, \
             start the program with urscope run"
        );
    }
    let problems = unseen(court);
    let calls: u64 = court.parties.iter().flat_map(|party| &party.notes.calls).sum();
    let processes = court.parties.len();
    let open = court.parties.iter().flat_map(|party| &party.notes.doors).filter(|door| door.slots > 0).count();
    let (calls, processes) = (number(calls, "call"), number(processes as u64, "process"));
    match (problems.is_empty(), open) {
        (false, _) => format!("no urIPC* call was seen: {}", problems.join("; ")),
        (true, 0) => {
            format!("{processes} traced, but no Unified Runtime adapter was loaded, so there was nothing to see")
        }
        (true, _) => format!(
            "the doors were open and {calls} seen in {processes}, but none of a urIPC* function: nothing was shared \
             between processes through Unified Runtime"
        ),
    }
}

/// Why what was seen, without fault as it is, proves nothing: calls are missing.
fn gaps(court: &Court) -> Option<String> {
    let gaps: Vec<_> = court.parties.iter().filter(|party| party.has_gaps()).map(gap).collect();
    (!gaps.is_empty()).then(|| format!("{}; what is there has no fault, but what is missing may", gaps.join("; ")))
}

fn gap(party: &Party) -> String {
    let why = match (party.lost(), party.notes.skipped_lines) {
        (0, 0) => "it is closed and has no footer".into(),
        (0, lines) => format!("{} could not be used", number(lines, "line")),
        (lost, 0) => format!("{} lost", number(lost, "record")),
        (lost, lines) => format!("{} lost, {} could not be used", number(lost, "record"), number(lines, "line")),
    };
    format!("the trace of {} is incomplete: {why}", name(party))
}

fn number(count: u64, noun: &str) -> String {
    match (count, noun) {
        (1, _) => format!("1 {noun}"),
        (_, "process") => format!("{count} processes"),
        _ => format!("{count} {noun}s"),
    }
}

/// What the verdict does not cover.
fn unseen(court: &Court) -> Vec<String> {
    let mut unseen = Vec::new();
    for party in &court.parties {
        let problems = party.notes.doors.iter().filter(|door| !door.problem.is_empty());
        if party.notes.calls.iter().all(|count| *count == 0) {
            unseen.extend(problems.map(|door| {
                let library = if door.library.is_empty() { String::new() } else { format!(" of {}", door.library) };
                format!("in {} the door {}{library} did not open: {}", name(party), door.door, door.problem)
            }));
        }
        if party.ended == Ended::Incomplete {
            unseen.push(gap(party));
        }
    }
    let empty = court.empty.iter().map(|path| path.display());
    unseen
        .extend(empty.map(|file| format!("{file} holds no header: its process was stopped before it had written one")));
    unseen
}
