//! The server: one mirror, one webhook, one controller, one lease. Only composition is done here.
//!
//! Every replica answers reviews from its own mirror; the one that holds the lease also writes. In
//! reading order: [`args`], [`server`], [`debug`].

mod args;
mod debug;
mod server;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::Args;

/// A state is millions of small objects that are shared between threads: measured, this takes a quarter less
/// memory than the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = Args::parse();
    #[cfg(feature = "otlp")]
    let begun = args.otlp.init(&args.log, "ferromesh");
    #[cfg(not(feature = "otlp"))]
    let begun = args.log.init();
    let begun = match begun {
        Ok(begun) => begun,
        Err(error) => return fail(&anyhow::Error::new(error)),
    };
    #[cfg(feature = "otlp")]
    let (log, traces) = begun;
    #[cfg(not(feature = "otlp"))]
    let log = begun;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let ended = match runtime {
        Ok(runtime) => {
            let ended = runtime.block_on(server::run(args, log));
            // What has not ended by now is not waited for.
            runtime.shutdown_background();
            ended
        }
        Err(error) => Err(error.into()),
    };
    #[cfg(feature = "otlp")]
    if let Some(traces) = traces {
        traces.end();
    }
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn fail(error: &anyhow::Error) -> ExitCode {
    tracing::error!(error = format!("{error:#}"), "the server has ended");
    ExitCode::FAILURE
}
