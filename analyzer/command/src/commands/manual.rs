//! `urscope completions` and `urscope man`: made from the definition of the command line.

use std::io::{self, Write as _};
use std::{error::Error, path::PathBuf, process::ExitCode};

use clap::Args;
use clap_complete::Shell;

use crate::output::written;

/// Print the completions of this command for a shell.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope completions bash >~/.local/share/bash-completion/completions/urscope\n  \
        urscope completions zsh >~/.zfunc/_urscope\n  \
        urscope completions fish >~/.config/fish/completions/urscope.fish\n\n\
        Exit codes: 0 printed, 2 not printed.")]
pub(crate) struct CompletionsArguments {
    /// The shell.
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

/// Print the manual page, or write those of all commands to a directory.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope man | man -l -\n  \
        urscope man ~/.local/share/man/man1        then: man urscope-run\n\n\
        Exit codes: 0 written, 2 not written.")]
pub(crate) struct ManualArguments {
    /// The directory; created if it does not exist.
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

pub(crate) fn completions(
    arguments: &CompletionsArguments,
    command: &clap::Command,
) -> Result<ExitCode, Box<dyn Error>> {
    let shown = command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()).cloned();
    let mut command = clap::Command::new("urscope").args(command.get_arguments().cloned()).subcommands(shown);
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "urscope", &mut text);
    written(io::stdout().write_all(&text), "standard output cannot be written")?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn manual(arguments: &ManualArguments, command: clap::Command) -> Result<ExitCode, Box<dyn Error>> {
    if let Some(folder) = &arguments.folder {
        let made = std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(command, folder));
        written(made, &format!("{} cannot be written", folder.display()))?;
    } else {
        written(clap_mangen::Man::new(command).render(&mut io::stdout()), "standard output cannot be written")?;
    }
    Ok(ExitCode::SUCCESS)
}
