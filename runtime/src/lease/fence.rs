//! Clients that write only while a lease is held, and what they have sent.

use std::time::Duration;

use axum::http::{Method, Request};
use kube::{Client, client::Body};
use tokio::{
    select,
    sync::watch,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::task::TaskTracker;
use tower::{BoxError, service_fn};
use tracing::Instrument;

use super::Claim;
use crate::client::Gate;

/// After so long an API server has given a write up (`--request-timeout` of kube-apiserver).
const ANSWERED: Duration = Duration::from_mins(1);

/// Why a request was not sent, or why nobody knows what has become of it.
#[derive(Debug, thiserror::Error)]
enum Stopped {
    #[error("the lease is not held any more: somebody else may be writing")]
    NotHeld,
    #[error("no answer within {} s", ANSWERED.as_secs())]
    NoAnswer,
}

/// Keeps those from writing who do not hold the lease. Clones share what is known of writes that were sent.
#[derive(Clone, Debug)]
pub struct Fence {
    claim: watch::Receiver<Claim>,
    sent: TaskTracker,
}

// === impl Fence ===

impl Fence {
    /// Lets through what is sent while `claim` is held.
    pub fn new(claim: watch::Receiver<Claim>) -> Self {
        Self {
            claim,
            sent: TaskTracker::new(),
        }
    }

    /// The claim that it asks.
    pub fn claim(&self) -> watch::Receiver<Claim> {
        self.claim.clone()
    }

    /// `client`, but for requests that write: these are sent only while the claim is held.
    ///
    /// Whoever loses a lease is told and stops. A process that was stopped itself for longer than the lease was
    /// valid goes on where it was, and may write before it has had the time to notice. So the claim, which tells
    /// by itself when it is too old, is looked at once more when a request is sent, and by clients of
    /// [`client`](crate::client) when it is written to the connection.
    ///
    /// A write that was sent may take effect at any time before it is answered. It is waited for though its
    /// caller has given it up, until the claim is not held any more; only then is it given up.
    pub fn around(&self, client: &Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        let (fence, client) = (self.clone(), client.clone());
        let claim = self.claim();
        let gate = Gate::new(move || claim.borrow().is_held());
        let send = move |mut request: Request<Body>| {
            let (fence, client, gate) = (fence.clone(), client.clone(), gate.clone());
            async move {
                if !is_write(request.method()) {
                    return client.send(request).await.map_err(BoxError::from);
                }
                request.extensions_mut().insert(gate);
                let mut claim = fence.claim();
                let write = async move {
                    select! {
                        // Before anything is sent, and whenever an answer is waited for.
                        biased;
                        () = lost(&mut claim) => Err(BoxError::from(Stopped::NotHeld)),
                        answer = timeout(ANSWERED, client.send(request)) => match answer {
                            Ok(answer) => answer.map_err(BoxError::from),
                            Err(_) => Err(BoxError::from(Stopped::NoAnswer)),
                        },
                    }
                };
                fence.sent.spawn(write.in_current_span()).await?
            }
        };
        Client::new(service_fn(send), namespace)
    }

    /// Returns when nothing that was sent is without an answer. Nobody may write any more.
    pub(super) async fn answered(&self) {
        self.sent.close();
        self.sent.wait().await;
    }
}

/// Returns when the claim is not held any more.
async fn lost(claim: &mut watch::Receiver<Claim>) {
    loop {
        let until = match &*claim.borrow_and_update() {
            Claim::Held { until } => *until,
            Claim::Unknown | Claim::Foreign { .. } => return,
        };
        // A renewal moves the end, and wakes nobody.
        if until <= Instant::now() {
            return;
        }
        select! {
            () = sleep_until(until) => {}
            Ok(()) = claim.changed() => {}
        }
    }
}

fn is_write(method: &Method) -> bool {
    ![Method::GET, Method::HEAD, Method::OPTIONS].contains(method)
}
