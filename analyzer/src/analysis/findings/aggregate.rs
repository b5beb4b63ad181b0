//! The verdict over all nodes: puts their times on one time axis and combines findings that several nodes share.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use urscope_schema::trace::process_times::ProcessTimes;
use urscope_schema::{counted, enumerated};

use super::{Node, Report};
use crate::analysis::{
    Ended, FoundFinding, Judgement, Limit, LimitCause, Location, Options, ProcessSummary, VERSION, Verdict, clock,
    early_deaths, reading, symbols::FoundWrappers,
};

/// Computes the verdict over all nodes of a report.
pub(crate) fn judgement(report: &Report, paths: &[PathBuf], options: &Options) -> Judgement {
    let _span = tracing::info_span!("judging").entered();
    let nodes = &report.nodes;
    let mut findings = findings(nodes);
    let mut found_wrappers = FoundWrappers::default();
    for node in nodes {
        found_wrappers.extend(&node.found_wrappers);
    }
    for finding in &mut findings {
        finding.locations_mut().for_each(|side| options.wrappers.mark(side, &found_wrappers));
        finding.identity = finding.identity_of();
        finding.advise();
    }
    findings.sort_by(|a, b| b.severity.cmp(&a.severity).then(a.time_ns.cmp(&b.time_ns)));
    let has_ipc_calls = nodes.iter().flat_map(|node| &node.processes).any(|process| process.ipc_calls > 0);
    let (suppressions, baseline) = options.exemptions.apply(&mut findings);
    // A finding that is missing from a run without IPC calls is not gone.
    let baseline = baseline.filter(|_| has_ipc_calls);
    for finding in &mut findings {
        finding.fails = options.fails && finding.excuse.is_none() && finding.severity >= options.fail_on;
    }
    let mut calls = BTreeMap::new();
    for (function, count) in nodes.iter().flat_map(|node| &node.calls) {
        *calls.entry(function.clone()).or_insert(0) += count;
    }
    let unseen = unseen(report);
    let failed = findings.iter().any(|finding| finding.fails);
    let reason = match has_ipc_calls {
        false => Some(reason(report, &unseen, paths)),
        true if failed => None,
        true => gaps(nodes),
    };
    let verdict = match (&reason, failed) {
        (Some(_), _) => Verdict::NotJudged,
        (None, true) => Verdict::Findings,
        (None, false) => Verdict::Clean,
    };
    let mut limits = limits(nodes, &findings, options);
    // Where nothing was judged, the list of what was not seen says it.
    limits.extend(
        blind(nodes)
            .filter(|_| reason.is_none())
            .map(|text| Limit { cause: LimitCause::UnseenCalls, text: text.clone() }),
    );
    let mut unseen = unseen;
    unseen.retain(|text| reason.is_some() || !blind(nodes).any(|blind| blind == text));
    let judgement = Judgement {
        version: VERSION,
        verdict,
        headline: String::new(),
        exit: verdict.exit_code(),
        reason,
        processes: processes(nodes, options.command_lines),
        calls,
        findings,
        unseen,
        skipped: nodes.iter().flat_map(|node| &node.skipped).cloned().collect(),
        skipped_lines: nodes.iter().map(|node| node.skipped_lines).sum(),
        suppressions,
        baseline,
        limits: Vec::new(),
    };
    judgement.limited(limits)
}

/// What keeps a verdict without findings from being clean.
fn limits(nodes: &[Node], findings: &[FoundFinding], options: &Options) -> Vec<Limit> {
    let limits = [
        (LimitCause::Death, deaths(nodes, options)),
        (LimitCause::Death, before_calls(nodes, options)),
        (LimitCause::DeviceError, device_errors(nodes)),
        (LimitCause::UntracedPeer, untraced(findings)),
        (LimitCause::Unexamined, unexamined(nodes)),
        (LimitCause::NotTraced, left_out(nodes)),
        (LimitCause::NotTraced, without_traces(nodes, options)),
        (LimitCause::NotTraced, unobserved(nodes, options)),
        (LimitCause::Late, came_late(nodes)),
        (LimitCause::OtherRun, may_be_elsewhere(nodes, options)),
    ];
    limits.into_iter().filter_map(|(cause, text)| Some(Limit { cause, text: text? })).collect()
}

/// The adapters whose calls were not seen.
fn blind(nodes: &[Node]) -> impl Iterator<Item = &String> {
    nodes.iter().flat_map(|node| &node.blind)
}

/// What processes of other runs may have open.
fn may_be_elsewhere(nodes: &[Node], options: &Options) -> Option<String> {
    let unopened: u64 = nodes.iter().map(|node| node.unopened).sum();
    let runs = &options.beside;
    (unopened > 0 && !runs.is_empty()).then(|| {
        format!(
            "no process of this run opened {} of its own, and {} wrote traces into its directory at the same time: what its processes did with them is \
             not known. `urscope check` of the directory judges all runs together",
            counted(unopened, "exported object"),
            if runs.len() == 1 { "another run".to_owned() } else { format!("{} other runs", runs.len()) },
        )
    })
}

/// Which processes died of signals, but for those that are expected.
fn deaths(nodes: &[Node], options: &Options) -> Option<String> {
    let expected = |process: &ProcessSummary| match &process.signal {
        Some(signal) => options.expected_signals.contains(signal),
        None => process.ended != Ended::Killed || !options.expected_signals.is_empty(),
    };
    let mut died = nodes.iter().flat_map(|node| &node.processes).filter(|process| !expected(process));
    let first = died.next()?;
    let name = first.name();
    let how = first.signal.as_ref().map_or_else(|| "was killed".to_owned(), |signal| format!("died of {signal}"));
    let inside = first.inside.as_ref().map_or_else(String::new, |function| match first.inside_call {
        Some(call) => format!(" inside call {call} ({function})"),
        None => format!(" inside {function}"),
    });
    let others = match died.count() {
        0 => String::new(),
        others => format!(", and {} died, too", counted(others, "other process")),
    };
    Some(format!("{name} {how}{inside}{others}"))
}

/// Which processes died of signals before they made a call.
fn before_calls(nodes: &[Node], options: &Options) -> Option<String> {
    let mut all: Vec<&ProcessTimes> = nodes.iter().flat_map(|node| &node.early_deaths).collect();
    let observed = options.observed.iter().flatten().filter(|line| line.early_death.is_some() && !all.contains(line));
    all.extend(observed.collect::<Vec<_>>());
    early_deaths(all, &options.expected_signals, "made a call that is recorded")
}

/// Which devices have failed.
fn device_errors(nodes: &[Node]) -> Option<String> {
    let mut failed = nodes.iter().flat_map(|node| &node.device_errors);
    let first = failed.next()?;
    let others = match failed.count() {
        0 => String::new(),
        others => format!(", and so did those of {}", counted(others, "other process")),
    };
    Some(format!("{first}{others}"))
}

/// What was enqueued without being looked into.
fn unexamined(nodes: &[Node]) -> Option<String> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for (function, count) in nodes.iter().flat_map(|node| &node.unexamined) {
        *counts.entry(function).or_default() += count;
    }
    let calls: Vec<String> =
        counts.iter().map(|(function, count)| format!("{} of {function}", counted(*count, "call"))).collect();
    let all = enumerated(&calls);
    (!all.is_empty()).then(|| format!("{all} were not looked into: which memory their commands used is not known"))
}

/// What was opened from processes that were not traced, unless an exemption excuses that.
fn untraced(findings: &[FoundFinding]) -> Option<String> {
    let found: Vec<_> =
        findings.iter().filter(|finding| finding.rule == UNTRACED_PEER && finding.excuse.is_none()).collect();
    let opens: u64 = found.iter().map(|finding| finding.count).sum();
    let first = found.first()?;
    Some(format!(
        "{} opened handle data that no traced process exported ({}), so the exporter's side is unknown. Run the exporter under urscope, too, \
         and judge all traces together; if the exporter is not yours, suppress {UNTRACED_PEER}",
        counted(opens as usize, "process"),
        first.message
    ))
}

/// Which ranks of a job were traced, if others were left out.
fn left_out(nodes: &[Node]) -> Option<String> {
    let chosen: BTreeSet<&str> =
        nodes.iter().flat_map(|node| &node.processes).map(|process| process.ranks.as_str()).collect();
    let chosen: Vec<&str> = chosen.into_iter().filter(|ranks| !ranks.is_empty()).collect();
    (!chosen.is_empty()).then(|| {
        format!(
            "only the ranks {} were traced (--ranks): what the others did with memory that they share with these is not known",
            chosen.join(", ")
        )
    })
}

/// Each text once that the nodes have, or that was observed.
fn texts<'t>(
    nodes: &'t [Node],
    options: &'t Options,
    of_node: fn(&Node) -> &[String],
    of_line: fn(&ProcessTimes) -> &String,
) -> Vec<&'t str> {
    let all = nodes.iter().flat_map(of_node).chain(options.observed.iter().flatten().map(of_line));
    let mut known = BTreeSet::new();
    all.map(String::as_str).filter(|text| !text.is_empty() && known.insert(*text)).collect()
}

/// Which processes have no traces.
fn without_traces(nodes: &[Node], options: &Options) -> Option<String> {
    let mut untraced = texts(nodes, options, |node| &node.untraced, |line| &line.untraced).into_iter();
    let first = untraced.next()?;
    let others = match untraced.count() {
        0 => String::new(),
        others => format!(", nor could {}", counted(others, "other process")),
    };
    Some(format!("{first}{others}: what was done there is not known"))
}

/// What could not be observed, so that there may be more processes without traces.
fn unobserved(nodes: &[Node], options: &Options) -> Option<String> {
    let all = texts(nodes, options, |node| &node.unobserved, |line| &line.unobserved);
    (!all.is_empty()).then(|| format!("processes of the run may be missing: {}", all.join("; ")))
}

/// Which processes were not traced from their beginning on.
fn came_late(nodes: &[Node]) -> Option<String> {
    let mut late = nodes.iter().flat_map(|node| &node.processes).filter(|process| process.late);
    let ProcessSummary { executable, pid, .. } = late.next()?;
    let name = executable.rsplit('/').next().unwrap_or(executable);
    let others = match late.count() {
        0 => String::new(),
        others => format!(" and into {}", counted(others, "other process")),
    };
    Some(format!("urscope came into {name} (pid {pid}){others} while it ran: what it had done before is not known"))
}

/// The rule that finds opens of what no traced process got.
const UNTRACED_PEER: &str = "untraced-peer";

/// When the first process of the run began, in nanoseconds of `CLOCK_REALTIME`.
fn first(nodes: &[Node]) -> u64 {
    clock::first(nodes.iter().map(|node| node.realtime_ns))
}

/// All findings. Those of several processes at one call site become one, whatever their severities are. It shows the
/// most severe occurrence, or the first one, and the count on each host if there are several nodes.
fn findings(nodes: &[Node]) -> Vec<FoundFinding> {
    let first = first(nodes);
    let several = nodes.len() > 1;
    let mut findings: Vec<FoundFinding> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (node, finding) in nodes.iter().flat_map(|node| node.findings.iter().map(move |finding| (node, finding))) {
        let found = aligned(finding, node, node.shift(first), several);
        // Without call stacks, nothing says that two processes of a node did it at one place.
        let has_place = several || found.locations().all(|side| !side.stack.is_empty());
        // Several runs are not one.
        let place = has_place.then(|| format!("{}\n{}", run_of(node, &found), found.call_site()));
        let known = place.as_ref().and_then(|place| findings.get_mut(*places.get(place)?));
        match (known, place) {
            (Some(known), _) => combine(known, found),
            (None, place) => {
                places.extend(place.map(|place| (place, findings.len())));
                findings.push(found);
            }
        }
    }
    findings
}

/// The run that a finding of a node belongs to; the empty text if the node has one run only.
fn run_of<'n>(node: &'n Node, finding: &FoundFinding) -> &'n str {
    if node.key.runs.len() < 2 {
        return "";
    }
    let Location { pid, executable, .. } = &finding.process;
    let mut processes = node.processes.iter();
    processes
        .find(|process| (process.pid, &process.executable) == (*pid, executable))
        .map_or("", |process| &process.run)
}

/// A finding of a node, with its times counted from the beginning of the run, and its host if there are several.
fn aligned(finding: &FoundFinding, node: &Node, shift: u64, several: bool) -> FoundFinding {
    let mut found = finding.clone();
    let sides = std::iter::once(&mut found.process)
        .chain(&mut found.other)
        .chain(&mut found.later)
        .flat_map(|side| std::iter::once(&mut side.time_ns).chain(&mut side.known_ns));
    let occurrences = found.occurrences.iter_mut().map(|occurrence| &mut occurrence.time_ns);
    for time in sides.chain(occurrences).chain([&mut found.time_ns]) {
        *time = time.saturating_add(shift);
    }
    found.hosts = if several { BTreeMap::from([(node.host.clone(), found.count)]) } else { BTreeMap::new() };
    found
}

/// Adds an equal finding. The more severe one of the two is shown, or the earlier one.
fn combine(known: &mut FoundFinding, mut found: FoundFinding) {
    let order = |found: &FoundFinding| {
        let process = (found.process.host.clone(), found.process.pid);
        (Reverse(found.severity), found.time_ns, process, found.call, found.message.clone())
    };
    let mut severities: BTreeMap<String, u64> = BTreeMap::new();
    for finding in [&*known, &found] {
        if finding.severities.is_empty() {
            *severities.entry(finding.severity.name().to_owned()).or_insert(0) += finding.count;
        }
        for (severity, count) in &finding.severities {
            *severities.entry(severity.clone()).or_insert(0) += count;
        }
    }
    if order(&found) < order(known) {
        std::mem::swap(known, &mut found);
    }
    for (host, count) in found.hosts {
        *known.hosts.entry(host).or_insert(0) += count;
    }
    known.count += found.count;
    known.severities = if severities.len() > 1 { severities } else { BTreeMap::new() };
    known.occurrences.extend(found.occurrences);
    known.occurrences.sort_by(|one, two| one.order().cmp(&two.order()));
}

/// All processes, in the order in which they began.
fn processes(nodes: &[Node], command_lines: bool) -> Vec<ProcessSummary> {
    let first = first(nodes);
    let began = |node: &Node, process: &ProcessSummary| {
        process.began_ns.saturating_sub(node.monotonic_ns).saturating_add(node.shift(first))
    };
    let mut all: Vec<_> = nodes
        .iter()
        .flat_map(|node| node.processes.iter().map(move |process| (began(node, process), process)))
        .collect();
    all.sort_by_key(|(began, _)| *began);
    let mut all: Vec<_> = all.into_iter().map(|(_, process)| process.clone()).collect();
    if !command_lines {
        // Reports of nodes may have them.
        for process in &mut all {
            process.command.clear();
        }
    }
    all
}

/// What the verdict does not cover.
fn unseen(report: &Report) -> Vec<String> {
    let mut unseen: Vec<_> = report.nodes.iter().flat_map(|node| &node.unseen).cloned().collect();
    unseen.extend(
        report
            .headless
            .iter()
            .map(|file| format!("{file} has no header: its process was stopped before it had written one")),
    );
    unseen.extend(ignored(report));
    unseen.extend(report.nodes.iter().filter(|node| node.duplicates > 0).map(|node| {
        let more = counted(node.duplicates, "more report");
        let host = &node.host;
        format!("{more} of the node {host} (boot {}) ignored: give one report for each node", node.key.boot)
    }));
    unseen
}

/// The files that are no traces.
fn ignored(report: &Report) -> impl Iterator<Item = String> {
    report.foreign.iter().map(|(file, why)| format!("{file} was ignored: {why}"))
}

/// Why nothing was judged: there are no traces, no entry point was intercepted, or no IPC function was called.
fn reason(report: &Report, unseen: &[String], paths: &[PathBuf]) -> String {
    let processes = || report.nodes.iter().flat_map(|node| &node.processes);
    if processes().next().is_none() && report.headless.is_empty() {
        let described = |path: &PathBuf| {
            let contents = if path.is_dir() { format!(" ({})", reading::contents(path)) } else { String::new() };
            format!("{}{contents}", path.display())
        };
        let places: Vec<_> = paths.iter().map(described).collect();
        let places = if places.is_empty() { String::new() } else { format!(" in {}", places.join(", ")) };
        let ignored = ignored(report).collect::<Vec<_>>().join("; ");
        let mark = if report.foreign.is_empty() { "" } else { "; " };
        return format!(
            "no trace files{places}{mark}{ignored}; name a directory that `urscope run` wrote, or record one with `urscope run -- PROGRAM`"
        );
    }
    let calls: u64 = processes().map(|process| process.calls).sum();
    let intercepted =
        processes().flat_map(|process| &process.entry_points).filter(|entry_point| entry_point.is_open()).count();
    let calls = counted(calls, "call");
    let processes = counted(processes().count() as u64, "process");
    match (unseen.is_empty(), intercepted) {
        (false, _) => format!("no call that shares anything was recorded: {}", unseen.join("; ")),
        (true, 0) => {
            format!(
                "{processes} traced, but none loaded an adapter of Unified Runtime or a driver, so there were no calls to record"
            )
        }
        (true, _) => format!(
            "{calls} recorded in {processes}, but none that shares anything: no process got or opened a handle \
             through Unified Runtime, Level Zero or CUDA"
        ),
    }
}

/// Why a run without a failing finding is not clean: calls are missing in its traces.
fn gaps(nodes: &[Node]) -> Option<String> {
    let gaps: Vec<_> = nodes.iter().flat_map(|node| &node.gaps).map(String::as_str).collect();
    let gaps = gaps.join("; ");
    (!gaps.is_empty()).then(|| format!("{gaps}; the recorded calls break no rule, but the missing ones may"))
}
