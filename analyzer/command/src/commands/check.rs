//! `urscope check`: analyzes existing traces.

use std::{error::Error, io::Write, path::PathBuf, process::ExitCode};

use clap::Args;
use urscope_analyzer::{Judgement, Options};

use crate::arguments::{TraceArguments, VerdictArguments};
use crate::output::{self, Outputs, analyze_watched, exemptions, write_report};
use crate::view::{Subject, saved};
use crate::{config, input, shell::quoted};

/// Analyze existing traces.
///
/// All files are analyzed together as one run, so name the traces of all processes that exchanged handles.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope check                                the newest run in urscope-traces\n  \
        urscope check urscope-traces/app-1\n  \
        urscope check --format json producer.json consumer.json | jq .findings\n  \
        urscope check --output junit=report.xml --output html=report.html urscope-traces/app-1\n  \
        urscope check --write-suppressions known.txt urscope-traces/app-1\n  \
        urscope check --suppressions known.txt urscope-traces/app-2\n  \
        srun -N64 urscope check --node-report node-%h.urscope /tmp/traces     on each node, then: urscope merge\n\n\
        Exit codes: 0 clean, 1 findings, 2 not judged, or only in part.")]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    verdict: VerdictArguments,

    /// Write the results of this node to a file, as input of `urscope merge`. In the name, %h is this host, %p this
    /// process and %r its rank under an MPI launcher.
    #[arg(long, value_name = "FILE")]
    node_report: Option<PathBuf>,

    #[command(flatten)]
    traces: TraceArguments,
}

/// Analyzes the traces and writes the report to standard output. The exit code is the verdict.
pub(crate) fn check(arguments: &CheckArguments) -> Result<ExitCode, Box<dyn Error>> {
    let verdict = &config::applied(&arguments.verdict)?;
    let exemptions = exemptions(verdict)?;
    let outputs = Outputs::open(verdict)?;
    let symbols = arguments.traces.symbols.clone();
    let options = Options { symbols, ..verdict.options(exemptions) };
    // The judgement says why there is nothing to judge, in every form that is asked for.
    let traces = input::chosen(&arguments.traces, true)?;
    let report = analyze_watched(&traces, &options)?.report();
    write_report(&report, arguments.node_report.as_deref())?;
    let judgement = report.judgement(&traces, &options);
    let paths = arguments.traces.paths.iter().map(|path| format!(" {}", quoted(path)));
    let again = format!("urscope view{}", paths.collect::<String>());
    let run = Subject { again, ..Subject::named(traces, options) };
    let sources = verdict.source.sources();
    let page = |judgement: &Judgement, out: &mut dyn Write| saved::write(judgement, &run, &sources, out);
    output::judgement(judgement, verdict, outputs, Some((&run.again, &page)))
}
