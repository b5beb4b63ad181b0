//! `urscope calls`: lists the calls of all processes.

use std::io::{self, BufWriter, Write as _};
use std::{error::Error, path::PathBuf, process::ExitCode, thread, time::Instant};

use clap::Args;
use urscope_analyzer::questions::{self, CallFilter, CallFollower, CallLine, QuestionError};
use urscope_analyzer::{Options, analysis::HOLD, follow::Follower, report};
use urscope_schema::api::{CUDA, Interface, LEVEL_ZERO, UNIFIED_RUNTIME};
use urscope_schema::{handle::Kind, host::ranks::Ranks};

use crate::arguments::{Choice, PlainFormat, QuestionArguments, one_of};
use crate::input::chosen;
use crate::output::{look, written};

/// List the calls of all processes in order, one line each.
///
/// A line shows the time, the process, the arguments, the answers and the result. A call is listed when it has
/// returned. Calls that never returned come last. Indented are the calls of Level Zero that the runtime made inside of
/// one of Unified Runtime, below that one, if the run recorded them (`urscope run --inner-calls`).
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope calls urscope-traces/app-1\n  \
        urscope calls --ranks 0,3-5 --kind memory urscope-traces/app-1\n  \
        urscope calls --handle 0xa3bab144fd8c6355 urscope-traces/app-1   by a fingerprint or an address\n  \
        urscope calls --follow urscope-traces/app-1                      while the program runs\n  \
        urscope calls --format json urscope-traces/app-1 | jq -c 'select(.succeeded | not)'\n\n\
        Exit codes: 0 listed, 2 the traces cannot be read.")]
pub(crate) struct CallsArguments {
    /// Only calls of the process with this pid. May be given several times.
    #[arg(long, value_name = "PID")]
    pid: Vec<u32>,

    /// Only calls of these ranks: 0,3-5.
    #[arg(long, value_name = "RANKS")]
    ranks: Option<Ranks>,

    /// Only calls about this kind of object. May be given several times.
    #[arg(long, value_name = "KIND", value_parser = one_of(&KINDS))]
    kind: Vec<Kind>,

    /// Only calls with this fingerprint or address among their arguments and answers.
    #[arg(long, value_name = "HANDLE", value_parser = questions::word)]
    handle: Option<u64>,

    /// Only calls of this API.
    #[arg(long, value_name = "API", value_parser = one_of(&LEVELS))]
    level: Option<&'static Interface>,

    /// No calls that the runtime made inside of others.
    #[arg(long)]
    outer: bool,

    /// Only calls that share something, without those that allocate, free or copy.
    #[arg(long)]
    ipc: bool,

    /// Go on listing while the run grows, until interrupted.
    #[arg(long, short)]
    follow: bool,

    #[command(flatten)]
    question: QuestionArguments,
}

/// The kinds of objects that processes share.
const KINDS: [Choice<Kind>; 4] = [
    ("memory", "Memory", Kind::Usm),
    ("physical", "Physical memory", Kind::PhysicalMem),
    ("event", "Events", Kind::Event),
    ("event-pool", "Event pools of Level Zero", Kind::EventPool),
];

/// The APIs that functions belong to.
const LEVELS: [Choice<&Interface>; 3] =
    [("ur", "Unified Runtime", &UNIFIED_RUNTIME), ("ze", "Level Zero", &LEVEL_ZERO), ("cu", "CUDA", &CUDA)];

impl CallsArguments {
    fn filter(&self) -> CallFilter {
        CallFilter {
            ipc: self.ipc,
            pids: self.pid.clone(),
            ranks: self.ranks.clone(),
            kinds: self.kind.clone(),
            handle: self.handle,
            level: self.level,
            outer: self.outer,
            ..CallFilter::default()
        }
    }
}

pub(crate) fn calls(arguments: &CallsArguments) -> Result<ExitCode, Box<dyn Error>> {
    let question = &arguments.question;
    // A run that is followed need not have begun.
    let paths = chosen(&question.traces, arguments.follow)?;
    let mut printer = Printer::new(question.form.format);
    if arguments.follow {
        follow(&paths, &question.options(), arguments.filter(), &mut printer)?;
    } else {
        questions::calls(&paths, &question.options(), arguments.filter(), |line| printer.print(&line))?;
    }
    printer.flush();
    written(printer.failed.map_or(Ok(()), Err), "the calls cannot be written to standard output")?;
    Ok(ExitCode::SUCCESS)
}

/// Lists what is there and what comes, until nobody reads any more.
fn follow(
    paths: &[PathBuf],
    options: &Options,
    filter: CallFilter,
    printer: &mut Printer,
) -> Result<(), QuestionError> {
    let mut follower = Follower::new(paths);
    let mut calls = CallFollower::new(filter);
    // What is young when it is read is held back: it is taken later, also if nothing else is written until then.
    let mut held = None;
    while printer.failed.is_none() {
        let began = Instant::now();
        let changed = follower.poll(began);
        if changed || held.is_some_and(|until| began >= until) {
            held = changed.then(|| began + HOLD);
            // Others may appear later.
            let existing: Vec<_> = paths.iter().filter(|path| path.exists()).cloned().collect();
            for line in calls.take(&existing, options)? {
                printer.print(&line);
            }
            printer.flush();
            follower.analyzed(began, Instant::now());
        }
        let now = Instant::now();
        let next = follower.next_poll(now);
        thread::sleep(held.map_or(next, |until| next.min(until)).saturating_duration_since(now));
    }
    Ok(())
}

/// Writes lines to standard output until that fails.
struct Printer {
    out: BufWriter<io::StdoutLock<'static>>,
    paint: report::Paint,
    format: PlainFormat,
    failed: Option<io::Error>,
}

impl Printer {
    fn new(format: PlainFormat) -> Self {
        let paint = look(&io::stdout());
        Self { out: BufWriter::new(io::stdout().lock()), paint, format, failed: None }
    }

    fn print(&mut self, line: &CallLine) {
        if self.failed.is_some() {
            return;
        }
        let written = match self.format {
            PlainFormat::Text => writeln!(self.out, "{}", report::call(line, self.paint)),
            PlainFormat::Json => report::compact(line).and_then(|mut line| {
                line.push(b'\n');
                self.out.write_all(&line)
            }),
        };
        self.failed = written.err();
    }

    fn flush(&mut self) {
        if self.failed.is_none() {
            self.failed = self.out.flush().err();
        }
    }
}
