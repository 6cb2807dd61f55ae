//! The verbs, one file each.

pub(crate) mod check;
pub(crate) mod cluster;
pub(crate) mod completion;
pub(crate) mod describe;
pub(crate) mod discover;
pub(crate) mod get;
pub(crate) mod translate;
pub(crate) mod validate;
pub(crate) mod version;

use std::future::Future;

use crate::args::{Cli, Verb};
use crate::error::{Error, Outcome};
use crate::render::Screen;

/// Does what was asked.
pub(crate) fn run(cli: &Cli, screen: &mut Screen) -> Result<Outcome, Error> {
    let global = &cli.global;
    match &cli.verb {
        Verb::Translate(arguments) => translate::run(global, arguments, screen),
        Verb::Discover(arguments) => discover::run(global, arguments, screen),
        Verb::Validate(arguments) => validate::run(global, arguments, screen),
        Verb::Completion(arguments) => completion::run(arguments, screen),
        Verb::Get(arguments) => wait(get::run(global, arguments, screen)),
        Verb::Describe(arguments) => wait(describe::run(global, arguments, screen)),
        Verb::Check(arguments) => wait(check::run(global, arguments, screen)),
        Verb::Cluster(arguments) => wait(cluster::run(global, arguments, screen)),
        Verb::Version(arguments) => wait(version::run(global, arguments, screen)),
    }
}

/// Runs a verb that speaks with clusters. Those over files do without a runtime.
fn wait(verb: impl Future<Output = Result<Outcome, Error>>) -> Result<Outcome, Error> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Error::System {
            doing: "starting the runtime",
            source,
        })?
        .block_on(verb)
}
