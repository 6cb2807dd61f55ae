//! Lives through many days and tells of the bad ones. See `hack/sim --help`.

use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use ferromesh_sim::{Day, run};

/// Lives through simulated days of the whole server.
#[derive(Debug, Parser)]
struct Args {
    /// How many days.
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// One day alone, with everything that happens in it.
    #[arg(long)]
    seed: Option<u64>,
    /// The seed of the first day.
    #[arg(long, default_value_t = 1)]
    first: u64,
    /// Lives through each day twice, to see that it is the same.
    #[arg(long)]
    twice: bool,
    /// Goes on after a bad day.
    #[arg(long)]
    keep_going: bool,
}

#[expect(clippy::print_stdout, reason = "this is what the command says")]
fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(seed) = args.seed {
        let day = live(seed, args.twice);
        for event in &day.events {
            println!("{event}");
        }
        println!("{day}");
        return code(day.is_good());
    }
    let (next, bad) = (AtomicU64::new(0), AtomicU64::new(0));
    let is_over = AtomicBool::new(false);
    let began = Instant::now();
    let workers = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let nth = next.fetch_add(1, Ordering::Relaxed);
                    if nth >= args.seeds {
                        return;
                    }
                    let day = live(args.first + nth, args.twice);
                    if !day.is_good() {
                        println!("{day}hack/sim --seed {} tells it all\n", day.seed);
                        bad.fetch_add(1, Ordering::Relaxed);
                        is_over.store(!args.keep_going, Ordering::Relaxed);
                    }
                    if (nth + 1).is_multiple_of(50) {
                        println!("{} days, {} s", nth + 1, began.elapsed().as_secs());
                    }
                }
            });
        }
    });
    let (lived, bad) = (next.into_inner().min(args.seeds), bad.into_inner());
    let took = Duration::from_secs(began.elapsed().as_secs());
    println!("{lived} days lived through in {took:?}, {bad} of them bad");
    code(bad == 0)
}

fn live(seed: u64, twice: bool) -> Day {
    let mut day = run(seed);
    if twice {
        let again = run(seed);
        let pairs = day.events.iter().zip(&again.events);
        let differing = pairs.enumerate().find(|(_, (one, other))| one != other);
        if let Some((number, (one, other))) = differing {
            let fault = format!("event {number} is once {one:?} and once {other:?}");
            day.faults.push(fault);
        } else if day.events.len() != again.events.len() {
            day.faults
                .push("once more happens than the other time".to_owned());
        }
    }
    day
}

fn code(is_good: bool) -> ExitCode {
    if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
