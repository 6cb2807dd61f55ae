//! `kill -9` at every moment of a day of changes.

use std::collections::BTreeMap;
use std::time::Duration;

use ferromesh_e2e::account::NAMESPACE;
use ferromesh_e2e::replica::Replica;
use ferromesh_e2e::world::World;
use ferromesh_e2e::written::{contents, difference};
use ferromesh_e2e::{eventually, within, yaml};
use ferromesh_runtime::backoff::Jitter;
use kube::Client;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::share;

/// The namespace in which the day takes place, in both clusters.
const DAY: &str = "day";
/// How long after its start a server is killed at the latest. It is ready after less than a second.
const LONGEST_LIFE: f64 = 2.5;
/// One dead server in so many is waited for as long as its lease says; of the others the lease is taken away.
const SLOW: usize = 20;

/// One thing that people do in a day.
#[derive(Clone, Copy)]
enum Step {
    /// Applies objects in a cluster.
    Apply(Place, fn() -> String),
    /// Deletes an object.
    Delete(Place, &'static str, &'static str, &'static str),
    /// Changes the virtual mesh.
    Mesh(fn() -> Value),
}

#[derive(Clone, Copy)]
enum Place {
    Management,
    First,
    Second,
}

const TRAFFIC: &str = "networking.mesh.gloo.solo.io/v1 TrafficPolicy";
const ACCESS: &str = "networking.mesh.gloo.solo.io/v1 AccessPolicy";

const MORNING: [Step; 20] = {
    use Place::{First, Management, Second};
    use Step::{Apply, Delete, Mesh};
    [
        Apply(First, || service("reviews")),
        Apply(Second, || service("reviews")),
        Apply(Second, || service("ratings")),
        Apply(Management, || {
            policy("timeout", "reviews", "requestTimeout: 2s")
        }),
        Apply(Management, || {
            policy("retries", "ratings", "retries: { attempts: 3 }")
        }),
        Apply(First, || service("details")),
        Apply(Management, || access("callers", "reviews")),
        Mesh(closed),
        Apply(Management, || {
            policy("timeout", "reviews", "requestTimeout: 5s")
        }),
        Apply(First, || workload("reviews", "v3", 0)),
        Delete(Management, TRAFFIC, NAMESPACE, "retries-ratings"),
        Apply(Management, || policy("shift", "reviews", SHIFT)),
        Apply(Second, || service("payments")),
        Apply(First, || service("payments")),
        Delete(First, "v1 Service", DAY, "details"),
        Apply(Management, || {
            policy(
                "slow",
                "payments",
                "requestTimeout: 7s, retries: { attempts: 2 }",
            )
        }),
        Mesh(open),
        Delete(Management, TRAFFIC, NAMESPACE, "shift-reviews"),
        Apply(Management, || access("payers", "payments")),
        Apply(Second, || workload("ratings", "v3", 0)),
    ]
};

const SHIFT: &str = "trafficShift: { destinations: [{ kubeService: { name: ratings, namespace: day, clusterName: cluster-2 } }] }";

/// After it everything is as it was in the morning.
const EVENING: [Step; 14] = {
    use Place::{First, Management, Second};
    use Step::Delete;
    [
        Delete(Management, TRAFFIC, NAMESPACE, "timeout-reviews"),
        Delete(Management, TRAFFIC, NAMESPACE, "retries-ratings"),
        Delete(First, "v1 Service", DAY, "reviews"),
        Delete(Management, TRAFFIC, NAMESPACE, "shift-reviews"),
        Delete(Management, TRAFFIC, NAMESPACE, "slow-payments"),
        Delete(Second, "apps/v1 Deployment", DAY, "ratings-v3"),
        Delete(Management, ACCESS, NAMESPACE, "callers"),
        Delete(Second, "v1 Service", DAY, "reviews"),
        Delete(First, "v1 Service", DAY, "payments"),
        Delete(Second, "v1 Service", DAY, "ratings"),
        Delete(First, "apps/v1 Deployment", DAY, "reviews-v3"),
        Delete(Second, "v1 Service", DAY, "payments"),
        Delete(First, "v1 Service", DAY, "details"),
        Delete(Management, ACCESS, NAMESPACE, "payers"),
    ]
};

fn closed() -> Value {
    json!({ "spec": { "globalAccessPolicy": "ENABLED" } })
}

fn open() -> Value {
    json!({ "spec": { "globalAccessPolicy": "DISABLED" } })
}

fn service(name: &str) -> String {
    format!(
        r"
apiVersion: v1
kind: Service
metadata: {{ name: {name}, namespace: {DAY}, labels: {{ app: {name} }} }}
spec:
  selector: {{ app: {name} }}
  ports: [{{ name: http, port: 9080 }}]
"
    )
}

/// Pods get other addresses whenever they are made anew, and what is written holds addresses: those of the
/// day are there before it, and what comes during the day has none.
fn workload(name: &str, version: &str, pods: usize) -> String {
    format!(
        r#"
apiVersion: apps/v1
kind: Deployment
metadata: {{ name: {name}-{version}, namespace: {DAY} }}
spec:
  replicas: {pods}
  selector:
    matchLabels: {{ app: {name}, version: {version} }}
  template:
    metadata:
      labels: {{ app: {name}, version: {version} }}
    spec:
      containers:
        - {{ name: app, image: "example.com/{name}:{version}" }}
        - {{ name: istio-proxy, image: "docker.io/istio/proxyv2:1.29.2" }}
"#
    )
}

fn policy(name: &str, service: &str, policy: &str) -> String {
    format!(
        r"
apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {{ name: {name}-{service}, namespace: {NAMESPACE} }}
spec:
  destinationSelector:
    - kubeServiceMatcher: {{ namespaces: [{DAY}], labels: {{ app: {service} }} }}
  policy: {{ {policy} }}
"
    )
}

fn access(name: &str, service: &str) -> String {
    format!(
        r"
apiVersion: networking.mesh.gloo.solo.io/v1
kind: AccessPolicy
metadata: {{ name: {name}, namespace: {NAMESPACE} }}
spec:
  sourceSelector:
    - kubeServiceAccountRefs:
        serviceAccounts: [{{ name: default, namespace: {DAY}, clusterName: cluster-1 }}]
  destinationSelector:
    - kubeServiceMatcher: {{ namespaces: [{DAY}], labels: {{ app: {service} }} }}
  allowedMethods: [GET]
"
    )
}

impl Step {
    /// Does it, once; a refusal is an error, as it is while no server runs.
    async fn take(self, world: &World) -> Result<(), kube::Error> {
        let client = |place| match place {
            Place::Management => &world.management,
            Place::First => &world.clusters[0],
            Place::Second => &world.clusters[1],
        };
        match self {
            Self::Apply(place, objects) => yaml::apply(client(place), &objects()).await,
            Self::Delete(place, kind, namespace, name) => {
                delete(client(place), kind, namespace, name).await
            }
            Self::Mesh(change) => {
                let meshes = world.own("VirtualMesh");
                let patch = Patch::Merge(change());
                meshes
                    .patch("shop", &PatchParams::default(), &patch)
                    .await
                    .map(drop)
            }
        }
    }
}

/// Deletes an object, if it is there.
async fn delete(
    client: &Client,
    kind: &str,
    namespace: &str,
    name: &str,
) -> Result<(), kube::Error> {
    let (version, kind) = kind.split_once(' ').unwrap();
    let api = yaml::api(client, version, kind, namespace);
    let done = api.delete(name, &DeleteParams::default()).await.map(drop);
    match done {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        done => done,
    }
}

/// Lives through steps, each as soon as it is let through.
async fn live(world: &World, steps: &[Step], pause: Duration) {
    for (number, step) in steps.iter().enumerate() {
        let refused = std::sync::Mutex::new(String::new());
        let what = Refused(number, &refused);
        eventually(what, async || {
            let taken = step.take(world).await;
            let taken = taken.map_err(|error| *refused.lock().unwrap() = error.to_string());
            taken.ok()
        })
        .await;
        // As people do, who do not wait for the last change to arrive.
        sleep(pause).await;
    }
}

struct Refused<'a>(usize, &'a std::sync::Mutex<String>);

impl std::fmt::Display for Refused<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(number, refused) = self;
        write!(
            f,
            "step {number} is let through: {}",
            refused.lock().unwrap()
        )
    }
}

/// Waits until everything is as it was on a day without disturbance.
async fn until_like(world: &World, wanted: &BTreeMap<String, String>) {
    let last = std::sync::Mutex::new(Vec::new());
    within(Duration::from_mins(2), Differences(&last), async || {
        let differences = difference(wanted, &contents(world).await?);
        let is_like = differences.is_empty();
        *last.lock().unwrap() = differences;
        is_like.then_some(())
    })
    .await;
}

struct Differences<'a>(&'a std::sync::Mutex<Vec<String>>);

impl std::fmt::Display for Differences<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "all is as on a day without disturbance, except")?;
        let differences = self.0.lock().unwrap();
        differences
            .iter()
            .try_for_each(|line| write!(f, "\n{line}"))
    }
}

/// Waits until nothing changes any more, and says what there is.
async fn rest(world: &World) -> BTreeMap<String, String> {
    let mut last = (BTreeMap::new(), Instant::now());
    loop {
        if let Some(now) = contents(world).await {
            if now != last.0 {
                last = (now, Instant::now());
            } else if last.1.elapsed() > Duration::from_secs(5) {
                return last.0;
            }
        }
        sleep(Duration::from_millis(200)).await;
    }
}

/// The moments at which servers are killed. The seed is told, and may be given.
fn chance() -> Jitter {
    let seed = std::env::var("FERROMESH_SEED").ok();
    let seed = seed.map_or_else(
        || u64::from(std::process::id()),
        |seed| seed.parse().unwrap(),
    );
    println!("seed {seed}: FERROMESH_SEED={seed} draws the same moments");
    Jitter::seeded(seed)
}

/// What is there before the first day.
async fn furnish(world: &World) {
    let namespace = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{ name: {DAY} }}");
    for cluster in &world.clusters {
        yaml::apply(cluster, &namespace).await.unwrap();
    }
    for (cluster, name, version) in [
        (0, "reviews", "v1"),
        (1, "reviews", "v2"),
        (1, "ratings", "v1"),
        (0, "details", "v1"),
        (0, "payments", "v1"),
        (1, "payments", "v1"),
    ] {
        let workload = workload(name, version, 1);
        yaml::apply(&world.clusters[cluster], &workload)
            .await
            .unwrap();
    }
}

pub(crate) async fn a_day_on_which_the_server_is_killed_again_and_again_ends_like_any_other(
    world: &World,
) {
    let mut chance = chance();
    let kills = share(200);
    let server = Replica::start(world.start.clone()).await;
    furnish(world).await;
    let pause = Duration::from_millis(200);
    // What is deleted within a minute counts together, and more than fifty objects are held: none of these
    // days has as many, and each has a server of its own.
    let next_day = async || {
        server.kill();
        world.free_lease().await;
        server.until_ready().await;
    };
    // There may have been days before, of which the last was broken off.
    live(world, &[Step::Mesh(closed), Step::Mesh(open)], pause).await;
    live(world, &EVENING, pause).await;
    let morning = rest(world).await;
    next_day().await;
    live(world, &MORNING, pause).await;
    let evening = rest(world).await;
    println!(
        "a day makes {} objects differ",
        difference(&morning, &evening).len()
    );
    live(world, &EVENING, pause).await;
    until_like(world, &morning).await;
    next_day().await;
    // Two days without disturbance are alike, else nothing follows from what comes.
    live(world, &MORNING, pause).await;
    until_like(world, &evening).await;
    live(world, &EVENING, pause).await;
    until_like(world, &morning).await;

    let (mut killed, mut days) = (0, 0);
    let began = Instant::now();
    while killed < kills {
        days += 1;
        for (steps, wanted) in [(&MORNING[..], &evening), (&EVENING[..], &morning)] {
            let mut lived = std::pin::pin!(live(world, steps, pause));
            loop {
                // Every other one comes to do something, however slow the machine is.
                if killed % 2 == 0 {
                    server.until_ready().await;
                }
                let life = Duration::from_secs_f64(chance.fraction() * LONGEST_LIFE);
                if timeout(life, &mut lived).await.is_ok() {
                    break;
                }
                server.kill();
                killed += 1;
                if killed % SLOW != 0 {
                    // It is dead: nobody has to wait for it.
                    world.free_lease().await;
                }
            }
            // What was written last is written while it is killed, too.
            sleep(Duration::from_secs_f64(chance.fraction())).await;
            server.kill();
            killed += 1;
            world.free_lease().await;
            until_like(world, wanted).await;
        }
    }
    println!(
        "killed {killed} times on {days} days in {:.0} s; ended by itself {} times",
        began.elapsed().as_secs_f64(),
        server.ended()
    );
}
