//! `meshctl`: the management plane at a terminal.
//!
//! Verbs over files run the same function as the server, on objects that people keep in
//! directories; no cluster is needed. Verbs over a cluster read it with the rights of whoever
//! asks. No rule of the product is written here: what is right or wrong is said elsewhere, and
//! this room asks and shows. Nothing is printed but by [`render`]: data on stdout, progress and
//! errors on stderr.
//!
//! Reading order: [`args`] (what can be asked), [`error`] (how it ends), [`source`] (objects in
//! files), [`management`] (objects in a cluster), [`kind`], [`cmd`] (one file per verb),
//! [`render`].

mod args;
mod cmd;
mod error;
mod kind;
mod management;
mod render;
mod source;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::Cli;
use crate::render::Screen;

fn main() -> ExitCode {
    // clap itself ends the process for `--help` (0) and for a usage error (2).
    let cli = Cli::parse();
    let mut screen = Screen::new();
    let result = cmd::run(&cli, &mut screen);
    screen.close(result).into()
}
