//! Formats a snapshot of a run as the lines of the panes, in the selected order.

use std::{cmp::Reverse, collections::BTreeMap};

use urscope_analyzer::analysis::{Ended, FoundFinding, Judgement, Location, ProcessSummary, file_name};
use urscope_analyzer::questions::{Held, Snapshot};
use urscope_rules::Severity;
use urscope_schema::{counted, short_size, since};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) cells: Vec<String>,
    pub(super) severity: Option<Severity>,
    /// Whether it is about a process that has ended.
    pub(super) faint: bool,
    pub(super) whole: Whole,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Whole {
    Text(String),
    Finding(usize),
}

/// The earlier counts from which rates are computed.
pub(super) struct Pace<'a> {
    /// The calls of each process in the previous snapshot, in the order of the judgement.
    pub(super) before: &'a [u64],
    /// The time of the run that has passed since, in nanoseconds.
    pub(super) passed: u64,
}

pub(super) const PROCESS_ORDERS: [&str; 3] = ["by rank", "by calls", "by state"];
pub(super) const FINDING_ORDERS: [&str; 2] = ["newest first", "worst first"];
pub(super) const HOLDER_ORDERS: [&str; 3] = ["by bytes", "by opens", "by handles"];

pub(super) fn processes(snapshot: &Snapshot, order: usize, pace: Option<&Pace<'_>>) -> Vec<Row> {
    let mut seen: Vec<_> = snapshot.judgement.processes.iter().enumerate().collect();
    match order {
        1 => seen.sort_by_key(|(_, seen)| Reverse(seen.calls)),
        2 => seen.sort_by_key(|(_, seen)| state_order(seen.ended)),
        _ => seen.sort_by_key(|(_, seen)| seen.rank.map(|rank| (rank, seen.pid))),
    }
    let hosts =
        snapshot.judgement.processes.windows(2).any(|pair| matches!(pair, [one, other] if one.host != other.host));
    seen.into_iter().map(|(index, seen)| process(seen, index, pace, hosts)).collect()
}

fn process(seen: &ProcessSummary, index: usize, pace: Option<&Pace<'_>>, hosts: bool) -> Row {
    let name = file_name(&seen.executable);
    let name = if hosts { format!("{name} @{}", seen.host) } else { name.to_owned() };
    let before = pace.and_then(|pace| Some((pace.passed, *pace.before.get(index)?)));
    let rate = before.map_or_else(String::new, |(passed, before)| rate(seen.calls.saturating_sub(before), passed));
    let rank = seen.rank.map_or_else(String::new, |rank| rank.to_string());
    let inside = seen.inside.as_ref().map_or_else(String::new, |inside| format!("\ninside {inside}"));
    let lost =
        if seen.lost > 0 { format!("\n{} of its records could not be written", seen.lost) } else { String::new() };
    let whole = format!(
        "{} on {}\n{}\n\n{}{inside}\n{} calls, {} of them IPC{lost}\ncommand: {}\ntrace: {}",
        seen.name(),
        seen.host,
        seen.executable,
        seen.ended.name(),
        seen.calls,
        seen.ipc_calls,
        seen.command.join(" "),
        seen.file
    );
    Row {
        cells: vec![rank, seen.pid.to_string(), name, seen.calls.to_string(), rate, seen.ended.name().to_owned()],
        severity: (seen.ended == Ended::Killed).then_some(Severity::Warning),
        faint: seen.ended != Ended::Running,
        whole: Whole::Text(whole),
    }
}

fn state_order(ended: Ended) -> u8 {
    match ended {
        Ended::Running => 0,
        Ended::Killed => 1,
        Ended::Incomplete => 2,
        Ended::Exec => 3,
        Ended::Exited => 4,
    }
}

/// A rate per second, as short text. `nanos` is the time in nanoseconds in which `count` was counted.
pub(super) fn rate(count: u64, nanos: u64) -> String {
    let rate = count as f64 * 1e9 / nanos.max(1) as f64;
    match rate {
        0.0..9.95 if rate.fract() > 0.0 => format!("{rate:.1}"),
        0.0..10_000.0 => format!("{rate:.0}"),
        10_000.0..10_000_000.0 => format!("{:.0}k", rate / 1e3),
        _ => format!("{:.0}M", rate / 1e6),
    }
}

/// The lines of the shared objects, one for each kind.
pub(super) fn shared(snapshot: &Snapshot) -> Vec<Row> {
    let row = |(kind, amount): (&str, urscope_analyzer::questions::Amount)| {
        let kind = kind.strip_suffix(" handle").unwrap_or(kind).to_owned();
        let held = if amount.bytes > 0 { short_size(amount.bytes) } else { String::new() };
        Row {
            cells: vec![kind, amount.handles.to_string(), amount.opens.to_string(), held],
            severity: None,
            faint: false,
            whole: Whole::Text(String::new()),
        }
    };
    snapshot.amounts().into_iter().map(row).collect()
}

/// The lines of the findings that are not excused.
pub(super) fn findings(snapshot: &Snapshot, order: usize) -> Vec<Row> {
    let findings = snapshot.judgement.findings.iter().enumerate();
    let mut findings: Vec<_> = findings.filter(|(_, finding)| finding.excuse.is_none()).collect();
    match order {
        1 => findings.sort_by_key(|(_, finding)| (Reverse(finding.severity), Reverse(finding.time_ns))),
        _ => findings.sort_by_key(|(_, finding)| Reverse(finding.time_ns)),
    }
    findings.into_iter().map(|(index, found)| finding(&snapshot.judgement, index, found)).collect()
}

fn finding(judgement: &Judgement, index: usize, finding: &FoundFinding) -> Row {
    let times = if finding.count > 1 { format!(" ({})", counted(finding.count, "time")) } else { String::new() };
    let text = format!("{}{times}: {}", finding.rule, judgement.sentence(finding));
    Row {
        cells: vec![since(finding.time_ns), finding.severity.name().to_owned(), text],
        severity: Some(finding.severity),
        faint: false,
        whole: Whole::Finding(index),
    }
}

#[derive(Default)]
struct Hold<'a> {
    handles: u64,
    opens: u64,
    bytes: u64,
    ended: Option<Ended>,
    lines: Vec<(&'a Held, String)>,
}

pub(super) fn holders(snapshot: &Snapshot, order: usize) -> Vec<Row> {
    let mut holds = BTreeMap::<Holding<'_>, Hold<'_>>::new();
    let of = |side: &Location| format!("{} {}", since(side.time_ns), side.function.as_deref().unwrap_or_default());
    for held in &snapshot.holders.held {
        let size = held.size.unwrap_or_default();
        if held.handles > 0 {
            let hold = holds.entry(process_of(&held.got)).or_default();
            (hold.handles, hold.bytes, hold.ended) =
                (hold.handles + held.handles, hold.bytes + size, held.producer_ended);
            hold.lines.push((held, format!("got, {} not put, the last {}", held.handles, of(&held.got))));
        }
        for holder in &held.holders {
            let hold = holds.entry(process_of(&holder.since)).or_default();
            (hold.opens, hold.bytes, hold.ended) = (hold.opens + holder.opens, hold.bytes + size, holder.ended);
            hold.lines.push((
                held,
                format!("open as {}, {} times, the last {}", holder.opened, holder.opens, of(&holder.since)),
            ));
        }
    }
    let mut holds: Vec<_> = holds.into_iter().collect();
    holds.sort_by_key(|(_, hold)| {
        Reverse(match order {
            1 => (hold.opens, hold.bytes),
            2 => (hold.handles, hold.bytes),
            _ => (hold.bytes, hold.opens + hold.handles),
        })
    });
    holds.into_iter().map(|(who, hold)| holder(who, &hold)).collect()
}

/// A process that holds something: its host, rank and pid, and its name.
type Holding<'a> = (&'a str, Option<u32>, u32, String);

fn process_of(side: &Location) -> Holding<'_> {
    (&side.host, side.rank, side.pid, side.process())
}

fn holder((host, _, _, name): Holding<'_>, hold: &Hold<'_>) -> Row {
    let ended = hold.ended.unwrap_or(Ended::Running);
    let lines = hold.lines.iter().map(|(held, line)| {
        let size = held.size.map_or_else(String::new, |size| format!(", {}", short_size(size)));
        format!("{} {}{size}\n  {line}\n", held.fingerprint, held.kind)
    });
    let whole = format!("{name} on {host}, {}\n\n{}", ended.name(), lines.collect::<String>());
    Row {
        cells: vec![name, hold.handles.to_string(), hold.opens.to_string(), short_size(hold.bytes)],
        severity: None,
        faint: ended != Ended::Running,
        whole: Whole::Text(whole),
    }
}
