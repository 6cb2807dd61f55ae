//! What the server has written, in all clusters.

use std::collections::BTreeMap;

use kube::Client;
use kube::api::{DynamicObject, ListParams};
use serde_json::{Value, json};

use crate::world::{World, version};
use crate::yaml;

/// The kinds that are written to clusters, with their groups.
pub const PUSHED: [(&str, &str); 7] = [
    ("networking.istio.io/v1", "VirtualService"),
    ("networking.istio.io/v1", "DestinationRule"),
    ("networking.istio.io/v1", "ServiceEntry"),
    ("networking.istio.io/v1", "Gateway"),
    ("security.istio.io/v1", "AuthorizationPolicy"),
    ("certificates.mesh.gloo.solo.io/v1", "IssuedCertificate"),
    ("v1", "Secret"),
];

/// The kinds whose objects or statuses are written in the management cluster.
pub const MANAGED: [(&str, &str); 7] = [
    ("discovery.mesh.gloo.solo.io/v1", "Mesh"),
    ("discovery.mesh.gloo.solo.io/v1", "Workload"),
    ("discovery.mesh.gloo.solo.io/v1", "Destination"),
    ("networking.mesh.gloo.solo.io/v1", "TrafficPolicy"),
    ("networking.mesh.gloo.solo.io/v1", "VirtualMesh"),
    ("multicluster.solo.io/v1alpha1", "KubernetesCluster"),
    ("v1", "Secret"),
];

/// Every object of the kinds that the server writes: the place of its cluster, kind, `namespace/name`.
/// Managed clusters count from 0, the management cluster is 2.
async fn all(world: &World) -> Option<Vec<(String, DynamicObject)>> {
    let clusters = world.clusters.iter().map(|client| (client, PUSHED));
    let every = clusters.chain([(&world.management, MANAGED)]);
    let mut all = Vec::new();
    for (place, (client, kinds)) in every.enumerate() {
        all.extend(of(client, place, &kinds).await?);
    }
    Some(all)
}

async fn of(
    client: &Client,
    place: usize,
    kinds: &[(&str, &str)],
) -> Option<Vec<(String, DynamicObject)>> {
    let mut found = Vec::new();
    for (api_version, kind) in kinds {
        let api = yaml::api(client, api_version, kind, "");
        for object in api.list(&ListParams::default()).await.ok()? {
            let (name, _) = version(&object);
            found.push((format!("{place} {kind} {name}"), object));
        }
    }
    Some(found)
}

/// The version of every object that the server writes.
pub async fn versions(world: &World) -> BTreeMap<String, String> {
    let all = all(world).await.unwrap();
    let versions = all.into_iter();
    let versions = versions.map(|(name, object)| (name, version(&object).1));
    versions.collect()
}

/// The identity of every object that the server writes to a managed cluster; another one of the same name
/// has another.
pub async fn identities(world: &World, cluster: usize) -> BTreeMap<String, String> {
    let found = of(&world.clusters[cluster], cluster, &PUSHED)
        .await
        .unwrap();
    let identities = found
        .into_iter()
        .map(|(name, object)| (name, object.metadata.uid.unwrap_or_default()));
    identities.collect()
}

/// What every object of ours says that the server writes, as far as a person or a mesh can tell: labels,
/// annotations, contents, and statuses but for times and counters. None while an API server does not answer.
pub async fn contents(world: &World) -> Option<BTreeMap<String, String>> {
    let all = all(world).await?;
    let ours = all.into_iter().filter(|(name, object)| {
        let labels = object.metadata.labels.iter().flatten();
        let mut labels = labels.filter(|(label, _)| label.contains("mesh.gloo.solo.io"));
        !name.contains(" Secret ") || labels.next().is_some()
    });
    let contents = ours.map(|(name, object)| {
        let mut data = object.data;
        if let Some(status) = data.get_mut("status") {
            forget_times(status);
        }
        let content = json!({
            "labels": object.metadata.labels,
            "annotations": object.metadata.annotations,
            "data": data,
        });
        (name, content.to_string())
    });
    Some(contents.collect())
}

/// Takes out what differs between two runs that end alike.
fn forget_times(status: &mut Value) {
    match status {
        Value::Object(fields) => {
            for field in ["lastTransitionTime", "observedGeneration"] {
                fields.remove(field);
            }
            fields.values_mut().for_each(forget_times);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_times),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// How two states differ, for a person to read.
pub fn difference(
    wanted: &BTreeMap<String, String>,
    found: &BTreeMap<String, String>,
) -> Vec<String> {
    let missing = wanted.iter().filter(|(name, _)| !found.contains_key(*name));
    let missing = missing.map(|(name, _)| format!("{name} is missing"));
    let others = found
        .iter()
        .filter_map(|(name, content)| match wanted.get(name) {
            None => Some(format!("{name} is there: {content}")),
            Some(wanted) if wanted != content => {
                Some(format!("{name} is {content}, should be {wanted}"))
            }
            Some(_) => None,
        });
    missing.chain(others).collect()
}

/// What was there and is not, or is another one.
pub fn lost(
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
    is_kept: impl Fn(&str) -> bool,
) -> Vec<String> {
    let lost = before
        .iter()
        .filter(|(name, uid)| is_kept(name) && after.get(*name) != Some(*uid));
    lost.map(|(name, _)| name.clone()).collect()
}
