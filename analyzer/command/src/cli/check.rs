//! `urscope check`: judges traces that are there already.

use std::{error::Error, process::ExitCode};

use urscope_analyzer::{Options, Verdict};

use super::{
    CheckArguments, Outputs, analyze_watched, complain, exemptions,
    merge::{tell, write_report},
};

/// Judges, reports to standard output, and says the verdict by the exit code.
pub(crate) fn check(arguments: &CheckArguments) -> ExitCode {
    let code = judged(arguments).unwrap_or_else(|error| {
        complain(error);
        Verdict::NotJudged.exit_code()
    });
    code.into()
}

fn judged(arguments: &CheckArguments) -> Result<u8, Box<dyn Error>> {
    let (fail_on, symbols) = (arguments.verdict.fail_on.into(), arguments.traces.symbols.clone());
    let exemptions = exemptions(&arguments.verdict)?;
    let outputs = Outputs::open(&arguments.verdict)?;
    let options = Options { fail_on, symbols, exemptions, ..Options::default() };
    let report = analyze_watched(&arguments.traces.paths, &options)?;
    write_report(&report, arguments.report.as_deref())?;
    tell(&report.judgement(&arguments.traces.paths, &options), &arguments.verdict, outputs)
}
