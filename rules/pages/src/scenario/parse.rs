//! The text form of a scenario, both ways.

use std::{fmt, str::FromStr};

use super::{Call, Fate, Line, REFUSED, Right, Scenario, Step, Verb};
use urscope_rules::End;

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

const VERBS: [(&str, Verb); 33] = [
    ("context", Verb::Context),
    ("retain", Verb::Retain),
    ("release", Verb::Release),
    ("pool", Verb::Pool),
    ("retain-pool", Verb::RetainPool),
    ("release-pool", Verb::ReleasePool),
    ("alloc", Verb::Alloc),
    ("free", Verb::Free),
    ("get", Verb::Get),
    ("put", Verb::Put),
    ("open", Verb::Open),
    ("close", Verb::Close),
    ("physical", Verb::Physical),
    ("retain-physical", Verb::RetainPhysical),
    ("release-physical", Verb::ReleasePhysical),
    ("get-physical", Verb::GetPhysical),
    ("put-physical", Verb::PutPhysical),
    ("open-physical", Verb::OpenPhysical),
    ("close-physical", Verb::ClosePhysical),
    ("map", Verb::Map),
    ("unmap", Verb::Unmap),
    ("event", Verb::Event),
    ("retain-event", Verb::RetainEvent),
    ("release-event", Verb::ReleaseEvent),
    ("get-event", Verb::GetEvent),
    ("put-event", Verb::PutEvent),
    ("open-event", Verb::OpenEvent),
    ("wait", Verb::Wait),
    ("support", Verb::Support),
    ("copy", Verb::Copy),
    ("write", Verb::Write),
    ("compare", Verb::Compare),
    ("signal", Verb::Signal),
];

const RIGHTS: [(&str, Right); 7] = [
    ("uid", Right::Uid),
    ("pid-namespace", Right::PidNamespace),
    ("ptrace-scope", Right::PtraceScope),
    ("seccomp", Right::Seccomp),
    ("dumpable", Right::Dumpable),
    ("traces-any", Right::TracesAny),
    ("descriptor-limit", Right::DescriptorLimit),
];

const ENDS: [(&str, End); 5] = [
    ("exit", End::Exited),
    ("exec", End::Exec),
    ("killed", End::Killed),
    ("running", End::Running),
    ("incomplete", End::Incomplete),
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
    let (joins, line) = line.strip_prefix("& ").map_or((false, line), |line| (true, line));
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
    } else if let Some((_, verb)) = VERBS.iter().find(|(word, _)| *word == first) {
        let mut call = Call { verb: *verb, object: Some(name("a name")?), ..Call::default() };
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
                "seed" => call.seed = Some(number(value()?)?),
                "exposes" => call.exposes = Some(number(value()?)?),
                "as" => call.usm = Some(value()?.to_owned()),
                "from" => call.pool = Some(value()?.to_owned()),
                "queued" => call.queued = true,
                "waits" => call.waits = true,
                "unfinished" => call.unfinished = true,
                "ze" => call.level_zero = true,
                "takes" => call.takes = Some(number(value()?)?),
                "fails" | "may-fail" => {
                    let answer = words.next_if(|next| next.parse::<u32>().is_ok()).and_then(|next| next.parse().ok());
                    let fate = if word == "fails" { Fate::Fails } else { Fate::MayFail };
                    call.fate = fate(answer.unwrap_or(REFUSED));
                }
                "begins" => call.fate = Fate::Begins,
                _ => {
                    return Err(format!(
                        "expected +, ->, like, in, on, ipc, profiled, sized, seed, exposes, as, from, queued, waits, unfinished, ze, takes, fails, may-fail or begins, found {word:?}"
                    ));
                }
            }
        }
        Step::Call(Box::new(call))
    } else if let Some((_, right)) = RIGHTS.iter().find(|(word, _)| *word == first) {
        Step::May(*right, number(&name("a number")?)?)
    } else {
        match first {
            "device" => {
                let (device, index) = (name("a name")?, name("an index")?);
                let index = if index == "-" { None } else { Some(number(&index)? as u32) };
                Step::Device(device, index, name("what it is called")?.replace('_', " "))
            }
            "descriptors" => Step::Descriptors(number(&name("a number")?)?),
            "host-waits" => Step::HostWaits,
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
        None => Ok(Line { process: process.to_owned(), host, thread, step, joins, number: number_of_line }),
    }
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

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.joins { "& " } else { "" })?;
        f.write_str(&self.process)?;
        if self.host != 1 {
            write!(f, "@{}", self.host)?;
        }
        if self.thread != 1 {
            write!(f, "/{}", self.thread)?;
        }
        match &self.step {
            Step::Call(call) => write!(f, ": {call}"),
            Step::Returns(true) => f.write_str(": returns"),
            Step::Returns(false) => f.write_str(": fails"),
            Step::Fork(child) => write!(f, ": fork {child}"),
            Step::Becomes(next) => write!(f, ": exec {next}"),
            Step::May(right, value) => {
                let word = RIGHTS.iter().find(|(_, known)| known == right).map_or("", |(word, _)| word);
                write!(f, ": {word} {value}")
            }
            Step::Device(device, index, name) => {
                let index = index.map_or_else(|| "-".into(), |index| index.to_string());
                write!(f, ": device {device} {index} {}", name.replace(' ', "_"))
            }
            Step::Descriptors(open) => write!(f, ": descriptors {open}"),
            Step::HostWaits => f.write_str(": host-waits"),
            Step::Seen(true) => f.write_str(": seen"),
            Step::Seen(false) => f.write_str(": gone"),
            Step::Ends(how) => {
                let word = ENDS.iter().find(|(_, end)| end == how).map_or("", |(word, _)| word);
                write!(f, ": {word}")
            }
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = VERBS.iter().find(|(_, verb)| *verb == self.verb).map_or("", |(word, _)| word);
        write!(f, "{word} {}", self.object.as_deref().unwrap_or_default())?;
        if let Some(size) = self.size {
            let word = if self.verb == Verb::Alloc { "" } else { "sized " };
            write!(f, " {word}{size}")?;
        }
        if self.offset != 0 {
            write!(f, " + {}", self.offset)?;
        }
        for (word, name) in [
            ("->", &self.result),
            ("like", &self.like),
            ("in", &self.context),
            ("on", &self.device),
            ("as", &self.usm),
            ("from", &self.pool),
        ] {
            name.iter().try_for_each(|name| write!(f, " {word} {name}"))?;
        }
        for (word, number) in [("seed", self.seed), ("exposes", self.exposes)] {
            number.iter().try_for_each(|number| write!(f, " {word} {number}"))?;
        }
        for (word, holds) in [
            ("ipc", self.shared),
            ("profiled", self.profiled),
            ("queued", self.queued),
            ("waits", self.waits),
            ("unfinished", self.unfinished),
            ("ze", self.level_zero),
        ] {
            if holds {
                write!(f, " {word}")?;
            }
        }
        if let Some(takes) = self.takes {
            write!(f, " takes {takes}")?;
        }
        match self.fate {
            Fate::Returns => Ok(()),
            Fate::Fails(REFUSED) => f.write_str(" fails"),
            Fate::Fails(answer) => write!(f, " fails {answer}"),
            Fate::MayFail(REFUSED) => f.write_str(" may-fail"),
            Fate::MayFail(answer) => write!(f, " may-fail {answer}"),
            Fate::Begins => f.write_str(" begins"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_story_is_written_as_it_was_read() {
        let text = "producer: alloc p 4096\nproducer@2/3: get p + 8 -> h in c begins\nproducer@2/3: fails\n\
                    producer: fork child\nchild: close m fails\nchild: uid 7\nchild: descriptors 9\n\
                    child: device d 0 Half_a_GPU\nchild: device e - GPU\n\
                    child: open h sized 7 -> m takes 3 fails 4\nchild: alloc q 8 in c on d\nchild: get q -> h exposes 9\nchild: event e ipc profiled\n\
                    child: copy m sized 9\nchild: host-waits\nchild: close m unfinished\n\
                    child: map m sized 4096 + 8 -> v in c\nchild: unmap v sized 4096 + 8\n\
                    & child/2: compare m + 8 in c seed 7\nchild: put h may-fail\nchild: put h may-fail 4\nchild: exec next\nnext: exec\n";
        let scenario: Scenario = text.parse().unwrap();
        assert_eq!(scenario.to_string(), text);
    }

    #[test]
    fn what_happens_again_and_again_is_written_once() {
        let scenario: Scenario = "p: get a -> h\n3 times\np: put h\nend\np: exit".parse().unwrap();
        assert_eq!(scenario.to_string(), "p: get a -> h\np: put h\np: put h\np: put h\np: exit\n");
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
