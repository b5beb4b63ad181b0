//! `urscope handle`: prints the history of a handle in all processes.

use std::{error::Error, path::Path, process::ExitCode};

use clap::Args;
use urscope_analyzer::{questions, report};

use crate::{arguments::QuestionArguments, input::chosen, output::answer};

/// Print the history of a handle in all processes, in order of time.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope handle 0xa3bab144fd8c6355 urscope-traces/app-1\n  \
        urscope handle 0x7fb438200000 urscope-traces/app-1   by an address in any process\n\n\
        Exit codes: 0 answered, 2 not answered.")]
pub(crate) struct HandleArguments {
    /// The fingerprint of the handle data, as findings and `urscope holders` show it, or its address in any process.
    #[arg(value_name = "HANDLE")]
    name: String,

    #[command(flatten)]
    question: QuestionArguments,
}

pub(crate) fn handle(arguments: &HandleArguments) -> Result<ExitCode, Box<dyn Error>> {
    let HandleArguments { name, question } = arguments;
    let word = match questions::word(name) {
        Ok(word) => word,
        // The traces alone: this says which handles they have.
        Err(_) if Path::new(name).exists() => {
            let known = questions::handles(&[name.into()], &question.options())?;
            return Err(format!("name a handle before {name}; {known}").into());
        }
        Err(message) => return Err(message.into()),
    };
    let history = questions::handle(&chosen(&question.traces, false)?, &question.options(), word)?;
    answer(&question.form, &history, |history, mut out, paint| report::handle(history, &mut out, paint))?;
    Ok(ExitCode::SUCCESS)
}
