//! `completion`: what a shell needs to complete a command line.

use clap::{Args, CommandFactory as _, ValueEnum};
use clap_complete::Shell;

use crate::args::Cli;
use crate::error::{Error, Outcome};
use crate::render::Screen;

/// Print a completion script for a shell
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Known,
}

/// Shells that scripts are written for.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Known {
    /// source <(meshctl completion bash)
    Bash,
    /// source <(meshctl completion zsh)
    Zsh,
    /// meshctl completion fish | source
    Fish,
    /// meshctl completion powershell | Out-String | Invoke-Expression
    #[value(name = "powershell")]
    PowerShell,
}

pub(crate) fn run(arguments: &Arguments, screen: &mut Screen) -> Result<Outcome, Error> {
    let shell = match arguments.shell {
        Known::Bash => Shell::Bash,
        Known::Zsh => Shell::Zsh,
        Known::Fish => Shell::Fish,
        Known::PowerShell => Shell::PowerShell,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "meshctl", &mut script);
    screen.bytes(&script)?;
    Ok(Outcome::Clean)
}
