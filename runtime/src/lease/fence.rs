//! Clients that write only while a lease is held.

use axum::http::{Method, Request};
use kube::{Client, client::Body};
use tokio::sync::watch;
use tower::{BoxError, service_fn};

use super::Claim;

/// Why a request was not sent.
#[derive(Debug, thiserror::Error)]
#[error("the lease is not held any more: somebody else may be writing")]
struct NotHeld;

/// `client`, but for requests that write: these are sent only while `claim` is held.
///
/// Whoever loses a lease is told and stops. A process that was stopped itself for longer than the lease was
/// valid goes on where it was, and may write before it has had the time to notice. So the claim, which tells
/// by itself when it is too old, is looked at once more when a request is about to be sent.
pub fn fenced(client: &Client, claim: watch::Receiver<Claim>) -> Client {
    let namespace = client.default_namespace().to_owned();
    let client = client.clone();
    let send = move |request: Request<Body>| {
        let (client, claim) = (client.clone(), claim.clone());
        async move {
            if is_write(request.method()) && !claim.borrow().is_held() {
                return Err(BoxError::from(NotHeld));
            }
            client.send(request).await.map_err(BoxError::from)
        }
    };
    Client::new(service_fn(send), namespace)
}

fn is_write(method: &Method) -> bool {
    ![Method::GET, Method::HEAD, Method::OPTIONS].contains(method)
}
