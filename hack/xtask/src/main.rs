//! What a developer does to this repository beyond building and testing it.
//!
//! - `deps`: compares the dependencies of our packages with what each may stand on.
//! - `crds`: writes the definitions of our kinds, or tells which of the committed ones are stale.

mod crds;
mod deps;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Chores of this repository.
#[derive(Parser)]
#[command(name = "xtask")]
struct Args {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Write the definitions of our kinds into crds/crds
    Crds {
        /// Write nothing; fail if a file is not what would be written
        #[arg(long)]
        check: bool,
    },
    /// Check who depends on whom
    Deps,
}

fn main() -> anyhow::Result<ExitCode> {
    match Args::parse().chore {
        Chore::Crds { check } => crds::run(&repository().join("crds/crds"), check),
        Chore::Deps => deps::run(&repository()),
    }
}

/// The root of the repository that this program was built from.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("this package lies two directories below the root")
        .to_owned()
}
