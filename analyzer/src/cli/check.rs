//! `urscope check`: judges traces that are there already.

use std::{
    error::Error,
    io::{self, BufWriter},
    process::ExitCode,
};

use urscope_analyzer::{Options, Verdict};

use super::{CheckArguments, Outputs, complain, exemptions, judge_watched, show, wants_color};

/// Judges, reports to standard output, and says the verdict by the exit code.
pub(crate) fn check(arguments: &CheckArguments) -> ExitCode {
    let code = judged(arguments).unwrap_or_else(|error| {
        complain(error);
        Verdict::NotJudged.exit_code()
    });
    code.into()
}

fn judged(arguments: &CheckArguments) -> Result<u8, Box<dyn Error>> {
    let (fail_on, symbols) = (arguments.verdict.fail_on.into(), arguments.symbols.clone());
    let exemptions = exemptions(&arguments.verdict)?;
    let outputs = Outputs::open(&arguments.verdict)?;
    let judgement = judge_watched(&arguments.paths, &Options { fail_on, symbols, exemptions, ..Options::default() })?;
    outputs.write(&judgement)?;
    let out = io::stdout();
    let color = wants_color(&out);
    match show(&judgement, arguments.verdict.format, &mut BufWriter::new(out.lock()), color) {
        // Whoever reads only the start (`urscope check … | head`) has what they want.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("the report cannot be written to standard output: {error}").into())
        }
        _ => Ok(judgement.verdict.exit_code()),
    }
}
