//! The command line: one file per subcommand.
//!
//! Each file defines its arguments and calls the module that does the work. No other module of the crate may depend on
//! this one.

mod calls;
mod check;
mod diff;
mod doctor;
mod example;
mod explain;
mod export;
mod handle;
mod holders;
mod manual;
mod merge;
mod run;
mod stats;
mod top;
mod variables;
mod version;
mod view;

use std::io::{self, Write as _};
use std::{error::Error, path::PathBuf, process::ExitCode};

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory as _, Parser, Subcommand};
use urscope_analyzer::Verdict;
use urscope_analyzer::plain::{is_unprintable, plain};

use crate::arguments::{Color, RunArguments};
use crate::output::{self, complain};
use crate::{doctor::probe, profile::Profile, program::NoProgram};

/// Finds errors of programs that share GPU memory and events between processes: by SYCL, Level Zero or CUDA.
///
/// urscope records how unmodified programs share memory and events through SYCL's Unified Runtime, Level Zero and the
/// CUDA driver, in one trace per process that Perfetto can open. It analyzes all processes of a run together, and finds
/// handles and mappings that are leaked, closed twice, or freed while another process has them open.
#[derive(Debug, Parser)]
#[command(
    name = "urscope",
    version,
    long_version = version::long(),
    max_term_width = 100,
    help_template = help_template(),
    after_help = "Examples:\n  \
        urscope run -- ./producer --size 4096       trace a program and all it starts, then analyze\n  \
        urscope run --device software -- ./app      the same on a machine without a GPU\n  \
        urscope run --device software-cuda -- ./app the same for a program of the CUDA driver\n  \
        urscope check urscope-traces/app-1          analyze existing traces\n  \
        urscope explain freed-while-open            explain a rule\n  \
        urscope example --run freed-while-open      write and run a small program with a mistake\n  \
        urscope doctor                              check this machine\n\n\
        Exit codes: 0 clean, 1 findings, 2 not judged, or only in part. `urscope run` ends with the program's own exit code if \
        that is not 0."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// When output is coloured. [default: auto]
    ///
    /// `auto` also respects NO_COLOR, CLICOLOR_FORCE and TERM=dumb.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t, hide_default_value = true)]
    color: Color,

    /// Print nothing for a clean run, and only the report for one with findings.
    ///
    /// As URSCOPE_QUIET=1.
    #[arg(short, long, global = true)]
    quiet: bool,

    /// Write a Chrome trace of urscope's own work.
    ///
    /// Reading, merging and rendering; Perfetto can open it.
    #[arg(long, global = true, value_name = "FILE", help_heading = "Diagnostics")]
    profile: Option<PathBuf>,

    /// The interpreter that the Python package runs in. `run` gives it a program that is a script or a module, and
    /// `example` uses it.
    #[arg(long, value_name = "PROGRAM", hide = true)]
    interpreter: Option<PathBuf>,
}

/// The commands of the help, by what they are for.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Find and explain mistakes", &["run", "check", "explain", "example"]),
    ("Look at a run", &["view", "top", "export"]),
    ("Ask about a run", &["holders", "handle", "calls", "stats"]),
    ("Several runs or nodes", &["diff", "merge"]),
    ("This machine", &["doctor", "env", "completions", "man"]),
];

fn help_template() -> String {
    let commands = Command::augment_subcommands(clap::Command::new(""));
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (heading, names) in GROUPS {
        text.extend(["\n", heading, ":\n"]);
        for command in names.iter().filter_map(|name| commands.find_subcommand(name)) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            text.extend([format!("  {:<11}  {about}\n", command.get_name())]);
        }
    }
    text + "\nOptions:\n{options}{after-help}\n"
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(RunArguments),
    Check(check::CheckArguments),
    Merge(merge::MergeArguments),
    Explain(explain::ExplainArguments),
    Example(example::ExampleArguments),
    Calls(calls::CallsArguments),
    Holders(holders::HoldersArguments),
    Handle(handle::HandleArguments),
    Stats(stats::StatsArguments),
    Diff(diff::DiffArguments),
    Export(export::ExportArguments),
    View(view::ViewArguments),
    Top(top::TopArguments),
    Doctor(doctor::DoctorArguments),
    Env(variables::EnvArguments),
    Completions(manual::CompletionsArguments),
    Man(manual::ManualArguments),
    #[command(hide = true, subcommand)]
    DoctorProbe(probe::Role),
}

/// Parses the arguments and runs the subcommand.
pub fn main() -> ExitCode {
    let Cli { command, color, quiet, profile, interpreter } = match Cli::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return refused(error),
    };
    output::set_color(color);
    if quiet {
        output::be_quiet();
    }
    let profile = match profile.as_deref().map(Profile::start).transpose() {
        Ok(profile) => profile,
        Err(error) => {
            complain(error);
            return Verdict::NotJudged.exit_code().into();
        }
    };
    let code = run(command, interpreter).unwrap_or_else(|error| {
        complain(&error);
        // The exit code of a program that cannot be run is that of a shell.
        error.downcast_ref::<NoProgram>().map_or(Verdict::NotJudged.exit_code(), |none| none.exit_code).into()
    });
    match profile.map_or(Ok(()), Profile::finish) {
        Ok(()) => code,
        Err(error) => {
            complain(error);
            // A verdict takes precedence over the failed profile.
            if code == ExitCode::SUCCESS { Verdict::NotJudged.exit_code().into() } else { code }
        }
    }
}

/// Prints the help or what is wrong with the arguments, which are quoted there. A value that is part of a valid one is
/// taken to mean that.
fn refused(mut error: clap::Error) -> ExitCode {
    let meant = match (error.get(ContextKind::InvalidValue), error.get(ContextKind::ValidValue)) {
        (Some(ContextValue::String(given)), Some(ContextValue::Strings(valid))) if !given.is_empty() => {
            valid.iter().find(|value| value.contains(given.as_str())).cloned()
        }
        _ => None,
    };
    if let Some(meant) = meant {
        error.insert(ContextKind::SuggestedValue, ContextValue::String(meant));
    }
    let text = error.render().to_string();
    if text.lines().any(|line| line.contains(is_unprintable)) {
        text.lines().for_each(|line| drop(writeln!(io::stderr(), "{}", plain(line))));
    } else {
        drop(error.print());
    }
    u8::try_from(error.exit_code()).unwrap_or(u8::MAX).into()
}

fn run(command: Command, interpreter: Option<PathBuf>) -> Result<ExitCode, Box<dyn Error>> {
    match command {
        Command::Run(arguments) => run::run(arguments, interpreter),
        Command::Check(arguments) => check::check(&arguments),
        Command::Merge(arguments) => merge::merge(&arguments),
        Command::Explain(arguments) => explain::explain(&arguments),
        Command::Example(arguments) => example::example(&arguments, interpreter.as_deref()),
        Command::Calls(arguments) => calls::calls(&arguments),
        Command::Holders(arguments) => holders::holders(&arguments),
        Command::Handle(arguments) => handle::handle(&arguments),
        Command::Stats(arguments) => stats::stats(&arguments),
        Command::Diff(arguments) => diff::diff(&arguments),
        Command::Export(arguments) => export::export(&arguments),
        Command::View(arguments) => view::view(&arguments),
        Command::Top(arguments) => top::top(&arguments),
        Command::Doctor(arguments) => doctor::doctor(&arguments),
        Command::Env(arguments) => variables::list(&arguments),
        Command::Completions(arguments) => manual::completions(&arguments, &Cli::command()),
        Command::Man(arguments) => manual::manual(&arguments, Cli::command()),
        Command::DoctorProbe(role) => Ok(probe::play(&role)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_are_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_help_has_every_command_in_one_group() {
        let mut grouped: Vec<_> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        grouped.sort_unstable();
        let commands = Cli::command();
        let shown = commands.get_subcommands().filter(|command| !command.is_hide_set());
        let mut all: Vec<_> = shown.map(clap::Command::get_name).collect();
        all.sort_unstable();
        assert_eq!(grouped, all);
    }
}
