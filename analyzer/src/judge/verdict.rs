//! The line below a hearing: what was found on each node, and what was not seen.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::PathBuf,
};

use urscope_rules::{Finding, Place, ProcessId, Severity, When, catalog::NO_CALLS_SEEN};
use urscope_schema::{
    api::Function,
    trace::records::{Header, Module},
};

use super::{
    Ended, FoundFinding, Frame, Seen, Side,
    axis::Axis,
    court::{Court, Party},
    file_name,
    node::{Key, Node, Report},
    symbols::Symbols,
};

/// What was seen, node by node. The findings are taken from the hearing.
pub(super) fn report(court: &mut Court, sides: &mut Sides<'_>) -> Report {
    let found = std::mem::take(&mut court.tally.findings);
    let court = &*court;
    let mut nodes: BTreeMap<u64, Node> = BTreeMap::new();
    for party in &court.parties {
        let node = nodes.entry(party.host).or_insert_with(|| node(party));
        node.key.runs.insert(party.header.run.clone());
        node.processes.push(seen(party));
        for (function, count) in Function::ALL.iter().zip(&party.notes.calls).filter(|(_, count)| **count > 0) {
            *node.calls.entry(function.name().to_owned()).or_insert(0) += count;
        }
        node.unseen.extend(unseen(party));
        node.gaps.extend(party.has_gaps().then(|| gap(party)));
        node.skipped.extend_from_slice(&party.notes.skipped);
        node.skipped_lines += party.notes.skipped_lines;
    }
    for finding in found.into_iter().filter(|finding| finding.rule != NO_CALLS_SEEN) {
        let node = party(court, finding.at).and_then(|party| nodes.get_mut(&party.host));
        if let Some(node) = node {
            node.findings.push(sides.finding(court, &excused(court, finding)));
        }
    }
    let headless = court.empty.iter().map(|path| path.display().to_string()).collect();
    // The merge puts them in order.
    Report::default().merge(Report { nodes: nodes.into_values().collect(), headless, ..Report::default() })
}

/// A node, by the first of its processes.
fn node(first: &Party) -> Node {
    let Header { host, boot_id, time_namespace, clock, .. } = &first.header;
    let boot = if boot_id.is_empty() { host } else { boot_id }.clone();
    let key = Key { boot, time_namespace: *time_namespace, runs: BTreeSet::new() };
    let (monotonic_ns, realtime_ns) = (clock.monotonic_ns, clock.realtime_ns);
    Node { key, host: host.clone(), monotonic_ns, realtime_ns, ..Node::default() }
}

/// What cannot be proved, because calls are missing that could excuse it, is a note.
fn excused(court: &Court, finding: Finding) -> Finding {
    let gap = |place: Place| party(court, place).filter(|party| party.has_gaps());
    // What was left is graded by the world already, and its other side is no part of the proof.
    let other = finding.other.filter(|_| !matches!(finding.rule.when, When::End | When::Run));
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
    let file = file_name(&header.executable);
    format!("{} (pid {})", if file.is_empty() { "a process" } else { file }, header.pid)
}

/// What places are called in a report.
pub(super) struct Sides<'a> {
    /// Of the processes that were named so far.
    modules: HashMap<ProcessId, Vec<Module>>,
    symbols: Symbols<'a>,
}

impl<'a> Sides<'a> {
    pub(super) fn new(symbols: &'a [PathBuf]) -> Self {
        Self { modules: HashMap::new(), symbols: Symbols::new(symbols) }
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
            hosts: BTreeMap::new(),
            identity: String::new(),
            fails: false,
            excuse: None,
        };
        found.identity = found.known_by();
        found
    }

    /// A place. Its time counts from the beginning of its node, as all times of a node do.
    pub(super) fn side(&mut self, court: &Court, place: Place) -> Side {
        let party = party(court, place);
        let axis = party.map_or_else(Axis::default, |party| court.axis(party.host));
        Side {
            host: party.map_or_else(String::new, |party| party.header.host.clone()),
            pid: party.map_or(0, |party| party.header.pid),
            executable: party.map_or_else(String::new, |party| party.header.executable.clone()),
            tid: place.tid,
            time_ns: axis.on_host(place.time),
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
        rank: header.rank,
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

/// Why a process proves nothing.
fn gap(party: &Party) -> String {
    let why = match (party.lost(), party.notes.skipped_lines) {
        (0, 0) => "it is closed and has no footer".into(),
        (0, lines) => format!("{} could not be used", number(lines, "line")),
        (lost, 0) => format!("{} lost", number(lost, "record")),
        (lost, lines) => format!("{} lost, {} could not be used", number(lost, "record"), number(lines, "line")),
    };
    format!("the trace of {} is incomplete: {why}", name(party))
}

/// A number of things.
pub(super) fn number(count: u64, noun: &str) -> String {
    match (count, noun) {
        (1, _) => format!("1 {noun}"),
        (_, "process") => format!("{count} processes"),
        _ => format!("{count} {noun}s"),
    }
}

/// What the verdict does not cover of a process.
fn unseen(party: &Party) -> Vec<String> {
    let mut unseen = Vec::new();
    let problems = party.notes.doors.iter().filter(|door| !door.problem.is_empty());
    if party.notes.calls.iter().all(|count| *count == 0) {
        unseen.extend(problems.map(|door| {
            let library = if door.library.is_empty() { String::new() } else { format!(" of {}", door.library) };
            format!("in {} the door {}{library} did not open: {}", name(party), door.kind, door.problem)
        }));
    }
    if party.ended == Ended::Incomplete {
        unseen.push(gap(party));
    }
    unseen
}
