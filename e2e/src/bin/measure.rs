//! How fast the whole system is on real API servers: from a policy to what it becomes in another cluster, and from the
//! start of a server to its first answer. `hack/bench --clusters` runs this.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement that cannot be made says so and ends"
)]

use std::pin::pin;
use std::time::Duration;

use clap::Parser;
use ferromesh_e2e::world::{Shop, World};
use ferromesh_e2e::{eventually, yaml};
use futures_util::TryStreamExt as _;
use kube::api::{DynamicObject, ListParams, WatchEvent, WatchParams};
use tokio::time::{Instant, timeout};

/// Measures the whole system on the clusters of the test bed.
#[derive(Debug, Parser)]
struct Args {
    /// How many edits of a policy
    #[arg(long, default_value_t = 300)]
    edits: u32,
    /// How many Services are there when the server starts
    #[arg(long, default_value_t = 1_000)]
    services: u32,
    /// How many starts
    #[arg(long, default_value_t = 5)]
    starts: u32,
}

#[tokio::main]
async fn main() {
    let Args {
        edits,
        services,
        starts,
    } = Args::parse();
    let world = World::start().await;
    println!("| on real API servers | p50 | p99 | longest | of |");
    println!("|---|---|---|---|---|");
    let times = edit(&world, edits).await;
    row(
        "edit of a policy until the VirtualService in another cluster says so",
        times,
    );
    populate(&world, services).await;
    let mut times = Vec::new();
    for _ in 0..starts {
        world.kill().await;
        let begun = Instant::now();
        world.revive().await;
        times.push(begun.elapsed());
    }
    row(
        &format!("start of the server until it is ready, with {services} Services in two clusters"),
        times,
    );
    world.end().await;
}

fn row(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1_000.0;
    let (p50, p99, longest) = (at(50), at(99), at(100));
    println!(
        "| {what} | {p50:.0} ms | {p99:.0} ms | {longest:.0} ms | {} |",
        times.len()
    );
}

/// Edits a policy again and again: from the moment when the request is sent to the event in another cluster.
async fn edit(world: &World, edits: u32) -> Vec<Duration> {
    let shop = world.shop().await;
    put(world, &shop, 0).await;
    let services = world.istio(0, "VirtualService", "istio-system");
    let name = shop.destination("cluster-2");
    world.until(&services, &name, says(0)).await;
    let from = services.list(&ListParams::default()).await.unwrap();
    let watch = WatchParams::default().fields(&format!("metadata.name={name}"));
    let version = from.metadata.resource_version.unwrap();
    let mut events = pin!(services.watch(&watch, &version).await.unwrap());
    let mut times = Vec::new();
    for turn in 1..=edits {
        let begun = Instant::now();
        put(world, &shop, turn).await;
        let told = async {
            loop {
                let event = events.try_next().await.unwrap().expect("the watch goes on");
                if let WatchEvent::Added(object) | WatchEvent::Modified(object) = event
                    && says(turn)(&object)
                {
                    return;
                }
            }
        };
        timeout(Duration::from_secs(30), told).await.unwrap();
        times.push(begun.elapsed());
    }
    times
}

async fn put(world: &World, shop: &Shop, turn: u32) {
    let policy = format!("{{ requestTimeout: {}s }}", 1 + turn);
    let policy = shop.policy("measured", &policy);
    yaml::apply(&world.management, &policy).await.unwrap();
}

fn says(turn: u32) -> impl Fn(&DynamicObject) -> bool {
    let wanted = format!("{}s", 1 + turn);
    move |object| object.data["spec"]["http"][0]["timeout"] == *wanted
}

/// So many Services in two clusters, each with a Deployment, all of them discovered.
async fn populate(world: &World, services: u32) {
    let mut namespaces = Vec::new();
    for cluster in &world.clusters {
        namespaces.push(ferromesh_e2e::namespace(cluster, "many").await);
    }
    let here = |number: u32| usize::from(number % 2 == 1);
    for number in 0..services {
        let shop = Shop {
            namespace: namespaces[here(number)].clone(),
        };
        let objects = shop
            .reviews("v1")
            .replace("reviews", &format!("service-{number}"));
        yaml::apply(&world.clusters[here(number)], &objects)
            .await
            .unwrap();
    }
    eventually("everything is discovered", async || {
        let destinations = world.own("Destination");
        let found = destinations.list_metadata(&ListParams::default()).await;
        let found = found.ok()?;
        let many = found.iter().filter(|it| {
            let name = it.metadata.name.as_deref().unwrap_or_default();
            name.starts_with("service-")
        });
        (many.count() == usize::try_from(services).ok()?).then_some(())
    })
    .await;
}
