//! How fast it is, how much memory it takes. `hack/bench` runs this for fleets of several sizes.
//!
//! Each run is a process of its own, since memory is measured of the whole process, and prints one JSON
//! object: figures by name, times in microseconds, memory in bytes.

mod compare;
mod figures;
mod report;
mod review;
mod step;

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use ferromesh_testkit::fleet::Fleet;

use crate::figures::Figures;

/// That of the server.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(name = "bench")]
struct Args {
    /// Services in all clusters together
    #[arg(long, default_value_t = 1_000)]
    services: u32,
    /// Clusters
    #[arg(long, default_value_t = 10)]
    clusters: u32,
    /// Which fleet of that size
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(subcommand)]
    work: Work,
}

#[derive(Clone, Subcommand)]
enum Work {
    /// Translation from what has been discovered: all of it, then edits of policies
    Translation,
    /// Discovery and translation from Kubernetes objects, then changes of pods
    Discovery,
    /// Reviews through the webhook's router
    Review,
    /// All of these for fleets of several sizes, as a table
    Report {
        /// Numbers of services
        sizes: Vec<u32>,
    },
    /// Compares instructions that were counted with a baseline
    Compare(Counted),
    /// Makes instructions that were counted the baseline
    Bless(Counted),
}

#[derive(Clone, clap::Args)]
struct Counted {
    /// Where summaries of what was counted are
    directory: PathBuf,
    /// The baseline
    baseline: PathBuf,
}

#[expect(clippy::print_stdout, reason = "this is what the command says")]
fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let fleet = Fleet::new(args.clusters, args.services, args.seed);
    let mut figures = Figures::default();
    match args.work {
        Work::Translation => step::translation(&fleet, &mut figures)?,
        Work::Discovery => step::discovery(&fleet, &mut figures)?,
        Work::Review => review::reviews(fleet, &mut figures)?,
        Work::Report { sizes } => return report::report(args.clusters, args.seed, &sizes),
        Work::Compare(it) => return compare::compare(&it.directory, &it.baseline),
        Work::Bless(it) => return compare::bless(&it.directory, &it.baseline),
    }
    println!("{figures}");
    Ok(())
}
