//! One replica: a server without its webhook, put together as the server is, and started again whenever
//! it has ended.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ferromesh_controller::certs::Sources;
use ferromesh_controller::{Controller, Metrics};
use ferromesh_mirror::{Mirror, Options};
use ferromesh_runtime::backoff::Jitter;
use ferromesh_runtime::client;
use ferromesh_runtime::lease::{Config, Lease};
use ferromesh_runtime::shutdown::{Shutdown, Signal};
use futures_util::stream;
use jiff::SignedDuration;
use tokio::select;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::dice::Dice;
use crate::network::{self, Caller};
use crate::registration::{address_of, token_in};
use crate::world::{LEASE, NAMESPACE, World};

/// After how long an API server ends a watch: less than in the product, so that more happens in a day.
const WATCH: Duration = Duration::from_mins(1);
/// How long tasks may take to end, as in the server.
const DRAIN: Duration = Duration::from_secs(30);

/// A replica, which lives again and again until it is [over](Self::over).
pub(crate) struct Replica {
    life: Arc<Mutex<Option<Life>>>,
    over: CancellationToken,
    lives: JoinHandle<()>,
}

/// What ends a life.
#[derive(Clone)]
struct Life {
    identity: String,
    dead: CancellationToken,
    shutdown: Shutdown,
}

/// Who begins a life, and by which clock.
struct Birth {
    world: Arc<World>,
    caller: Caller,
    clock: SignedDuration,
    jitter: Jitter,
}

const UNPOISONED: &str = "nobody panics while holding this lock";

impl Replica {
    /// A replica of this name, on the lines of this number. Its clock is off by as much as `clock`.
    pub(crate) fn start(
        world: &Arc<World>,
        name: &str,
        number: u32,
        clock: SignedDuration,
        mut dice: Dice,
    ) -> Self {
        let (life, over) = (Arc::default(), CancellationToken::new());
        let lives = {
            let (world, life, over) = (Arc::clone(world), Arc::clone(&life), over.clone());
            let name = name.to_owned();
            async move {
                for incarnation in 0.. {
                    sleep(dice.between(Duration::ZERO, Duration::from_secs(15))).await;
                    let caller = Caller {
                        replica: number,
                        identity: format!("{name}-{incarnation}"),
                        dead: CancellationToken::new(),
                    };
                    let birth = Birth {
                        world: Arc::clone(&world),
                        caller,
                        clock,
                        jitter: dice.jitter(),
                    };
                    birth.live(&life, &over).await;
                    if over.is_cancelled() {
                        return;
                    }
                }
            }
        };
        Self {
            life,
            over,
            lives: tokio::spawn(lives),
        }
    }

    /// Kills it at once: whatever it was about to say, nobody hears it.
    pub(crate) fn kill(&self) -> Option<String> {
        let life = self.life.lock().expect(UNPOISONED).clone()?;
        life.dead.cancel();
        life.shutdown.token().cancel();
        Some(life.identity)
    }

    /// Asks it to end.
    pub(crate) fn terminate(&self) -> Option<String> {
        let life = self.life.lock().expect(UNPOISONED).clone()?;
        life.shutdown.token().cancel();
        Some(life.identity)
    }

    /// Kills it, and it does not come back.
    pub(crate) async fn over(self) {
        self.over.cancel();
        self.kill();
        drop(self.lives.await);
    }
}

impl Birth {
    /// One life, from the start of a process to its end.
    async fn live(mut self, life: &Mutex<Option<Life>>, over: &CancellationToken) {
        let shutdown = Shutdown::new();
        let (world, caller) = (Arc::clone(&self.world), self.caller.clone());
        let (dead, identity) = (caller.dead.clone(), caller.identity.clone());
        *life.lock().expect(UNPOISONED) = Some(Life {
            identity: identity.clone(),
            dead: dead.clone(),
            shutdown: shutdown.clone(),
        });
        if over.is_cancelled() {
            return;
        }
        world.journal.note(format_args!("{identity} starts"));
        let ended = self.serve(&shutdown);
        let how = select! {
            biased;
            () = dead.cancelled() => "is killed",
            how = ended => how,
        };
        // Nothing is heard of a process that has ended.
        dead.cancel();
        shutdown.token().cancel();
        world.journal.note(format_args!("{identity} {how}"));
        *life.lock().expect(UNPOISONED) = None;
    }

    /// What `ferromesh` does, in the same order. Returns how it has ended.
    async fn serve(&mut self, shutdown: &Shutdown) -> &'static str {
        let management = network::client(&self.world, &self.caller, "", None);
        let (world, caller) = (Arc::clone(&self.world), self.caller.clone());
        let config = Config::new(NAMESPACE, LEASE, self.caller.identity.clone());
        let lease = Lease::new(management.clone(), config, self.jitter.fork());
        let lease = lease.expect("the rhythm is that of the server");
        let fence = lease.fence();
        let behind = fence.clone();
        let connect = move |bytes: &[u8], options: &client::Options| {
            let mut connection = client::from_bytes(bytes, options)?;
            let mut places = world.managed();
            let place = places.find(|place| address_of(place) == connection.server);
            let place = place.expect("kubeconfigs name clusters that there are");
            let client = network::client(&world, &caller, place, token_in(bytes));
            connection.client = behind.around(&client);
            Ok(connection)
        };
        let options = Options {
            connect: Arc::new(connect),
            watch_timeout: WATCH,
            jitter: self.jitter.fork(),
            ..Options::default()
        };
        let (mirror, deltas) = Mirror::start(options, management.clone(), shutdown);
        let (world, clock) = (Arc::clone(&self.world), self.clock);
        let controller = Controller {
            management,
            mirror,
            metrics: Metrics::default(),
            sources: Sources {
                now: Arc::new(move || world.now() + clock),
                ..Sources::system()
            },
            jitter: self.jitter.fork(),
        };
        let cancel = shutdown.token().child_token();
        shutdown.spawn(controller.lead(deltas, fence, cancel));
        let release = CancellationToken::new();
        let claimed = tokio::spawn({
            let (release, ending) = (release.clone(), shutdown.token().clone());
            async move {
                let ended = lease.run(release).await;
                if ended.is_err() {
                    ending.cancel();
                }
                ended.is_err()
            }
        });
        let drained = shutdown.run(stream::pending::<Signal>(), DRAIN).await;
        release.cancel();
        match (claimed.await, drained) {
            (Ok(true), _) => "has lost the lease and ends",
            (_, Err(_)) => "ends and has not drained",
            _ => "ends",
        }
    }
}
