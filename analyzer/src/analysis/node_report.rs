//! The report of an analysis: the findings of each node, and the calls that were not recorded.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::{num::NonZeroU64, path::PathBuf, sync::Arc};

use urscope_rules::tracker::{DeviceError, NotJudged};
use urscope_rules::{Finding, Place, ProcessId, Severity, When, catalog::NO_CALLS_SEEN};
use urscope_schema::trace::process_times::FILE;
use urscope_schema::trace::records::{ADAPTER_TABLE, EntryPoint, Header, Module, UNSEEN_ADAPTER};
use urscope_schema::{api::Function, call::Nanos, counted, duration, enumerated, host::ranks::process_name};

use super::findings::{Key, Node, Occurred, Repeated, Report};
use super::merging::{Merger, TracedProcess};
use super::symbols::{CallPlaces, FoundWrappers, Made, Symbolizer, compared, roles};
use super::{Ended, FoundFinding, Frame, Location, Occurrence, ProcessSummary, Stacks};
use crate::signals;

/// The results, by node. This takes the findings out of `merger`. It compares the call stacks if that is needed and not
/// done.
pub(crate) fn report(merger: &mut Merger, locator: &mut Locator, comparison: &mut Option<Comparison>) -> Report {
    let _span = tracing::info_span!("reporting").entered();
    let found = std::mem::take(&mut merger.deduplicator.findings);
    let merger = &*merger;
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for process in &merger.processes {
        *counts.entry(process.host).or_default() += 1;
    }
    let mut nodes: BTreeMap<u64, Node> = BTreeMap::new();
    for process in &merger.processes {
        let node = nodes.entry(process.host).or_insert_with(|| {
            let count = counts.get(&process.host).copied().unwrap_or_default();
            let unopened = merger.unopened.get(process.host as usize).copied().unwrap_or_default();
            Node { processes: Vec::with_capacity(count), unopened, ..node(process) }
        });
        let Header { boot_id, run, .. } = &*process.header;
        if node.key.runs.insert(run.clone()) {
            node.untraced.extend(merger.times.untraced(boot_id, run).map(str::to_owned));
            node.unobserved.extend(merger.times.unobserved(boot_id, run).map(str::to_owned));
            let cut = || format!("{FILE} is too large, and only its end was read");
            node.unobserved.extend(merger.times.is_cut.then(cut));
            node.early_deaths.extend(merger.times.early_deaths(boot_id, run).cloned());
        }
        node.processes.push(summary(process));
        for (function, count) in &process.notes.calls {
            *node.calls.entry(function.name().to_owned()).or_insert(0) += count;
        }
        for (function, count) in &process.notes.unexamined {
            *node.unexamined.entry(function.name().to_owned()).or_insert(0) += count;
        }
        unseen(process, node);
        node.gaps.extend(process.has_gaps().then(|| gap(process)));
        node.skipped.extend(process.notes.skipped.iter().cloned());
        node.skipped_lines += process.notes.skipped_lines;
    }
    for failed in &merger.device_errors {
        if let Some(process) = merger.process(failed.at.process)
            && let Some(node) = nodes.get_mut(&process.host)
        {
            node.device_errors.push(device_error(process, failed));
        }
    }
    for mut found in found.into_iter().filter(|found| found.first.rule != NO_CALLS_SEEN) {
        let node = merger.process(found.first.at.process).and_then(|process| nodes.get_mut(&process.host));
        if let Some(node) = node {
            found.first = graded(merger, found.first);
            node.findings.push(locator.finding(merger, &found));
        }
    }
    for (host, node) in &mut nodes {
        node.unseen.extend(not_judged(merger, locator, comparison, *host));
    }
    // Without findings, they are not needed. Finding them loads the debug information of the program.
    for (host, node) in nodes.iter_mut().filter(|(_, node)| !node.findings.is_empty()) {
        let found = comparison.get_or_insert_with(|| locator.compare(merger));
        node.found_wrappers = found.found_wrappers.get(host).cloned().unwrap_or_default();
        for process in &mut node.processes {
            process.role = found.role(*host, process.pid, &process.executable);
        }
        for side in node.findings.iter_mut().flat_map(FoundFinding::locations_mut) {
            found.complete(*host, side);
        }
    }
    let headless = merger.empty.iter().map(|path| path.display().to_string()).collect();
    let foreign = merger.foreign.iter().map(|(path, found)| (path.display().to_string(), found.clone())).collect();
    // The merge sorts the nodes.
    Report::default().merge(Report { nodes: nodes.into_values().collect(), headless, foreign, ..Report::default() })
}

/// A node without results, described by its first process.
fn node(first: &TracedProcess) -> Node {
    let Header { host, boot_id, time_namespace, clock, .. } = &*first.header;
    let boot = if boot_id.is_empty() { host } else { boot_id }.clone();
    let key = Key { boot, time_namespace: *time_namespace, runs: BTreeSet::new() };
    let monotonic_ns = clock.monotonic_ns;
    let realtime_ns = clock.realtime_ns;
    Node { key, host: host.clone(), monotonic_ns, realtime_ns, ..Node::default() }
}

/// Reduces a finding to a note if missing calls could explain it, so that it is not proved.
fn graded(merger: &Merger, finding: Finding) -> Finding {
    let gap = |place: Place| merger.process(place.process).filter(|process| process.has_gaps());
    // The tracker has graded findings about leftovers already. Their other side is not part of the proof.
    let other = finding.other.filter(|_| !matches!(finding.rule.when, When::End | When::Run));
    match gap(finding.at).or(other.and_then(gap)) {
        Some(process) if finding.severity > Severity::Note => {
            let message =
                format!("{}; not proved, because calls are missing in the trace of {}", finding.message, name(process));
            Finding { severity: Severity::Note, message, ..finding }
        }
        _ => finding,
    }
}

/// Whether processes are named by their roles: where they have no ranks and are few.
pub(crate) fn may_have_roles(merger: &Merger) -> bool {
    let processes = &merger.processes;
    (2..=COMPARED.0).contains(&processes.len()) && processes.iter().all(|process| process.header.rank.is_none())
}

fn name(process: &TracedProcess) -> String {
    let Header { executable, pid, rank, .. } = &*process.header;
    process_name(executable, *pid, *rank)
}

/// Converts places to locations, with host, executable and call stack. It caches what it has looked up.
pub(crate) struct Locator {
    /// The modules of each process that was looked up, as far as they were known then.
    modules: HashMap<ProcessId, Vec<Module>>,
    frames: HashMap<(ProcessId, u64), Vec<Frame>>,
    symbols: Symbolizer,
    /// The frames that are compared to find wrappers, of each process by the number of the stack.
    compared: HashMap<(ProcessId, u64), Arc<[Frame]>>,
}

/// What the call stacks of a run show together.
#[derive(Default)]
pub(crate) struct Comparison {
    /// The wrappers, by the number of the host.
    found_wrappers: BTreeMap<u64, FoundWrappers>,
    /// Those of all hosts.
    pub(crate) all: Arc<FoundWrappers>,
    /// The roles of processes, by host, process number and program.
    roles: BTreeMap<(u64, u32, String), String>,
    /// The places of calls, by host and program.
    places: BTreeMap<(u64, String), CallPlaces>,
}

impl Comparison {
    /// The role of a process.
    pub(crate) fn role(&self, host: u64, pid: u32, executable: &str) -> Option<String> {
        self.roles.get(&(host, pid, executable.to_owned())).cloned()
    }

    /// Adds to the location of a call what the others show: the role of its process, and which frames are wrappers.
    fn complete(&self, host: u64, side: &mut Location) {
        side.role = self.role(host, side.pid, &side.executable);
        let program = self.places.get(&(host, side.executable.clone()));
        let function = side.function.as_deref().and_then(Function::from_name);
        if let Some((places, function)) = program.zip(function) {
            places.note(function, &mut side.stack);
        }
    }
}

/// The most processes of a program on a host, and the most call stacks of each, that are compared to find wrappers.
/// The others are mostly alike.
const COMPARED: (usize, usize) = (64, 512);

impl Locator {
    pub(crate) fn new(symbols: &[PathBuf]) -> Self {
        let symbols = Symbolizer::new(symbols);
        Self { modules: HashMap::new(), frames: HashMap::new(), symbols, compared: HashMap::new() }
    }

    fn finding(&mut self, merger: &Merger, found: &Repeated) -> FoundFinding {
        let Repeated { first: finding, occurrences, known } = found;
        let [known_here, known_there] = *known;
        let process = self.command(merger, finding.at, known_here);
        let occurrences = occurrences.iter().map(|occurred| occurrence(merger, &process, occurred)).collect();
        FoundFinding {
            rule: finding.rule.code.to_owned(),
            severity: finding.severity,
            time_ns: process.time_ns,
            function: process.function.clone(),
            call: process.call,
            process,
            other: finding.other.map(|other| self.command(merger, other, known_there)),
            others: finding.others.iter().map(|other| self.location(merger, *other)).collect(),
            later: finding
                .other
                .and_then(|other| merger.judged.releases.close_of(other))
                .map(|later| self.location(merger, later)),
            never_ends: finding.other.is_some_and(|other| {
                let is_over = merger.process(other.process).is_some_and(|process| ended(process) == Ended::Exited);
                is_over && merger.judged.releases.is_open(other)
            }),
            message: finding.message.clone(),
            advice: finding.advice.clone(),
            count: finding.count,
            severities: BTreeMap::new(),
            occurrences,
            subject: finding.subject.map(|subject| subject.to_string()),
            kind: finding.subject.map(|subject| subject.kind.name().to_owned()),
            size: finding.size,
            fingerprint: finding.fingerprint.map(|bytes| format!("{bytes:#x}")),
            hosts: BTreeMap::new(),
            identity: String::new(),
            fails: false,
            excuse: None,
        }
    }

    /// The location of a command, and when its host knew that it had completed.
    fn command(&mut self, merger: &Merger, place: Place, known: Option<Nanos>) -> Location {
        let process = merger.process(place.process);
        let alignment = process.map(|process| merger.alignment(process.host)).unwrap_or_default();
        let known_ns = known.map(|time| alignment.on_host(time));
        Location { known_ns, ..self.location(merger, place) }
    }

    /// The location of a place. Its time counts from the beginning of its node, like all times of a node.
    pub(crate) fn location(&mut self, merger: &Merger, place: Place) -> Location {
        let process = merger.process(place.process);
        let alignment = process.map(|process| merger.alignment(process.host)).unwrap_or_default();
        Location {
            host: process.map_or_else(String::new, |process| process.header.host.clone()),
            pid: process.map_or(0, |process| process.header.pid),
            rank: process.and_then(|process| process.header.rank),
            role: None,
            executable: process.map_or_else(String::new, |process| process.header.executable.clone()),
            tid: place.tid,
            time_ns: alignment.on_host(place.time),
            function: place.function.map(|function| function.name().to_owned()),
            call: place.call.map(NonZeroU64::get),
            known_ns: None,
            stack: process.map_or_else(Vec::new, |process| self.stack(process, place)),
            site: None,
            excerpt: None,
        }
    }

    fn stack(&mut self, process: &TracedProcess, place: Place) -> Vec<Frame> {
        let Some(number) = place.stack.map(NonZeroU64::get) else { return Vec::new() };
        if let Some(known) = self.frames.get(&(place.process, number)) {
            return known.clone();
        }
        let stacks = &process.notes.stacks;
        let Some(stack) = stacks.stack(number) else { return Vec::new() };
        let modules = modules(&mut self.modules, place.process, stacks);
        let frames = self.symbols.stack(modules, stack);
        self.frames.insert((place.process, number), frames.clone());
        frames
    }

    /// Compares the call stacks of the processes of each program on each host.
    pub(crate) fn compare(&mut self, merger: &Merger) -> Comparison {
        let _span = tracing::info_span!("comparing call stacks").entered();
        let mut programs: BTreeMap<(u64, &str), Vec<Vec<Made>>> = BTreeMap::new();
        for process in &merger.processes {
            let alike = programs.entry((process.host, &process.header.executable)).or_default();
            if alike.len() < COMPARED.0 {
                alike.push(self.made(process));
            }
        }
        let mut comparison = Comparison::default();
        let mut all = FoundWrappers::default();
        for ((host, program), processes) in programs {
            let found = FoundWrappers::find(&processes);
            comparison.found_wrappers.entry(host).or_default().extend(&found);
            all.extend(&found);
            comparison.places.insert((host, program.to_owned()), CallPlaces::from_processes(&processes));
        }
        comparison.all = Arc::new(all);
        comparison.roles = self.roles(merger);
        comparison
    }

    /// The roles of the processes.
    fn roles(&mut self, merger: &Merger) -> BTreeMap<(u64, u32, String), String> {
        if !may_have_roles(merger) {
            return BTreeMap::new();
        }
        let processes = &merger.processes;
        let made: Vec<Vec<Made>> = processes.iter().map(|process| self.made(process)).collect();
        let all: Vec<&[Made]> = made.iter().map(Vec::as_slice).collect();
        let key = |process: &TracedProcess| (process.host, process.header.pid, process.header.executable.clone());
        processes.iter().zip(roles(&all)).filter_map(|(process, role)| Some((key(process), role?))).collect()
    }

    /// The calls of a process, as far as they are compared.
    fn made(&mut self, process: &TracedProcess) -> Vec<Made> {
        let (Some(id), stacks) = (process.id, &process.notes.stacks) else { return Vec::new() };
        let mut made = Vec::new();
        for (number, function) in process.notes.callers.all().take(COMPARED.1) {
            let known = self.compared.get(&(id, number)).cloned();
            let frames = known.or_else(|| {
                let modules = modules(&mut self.modules, id, stacks);
                let frames = compared(self.symbols.outside_of_runtime(modules, stacks.stack(number)?));
                self.compared.insert((id, number), Arc::clone(&frames));
                Some(frames)
            });
            made.extend(frames.map(|frames| Made { function, frames }));
        }
        made
    }
}

/// The modules of a process, as far as its trace was read.
fn modules<'m>(known: &'m mut HashMap<ProcessId, Vec<Module>>, process: ProcessId, stacks: &Stacks) -> &'m Vec<Module> {
    let modules = known.entry(process).or_default();
    if modules.len() < stacks.module_count() {
        *modules = stacks.modules();
    }
    modules
}

/// An occurrence of a finding whose first one is at `first`. All of them are in one process.
fn occurrence(merger: &Merger, first: &Location, occurred: &Occurred) -> Occurrence {
    let Location { host, pid, rank, executable, .. } = first.clone();
    let Occurred { at, subject, size, fingerprint, count } = *occurred;
    let process = merger.process(at.process);
    let alignment = process.map(|process| merger.alignment(process.host)).unwrap_or_default();
    Occurrence {
        host,
        pid,
        rank,
        executable,
        tid: at.tid,
        time_ns: alignment.on_host(at.time),
        call: at.call.map(NonZeroU64::get),
        subject: subject.map(|subject| subject.to_string()),
        size,
        fingerprint: fingerprint.map(|bytes| format!("{bytes:#x}")),
        count,
    }
}

fn summary(process: &TracedProcess) -> ProcessSummary {
    let TracedProcess { header, notes, .. } = process;
    let calls = || notes.calls.iter();
    ProcessSummary {
        pid: header.pid,
        host: header.host.clone(),
        executable: header.executable.clone(),
        run: header.run.clone(),
        command: header.command.clone(),
        rank: header.rank,
        role: None,
        ranks: header.ranks.clone(),
        ranks_elsewhere: header.ranks_elsewhere,
        late: header.late,
        began_ns: header.clock.monotonic_ns,
        realtime_ns: header.clock.realtime_ns,
        calls: calls().map(|(_, n)| n).sum(),
        ipc_calls: notes.ipc_calls,
        lost: process.lost(),
        ended: ended(process),
        signal: process.signal.filter(|signal| *signal > 0).map(signals::name),
        inside: process.inside.and_then(|place| place.function).map(|function| function.name().to_owned()),
        inside_call: process.inside.and_then(|place| place.call).map(NonZeroU64::get),
        torn: notes.torn,
        entry_points: notes.entry_points.clone(),
        file: notes.stacks.path().display().to_string(),
    }
}

/// How a process ended, as its trace and what was seen from outside say.
fn ended(process: &TracedProcess) -> Ended {
    match (process.ended, process.signal) {
        // It died in its exit handlers, after its footer.
        (Ended::Exited, Some(1..)) => Ended::Killed,
        // It ended by a system call of its own, without a footer.
        (Ended::Killed, Some(0)) => Ended::Exited,
        (ended, _) => ended,
    }
}

/// Where the failure of a device was seen first in a process.
fn device_error(process: &TracedProcess, failed: &DeviceError) -> String {
    let result = failed.at.function.map_or_else(String::new, |function| failed.result.text_of(function));
    let before = match &*failed.commands.iter().map(call).collect::<Vec<_>>() {
        [] => "no command on shared memory came before it".to_owned(),
        [one] => format!("the last command on shared memory before it was {one}"),
        several => format!("the last commands on shared memory before it were {}", enumerated(several)),
    };
    format!("a device of {} failed: {} was the first to return {result}; {before}", name(process), call(&failed.at))
}

/// A call, by its number and function.
fn call(place: &Place) -> String {
    let function = place.function.map_or("an unknown function", Function::name);
    place.call.map_or_else(|| function.to_owned(), |call| format!("call {call} ({function})"))
}

/// Why the trace of a process is incomplete.
fn gap(process: &TracedProcess) -> String {
    let why = match (process.lost(), process.notes.skipped_lines) {
        (0, 0) => "it is closed and has no footer".into(),
        (0, lines) => format!("{} could not be used", counted(lines, "line")),
        (lost, 0) => format!("{} lost", counted(lost, "record")),
        (lost, lines) => format!("{} lost, {} could not be used", counted(lost, "record"), counted(lines, "line")),
    };
    format!("the trace of {} is incomplete: {why}", name(process))
}

/// What the verdict does not cover of a process.
fn unseen(process: &TracedProcess, node: &mut Node) {
    let is_silent = process.notes.calls.is_empty();
    let entry_points = &process.notes.entry_points;
    for EntryPoint { kind, library, problem, .. } in entry_points.iter().filter(|it| !it.problem.is_empty()) {
        // What comes in by another interface says nothing of an adapter. The code of one may be watched instead of its
        // table. Nor do its other functions say that its IPC functions are watched.
        let sees_ipc = |other: &EntryPoint| other.ipc_slots == 0 || other.functions.iter().any(|name| is_ipc(name));
        let is_watched =
            entry_points.iter().any(|other| other.library == *library && other.is_open() && sees_ipc(other));
        let is_blind = kind == UNSEEN_ADAPTER || (kind == ADAPTER_TABLE && !is_watched);
        let text = if kind == UNSEEN_ADAPTER {
            format!("calls of {} through {library} were not seen: {problem}", name(process))
        } else if is_silent || is_blind {
            let library = if library.is_empty() { String::new() } else { format!(" of {library}") };
            format!("in {} the entry point {kind}{library} could not be intercepted: {problem}", name(process))
        } else {
            continue;
        };
        node.blind.extend(is_blind.then(|| text.clone()));
        node.unseen.push(text);
    }
    if process.ended == Ended::Incomplete {
        node.unseen.push(gap(process));
    }
    if let Some(limit) = process.notes.limit {
        node.unseen.push(format!(
            "the trace of {} reached its limit after {}: from then on the order of commands was not judged; urscope run --trace-limit raises it",
            name(process),
            duration(limit.0.saturating_sub(process.began.0))
        ));
    }
}

/// The pairs of commands that nothing orders, as far as is known, and that were not judged.
fn not_judged(merger: &Merger, locator: &mut Locator, comparison: &mut Option<Comparison>, host: u64) -> Vec<String> {
    let Some(not_judged) = merger.not_judged.get(host as usize) else { return Vec::new() };
    let NotJudged { pairs, at_pointers, behind_pointers } = not_judged;
    let mut all = Vec::new();
    for (of, which, what) in [
        (at_pointers, "at its pointer", "what the kernel accesses"),
        (behind_pointers, "further behind in the same memory", "how much the kernel accesses"),
    ] {
        if let Some(first) = of.first {
            let compared = comparison.get_or_insert_with(|| locator.compare(merger));
            let [first, second] = first.map(|place| {
                let mut side = locator.location(merger, place);
                compared.complete(host, &mut side);
                let line = side.call_line().map_or_else(String::new, |line| format!(", {line}"));
                format!("{} of {}{line}", call(&place), side.name())
            });
            let pairs = counted(of.count, "pair");
            all.push(format!(
                "{pairs} of a kernel and a command of another process {which} not judged as a race: nothing orders them, and {what} is \
                 not known; the first: {first}, and {second}"
            ));
        }
    }
    if *pairs > 0 {
        let pairs = counted(*pairs, "pair");
        all.push(format!(
            "{pairs} of commands of two processes on the same bytes not judged as a race: a kernel, a graph or a flag may have ordered them"
        ));
    }
    all
}

/// Whether a function of this name shares something.
fn is_ipc(name: &str) -> bool {
    Function::from_name(name).is_some_and(Function::is_ipc)
}
