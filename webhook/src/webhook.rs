//! The whole webhook, put together in the order in which its parts may begin.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use ferromesh_core::{State, review};
use ferromesh_runtime::backoff::Jitter;
use ferromesh_runtime::lease::Claim;
use ferromesh_runtime::ready::Readiness;
use ferromesh_runtime::serve::{self, Drain, Server};
use ferromesh_runtime::shutdown::Shutdown;
use ferromesh_runtime::tls::ServedCredential;
use jiff::Timestamp;
use kube::Client;
use tokio::sync::watch;

use crate::certificate;
use crate::metrics::Metrics;
use crate::readiness;
use crate::register::{self, Standing};
use crate::router::{Limits, router};

/// What the webhook is made of.
pub struct Webhook<S, B> {
    /// A client of the management cluster.
    pub client: Client,
    /// Returns the state that reviews are answered from.
    pub state: S,
    /// Returns what has not been listed yet.
    pub blockers: B,
    /// The lease whose holder writes the registration.
    pub claim: watch::Receiver<Claim>,
    /// The readiness of the process.
    pub readiness: Readiness,
    /// What is counted.
    pub metrics: Metrics,
    /// Where to listen.
    pub address: SocketAddr,
    /// What connections may cost.
    pub connections: serve::Limits,
    /// What reviews may cost.
    pub reviews: Limits,
    /// What else is answered on the same port.
    pub others: Router,
    /// How serving ends.
    pub drain: Drain,
    /// The certificate.
    pub certificate: certificate::Options,
    /// The registration.
    pub registration: register::Options,
    /// Spreads attempts in time.
    pub jitter: Jitter,
}

/// A webhook that runs.
#[derive(Debug)]
pub struct Running {
    /// The address that is listened on.
    pub address: SocketAddr,
    /// How the registration stands.
    pub standing: watch::Receiver<Standing>,
}

impl<S, B> Webhook<S, B>
where
    S: Fn() -> Arc<State> + Send + Sync + 'static,
    B: Fn() -> Vec<String> + Send + Sync + 'static,
{
    /// Listens, and does everything else in tasks of `shutdown`.
    ///
    /// The order is: a certificate is there; requests are answered; the process is ready, for what
    /// has been listed; API servers are told to ask. The first three block `readiness`.
    pub async fn start(self, shutdown: &Shutdown) -> Result<Running, serve::Error> {
        let Self {
            client,
            state,
            blockers,
            claim,
            readiness,
            metrics,
            address,
            connections,
            reviews,
            others,
            drain,
            certificate,
            registration,
            jitter,
        } = self;
        // Nobody waits for it: a review that comes earlier does it.
        tokio::task::spawn_blocking(review::prepare);
        let has_certificate = readiness.block("certificate of the webhook");
        let server = Server::bind(address, connections).await?;
        let address = server.address();
        let credential = ServedCredential::new();
        let (in_use, seen) = watch::channel(None);
        let certificate = certificate::Keeper::new(
            client.clone(),
            certificate,
            credential.clone(),
            seen,
            metrics.clone(),
            Timestamp::now,
        );
        let bundle = certificate.bundle();
        let registration = register::Keeper::new(
            client,
            registration,
            bundle.clone(),
            claim,
            in_use,
            metrics.clone(),
        );
        let standing = registration.standing();

        let token = shutdown.token();
        shutdown.spawn(certificate.run(token.clone()));
        let app = router(state, reviews, metrics).merge(others);
        let draining = token.clone();
        shutdown.spawn(async move {
            if let Err(error) = server
                .https(app, &credential, drain, draining.clone())
                .await
            {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, "the webhook cannot serve");
                // Whoever cannot judge must not stay where requests go.
                draining.cancel();
            }
        });
        let latching = readiness.clone();
        let cancel = token.clone();
        shutdown.spawn(async move {
            let mut bundle = bundle;
            tokio::select! {
                biased;
                () = cancel.cancelled() => return,
                _ = bundle.wait_for(Option::is_some) => {}
            }
            readiness::latch(&latching, has_certificate, blockers, cancel).await;
        });
        let cancel = token.clone();
        shutdown.spawn(async move {
            tokio::select! {
                biased;
                () = cancel.cancelled() => {}
                () = readiness.ready() => Box::pin(registration.run(jitter, cancel)).await,
            }
        });
        Ok(Running { address, standing })
    }
}
