//! Whether a cluster that objects of discovery name is registered, asked of the API server itself.
//!
//! Such an object was written while its cluster was registered. Watches do not tell in which order things have
//! happened: the one that shows registrations may lag behind the one that shows the object. What is read after the
//! object was seen lags behind nothing.

use std::{collections::BTreeMap, sync::Arc};

use ferromesh_crds::{KubernetesCluster, meta::KUBECONFIG_SECRET_TYPE, name::ClusterName};
use ferromesh_runtime::{backoff::ExponentialBackoff, telemetry::Chain};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, api::ListParams, core::PartialObjectMeta};
use tokio::{sync::mpsc, time::sleep};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Event, Spawner};

/// Clusters that may not be registered.
#[derive(Default)]
pub(super) struct Inquiries(BTreeMap<Arc<str>, Inquiry>);

struct Inquiry {
    is_late: bool,
    /// Ends it where it is under way.
    asking: Option<DropGuard>,
}

impl Inquiries {
    /// A stored object names a cluster; `is_late` if the object was not there at the start.
    pub(super) fn note(&mut self, name: String, is_late: bool) {
        let asking = None;
        self.0
            .entry(name.into())
            .or_insert(Inquiry { is_late, asking });
    }

    /// Asks for those that nobody asks for yet.
    pub(super) fn ask(&mut self, client: &Client, spawner: &mut Spawner) {
        for (name, inquiry) in &mut self.0 {
            let ask = || spawner.inquire(name, client.clone());
            inquiry.asking.get_or_insert_with(ask);
        }
    }

    /// It is known what becomes of a cluster. Returns whether the object was late that named it first.
    pub(super) fn end(&mut self, name: &str) -> Option<(Arc<str>, bool)> {
        let (name, inquiry) = self.0.remove_entry(name)?;
        Some((name, inquiry.is_late))
    }
}

/// Asks until nothing registers the cluster, and tells so; or until it is cancelled, because the watches have shown
/// that something does.
pub(super) async fn run(
    name: String,
    namespace: String,
    client: Client,
    events: mpsc::Sender<Event>,
    mut backoff: ExponentialBackoff,
    cancel: CancellationToken,
) {
    let asked = async {
        loop {
            match is_registered(&client, &namespace, &name).await {
                Ok(false) => break,
                Ok(true) => {}
                Err(error) => {
                    let error = Chain(&error);
                    tracing::debug!(cluster = name, %error, "nobody knows whether a cluster is registered");
                }
            }
            sleep(backoff.delay()).await;
        }
        // Nobody listens at the end of everything.
        let told = events.send(Event::NotRegistered { name }).await;
        told.unwrap_or_default();
    };
    cancel.run_until_cancelled(asked).await;
}

async fn is_registered(client: &Client, namespace: &str, name: &str) -> Result<bool, kube::Error> {
    if name.parse::<ClusterName>().is_err() {
        return Ok(false);
    }
    let by_name = ListParams::default().fields(&format!("metadata.name={name}"));
    let declared: Api<KubernetesCluster> = Api::namespaced(client.clone(), namespace);
    if names(declared.list_metadata(&by_name).await?.items, name) {
        return Ok(true);
    }
    let by_type = format!("metadata.name={name},type={KUBECONFIG_SECRET_TYPE}");
    let by_type = ListParams::default().fields(&by_type);
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    Ok(names(secrets.list_metadata(&by_type).await?.items, name))
}

fn names<K>(found: Vec<PartialObjectMeta<K>>, name: &str) -> bool {
    let mut found = found.into_iter();
    found.any(|it| it.metadata.name.as_deref() == Some(name))
}
