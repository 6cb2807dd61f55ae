//! Reviews by a real API server while replicas of the webhook come and go.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use ferromesh_e2e::account::NAMESPACE;
use ferromesh_e2e::world::World;
use ferromesh_e2e::{within, yaml};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::replicas::Replicas;
use crate::share;

/// Reviews that are asked for at the same time.
const IN_FLIGHT: usize = 4;
const SECRET: &str = "ferromesh-webhook";
const ROTATE: &str = "admission.mesh.gloo.solo.io/rotate-ca";
const SWITCHED: &str = "admission.mesh.gloo.solo.io/ca-switched";
/// How long a step of the rotation may take: what API servers believe settles for half a minute.
const ROTATION: Duration = Duration::from_mins(2);

/// Asks for reviews until it is told to end: policies that are created and not stored.
struct Asking {
    is_over: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
    tasks: Vec<tokio::task::JoinHandle<Vec<String>>>,
}

impl Asking {
    fn start(client: &Client, good: &str, bad: &str) -> Self {
        let (is_over, asked) = <(Arc<AtomicBool>, Arc<AtomicUsize>)>::default();
        let tasks = (0..IN_FLIGHT).map(|_| {
            let (over, asked) = (Arc::clone(&is_over), Arc::clone(&asked));
            let (client, texts) = (client.clone(), [good.to_owned(), bad.to_owned()]);
            tokio::spawn(async move {
                let mut failed = Vec::new();
                while !over.load(Ordering::Relaxed) {
                    let number = asked.fetch_add(1, Ordering::Relaxed);
                    // One in ten has to be refused: an answer that lets all pass is none.
                    let is_bad = number.is_multiple_of(10);
                    let done = yaml::try_out(&client, &texts[usize::from(is_bad)]).await;
                    let is_right = match &done {
                        Ok(()) => !is_bad,
                        Err(kube::Error::Api(status)) => {
                            is_bad && status.message.contains("denied the request")
                        }
                        Err(_) => false,
                    };
                    if !is_right {
                        failed.push(format!("{number}: {done:?}"));
                    }
                }
                failed
            })
        });
        Self {
            tasks: tasks.collect(),
            is_over,
            asked,
        }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    async fn end(self) -> (usize, Vec<String>) {
        self.is_over.store(true, Ordering::Relaxed);
        let mut failed = Vec::new();
        for task in self.tasks {
            failed.extend(task.await.unwrap());
        }
        (self.asked.load(Ordering::Relaxed), failed)
    }
}

fn content(secret: &Secret, name: &str) -> Option<ByteString> {
    secret.data.as_ref()?.get(name).cloned()
}

/// Replaces CA and leaf: publish, read back, serve, drop.
async fn rotate(world: &World) {
    let secrets: Api<Secret> = Api::namespaced(world.management.clone(), NAMESPACE);
    let before = secrets.get(SECRET).await.unwrap();
    let annotate = async |annotation: &str, value: Option<&str>| {
        let patch = json!({ "metadata": { "annotations": { annotation: value } } });
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        secrets.patch(SECRET, &params, &patch).await.unwrap();
    };
    annotate(ROTATE, Some("now")).await;
    within(ROTATION, "the next authority signs", async || {
        let now = secrets.get(SECRET).await.ok()?;
        let has_switched = content(&now, "ca.crt") != content(&before, "ca.crt")
            && content(&now, "tls.crt") != content(&before, "tls.crt");
        has_switched.then_some(())
    })
    .await;
    // Every replica looks at it each ten seconds.
    sleep(Duration::from_secs(12)).await;
    // An hour later.
    annotate(SWITCHED, Some("2026-01-01T00:00:00Z")).await;
    within(
        ROTATION,
        "the old authority is believed no longer",
        async || {
            let bundle = content(&secrets.get(SECRET).await.ok()?, "ca-bundle.crt")?;
            let bundle = String::from_utf8(bundle.0).ok()?;
            (bundle.matches("BEGIN CERTIFICATE").count() == 1).then_some(())
        },
    )
    .await;
}

pub(crate) async fn no_review_fails_while_replicas_restart_and_their_certificates_rotate(
    world: &World,
) {
    let wanted = share(20_000);
    let replicas = Replicas::start(world, &["one", "two"]).await;
    let shop = world.shop().await;
    let good = shop.policy("good", "{ requestTimeout: 2s }");
    // Nobody but the webhook knows that there is no such service.
    let nowhere = format!(
        "{{ trafficShift: {{ destinations: [{{ kubeService: {{ name: review, namespace: {}, clusterName: cluster-2 }} }}] }} }}",
        shop.namespace
    );
    let bad = shop.policy("bad", &nowhere);
    let is_asked = async || {
        let refused = yaml::try_out(&world.management, &bad).await;
        refused
            .is_err_and(|error| error.to_string().contains("denied the request"))
            .then_some(())
    };
    within(Duration::from_mins(1), "the webhook is asked", is_asked).await;
    let began = Instant::now();
    let asking = Asking::start(&world.management, &good, &bad);
    let (rolled, rotated) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let is_done = || asking.asked() >= wanted && rotated.load(Ordering::Relaxed) > 0;
    let rolling = async {
        while !is_done() || rolled.load(Ordering::Relaxed) < 2 {
            let number = rolled.fetch_add(1, Ordering::Relaxed);
            replicas.all[number % replicas.all.len()].roll().await;
            // The next pod goes once this one is known to be ready.
            sleep(Duration::from_secs(3)).await;
        }
    };
    let rotating = async {
        while !is_done() {
            rotate(world).await;
            rotated.fetch_add(1, Ordering::Relaxed);
        }
    };
    tokio::join!(rolling, rotating);
    let (asked, failed) = asking.end().await;
    println!(
        "{} of {asked} reviews failed in {:.0} s; {} restarts in order, {} rotations",
        failed.len(),
        began.elapsed().as_secs_f64(),
        rolled.load(Ordering::Relaxed),
        rotated.load(Ordering::Relaxed),
    );
    assert!(failed.is_empty(), "{:?}", &failed[..failed.len().min(5)]);
}
