//! `urscope check`: judges traces that are there already.

use std::{
    io::{self, BufWriter},
    process::ExitCode,
};

use urscope_analyzer::{Options, Verdict};

use super::{CheckArguments, complain, judge_watched, show, wants_color};

/// Judges, reports to standard output, and says the verdict by the exit code.
pub(crate) fn check(arguments: &CheckArguments) -> ExitCode {
    let not_judged = Verdict::NotJudged.exit_code().into();
    let (fail_on, symbols) = (arguments.verdict.fail_on.into(), arguments.symbols.clone());
    let options = Options { fail_on, symbols, ..Options::default() };
    let judgement = match judge_watched(&arguments.paths, &options) {
        Ok(judgement) => judgement,
        Err(error) => {
            complain(error);
            return not_judged;
        }
    };
    let out = io::stdout();
    let color = wants_color(&out);
    match show(&judgement, arguments.verdict.format, &mut BufWriter::new(out.lock()), color) {
        // Whoever reads only the start (`urscope check … | head`) has what they want.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(format_args!("the report cannot be written to standard output: {error}"));
            not_judged
        }
        _ => judgement.verdict.exit_code().into(),
    }
}
