//! Keeps one [`State`] equal to the clusters.
//!
//! Every kind of every registered cluster is watched; what is seen becomes changes, one task steps the
//! state with them, and everybody else reads what it has published. This room calls the engine's step and
//! publishes. What may not enter: writing to any cluster, a second opinion on what an object means, a
//! lock that outlives a statement.
//!
//! In reading order:
//!
//! - `handle`: what readers hold: the state, its revision, the clusters, readiness; and [`Deltas`].
//! - `writer`: the one task that steps the state, in batches.
//! - `registry`: which clusters there are, by which client, and how they fare.
//! - `pumps`: one watch per cluster and kind, made from the engine's list of kinds.
//! - `tracker`: what one watch knows to exist, and what follows from what it sees.
//! - `ingest`: from the wire form of an object to the engine's, whole or as far as it can be read.
//! - `metrics`: what all this costs.

mod handle;
mod ingest;
mod metrics;
mod pumps;
mod registry;
mod tracker;
mod writer;

use std::{fmt, sync::Arc, time::Duration};

use ferromesh_core::State;
use ferromesh_runtime::{
    backoff::Jitter,
    client::{self, Connection},
    shutdown::Shutdown,
};
use kube::Client;
use tokio::sync::mpsc;

use self::{handle::Shared, registry::Registry, writer::Writer};
pub use self::{
    handle::{Deltas, Handle},
    registry::{ClusterView, Clusters, Condition, Failing, Unreadable},
};

/// Makes a client of a kubeconfig.
///
/// [`client::from_bytes`] is one. Another reaches API servers that have no address, as those in memory.
pub type Connect =
    dyn Fn(&[u8], &client::Options) -> Result<Connection, client::Error> + Send + Sync;

/// How the clusters are followed.
#[derive(Clone)]
pub struct Options {
    /// What the engine is told: our own namespace and the name of the settings.
    pub engine: ferromesh_core::state::Options,
    /// How clients of registered clusters behave. `read_timeout` must be longer than `watch_timeout`.
    pub client: client::Options,
    /// How a client is made of the kubeconfig of a registered cluster.
    pub connect: Arc<Connect>,
    /// After how long an API server ends a watch. A link that has died in silence is noticed five seconds
    /// later.
    pub watch_timeout: Duration,
    /// Spreads attempts in time.
    pub jitter: Jitter,
}

impl Options {
    /// The defaults, with our own namespace and the name of the settings in it.
    pub fn new(namespace: impl Into<String>, settings_name: impl Into<String>) -> Self {
        Self {
            engine: ferromesh_core::state::Options {
                namespace: namespace.into(),
                settings_name: settings_name.into(),
                is_told_at_once: false,
            },
            ..Self::default()
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("engine", &self.engine)
            .field("watch_timeout", &self.watch_timeout)
            .finish_non_exhaustive()
    }
}

/// The compatible namespace and settings; watches of 290 s; clients that do not ask again by themselves,
/// because watches have a backoff of their own and tell each failure.
impl Default for Options {
    fn default() -> Self {
        Self {
            engine: ferromesh_core::state::Options::default(),
            client: client::Options {
                retries: false,
                ..client::Options::default()
            },
            connect: Arc::new(client::from_bytes),
            watch_timeout: Duration::from_secs(290),
            jitter: Jitter::from_entropy(),
        }
    }
}

/// Changes that wait for the writer before watches slow down.
const CHANGES: usize = 1024;

/// Whoever keeps the state. There is nothing to hold: see [`Mirror::start`].
#[derive(Clone, Copy, Debug)]
pub struct Mirror;

impl Mirror {
    /// Follows the management cluster and, through the Secrets there, every registered cluster.
    ///
    /// Returns at once; [`Handle::readiness`] tells what has not been listed yet. Everything runs as tasks
    /// of `shutdown` and ends with its token. Should the state ever cease to be kept, the token is
    /// cancelled.
    ///
    /// Must be called within a Tokio runtime.
    pub fn start(options: Options, management: Client, shutdown: &Shutdown) -> (Handle, Deltas) {
        let shared = Arc::new(Shared::new(State::new(options.engine.clone())));
        let (changes, received) = mpsc::channel(CHANGES);
        let (deltas, offers) = handle::deltas();
        let writer = Writer::new(Arc::clone(&shared), received, offers);
        let waiting = changes.downgrade();
        let registry = Registry::new(options, management, changes, Arc::clone(&shared), shutdown);
        vital(shutdown, writer.run());
        vital(shutdown, registry.run());
        (Handle::new(shared, waiting), deltas)
    }
}

/// Spawns a task without which the process is of no use: when it ends, so does everything.
fn vital(shutdown: &Shutdown, task: impl Future<Output = ()> + Send + 'static) {
    let token = shutdown.token().clone();
    shutdown.spawn(async move {
        let _end_with_it = token.clone().drop_guard();
        token.run_until_cancelled(task).await
    });
}
