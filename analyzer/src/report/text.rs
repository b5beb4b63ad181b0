//! The report for people: the verdict, the findings with the worst first, the processes, what was not seen.

use std::io::{self, Write};

use urscope_rules::Severity;
use urscope_schema::trace::records::is_of_runtime;

use super::paint::{Paint, since, wrapped};
use crate::{
    judge::{Ended, FoundFinding, Frame, Judgement, Seen, Side, Verdict},
    plain::plain,
};

/// How wide text is set.
const WIDTH: usize = 100;

pub(super) fn write(judgement: &Judgement, out: &mut impl Write, paint: Paint) -> io::Result<()> {
    let calls: u64 = judgement.calls.values().sum();
    let total = format!("{}, {}", number(judgement.processes.len(), "process"), number(calls as usize, "call"));
    let verdict = verdict(judgement, paint);
    writeln!(out, "{} {verdict} {}", paint.strong("urscope:"), paint.faint(format!("({total})")))?;
    if let Some(reason) = &judgement.reason {
        writeln!(out, "  {}", wrapped(&plain(reason), "  ", WIDTH))?;
    }
    for finding in &judgement.findings {
        writeln!(out)?;
        write_finding(finding, out, paint)?;
    }
    if !judgement.processes.is_empty() {
        writeln!(out, "\n{}", paint.strong("processes"))?;
    }
    let width =
        judgement.processes.iter().map(|seen| who(&seen.executable, seen.pid).chars().count()).max().unwrap_or(0);
    for seen in &judgement.processes {
        write_process(seen, width, out)?;
    }
    if judgement.calls.keys().any(|name| name.starts_with("urIPC")) {
        let ipc = judgement.calls.iter().filter(|(name, _)| name.starts_with("urIPC"));
        let list: Vec<_> = ipc.map(|(name, count)| format!("{} {count}", plain(name))).collect();
        writeln!(out, "\n{}\n  {}", paint.strong("calls"), wrapped(&list.join(", "), "  ", WIDTH))?;
    }
    // Where nothing was judged, the reason has told it.
    if !judgement.unseen.is_empty() && judgement.verdict != Verdict::NotJudged {
        writeln!(out, "\n{}", paint.strong("not seen"))?;
        for unseen in &judgement.unseen {
            writeln!(out, "  {}", wrapped(&plain(unseen), "    ", WIDTH))?;
        }
    }
    if judgement.skipped_lines > 0 {
        writeln!(out, "\n{} ({})", paint.strong("lines that could not be used"), judgement.skipped_lines)?;
        for line in &judgement.skipped {
            writeln!(out, "  {}:{} (byte {}): {}", plain(&line.file), line.line, line.offset, plain(&line.why))?;
        }
    }
    Ok(())
}

fn verdict(judgement: &Judgement, paint: Paint) -> String {
    let counts: Vec<_> = Severity::ALL
        .into_iter()
        .rev()
        .filter_map(|severity| {
            let count = judgement.findings.iter().filter(|finding| finding.severity == severity).count();
            (count > 0).then(|| number(count, severity.name()))
        })
        .collect();
    let worst = judgement.findings.first().map_or(Severity::Note, |finding| finding.severity);
    match judgement.verdict {
        Verdict::Clean if counts.is_empty() => paint.good("clean"),
        Verdict::Clean => format!("{}, {}", paint.good("clean"), counts.join(", ")),
        Verdict::Findings => paint.severity(worst, counts.join(", ")),
        Verdict::NotJudged => paint.severity(Severity::Warning, "not judged"),
    }
}

fn write_finding(finding: &FoundFinding, out: &mut impl Write, paint: Paint) -> io::Result<()> {
    let head = paint.severity(finding.severity, format!("{}: {}", finding.severity, plain(&finding.rule)));
    let count = if finding.count > 1 { format!(" ({} times, the first:)", finding.count) } else { String::new() };
    writeln!(out, "{head}{count}")?;
    writeln!(out, "  {}", wrapped(&plain(&finding.message), "  ", WIDTH))?;
    for (label, side) in [("here ", Some(&finding.process)), ("there", finding.other.as_ref())] {
        if let Some(side) = side {
            writeln!(out, "  {} {}", paint.faint(label), place(side))?;
            for frame in told(&side.stack) {
                writeln!(out, "        {} {}", paint.faint("at"), written(frame))?;
            }
        }
    }
    if let Some(bytes) = &finding.fingerprint {
        writeln!(out, "  {} handle data with fingerprint {}", paint.faint("bytes"), plain(bytes))?;
    }
    let advice = wrapped(&plain(&finding.advice), "        ", WIDTH);
    writeln!(out, "  {} {advice}", paint.faint("help "))
}

/// The frames that a reader wants: those of the program, and of the runtime where there are no others.
pub(super) fn told(stack: &[Frame]) -> impl Iterator<Item = &Frame> {
    let of_program = |frame: &Frame| {
        let header = frame.file.as_ref().is_some_and(|file| HEADERS.iter().any(|place| file.contains(place)));
        !is_of_runtime(&frame.module) && !header
    };
    let runtime_only = !stack.iter().any(of_program);
    stack.iter().filter(move |frame| runtime_only || of_program(frame)).take(FRAMES)
}

/// Where the headers of the C++ library and of the SYCL runtime are: what they define is compiled into programs.
const HEADERS: [&str; 2] = ["/usr/include/", "/include/sycl/"];

/// How many frames of a stack are told.
const FRAMES: usize = 4;

/// A function's name without the parameters, where they would fill the line.
fn short(name: &str) -> String {
    match name.split_once('(') {
        Some((before, _)) if name.len() > NAME && !before.is_empty() => format!("{before}(…)"),
        _ => name.to_owned(),
    }
}

/// From how many bytes on a name is long.
const NAME: usize = 60;

pub(super) fn written(frame: &Frame) -> String {
    let function = frame.function.as_deref().map_or_else(|| frame.offset.clone(), |name| plain(&short(name)));
    match (&frame.file, frame.line) {
        (Some(file), Some(line)) => format!("{function} ({}:{line})", plain(file)),
        (Some(file), None) => format!("{function} ({})", plain(file)),
        (None, _) => format!("{function} in {}", plain(file_name(&frame.module))),
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

pub(super) fn place(side: &Side) -> String {
    let thread = if side.tid == 0 { String::new() } else { format!(", thread {}", side.tid) };
    let call = side.call.map_or_else(String::new, |call| format!(", call {call}"));
    let function = side.function.as_ref().map_or_else(String::new, |function| format!(" {}", plain(function)));
    format!("{:<12} {}{thread}{call}{function}", since(side.time_ns), who(&side.executable, side.pid))
}

fn write_process(seen: &Seen, width: usize, out: &mut impl Write) -> io::Result<()> {
    let ended = match seen.ended {
        Ended::Exited => "exited",
        Ended::Killed => "killed",
        Ended::Running => "still running",
        Ended::Exec => "became another program",
        Ended::Incomplete => "incomplete trace",
    };
    let inside = seen.inside.as_ref().map_or_else(String::new, |inside| format!(" inside {}", plain(inside)));
    let torn = if seen.torn { ", last line cut short" } else { "" };
    let lost = if seen.lost > 0 { format!(", {} lost", number(seen.lost as usize, "record")) } else { String::new() };
    let (name, calls) = (who(&seen.executable, seen.pid), number(seen.calls as usize, "call"));
    writeln!(out, "  {name:<width$}  {calls}, {} of them IPC; {ended}{inside}{torn}{lost}", seen.ipc_calls)
}

pub(super) fn who(executable: &str, pid: u32) -> String {
    let file = plain(executable.rsplit('/').next().unwrap_or_default());
    if file.is_empty() { format!("pid {pid}") } else { format!("{file} (pid {pid})") }
}

pub(super) fn number(count: usize, noun: &str) -> String {
    match (count, noun) {
        (1, _) => format!("1 {noun}"),
        (_, "process") => format!("{count} processes"),
        _ => format!("{count} {noun}s"),
    }
}
