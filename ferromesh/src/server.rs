//! Puts the rooms together, and takes them apart in order.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use ferromesh_controller::{Controller, Metrics, certs::Sources};
use ferromesh_mirror::{self as mirror, Mirror};
use ferromesh_runtime::backoff::Jitter;
use ferromesh_runtime::lease::{self, Lease};
use ferromesh_runtime::ready::Readiness;
use ferromesh_runtime::serve::{self, Drain};
use ferromesh_runtime::shutdown::{self, Shutdown, Signal};
use ferromesh_runtime::telemetry::LogHandle;
use ferromesh_runtime::{admin, client, delegate};
use ferromesh_webhook::{self as webhook, Webhook};
use futures_util::Stream;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;

use crate::args::Args;
use crate::debug::{self, Replica};

/// The name of the Lease, in our namespace.
const LEASE: &str = "ferromesh";
/// Requests of people who look into the process, at a time.
const DEBUGGERS: usize = 2;
/// How long tasks may take to end. The webhook goes on answering for a while, and then drains.
const DRAIN: Duration = Duration::from_secs(30);

/// Runs until a signal, or until something ends without which the server is of no use.
pub(crate) async fn run(args: Args, log: LogHandle) -> anyhow::Result<()> {
    let signals = shutdown::signals().context("listening for signals")?;
    let shutdown = Shutdown::new();
    let readiness = Readiness::new();
    let mut registry = Registry::with_prefix("ferromesh");
    let mut jitter = Jitter::from_entropy();

    let identity = lease::identity();
    // Watches, leases and appliers have backoffs of their own and want to hear of each failure.
    let options = client::Options {
        retries: false,
        user_agent: client::agent(&identity).into(),
        ..client::Options::default()
    };
    let management = args.kube.connect(&options).await?;
    for warning in &management.warnings {
        tracing::warn!("{warning}");
    }
    tracing::info!(
        server = management.server,
        namespace = args.namespace,
        version = env!("CARGO_PKG_VERSION"),
        "management cluster"
    );
    let management = management.client;

    let config = lease::Config::new(&args.namespace, LEASE, &identity);
    let lease = Lease::new(management.clone(), config, jitter.fork())?;
    let (claim, fence) = (lease.claim(), lease.fence());

    let behind = fence.clone();
    let connect = move |bytes: &[u8], options: &client::Options| {
        let mut connection = client::from_bytes(bytes, options)?;
        connection.client = behind.around(&connection.client);
        Ok(connection)
    };
    let (mirror, deltas) = Mirror::start(
        mirror::Options {
            client: options,
            connect: Arc::new(connect),
            jitter: jitter.fork(),
            ..mirror::Options::new(&args.namespace, &args.settings_name)
        },
        management.clone(),
        &shutdown,
    );
    mirror.register(&mut registry);

    let written = Metrics::default();
    written.register(&mut registry);
    let replica = Replica {
        mirror: mirror.clone(),
        claim: claim.clone(),
        metrics: written.clone(),
        identity,
    };
    let metrics = webhook::Metrics::default();
    metrics.register(&mut registry);
    let (state, blockers) = (mirror.clone(), mirror.clone());
    let webhook = Webhook {
        client: management.clone(),
        state: move || state.state(),
        blockers: move || blockers.readiness(),
        claim,
        readiness: readiness.clone(),
        metrics,
        address: args.webhook.webhook_address,
        connections: serve::Limits::default(),
        reviews: args.webhook.limits(),
        // Tokens are shown there: the admin server has no TLS.
        others: delegate::guarded(debug::router(replica), management.clone(), DEBUGGERS),
        drain: Drain::default(),
        certificate: args.webhook.certificate(&args.namespace)?,
        registration: args.webhook.registration(&args.namespace),
        jitter: jitter.fork(),
    };
    let running = webhook.start(&shutdown).await?;
    tracing::info!(address = %running.address, "webhook");

    let controller = Controller {
        management,
        mirror,
        metrics: written,
        sources: Sources::system(),
        jitter,
    };
    let cancel = shutdown.token().child_token();
    shutdown.spawn(controller.lead(deltas, fence, cancel));

    let admin = args.admin.bind().await?;
    tracing::info!(address = %admin.address(), "admin server");
    let router = admin::router(readiness.clone(), Arc::new(registry), log);
    let token = shutdown.token().clone();
    // It says for as long as the webhook answers that the process is about to end.
    shutdown.spawn(async move { admin.http(router, Drain::default(), token).await });
    let token = shutdown.token().clone();
    shutdown.spawn(async move {
        token.cancelled().await;
        readiness.close("shutting down");
    });

    until_end(lease, &shutdown, signals).await
}

/// Claims the lease until a signal comes, or the lease is lost. It is released when nothing is written any more.
async fn until_end(
    lease: Lease,
    shutdown: &Shutdown,
    signals: impl Stream<Item = Signal> + Unpin,
) -> anyhow::Result<()> {
    let release = CancellationToken::new();
    let ending = shutdown.token().clone();
    let claimed = tokio::spawn({
        let release = release.clone();
        async move {
            let ended = lease.run(release).await;
            if ended.is_err() {
                // Whoever writes in its name must stop before somebody else may begin.
                ending.cancel();
            }
            ended
        }
    });
    let drained = shutdown.run(signals, DRAIN).await;
    release.cancel();
    let claimed = claimed.await.context("keeping the lease")?;
    drained?;
    claimed?;
    Ok(())
}
