//! Several replicas of the server, as processes of their own over one lease.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use ferromesh_crds::meta::NETWORKING_OWNER_LABEL;
use ferromesh_e2e::account::{NAME, NAMESPACE};
use ferromesh_e2e::balancer::Balancer;
use ferromesh_e2e::replica::Replica;
use ferromesh_e2e::world::{Shop, World, is, is_current};
use ferromesh_e2e::{eventually, within, yaml};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::api::Api;
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{audit, share};

/// How long a holder is stopped: longer than its lease is valid, which is 15 s, and than others take to notice.
const STOPPED: Duration = Duration::from_secs(20);

/// Replicas behind one registration.
pub(crate) struct Replicas {
    pub(crate) all: Arc<Vec<Replica>>,
    _balancer: Balancer,
}

impl Replicas {
    pub(crate) async fn start(world: &World, names: &[&str]) -> Self {
        let mut all = Vec::new();
        for name in names {
            all.push(Replica::begin(world.start.replica(name)).await);
        }
        let all = Arc::new(all);
        let endpoints = Arc::downgrade(&all);
        let endpoints = move || {
            let all = endpoints.upgrade();
            let all = all.iter().flat_map(|all| all.iter());
            all.map(Replica::endpoint).collect()
        };
        let balancer = Balancer::start(world.start.registered(), endpoints).await;
        for replica in all.iter() {
            replica.until_ready().await;
        }
        Self {
            all,
            _balancer: balancer,
        }
    }

    /// The replica that holds the lease, once one of them does; not one that is `dead`, as its identity says.
    async fn holder(&self, world: &World, dead: Option<&str>) -> (&Replica, String) {
        let leases: Api<Lease> = Api::namespaced(world.management.clone(), NAMESPACE);
        within(
            Duration::from_secs(90),
            "a replica holds the lease",
            async || {
                let holder = leases.get_opt(NAME).await.ok()??.spec?.holder_identity?;
                if dead == Some(holder.as_str()) {
                    return None;
                }
                let (name, _) = holder.rsplit_once('-')?;
                let mut all = self.all.iter();
                let found = all.find(|replica| replica.start.name() == Some(name))?;
                Some((found, holder))
            },
        )
        .await
    }
}

/// A review of a policy that is wrong, as an API server would ask for it.
fn review(shop: &Shop) -> Value {
    let policy = shop.policy("wrong", "{ requestTimeout: never }");
    let object = &yaml::objects(&policy)[0];
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "1",
            "kind": { "group": "networking.mesh.gloo.solo.io", "version": "v1", "kind": "TrafficPolicy" },
            "resource": { "group": "networking.mesh.gloo.solo.io", "version": "v1", "resource": "trafficpolicies" },
            "name": shop.name("wrong"),
            "namespace": NAMESPACE,
            "operation": "CREATE",
            "userInfo": {},
            "object": object,
            "dryRun": true,
            "options": null,
        },
    })
}

/// What one replica answers.
async fn answer(replica: &Replica, review: &Value) -> Value {
    let address = format!("https://127.0.0.1:{}", replica.start.listening());
    let mut config = Config::new(address.parse().unwrap());
    // API servers verify it; here it is asked who answers.
    config.accept_invalid_certs = true;
    let client = Client::try_from(config).unwrap();
    let request = http::Request::post("/validate/any")
        .header("Content-Type", "application/json")
        .body(serde_json::to_vec(review).unwrap())
        .unwrap();
    client.request(request).await.unwrap()
}

/// Edits a policy all the time, as often as it is let through; the number of edits.
struct Load {
    is_over: Arc<AtomicBool>,
    edits: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Load {
    fn start(world: &World, shop: &Shop) -> Self {
        let (client, text) = (
            world.management.clone(),
            shop.policy("edited", "{ requestTimeout: SECONDSs }"),
        );
        let (is_over, edits) = <(Arc<AtomicBool>, Arc<AtomicUsize>)>::default();
        let (over, count) = (Arc::clone(&is_over), Arc::clone(&edits));
        let task = tokio::spawn(async move {
            while !over.load(Ordering::Relaxed) {
                let seconds = count.load(Ordering::Relaxed) % 1000 + 1;
                let text = text.replace("SECONDS", &seconds.to_string());
                if yaml::apply(&client, &text).await.is_ok() {
                    count.fetch_add(1, Ordering::Relaxed);
                }
                sleep(Duration::from_millis(50)).await;
            }
        });
        Self {
            is_over,
            edits,
            task,
        }
    }

    async fn end(self) -> usize {
        self.is_over.store(true, Ordering::Relaxed);
        self.task.await.unwrap();
        self.edits.load(Ordering::Relaxed)
    }
}

async fn only_the_holder_writes(world: &World, names: &[&str], kills: usize, stops: usize) {
    let since = Timestamp::now();
    let replicas = Replicas::start(world, names).await;
    let shop = world.shop().await;
    let asked = review(&shop);
    for replica in replicas.all.iter() {
        let answer = answer(replica, &asked).await;
        assert_eq!(answer["response"]["allowed"], false, "{answer}");
    }
    let load = Load::start(world, &shop);
    let mut dead = None;
    for turn in 0..kills + stops {
        let (holder, identity) = replicas.holder(world, dead.as_deref()).await;
        // It has written of late, and is at it.
        let edits = load.edits.load(Ordering::Relaxed);
        eventually("policies are edited", async || {
            (load.edits.load(Ordering::Relaxed) > edits + 20).then_some(())
        })
        .await;
        if (turn % 2 == 0 && turn / 2 < kills) || turn / 2 >= stops {
            holder.kill();
        } else {
            holder.signal("STOP");
            sleep(STOPPED).await;
            replicas.holder(world, Some(&identity)).await;
            holder.signal("CONT");
            // It has to notice by itself.
            let ended = holder.ended();
            eventually("a holder that was stopped ends", async || {
                (holder.ended() > ended).then_some(())
            })
            .await;
        }
        dead = Some(identity);
    }
    replicas.holder(world, dead.as_deref()).await;
    let edits = load.end().await;
    let policies = world.own("TrafficPolicy");
    let is_told = |object: &_| is("Programmed", "True")(object) && is_current(object);
    world.until(&policies, &shop.name("edited"), is_told).await;

    let writes = audit::writes(since);
    let processes: BTreeSet<_> = writes.iter().map(|write| &write.who).collect();
    println!(
        "{} replicas, {kills} killed, {stops} stopped: {edits} edits, {} writes by {} processes",
        names.len(),
        writes.len(),
        processes.len()
    );
    assert!(processes.len() > kills + stops, "{processes:?}");
    let overlaps = audit::overlaps(&writes);
    assert!(
        overlaps.is_empty(),
        "{} writes beside another writer: {:?}",
        overlaps.len(),
        &overlaps[..overlaps.len().min(5)]
    );
    // Whatever was written is that of the management plane, whoever wrote it.
    let services = world.istio(0, "VirtualService", &shop.namespace);
    let object = services.get("reviews").await.unwrap();
    let labels = object.metadata.labels.unwrap();
    assert_eq!(labels[NETWORKING_OWNER_LABEL], NAMESPACE);
}

pub(crate) async fn of_two_replicas_only_the_holder_of_the_lease_writes_whatever_becomes_of_it(
    world: &World,
) {
    only_the_holder_writes(world, &["one", "two"], share(10), share(10)).await;
}

pub(crate) async fn of_three_replicas_only_the_holder_of_the_lease_writes_whatever_becomes_of_it(
    world: &World,
) {
    only_the_holder_writes(world, &["one", "two", "three"], share(5), share(5)).await;
}
