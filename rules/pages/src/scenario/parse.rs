//! The text form of a scenario, both ways.

use std::{fmt, str::FromStr};

use super::{Call, Fate, Line, REFUSED, Ran, Scenario, SetRight, Step, VERBS, Verb};
use urscope_rules::End;
use urscope_schema::api::{CUDA, LEVEL_ZERO};
use urscope_schema::call::{Access, SyncKind};

/// A line that is no step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// The line, from 1 on; 0 where the scenario as a whole does not fit together.
    pub line: usize,
    /// What was expected and what was found.
    pub why: String,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for ScenarioError {}

const RIGHTS: [(&str, SetRight); 7] = [
    ("uid", |rights, uid| rights.uid = Some(uid as u32)),
    ("pid-namespace", |rights, namespace| rights.pid_namespace = Some(namespace)),
    ("ptrace-scope", |rights, scope| rights.ptrace_scope = Some(scope as u32)),
    ("seccomp", |rights, mode| rights.seccomp = Some(mode as u32)),
    ("dumpable", |rights, dumpable| rights.dumpable = Some(dumpable != 0)),
    ("traces-any", |rights, any| rights.traces_any = Some(any != 0)),
    ("descriptor-limit", |rights, limit| rights.descriptors = Some(limit)),
];

const ENDS: [(&str, End); 5] = [
    ("exit", End::Exited),
    ("exec", End::Exec),
    ("killed", End::Killed),
    ("running", End::Running),
    ("incomplete", End::Incomplete),
];

const SYNCHRONIZATIONS: [(&str, SyncKind); SyncKind::ALL.len()] = [
    ("host-waits", SyncKind::Completed),
    ("may-know", SyncKind::MayBeCompleted),
    ("signals", SyncKind::Signals),
    ("barrier", SyncKind::Barrier),
    ("awaits", SyncKind::WaitsFor),
    ("not-followed", SyncKind::NotFollowed),
    ("in-order", SyncKind::InOrder),
    ("out-of-order", SyncKind::OutOfOrder),
    ("list", SyncKind::List),
    ("executes", SyncKind::Executes),
    ("shares", SyncKind::Shares),
    ("resets", SyncKind::Resets),
    ("limit", SyncKind::Limit),
];

impl FromStr for Scenario {
    type Err = ScenarioError;

    fn from_str(text: &str) -> Result<Self, ScenarioError> {
        let mut lines: Vec<Line> = Vec::new();
        let mut block: Option<(Vec<(usize, &str)>, usize)> = None;
        for (index, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            let wrong = |why| ScenarioError { line: index + 1, why };
            if let Some(times) = line.strip_suffix(" times") {
                if block.replace((Vec::new(), number(times).map_err(wrong)? as usize)).is_some() {
                    return Err(wrong("expected end in front of this".into()));
                }
            } else if line == "end" {
                let (again, times) = block.take().ok_or_else(|| wrong("nothing to end".into()))?;
                for time in 0..times {
                    for (index, line) in &again {
                        let wrong = |why| ScenarioError { line: index + 1, why };
                        lines.push(parse(&line.replace('$', &time.to_string()), index + 1).map_err(wrong)?);
                    }
                }
            } else if let (Some((again, _)), false) = (&mut block, line.is_empty()) {
                again.push((index, line));
            } else if !line.is_empty() {
                lines.push(parse(line, index + 1).map_err(wrong)?);
            }
        }
        Ok(Self { lines })
    }
}

fn parse(line: &str, number_of_line: usize) -> Result<Line, String> {
    // What happens at the same time is played in this order.
    let line = line.strip_prefix("& ").unwrap_or(line);
    let (who, what) = line.split_once(':').ok_or_else(|| format!("expected PROCESS: STEP, found {line:?}"))?;
    let (who, thread) = numbered(who.trim(), '/')?;
    let (process, host) = numbered(who, '@')?;
    let mut words = what.split_whitespace().peekable();
    let first = words.next().ok_or("expected a step behind the colon")?;
    let becomes = if first == "exec" { words.next() } else { None };
    let mut name =
        |what: &str| words.next().map(str::to_owned).ok_or_else(|| format!("expected {what} behind {first}"));
    let step = if let Some(next) = becomes {
        Step::Becomes(next.to_owned())
    } else if let Some((_, end)) = ENDS.iter().find(|(word, _)| *word == first) {
        Step::Ends(*end)
    } else if let Some((_, verb, function)) = VERBS.iter().find(|(word, ..)| *word == first) {
        let mut call = Call { verb: *verb, function: *function, object: Some(name("a name")?), ..Call::default() };
        if *verb == Verb::Alloc {
            call.size = Some(number(&name("a size")?)?);
        }
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("expected something behind {word}"));
            match word {
                "+" => call.offset = number(value()?)?,
                "->" => call.result = Some(value()?.to_owned()),
                "like" => call.like = Some(value()?.to_owned()),
                "in" => call.context = Some(value()?.to_owned()),
                "on" => call.device = Some(value()?.to_owned()),
                "ipc" => call.shared = true,
                "profiled" => call.profiled = true,
                "sized" => call.size = Some(number(value()?)?),
                "overwrites" => call.overwrites = Some(number(value()?)?),
                "flipped" => call.flipped = Some(number(value()?)?),
                "seed" => drop(number(value()?)?),
                "exposes" => call.exposes = Some(number(value()?)?),
                "as" => call.usm = Some(value()?.to_owned()),
                "from" => call.pool = Some(value()?.to_owned()),
                // It changes nothing of what the handle means.
                "replaced" => {}
                "queued" => call.queued = true,
                "waits" => call.waits = true,
                "unfinished" => call.unfinished = true,
                "on-host" => call.on_host = true,
                "queue" => call.queue = Some(value()?.to_owned()),
                "non-blocking" => call.non_blocking = true,
                "ze" => call.interface = Some(&LEVEL_ZERO),
                "cuda" => call.interface = Some(&CUDA),
                "takes" => call.takes = Some(number(value()?)?),
                "fails" | "may-fail" => {
                    let answer = words.next_if(|next| next.parse::<u32>().is_ok()).and_then(|next| next.parse().ok());
                    let fate = if word == "fails" { Fate::Fails } else { Fate::MayFail };
                    call.fate = fate(answer.unwrap_or(REFUSED));
                }
                "begins" => call.fate = Fate::Begins,
                _ => {
                    return Err(format!(
                        "expected +, ->, like, in, on, ipc, profiled, sized, flipped, overwrites, seed, exposes, as, from, replaced, queued, waits, unfinished, queue, non-blocking, ze, cuda, takes, fails, may-fail or begins, found {word:?}"
                    ));
                }
            }
        }
        Step::Call(Box::new(call))
    } else if let Some((_, kind)) = SYNCHRONIZATIONS.iter().find(|(word, _)| *word == first) {
        let mut queue = None;
        let mut event = None;
        while let Some(word) = words.next() {
            let value = words.next().map(str::to_owned).ok_or_else(|| format!("expected something behind {word}"))?;
            match word {
                "of" => queue = Some(value),
                "for" => event = Some(value),
                _ => return Err(format!("expected of or for, found {word:?}")),
            }
        }
        Step::Synchronizes(*kind, queue, event)
    } else if let Some((_, right)) = RIGHTS.iter().find(|(word, _)| *word == first) {
        Step::May(*right, number(&name("a number")?)?)
    } else {
        match first {
            "device" => {
                let device = name("a name")?;
                let index = name("an index")?;
                let index = if index == "-" { None } else { Some(number(&index)? as u32) };
                Step::Device(device, index, name("what it is called")?.replace('_', " "))
            }
            "descriptors" => Step::Descriptors(number(&name("a number")?)?),
            "keeps" => Step::Keeps(name("a name")?),
            "ran" => Step::Ran(ran(&mut words)?),
            "returns" => Step::Returns(true),
            "fails" => Step::Returns(false),
            "seen" => Step::Seen(true),
            "gone" => Step::Seen(false),
            "fork" => Step::Fork(name("a name")?),
            _ => return Err(format!("there is no step {first:?}")),
        }
    };
    match words.next() {
        Some(more) => Err(format!("expected nothing more, found {more:?}")),
        None => Ok(Line { process: process.to_owned(), host, thread, step, number: number_of_line }),
    }
}

/// What stands behind `ran`.
fn ran<'w>(words: &mut impl Iterator<Item = &'w str>) -> Result<Ran, String> {
    let expected = "expected NAME reads|writes|may-read|may-write SIZE since STEPS behind ran";
    let mut next = || words.next().ok_or(expected);
    let memory = next()?.to_owned();
    let does = next()?;
    let size = number(next()?)?;
    let access = match does {
        "reads" => Access::Read,
        "writes" => Access::Write,
        "may-read" => Access::MayRead,
        "may-write" => Access::MayWrite,
        _ => return Err(expected.into()),
    };
    let mut ran = Ran { memory, access: Some(access), size, rows: 1, pitch: size, ..Ran::default() };
    while let Some(word) = words.next() {
        let mut value = || number(words.next().unwrap_or_default());
        match word {
            "since" => ran.since = value()?,
            "+" => ran.offset = value()?,
            "rows" => (ran.rows, ran.pitch) = (value()?, value()?),
            _ => return Err(format!("expected since, + or rows, found {word:?}")),
        }
    }
    Ok(ran)
}

fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("expected a number, found {word:?}"))
}

fn numbered(word: &str, mark: char) -> Result<(&str, u32), String> {
    match word.split_once(mark) {
        Some((name, digits)) => {
            let number = digits.parse().map_err(|_| format!("expected a number behind {mark}, found {digits:?}"))?;
            Ok((name, number))
        }
        None => Ok((word, 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_again_and_again_is_written_once() {
        let events = |text: &str| text.parse::<Scenario>().and_then(|scenario| scenario.events());
        let often = events("p: get a -> h\n3 times\np: put h\nend\np: exit");
        assert_eq!(often, events("p: get a -> h\np: put h\np: put h\np: put h\np: exit"));
    }

    #[test]
    fn what_is_no_step_is_said_with_its_line() {
        for (text, line, says) in [
            ("a: alloc p 1\nalloc p", 2, "PROCESS: STEP"),
            ("a: alloc p", 1, "a size"),
            ("a: dance p", 1, "no step"),
            ("a: put h soon", 1, "found \"soon\""),
            ("a: exit now", 1, "nothing more"),
            ("a/x: exit", 1, "a number"),
            ("a: close m +", 1, "something behind +"),
            ("end", 1, "nothing to end"),
            ("2 times\n2 times", 2, "expected end"),
        ] {
            let error = text.parse::<Scenario>().unwrap_err();
            assert_eq!(error.line, line, "{text}");
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}
