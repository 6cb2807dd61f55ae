//! One day: people and trouble, then peace, and a verdict.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, sleep};

use crate::dice::Dice;
use crate::exam::{settle_at_last, sit};
use crate::journal::hear_panics;
use crate::people::People;
use crate::replica::Replica;
use crate::trouble::Trouble;
use crate::truth::Truth;
use crate::world::World;

/// Longest time between two events of a day.
const PAUSE: Duration = Duration::from_secs(10);
/// So long after the trouble nobody has anything to write any more.
const PEACE: Duration = Duration::from_mins(12);
/// Whoever has written nothing for so long has nothing to write.
const QUIET: Duration = Duration::from_mins(2);
/// Events that a report of a failure ends with.
const LAST: usize = 80;

/// What has become of a day.
#[derive(Clone, Debug)]
pub struct Day {
    /// Its seed.
    pub seed: u64,
    /// Everything that happened.
    pub events: Vec<String>,
    /// What must not have happened, and what is not as it is to be; none on a good day.
    pub faults: Vec<String>,
    /// How long it was, by its own clock.
    pub lasted: Duration,
}

/// Lives through the day of a seed.
pub fn run(seed: u64) -> Day {
    hear_panics();
    runtime(seed).block_on(live(seed))
}

fn runtime(seed: u64) -> Runtime {
    let mut builder = Builder::new_current_thread();
    #[cfg(tokio_unstable)]
    builder.rng_seed(tokio::runtime::RngSeed::from_bytes(&seed.to_be_bytes()));
    let _ = seed;
    builder.enable_time().start_paused(true);
    builder
        .build()
        .expect("a runtime without I/O needs nothing")
}

async fn live(seed: u64) -> Day {
    let mut dice = Dice::new(seed);
    let (clusters, count) = (2 + dice.below(2), 2 + dice.below(2));
    let names: Vec<_> = (0..clusters).map(|it| format!("cluster-{it}")).collect();
    let world = Arc::new(World::new(&names, count, &mut dice));
    let mut people = People::new(clusters, seed, dice.fork());
    people.install(&world);
    world.watchdog.want(&Truth::of(&world));
    let replicas: Vec<_> = (0..count)
        .map(|number| {
            let clock = SignedDuration::from_secs(i64::from(dice.below(40)) - 20);
            Replica::start(
                &world,
                &format!("replica-{number}"),
                number,
                clock,
                dice.fork(),
            )
        })
        .collect();
    let mut trouble = Trouble::new(&world, dice.fork());
    let events = 20 + dice.below(60);
    let share = *dice.one(&[15, 40, 70]);
    for _ in 0..events {
        sleep(dice.between(Duration::ZERO, PAUSE)).await;
        let said = if dice.percent(share) {
            trouble.strike(&replicas)
        } else {
            people.act(&world)
        };
        world.journal.note(format_args!("=== {said}"));
        world.watchdog.want(&Truth::of(&world));
        forget(&world);
        if !world.journal.violations().is_empty() {
            break;
        }
    }
    let mut faults = world.journal.violations();
    if faults.is_empty() {
        faults = peace(&world, &mut people, replicas, &mut dice).await;
    }
    Day {
        seed,
        events: world.journal.events(),
        faults,
        lasted: world.journal.began().elapsed(),
    }
}

/// The trouble is over. Returns what is wrong then.
async fn peace(
    world: &Arc<World>,
    people: &mut People,
    replicas: Vec<Replica>,
    dice: &mut Dice,
) -> Vec<String> {
    people.clear(world);
    world.network.heal();
    for place in world.places() {
        world.api(place).heal();
        // What still hangs is let go.
        world.network.cut(place);
    }
    world.journal.note("=== peace");
    let well = async {
        let took = settle_at_last(world).await?;
        world
            .journal
            .note(format_args!("=== all is well after {took:?}"));
        quiet(world).await?;
        sit(world, people, &replicas, dice).await?;
        quiet(world).await
    };
    if let Err(faults) = well.await {
        return faults;
    }
    let truth = Truth::of(world);
    for replica in replicas {
        replica.over().await;
    }
    world.journal.note("=== a new replica");
    sleep(Duration::from_secs(20)).await;
    forget(world);
    let stranger = Replica::start(world, "newcomer", 0, SignedDuration::ZERO, dice.fork());
    sleep(QUIET).await;
    let written = writes(world);
    stranger.over().await;
    let mut faults = world.journal.violations();
    faults.extend(
        written
            .iter()
            .map(|it| format!("a new replica writes {it}")),
    );
    faults.extend(truth.differences(world));
    faults
}

/// Waits until nobody writes anything any more but the lease.
async fn quiet(world: &World) -> Result<(), Vec<String>> {
    let since = Instant::now();
    loop {
        forget(world);
        sleep(QUIET).await;
        let violations = world.journal.violations();
        if !violations.is_empty() {
            return Err(violations);
        }
        let written = writes(world);
        if written.is_empty() {
            return Ok(());
        }
        if since.elapsed() > PEACE {
            let written = written.iter();
            return Err(written.map(|it| format!("still written: {it}")).collect());
        }
    }
}

/// Forgets what was asked for so far.
fn forget(world: &World) {
    world
        .places()
        .for_each(|place| world.api(place).forget_requests());
}

/// What was written since then, but for the lease, which is written all the time.
fn writes(world: &World) -> Vec<String> {
    let told = |place: &str| -> Vec<String> {
        let mut writes = world.api(place).writes();
        writes.retain(|request| request.plural != "leases");
        let told = writes.iter();
        told.map(|it| format!("{place} {:?} {} {}", it.verb, it.uri, it.body))
            .collect()
    };
    world.places().flat_map(told).collect()
}

impl Day {
    /// Whether all went well.
    pub fn is_good(&self) -> bool {
        self.faults.is_empty()
    }
}

/// The faults, after the events that led to them.
impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.events.len().saturating_sub(LAST);
        for event in &self.events[first..] {
            writeln!(f, "{event}")?;
        }
        let Self { seed, lasted, .. } = self;
        writeln!(f, "seed {seed}, {} s:", lasted.as_secs())?;
        for fault in &self.faults {
            writeln!(f, "  {fault}")?;
        }
        Ok(())
    }
}
