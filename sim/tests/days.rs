//! Days of the whole server.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use ferromesh_sim::run;

/// As many as take no longer than other tests, not optimised. The others are those of `hack/sim`.
const DAYS: u64 = 20;

#[test]
fn every_day_ends_well() {
    let next = AtomicU64::new(1);
    let workers = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let live = || {
        let mut bad = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed > DAYS || !bad.is_empty() {
                return bad;
            }
            bad.extend(Some(run(seed)).filter(|day| !day.is_good()));
        }
    };
    let bad: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(live)).collect();
        let ended = workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap());
        ended.collect()
    });
    for day in &bad {
        println!("{day}");
    }
    let seeds: Vec<_> = bad.iter().map(|day| day.seed).collect();
    assert!(
        bad.is_empty(),
        "bad days, told by hack/sim --seed: {seeds:?}"
    );
}
