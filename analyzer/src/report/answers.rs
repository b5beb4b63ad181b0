//! The text form of the answers to questions about a run.

use std::io::{self, Write};

use serde_json::{Map, Value};
use urscope_rules::Severity;
use urscope_schema::{counted, duration, grouped, short_size, since, size as sized};

use super::paint::{Paint, wrapped};
use super::text::{place, write_finding, written};
use crate::analysis::{Ended, Location};
use crate::plain::plain;
use crate::questions::{
    CallLine, CallPart, Calls, CallsBy, Diff, HandleHistory, Held, HeldBy, Holders, HoldersBy, Lost, Moment, Part,
    Sample, Share, Stats,
};

/// The number of bars in the graph of pinned bytes.
const BARS: usize = 60;

pub(super) fn holders(answer: &Holders, out: &mut impl Write, paint: Paint) -> io::Result<()> {
    let when = when(answer.at_ns);
    let lost = match answer.lost_count {
        0 => String::new(),
        count => format!(
            "{} left by processes that have ended, of which no traced process got the handle data",
            counted(count, "object")
        ),
    };
    if answer.held.is_empty() {
        let what = if lost.is_empty() { format!("nothing is held {when}") } else { lost };
        writeln!(out, "{} {what}", paint.strong("urscope:"))?;
        return write_lost(answer, out, paint);
    }
    let open = answer.held.iter().flat_map(|held| &held.holders).count();
    writeln!(
        out,
        "{} {} held {when}, {} pinned, {} {}",
        paint.strong("urscope:"),
        counted(answer.held.len() as u64 + answer.more, "object"),
        sized(answer.pinned_bytes),
        counted(open, "holder"),
        paint.faint("(urscope handle FINGERPRINT shows the history of one)")
    )?;
    answer.held.iter().try_for_each(|held| write_held(held, out, paint))?;
    write_more(answer.more, out)?;
    if !lost.is_empty() {
        writeln!(out, "\n{lost}")?;
    }
    write_lost(answer, out, paint)
}

/// The moment of an answer.
fn when(at_ns: Option<u64>) -> String {
    at_ns.map_or_else(|| "at the end of each process".to_owned(), |at| format!("at {}", since(at)))
}

/// Writes what is held in parts.
pub(super) fn holders_by(answer: &HoldersBy, out: &mut impl Write, paint: Paint) -> io::Result<()> {
    let when = when(answer.at_ns);
    let objects = counted(answer.objects, "object");
    let pinned = sized(answer.pinned_bytes);
    writeln!(out, "{} {objects} held {when}, {pinned} pinned", paint.strong("urscope:"))?;
    let width = answer.parts.iter().map(|part| part.name.chars().count()).max().unwrap_or(0);
    if !answer.parts.is_empty() {
        writeln!(out, "{}", paint.faint(format!("  {:width$}  {:>8}  {:>10}  bytes", "", "not put", "not closed")))?;
    }
    for Part { name, handles, opens, bytes: size } in &answer.parts {
        writeln!(out, "  {name:<width$}  {handles:>8}  {opens:>10}  {}", short_size(*size))?;
    }
    write_more(answer.more, out)
}

/// Writes the calls of a run in parts.
pub(super) fn calls_by(answer: &CallsBy, out: &mut impl Write, paint: Paint) -> io::Result<()> {
    let CallPart { calls, ipc_calls, errors, total_ns, .. } = &answer.total;
    let all = counted(*calls, "call");
    let errors = format!("{} failed", grouped(*errors));
    writeln!(
        out,
        "{} {all}, {ipc_calls} of them IPC, {errors}, {} in them",
        paint.strong("urscope:"),
        duration(*total_ns)
    )?;
    let width = answer.parts.iter().map(|part| part.name.chars().count()).max().unwrap_or(0);
    if !answer.parts.is_empty() {
        let head = format!("  {:width$}  {:>9} {:>9} {:>9} {:>9} {:>9}", "", "calls", "IPC", "failed", "time", "max");
        writeln!(out, "{}", paint.faint(head))?;
    }
    for CallPart { name, calls, ipc_calls, errors, total_ns, max_ns } in &answer.parts {
        let total = duration(*total_ns);
        let max = duration(*max_ns);
        writeln!(out, "  {name:<width$}  {calls:>9} {ipc_calls:>9} {errors:>9} {total:>9} {max:>9}")?;
    }
    write_more(answer.more, out)
}

/// Writes that a limit left something out.
fn write_more(more: u64, out: &mut impl Write) -> io::Result<()> {
    if more == 0 { Ok(()) } else { writeln!(out, "\nand {more} more; a higher --limit shows them") }
}

/// Writes what was left of untraced processes.
fn write_lost(answer: &Holders, out: &mut impl Write, paint: Paint) -> io::Result<()> {
    for Lost { object, size, fingerprint, since, released } in &answer.lost {
        let size = size.map_or_else(String::new, |size| format!(", {}", sized(size)));
        let fingerprint = fingerprint.as_ref().map_or_else(String::new, |bytes| format!("{} ", paint.strong(bytes)));
        writeln!(out, "\n{fingerprint}{object}{size}")?;
        writeln!(out, "  {} {}", paint.faint("made"), place(since))?;
        stack(since, out, paint)?;
        write_released(released.as_ref(), out, paint)?;
    }
    match answer.lost_count.saturating_sub(answer.lost.len() as u64) {
        0 => Ok(()),
        more => writeln!(out, "\nand {} more", counted(more, "object")),
    }
}

/// Writes where the context of something open was released.
fn write_released(released: Option<&Location>, out: &mut impl Write, paint: Paint) -> io::Result<()> {
    let Some(released) = released else { return Ok(()) };
    writeln!(
        out,
        "  {} {}, which released its context: it cannot be closed since then",
        paint.faint("lost"),
        place(released)
    )?;
    stack(released, out, paint)
}

fn write_held(held: &Held, out: &mut impl Write, paint: Paint) -> io::Result<()> {
    let size = held.size.map_or_else(String::new, |size| format!(", {}", sized(size)));
    let value = held.value.as_deref().map_or_else(String::new, |value| format!(" of {value}"));
    let fingerprint = paint.strong(&held.fingerprint);
    writeln!(out, "\n{fingerprint} {}{value}{size}", held.kind)?;
    let handles = match held.handles {
        0 => "all put".to_owned(),
        1 => "1 not put".to_owned(),
        n => format!("{n} not put"),
    };
    let fate = fate(held.producer_ended).map_or_else(String::new, |fate| format!(", {fate}"));
    writeln!(out, "  {} {} ({handles}{fate})", paint.faint("got "), place(&held.got))?;
    stack(&held.got, out, paint)?;
    for HeldBy { opened, opens, since, ended, released } in &held.holders {
        let times = if *opens == 1 { String::new() } else { format!(" {opens} times") };
        let fate = self::fate(*ended).map_or_else(String::new, |fate| format!(" ({fate})"));
        writeln!(out, "  {} {} as {opened}{times}{fate}", paint.faint("open"), place(since))?;
        stack(since, out, paint)?;
        write_released(released.as_ref(), out, paint)?;
    }
    for wait in &held.waits {
        writeln!(out, "  {} {}, which has not returned", paint.faint("wait"), place(wait))?;
        stack(wait, out, paint)?;
    }
    Ok(())
}

fn fate(ended: Option<Ended>) -> Option<&'static str> {
    match ended? {
        Ended::Running => None,
        Ended::Exited => Some("the process has exited"),
        Ended::Killed => Some("the process was killed"),
        Ended::Exec => Some("the process became another program"),
        Ended::Incomplete => Some("its trace is incomplete"),
    }
}

fn stack(side: &Location, out: &mut impl Write, paint: Paint) -> io::Result<()> {
    side.passed_frames()
        .chain(side.shown_frames())
        .try_for_each(|frame| writeln!(out, "       {} {}", paint.faint("at"), written(frame)))
}

pub(super) fn call(line: &CallLine, paint: Paint) -> String {
    let list = |values: &Map<String, Value>| {
        let text = |(name, value): (&String, &Value)| format!("{name} {}", value.as_str().unwrap_or_default());
        values.iter().map(text).collect::<Vec<_>>().join(", ")
    };
    let answers = if line.answers.is_empty() { String::new() } else { format!(" -> {}", list(&line.answers)) };
    let outcome = outcome(line.result.as_deref(), line.succeeded, line.took_ns, paint);
    let at = paint.faint(format!("{:>14}", since(line.begin_ns)));
    let process = plain(&line.process());
    // Below the call that it is inside of, unless that is not listed.
    let (inset, inside) = line.inside.map_or(("", String::new()), |outer| ("  ", format!("  inside {outer}")));
    let function = paint.strong(line.function);
    let arguments = list(&line.arguments);
    format!("{at}  {process}  {inset}{function}({arguments}){answers}  {outcome}{inside}")
}

/// How long a call took that succeeded, or why it did not.
fn outcome(result: Option<&str>, succeeded: bool, took_ns: Option<u64>, paint: Paint) -> String {
    match result {
        None => paint.severity(Severity::Warning, "never returned"),
        Some(_) if succeeded => took_ns.map_or_else(String::new, |took| paint.faint(duration(took))),
        Some(result) => paint.severity(Severity::Error, result),
    }
}

pub(super) fn handle(answer: &HandleHistory, out: &mut impl Write, paint: Paint) -> io::Result<()> {
    let name = &answer.name;
    let calls = counted(answer.moments.len(), "call");
    writeln!(out, "{} {} in {calls}", paint.strong("urscope:"), paint.strong(name))?;
    let several = answer.fingerprints.len() > 1;
    for Moment { place: side, fingerprint, value, result, took_ns } in &answer.moments {
        let value = value.as_deref().map_or_else(String::new, |value| format!(" {value}"));
        let succeeded = result.as_ref().is_some_and(|result| result.starts_with("UR_RESULT_SUCCESS"));
        let outcome = outcome(result.as_deref(), succeeded, *took_ns, paint);
        let which = if several { format!(" {fingerprint}") } else { String::new() };
        let line = format!("\n  {}{value}{which} {outcome}", place(side));
        writeln!(out, "{}", line.trim_end())?;
        stack(side, out, paint)?;
    }
    for finding in &answer.findings {
        let head = paint.severity(finding.severity, format!("{}: {}", finding.severity, finding.rule));
        writeln!(out, "\n{head}\n  {}", wrapped(&finding.message, "  ", paint.width))?;
    }
    Ok(())
}

pub(super) fn stats(answer: &Stats, out: &mut impl Write, paint: Paint) -> io::Result<()> {
    let calls: u64 = answer.totals.iter().map(|calls| calls.calls).sum();
    let errors: u64 = answer.totals.iter().flat_map(|calls| calls.errors.values()).sum();
    let calls = counted(calls, "call");
    let errors = format!("{} failed", grouped(errors));
    writeln!(out, "{} {calls}, {errors}", paint.strong("urscope:"))?;
    let head = format!("{:<30} {:>9} {:>9} {:>9} {:>9} {:>9}", "", "calls", "median", "90 %", "99 %", "max");
    // They are the same for one process.
    if answer.totals != answer.calls {
        writeln!(out, "\n{}\n{}", paint.strong("all processes"), paint.faint(&head))?;
        answer.totals.iter().try_for_each(|calls| write_calls(calls, out, paint))?;
    }
    let mut last = None;
    let mut by_rank: Vec<_> = answer.calls.iter().collect();
    by_rank.sort_by_key(|calls| calls.who.rank.map(|rank| (rank, calls.who.pid)));
    for calls in by_rank {
        let who = &calls.who;
        if last.replace((who.pid, &who.host)) != Some((who.pid, &who.host)) {
            writeln!(out, "\n{}\n{}", paint.strong(who.name()), paint.faint(&head))?;
        }
        write_calls(calls, out, paint)?;
    }
    if !answer.shares.is_empty() {
        writeln!(out, "\n{}", paint.strong("who opened what from whom"))?;
        let mut by_rank: Vec<_> = answer.shares.iter().collect();
        by_rank.sort_by_key(|share| (share.consumer.rank, share.producer.rank));
        by_rank.into_iter().try_for_each(|share| write_share(share, out, paint))?;
    }
    let most = answer.peak.pinned_bytes;
    if !answer.shared.is_empty() {
        let peak = format!("at most {} at {}", sized(most), since(answer.peak.time_ns));
        writeln!(out, "\n{} {}", paint.strong("pinned"), paint.faint(peak))?;
        writeln!(out, "  {}", graph(&answer.shared, most).trim_end())?;
    }
    Ok(())
}

fn write_calls(calls: &Calls, out: &mut impl Write, paint: Paint) -> io::Result<()> {
    let Calls { function, calls: count, unreturned, errors, latency, .. } = calls;
    let [p50, p90, p99, max] = [latency.p50_ns, latency.p90_ns, latency.p99_ns, latency.max_ns].map(duration);
    writeln!(out, "  {function:<28} {count:>9} {p50:>9} {p90:>9} {p99:>9} {max:>9}")?;
    for (result, times) in errors {
        writeln!(out, "    {}", paint.severity(Severity::Error, format!("{times} returned {result}")))?;
    }
    if *unreturned > 0 {
        writeln!(out, "    {}", paint.severity(Severity::Warning, format!("{unreturned} never returned")))?;
    }
    Ok(())
}

fn write_share(share: &Share, out: &mut impl Write, paint: Paint) -> io::Result<()> {
    let Share { producer, consumer, kind, handles, opens, open, bytes: size } = share;
    let producer = producer.name();
    let consumer = consumer.name();
    let handles = counted(*handles, "handle");
    let opens = counted(*opens, "open");
    let size = sized(*size);
    let left = paint.severity(Severity::Warning, format!("{open} left open"));
    let left = if *open == 0 { String::new() } else { format!(", {left}") };
    writeln!(out, "  {consumer} from {producer}: {kind}, {handles}, {opens}, {size}{left}")
}

pub(super) fn diff(answer: &Diff, out: &mut impl Write, paint: Paint) -> io::Result<()> {
    let Diff { verdicts: [before, after], introduced, cured, common, .. } = answer;
    let new = introduced.len();
    let fixed = cured.len();
    let verdicts = paint.faint(format!("(before: {}, after: {})", before.name(), after.name()));
    writeln!(out, "{} {new} new, {fixed} fixed, {common} unchanged {verdicts}", paint.strong("urscope:"))?;
    for (which, reason) in ["before", "after"].into_iter().zip(&answer.reasons) {
        if let Some(reason) = reason {
            writeln!(out, "  {which}: {}", wrapped(reason, "  ", paint.width))?;
        }
    }
    for finding in introduced {
        let mut text = String::new();
        // Writing to a String never fails.
        let _ = write_finding(finding, &mut text, paint);
        write!(out, "\n{} {text}", paint.severity(finding.severity, "new"))?;
    }
    for gone in cured {
        let text = wrapped(&format!("{}: {}: {}", gone.severity, gone.rule, gone.message), "  ", paint.width);
        writeln!(out, "\n{} {text}", paint.good("fixed"))?;
    }
    if !answer.calls.is_empty() {
        writeln!(out, "\n{}", paint.strong("calls"))?;
    }
    for (function, [before, after]) in &answer.calls {
        writeln!(out, "  {function:<28} {before:>9} {after:>9}")?;
    }
    Ok(())
}

/// The graph of pinned bytes over time, as a line of bars.
fn graph(samples: &[Sample], most: u64) -> String {
    const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let height = |level| (u128::from(level) * 8).div_ceil(u128::from(most.max(1))) as usize;
    heights(samples, BARS).into_iter().map(|level| LEVELS.get(height(level)).copied().unwrap_or('█')).collect()
}

/// The maximum of the pinned bytes in each of `parts` equal parts of the time; empty without samples.
pub fn heights(samples: &[Sample], parts: usize) -> Vec<u64> {
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return Vec::new() };
    let span = u128::from(last.time_ns.saturating_sub(first.time_ns)) + 1;
    let mut heights = vec![None; parts];
    for sample in samples {
        let part = u128::from(sample.time_ns.saturating_sub(first.time_ns)) * parts as u128 / span;
        if let Some(height) = heights.get_mut(part as usize) {
            let (most, _) = height.unwrap_or_default();
            *height = Some((sample.pinned_bytes.max(most), sample.pinned_bytes));
        }
    }
    // A part without samples keeps the last level.
    let mut level = 0;
    let known = |height: Option<(u64, u64)>| {
        let (most, last) = height.unwrap_or((level, level));
        level = last;
        most
    };
    heights.into_iter().map(known).collect()
}
