//! Whether an API server still answers, and still to this credential.
//!
//! Watches are silent for minutes: one whose API server hangs looks like one where nothing happens, and a
//! credential that is revoked does not end the watches that were opened with it.

use std::time::Duration;

use ferromesh_runtime::{
    pump::{Class, Error},
    telemetry::Chain,
};
use kube::Client;
use tokio::{
    select,
    sync::{mpsc, watch},
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{Event, Failing, Health, News, Origin};
use crate::tracker::bounded;

/// What is asked for. Everybody may read it whose credential is good.
const PATH: &str = "/version";
/// The time between an answer and the next question. API servers believe a token for 10 s after they have
/// seen that it is good.
const INTERVAL: Duration = Duration::from_secs(10);
/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Asks again and again until it is cancelled, and tells when the answer is another one.
pub(super) async fn run(
    origin: Origin,
    mut client: watch::Receiver<Option<Client>>,
    events: mpsc::Sender<Event>,
    cancel: CancellationToken,
) {
    let asked = async {
        loop {
            let connected = client.borrow_and_update().clone();
            let asked = async {
                match connected {
                    Some(connected) => ask(&origin, &connected, &events).await,
                    None => std::future::pending().await,
                }
            };
            select! {
                () = asked => break,
                changed = client.changed() => if changed.is_err() { break },
            }
        }
    };
    cancel.run_until_cancelled(asked).await;
}

/// Asks by one client, until nobody listens.
async fn ask(origin: &Origin, client: &Client, events: &mpsc::Sender<Event>) {
    let mut since = None;
    let mut told = None;
    loop {
        sleep(INTERVAL).await;
        let asked = Instant::now();
        let failure = question(client).await;
        let class = failure.as_ref().map(Error::class);
        since = class.map(|_| since.unwrap_or(asked));
        if told == Some(class) {
            continue;
        }
        told = Some(class);
        let health = match (failure, since) {
            (Some(error), Some(since)) => Health::Failing(Failing {
                class: error.class(),
                since,
                reason: bounded(Chain(&error).to_string()),
            }),
            _ => Health::Good,
        };
        let event = Event::News(origin.clone(), News::Probed(health));
        if events.send(event).await.is_err() {
            return;
        }
    }
}

/// Why the API server does not answer to the credential. What it says of anything else, the watches tell.
async fn question(client: &Client) -> Option<Error> {
    let path = PATH.to_owned();
    let Ok(answer) = timeout(TIMEOUT, client.apiserver_version()).await else {
        let after = TIMEOUT;
        return Some(Error::TimedOut { path, after });
    };
    let error = match answer {
        Ok(_) => return None,
        // It answers, though not to us now.
        Err(kube::Error::Api(status)) if status.code == 429 => return None,
        Err(kube::Error::Api(status)) => Error::Refused { path, status },
        Err(source) => Error::Transport {
            path,
            source: Box::new(source),
        },
    };
    let is_told_here = matches!(error.class(), Class::Unauthorized | Class::Unreachable);
    is_told_here.then_some(error)
}
