//! What whole-system tests share: the clusters that they run on, and waiting for what must come.
//!
//! `hack/test` starts the clusters and names their kubeconfigs in `FERROMESH_KUBECONFIGS`, the
//! management cluster first. By hand: `hack/testbed up 3`, then set it likewise.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that does not find what it needs fails"
)]

pub mod account;
pub mod balancer;
pub mod kstatus;
pub mod replica;
pub mod server;
pub mod testbed;
pub mod world;
pub mod written;
pub mod yaml;

use std::fmt;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, ResourceExt};
use tokio::time::{Instant, sleep};

/// How long a test waits for something that must come.
pub const DEADLINE: Duration = Duration::from_mins(1);

/// The management cluster's place among the clusters.
pub const MANAGEMENT: usize = 0;

/// Paths of the clusters' kubeconfigs, the management cluster first.
///
/// # Panics
///
/// Panics where there are none: a test that cannot run must not pass.
pub fn kubeconfigs() -> Vec<String> {
    let paths = std::env::var("FERROMESH_KUBECONFIGS").expect(
        "FERROMESH_KUBECONFIGS must name the clusters' kubeconfigs, separated by colons: run hack/test, or hack/testbed up 3",
    );
    paths.split(':').map(str::to_owned).collect()
}

/// A client of one of the clusters.
pub async fn client(cluster: usize) -> Client {
    let path = kubeconfigs()
        .get(cluster)
        .cloned()
        .expect("there are enough clusters");
    connect(&path).await
}

/// A client by a kubeconfig.
pub(crate) async fn connect(kubeconfig: &str) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("the test bed wrote a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .expect("the test bed wrote a kubeconfig");
    Client::try_from(config).expect("the test bed wrote a kubeconfig")
}

/// Waits until `found` finds something; `what` names it when the deadline passes.
pub async fn eventually<T, F>(what: impl fmt::Display, found: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    within(DEADLINE, what, found).await
}

/// As [`eventually`], for what may take longer.
pub async fn within<T, F>(
    limit: Duration,
    what: impl fmt::Display,
    mut found: impl FnMut() -> F,
) -> T
where
    F: Future<Output = Option<T>>,
{
    let deadline = Instant::now() + limit;
    loop {
        if let Some(found) = found().await {
            return found;
        }
        assert!(
            Instant::now() < deadline,
            "waited {limit:?} in vain: {what}"
        );
        sleep(Duration::from_millis(50)).await;
    }
}

/// Installs definitions and waits until they are served. Doing it again changes nothing.
pub async fn install(client: &Client, definitions: Vec<CustomResourceDefinition>) {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let manager = PatchParams::apply("ferromesh-e2e").force();
    for definition in definitions {
        let name = definition.name_any();
        api.patch(&name, &manager, &Patch::Apply(&definition))
            .await
            .unwrap_or_else(|error| panic!("{name} is refused: {error}"));
        eventually(format!("{name} is established"), || async {
            let status = api.get(&name).await.ok()?.status?;
            status
                .conditions?
                .into_iter()
                .find(|condition| condition.type_ == "Established" && condition.status == "True")
        })
        .await;
    }
}

/// A namespace of a test's own.
pub async fn namespace(client: &Client, test: &str) -> String {
    let namespace = Namespace {
        metadata: ObjectMeta {
            generate_name: Some(format!("{test}-")),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    };
    let created = Api::all(client.clone())
        .create(&PostParams::default(), &namespace)
        .await
        .expect("a namespace can be created");
    created.name_any()
}
