//! `urscope explain`: prints the page of a rule, or the list of all rules.

use std::io::{self, IsTerminal as _, Write as _};
use std::{error::Error, process::ExitCode};

use clap::Args;
use urscope_analyzer::explain;
use urscope_rules::catalog::RULES;

use crate::arguments::{Names, PageFormat};
use crate::output::{look, written};

/// Explain a rule, with an example of wrong and of fixed code.
///
/// The page also says why what the rule finds is a problem, and what to do.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope explain                     all rules with their severity\n  \
        urscope explain freed-while-open\n  \
        urscope explain freed-while-open --format markdown >page.md\n\n\
        Exit codes: 0 explained, 2 unknown rule.")]
pub(crate) struct ExplainArguments {
    /// The name of the rule. Without it, all rules are listed.
    #[arg(value_name = "RULE", value_parser = Names(names), hide_possible_values = true)]
    rule: Option<String>,
    /// The format of the page. Without it: text on a terminal, and Markdown in a file or a pipe.
    #[arg(long, value_name = "FORMAT", requires = "rule")]
    format: Option<PageFormat>,
}

fn names() -> Vec<&'static str> {
    RULES.iter().map(|rule| rule.code).collect()
}

/// Prints the page or the list. The exit code is 2 if there is no such rule.
pub(crate) fn explain(arguments: &ExplainArguments) -> Result<ExitCode, Box<dyn Error>> {
    let stdout = io::stdout();
    let usual = if stdout.is_terminal() { PageFormat::Text } else { PageFormat::Markdown };
    let text = match (&arguments.rule, arguments.format.unwrap_or(usual)) {
        (None, _) => explain::list(),
        (Some(name), PageFormat::Text) => explain::rendered(name, look(&stdout))?,
        (Some(name), PageFormat::Markdown) => explain::page(name)?,
    };
    written(stdout.lock().write_all(text.as_bytes()), "standard output cannot be written")?;
    Ok(ExitCode::SUCCESS)
}
