//! `urscope merge`: merges the reports of many nodes into one judgement.

use std::{error::Error, path::PathBuf, process::ExitCode};

use clap::Args;
use urscope_analyzer::Report;

use crate::output::{self, Outputs, exemptions, write_report};
use crate::{arguments::VerdictArguments, config};

/// Merge the reports of all nodes of a run into one judgement.
///
/// `urscope check --node-report` writes them on each node. Handles never leave their host, so each node analyzes its
/// own traces, under the launcher that started the program, and only small reports are merged. Equal findings of
/// several nodes become one finding that names the hosts. Times are since the first process of all nodes began, as far
/// as the clocks of the hosts agree. The order of the reports does not matter.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        srun -N64 --ntasks-per-node=1 urscope check --node-report node-%h.urscope /tmp/traces\n  \
        urscope merge node-*.urscope\n  \
        urscope merge --format json --fail-on error node-*.urscope | jq .findings\n  \
        urscope merge --node-report rack1.urscope rack1/*.urscope             for a further merge\n\n\
        Exit codes: 0 clean, 1 findings, 2 not judged, or only in part.")]
pub(crate) struct MergeArguments {
    #[command(flatten)]
    verdict: VerdictArguments,

    /// Write the merged report to a file, as input of a further merge.
    #[arg(long, value_name = "FILE")]
    node_report: Option<PathBuf>,

    /// The reports of the nodes.
    #[arg(required = true, value_name = "REPORT")]
    reports: Vec<PathBuf>,
}

/// Merges the reports and writes the judgement to standard output. The exit code is the verdict.
pub(crate) fn merge(arguments: &MergeArguments) -> Result<ExitCode, Box<dyn Error>> {
    let verdict = &config::applied(&arguments.verdict)?;
    let exemptions = exemptions(verdict)?;
    let mut report = Report::default();
    for path in &arguments.reports {
        report = report.merge(Report::read(path)?);
    }
    let outputs = Outputs::open(verdict)?;
    write_report(&report, arguments.node_report.as_deref())?;
    let options = verdict.options(exemptions);
    output::judgement(report.judgement(&arguments.reports, &options), verdict, outputs, None)
}
