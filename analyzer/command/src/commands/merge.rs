//! `urscope merge`: merges the reports of many nodes into one judgement.

use std::{error::Error, path::PathBuf, process::ExitCode};

use clap::Args;
use urscope_analyzer::{Options, Report, Verdict};

use crate::{
    arguments::VerdictArguments,
    output::{self, Outputs, complain, exemptions, write_report},
};

/// Merge the reports that `urscope check --report` wrote on each node into one judgement.
///
/// Handles never leave their host, so each node analyzes its own traces, under the launcher that started the program, and only
/// small reports are merged. Equal findings of several nodes become one finding that names the hosts. Times are since the first
/// process of all nodes began, as far as the clocks of the hosts agree. The order of the reports does not matter.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        srun -N64 --ntasks-per-node=1 urscope check --report node-%h.urscope /tmp/traces\n  \
        urscope merge node-*.urscope\n  \
        urscope merge --format json --fail-on error node-*.urscope | jq .findings\n  \
        urscope merge --report rack1.urscope rack1/*.urscope             for a further merge\n\n\
        Exit codes: 0 clean, 1 findings, 2 not judged, or only in part.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    verdict: VerdictArguments,

    /// Write the merged report to a file, as input of a further merge.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// The reports of the nodes.
    #[arg(required = true, value_name = "REPORT")]
    reports: Vec<PathBuf>,
}

/// Merges the reports and writes the judgement to standard output. The exit code is the verdict.
pub(crate) fn merge(arguments: &Arguments) -> ExitCode {
    let code = merged(arguments).unwrap_or_else(|error| {
        complain(error);
        Verdict::NotJudged.exit_code()
    });
    code.into()
}

fn merged(arguments: &Arguments) -> Result<u8, Box<dyn Error>> {
    let exemptions = exemptions(&arguments.verdict)?;
    let mut report = Report::default();
    for path in &arguments.reports {
        report = report.merge(Report::read(path)?);
    }
    let outputs = Outputs::open(&arguments.verdict)?;
    write_report(&report, arguments.report.as_deref())?;
    let (fail_on, command_lines) = (arguments.verdict.fail_on.into(), arguments.verdict.command_lines);
    let wrappers = arguments.verdict.wrappers();
    let options = Options { fail_on, exemptions, wrappers, command_lines, ..Options::default() };
    output::judgement(&report.judgement(&arguments.reports, &options), &arguments.verdict, outputs)
}
