//! A repository of policies, applied by a tool that knows no order: it asks again for what was refused, and
//! waits for what was taken.
//!
//! `FERROMESH_GITOPS_ORDERS` says in how many orders (20), `FERROMESH_GITOPS_SEED` which is the first.

#![allow(
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "what a test cannot read, or does not expect, fails it"
)]

mod repository;

use std::env;
use std::sync::Arc;

use ferromesh_e2e::kstatus::{Progress, progress};
use ferromesh_e2e::world::{World, is_current};
use ferromesh_e2e::yaml;

use crate::repository::{Repository, apply, shuffle};

const ORDERS: u64 = 20;

fn number(variable: &str, default: u64) -> u64 {
    env::var(variable).map_or(default, |text| text.parse().unwrap())
}

/// Both facts, one after the other: they share the clusters, and the second has the server for itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_repository_ends_the_same_in_whatever_order_it_is_applied() {
    let world = Arc::new(World::begin().await);
    let facts = tokio::spawn({
        let world = Arc::clone(&world);
        async move {
            orders(&world).await;
            waiting(&world).await;
        }
    });
    let facts = facts.await;
    // Nobody is left who would answer reviews.
    world.end().await;
    facts.unwrap();
}

async fn orders(world: &World) {
    let repository = Repository::read();
    repository.clear(world).await;
    repository.services(world).await;
    let orders = number("FERROMESH_GITOPS_ORDERS", ORDERS);
    let first = number("FERROMESH_GITOPS_SEED", 1);
    let mut expected = None;
    let mut refused = 0;
    for seed in first..first + orders {
        let mut order: Vec<_> = repository.files.iter().collect();
        shuffle(&mut order, seed);
        let names: Vec<_> = order.iter().map(|file| &*file.name).collect();
        eprintln!("FERROMESH_GITOPS_SEED={seed}: {}", names.join(" "));
        refused += apply(world, order).await;
        repository.until_current(world).await;
        match &expected {
            None => expected = Some(repository.whole(world).await),
            Some(expected) => repository.until_equal(world, expected).await,
        }
        repository.clear(world).await;
    }
    // Otherwise the files do not depend on one another.
    assert!(refused >= orders, "{refused} refusals in {orders} orders");
}

/// What is stored while nobody judges it is waited for, and what is wrong is never taken for done.
async fn waiting(world: &World) {
    world.end().await;
    let policy = |name: &str, selector: &str, policy: &str| {
        format!(
            "
apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {{ name: {name}, namespace: gloo-mesh }}
spec:
  destinationSelector: [{selector}]
  policy: {policy}
---
"
        )
    };
    let app = "{ kubeServiceMatcher: { labels: { app: ratings } } }";
    let missing = "{ kubeServiceRefs: { services: [{ name: rating, namespace: bookinfo, clusterName: cluster-1 }] } }";
    let text = [
        policy("good", app, "{ requestTimeout: 3s }"),
        policy("wrong", app, "{ csrf: { filterEnabled: true } }"),
        policy("early", missing, "{ requestTimeout: 3s }"),
    ];
    let others = "
apiVersion: networking.mesh.gloo.solo.io/v1
kind: AccessPolicy
metadata: { name: good, namespace: gloo-mesh }
spec: { destinationSelector: [{ kubeServiceMatcher: { labels: { app: ratings } } }] }
---
apiVersion: networking.mesh.gloo.solo.io/v1
kind: VirtualMesh
metadata: { name: good, namespace: gloo-mesh }
spec: { meshes: [{ name: istiod-istio-system-cluster-1, namespace: gloo-mesh }] }
---
apiVersion: settings.mesh.gloo.solo.io/v1
kind: Settings
metadata: { name: settings, namespace: gloo-mesh }
spec: {}
---
apiVersion: multicluster.solo.io/v1alpha1
kind: KubernetesCluster
metadata: { name: nowhere, namespace: gloo-mesh }
spec: { secretName: nowhere }
";
    let text = text.concat() + others;
    yaml::apply(&world.management, &text).await.unwrap();
    let objects = yaml::objects(&text);
    for object in &objects {
        let stored = repository::get(world, object).await.unwrap();
        assert_eq!(progress(&stored), Progress::InProgress, "{stored:?}");
    }
    world.revive().await;
    let is_judged = |stored: &kube::api::DynamicObject| {
        stored.types.as_ref().unwrap().kind == "KubernetesCluster" || is_current(stored)
    };
    for object in &objects {
        let name = object.metadata.name.as_deref().unwrap();
        let expected = match name {
            "good" | "settings" => Progress::Current,
            "wrong" => Progress::Failed,
            // It is to come, or it is not: nobody but a person can tell.
            _ => Progress::InProgress,
        };
        repository::until(world, object, |stored| {
            is_judged(stored) && progress(stored) == expected
        })
        .await;
    }
    for object in &objects {
        repository::delete(world, object).await;
    }
    Repository::read().clear(world).await;
}
