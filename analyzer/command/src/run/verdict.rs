//! The end of a run: analyzes the traces and reports the verdict to the user.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::{error::Error, fs::File, os::unix::process::ExitStatusExt as _};

use urscope_analyzer::analysis::{Limit, LimitCause, early_deaths};
use urscope_analyzer::{Exemptions, Judgement, Options, Verdict, files, judge, plain::plain, signals};

use urscope_schema::counted;

use super::merged::{self, Merged, analyze_and_merge};
use super::process_tree::{End, exit_code, named};
use super::{observation::Observation, traces::Traces};
use crate::arguments::{Format, VerdictArguments};
use crate::output::{Outputs, Shown, complain, detailed, exemptions, is_quiet, look, show};
use crate::{program::Program, view::saved};

/// The inputs and outputs of a verdict, opened before the program starts.
#[derive(Debug)]
pub(crate) struct Reporting {
    pub(crate) exemptions: Exemptions,
    /// The file of the report; `None` is standard error.
    file: Option<(PathBuf, File)>,
    outputs: Outputs,
}

impl Reporting {
    /// Reads the suppressions and the baseline, and opens the files of the reports.
    pub(crate) fn new(arguments: &VerdictArguments, report: Option<&Path>) -> Result<Self, Box<dyn Error>> {
        let exemptions = exemptions(arguments)?;
        let file = report.map(|path| match files::create(path) {
            Ok(file) => Ok((path.to_owned(), file)),
            Err(error) => {
                let path = path.display();
                Err(format!("the report cannot be written to {path}: {error}; name another file with --report"))
            }
        });
        Ok(Self { exemptions, file: file.transpose()?, outputs: Outputs::open(arguments)? })
    }
}

/// Ranks of a job that this run has not seen.
pub(crate) enum Unseen {
    /// Those on other hosts: the launcher was started under urscope.
    Elsewhere,
    /// Of those on this host, whose urscopes have agreed on this one. Each host has its own judgement.
    Here(Option<Limit>),
}

/// What the verdict is about.
pub(crate) struct Finished<'a> {
    pub(crate) traces: &'a Traces,
    /// What was seen of the processes, and what was not.
    pub(crate) observed: &'a Observation,
    pub(crate) program: &'a Program,
    pub(crate) end: &'a End,
    pub(crate) unseen: Unseen,
    /// Whether the program could find a device. The answer takes a while.
    pub(crate) has_gpu: &'a dyn Fn() -> bool,
}

/// A verdict that was given.
pub(crate) struct Given {
    /// The exit code of the verdict.
    pub(crate) code: u8,
    /// What became of the merged trace.
    pub(crate) merged: Merged,
    /// The most severe finding in one line.
    pub(crate) happened: Option<String>,
}

/// Analyzes the traces, writes the reports and the merged trace.
pub(crate) fn give(arguments: &VerdictArguments, reporting: Reporting, finished: Finished<'_>) -> Given {
    let Reporting { exemptions, file, outputs } = reporting;
    let Finished { traces, observed, program, end, unseen, has_gpu } = finished;
    let beside = traces.beside();
    let lines = Some(observed.lines().to_vec());
    let options = Options { listed: true, beside, observed: lines, ..arguments.options(exemptions) };
    let unreadable = |error: io::Error| {
        let folder = traces.path().display();
        (
            not_judged(&options, format!("the directory of the traces, {folder}, cannot be used: {error}")),
            Merged::Nothing,
        )
    };
    let mut death_is_told = false;
    let (judgement, merged) = match traces.of_this_run() {
        Ok(files) if files.is_empty() => {
            let obstacle = program.obstacle();
            let died = || {
                let died = observed.lines().iter().filter(|line| line.early_death.is_some());
                early_deaths(died, &options.expected_signals, "loaded an adapter")
            };
            // What could not be traced may have loaded one.
            let untraced: Vec<&str> = observed.untraced().collect();
            let died = if obstacle.is_none() && untraced.is_empty() { died() } else { None };
            death_is_told = died.is_some();
            let opened = observed.opened.as_deref();
            let reason = died.unwrap_or_else(|| nothing_traced(obstacle, &untraced, opened, has_gpu()));
            (not_judged(&options, reason), Merged::Nothing)
        }
        Ok(files) => {
            let judged = analyze_and_merge(&files, &options, &traces.folder, merged::CALL_LIMIT);
            let judged = judged.unwrap_or_else(|error| (not_judged(&options, error.to_string()), Merged::Unreadable));
            // The traces were read by their paths.
            traces.in_place().map_or_else(unreadable, |()| judged)
        }
        Err(error) => unreadable(error),
    };
    let judgement = if observed.is_moved {
        without(judgement, "the directory of the traces was moved or replaced while the program ran".into())
    } else {
        judgement
    };
    let death = death(end, &judgement, &options).filter(|_| !death_is_told);
    let unseen = match unseen {
        Unseen::Elsewhere => elsewhere(&judgement),
        Unseen::Here(absent) => absent,
    };
    let judgement = judgement.limited(death.into_iter().chain(unseen));
    let mut judgement = Judgement { exit: arguments.exit_code(judgement.verdict), ..judgement };
    let sources = arguments.source.sources();
    sources.add_to(&mut judgement);
    let run = traces.subject(options);
    let page = |judgement: &Judgement, out: &mut dyn Write| saved::write(judgement, &run, &sources, out);
    let shown = Shown { judgement: &judgement, page: Some(&page) };
    let code = report(arguments, shown, file, outputs, end).map_or_else(
        |error| {
            complain(error);
            Verdict::NotJudged.exit_code()
        },
        |()| judgement.exit,
    );
    Given { code, merged, happened: judgement.happened().map(str::to_owned) }
}

fn report(
    arguments: &VerdictArguments,
    judged: Shown<'_>,
    file: Option<(PathBuf, File)>,
    outputs: Outputs,
    end: &End,
) -> Result<(), String> {
    let judgement = judged.judgement;
    let format = arguments.format;
    let remarks = remarks(end);
    let failed = |place: &str, error| format!("the report cannot be written to {place}: {error}");
    // A program that asks for silence gets it, unless there is something to say.
    let nothing_to_say = judgement.verdict == Verdict::Clean && judgement.unseen.is_empty() && remarks.is_empty();
    let written = if let Some((path, file)) = file {
        let shown = show(judged, format, &mut BufWriter::new(file), detailed(false.into(), arguments));
        shown.map_err(|error| failed(&path.display().to_string(), error))
    } else if format == Format::Text && is_quiet() && nothing_to_say {
        Ok(())
    } else {
        let stderr = io::stderr();
        let mut out = BufWriter::new(stderr.lock());
        let shown = show(judged, format, &mut out, detailed(look(&stderr), arguments));
        if format == Format::Text {
            drop(remarks.iter().try_for_each(|remark| writeln!(out, "urscope: {}", plain(remark))));
        }
        shown.map_err(|error| failed("standard error", error))
    };
    if let Some(format) = outputs.stdout {
        let stdout = io::stdout();
        let paint = detailed(look(&stdout), arguments);
        let shown = show(judged, format, &mut BufWriter::new(stdout.lock()), paint);
        shown.map_err(|error| failed("standard output", error))?;
    }
    outputs.write(judged)?;
    written
}

/// What is not known where the launcher has started ranks on other hosts, which left no traces here.
fn elsewhere(judgement: &Judgement) -> Option<Limit> {
    let ranks = judgement.processes.iter().filter_map(|process| process.ranks_elsewhere).max()?;
    let first = judgement.processes.first()?;
    let text = format!(
        "{} of the job ran on other hosts: what they did is not known. Start urscope under the launcher (`mpiexec urscope run -- …`), and put the \
         reports of the hosts together by `urscope merge`",
        counted(u64::from(ranks), "rank")
    );
    let is_all_here = judgement.processes.iter().all(|process| process.host == first.host);
    is_all_here.then_some(Limit { cause: LimitCause::NotTraced, text })
}

/// The judgement of an analysis that failed: that of no traces, with a reason.
fn not_judged(options: &Options, reason: String) -> Judgement {
    let nothing = judge(&[], options).unwrap_or_default();
    Judgement { reason: Some(reason), ..nothing }
}

/// The judgement of a run whose traces are incomplete: without findings, it proves nothing.
fn without(mut judgement: Judgement, loss: String) -> Judgement {
    if judgement.verdict != Verdict::Findings {
        judgement.verdict = Verdict::NotJudged;
        let known = judgement.reason.map_or_else(String::new, |known| format!("; {known}"));
        judgement.reason = Some(format!("{loss}{known}"));
    }
    judgement.unseen.push(loss);
    judgement
}

/// That the program died of a signal, where no trace shows it.
fn death(end: &End, judgement: &Judgement, options: &Options) -> Option<Limit> {
    let signal = signals::name(end.status.signal()?.unsigned_abs());
    let mut limits = judgement.limits.iter();
    let is_known = options.expected_signals.contains(&signal) || limits.any(|limit| limit.cause == LimitCause::Death);
    let cause = LimitCause::Death;
    let text = format!("the program died of {signal}");
    (!is_known).then_some(Limit { cause, text })
}

/// Why there is no trace, and what to do. `opened` says which process has loaded what to use a GPU.
fn nothing_traced(obstacle: Option<(String, &str)>, untraced: &[&str], opened: Option<&str>, has_gpu: bool) -> String {
    if let [first, others @ ..] = untraced {
        let others = match others.len() {
            0 => String::new(),
            others => format!(", nor could {}", counted(others, "other process")),
        };
        return format!("nothing was recorded: {first}{others}");
    }
    if let Some((obstacle, remedy)) = obstacle {
        return format!("nothing was recorded: {obstacle}; {remedy}");
    }
    let no_gpu = if has_gpu {
        ""
    } else {
        " No GPU was found; without one, add `--device software`, or `--device software-cuda` for the CUDA driver."
    };
    let none = "no process loaded a device adapter of the SYCL runtime, a Level Zero loader or a CUDA driver, or none of its calls \
                shared anything";
    let what = opened.map_or_else(|| none.to_owned(), |opened| format!("{opened}, and no call shared anything"));
    format!("nothing was recorded: {what}.{no_gpu} `urscope doctor -- PROGRAM` shows what else may be missing")
}

/// What a reader of the report should know about the run itself.
fn remarks(end: &End) -> Vec<String> {
    let mut remarks = Vec::new();
    let code = exit_code(end.status);
    if let Some(number) = end.status.signal() {
        let name = signals::name(number.unsigned_abs());
        remarks.push(format!("the program was ended by signal {number} ({name}); urscope ends with exit code {code}"));
    } else if code != 0 {
        remarks.push(format!("the program ended with exit code {code}; urscope ends with the same code"));
    }
    if !end.left.is_empty() {
        remarks.push(format!(
            "{} of the run had not ended ({}); their traces were analyzed as far as they were written",
            counted(end.left.len(), "process"),
            named(&end.left)
        ));
    }
    remarks
}

#[cfg(test)]
mod tests {
    use std::process::ExitStatus;

    use super::*;
    use crate::run::descendants::Descendant;

    #[test]
    fn an_obstacle_stands_for_the_general_reason() {
        assert!(nothing_traced(None, &[], None, true).starts_with("nothing was recorded: no process loaded"));
        let reason = nothing_traced(None, &[], Some("app (pid 7) loaded the CUDA driver"), true);
        assert!(reason.starts_with("nothing was recorded: app (pid 7) loaded the CUDA driver, and no call shared"));
        let reason = nothing_traced(Some(("app is statically linked".into(), "link it dynamically")), &[], None, true);
        assert!(reason.starts_with("nothing was recorded: app is statically linked; link it dynamically"), "{reason}");
    }

    #[test]
    fn a_normal_end_has_no_remarks() {
        assert!(remarks(&End { program: 7, status: ExitStatus::default(), left: Vec::new() }).is_empty());
        let left = vec![Descendant { pid: 7, name: "worker".into() }];
        let [how, who] = &remarks(&End { program: 6, status: ExitStatus::from_raw(11), left })[..] else {
            panic!("two remarks")
        };
        assert!(how.contains("signal 11 (SIGSEGV)") && how.contains("139"), "{how}");
        assert!(who.contains("1 process of the run had not ended (7 worker)"), "{who}");
    }
}
