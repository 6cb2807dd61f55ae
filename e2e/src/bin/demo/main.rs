//! The main job, told step by step on clusters: `hack/demo`.
//!
//! Each step shows what was typed and what came back, and holds or does not. In reading order: [`args`],
//! [`shell`] (commands), [`stage`] (clusters and the server), [`story`] (the steps), [`table`] (what was
//! proven).

#![allow(clippy::print_stdout, reason = "telling is what this program is for")]

mod args;
mod shell;
mod stage;
mod story;
mod table;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser as _;

use crate::args::Args;
use crate::stage::Stage;
use crate::table::Table;

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    let mut table = Table::default();
    let mut stage = Stage::default();
    let told = tokio::select! {
        told = story::tell(&args, &mut stage, &mut table) => told,
        interrupted = tokio::signal::ctrl_c() => {
            interrupted.context("listening for signals").and_then(|()| Err(anyhow::anyhow!("interrupted")))
        }
    };
    println!("\n{table}");
    if let Err(error) = &told {
        println!("The story broke off: {error:#}");
        stage.show_log();
    }
    let kept = args.keep && told.is_ok();
    if kept {
        stage.keep();
    } else if let Err(error) = stage.clean_up().await {
        println!("Not everything could be cleaned up: {error:#}");
        return ExitCode::FAILURE;
    }
    if told.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
