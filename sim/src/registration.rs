//! How clusters are registered, by which tokens they are reached, and how that is undone.

use std::collections::{BTreeMap, BTreeSet};

use ferromesh_core::Kind;
use ferromesh_crds::meta::{KUBECONFIG_KEY, KUBECONFIG_SECRET_TYPE};
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use crate::world::{NAMESPACE, World, again, input, place_of};

/// The kinds that register a cluster.
const REGISTRATIONS: [Kind; 2] = [Kind::Secret, Kind::KubernetesCluster];

/// The address of a cluster's API server.
pub(crate) fn address_of(cluster: &str) -> String {
    format!("https://{cluster}.example")
}

/// The token in a kubeconfig, if there is one.
pub(crate) fn token_in(kubeconfig: &[u8]) -> Option<String> {
    let config: Value = serde_json::from_slice(kubeconfig).ok()?;
    config["users"][0]["user"]["token"]
        .as_str()
        .map(str::to_owned)
}

/// Registers a cluster, or gives it another token. The tokens of before are good as long as they were.
pub(crate) fn register(world: &World, name: &str, token: &str) {
    world.accept_too(name, token);
    world.put(
        "",
        &json!({
            "apiVersion": "multicluster.solo.io/v1alpha1", "kind": "KubernetesCluster",
            "metadata": meta(name), "spec": {},
        }),
    );
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": name,
        "contexts": [{ "name": name, "context": { "cluster": name, "user": name } }],
        "clusters": [{ "name": name, "cluster": { "server": address_of(place_of(name)) } }],
        "users": [{ "name": name, "user": { "token": token } }],
    });
    hand_over(world, name, config.to_string());
}

/// Registers a cluster with something that is no kubeconfig.
pub(crate) fn garble(world: &World, name: &str) {
    hand_over(world, name, "{ \"apiVersion\": ".to_owned());
}

fn hand_over(world: &World, name: &str, kubeconfig: String) {
    let data = BTreeMap::from([(KUBECONFIG_KEY, ByteString(kubeconfig.into_bytes()))]);
    world.put(
        "",
        &json!({
            "apiVersion": "v1", "kind": "Secret", "type": KUBECONFIG_SECRET_TYPE,
            "metadata": meta(name), "data": data,
        }),
    );
}

/// Whether the API server of a registered cluster accepts the token that its kubeconfig holds.
pub(crate) fn is_let_in(world: &World, name: &str) -> bool {
    let secret = world.api("").get(&input(Kind::Secret), NAMESPACE, name);
    let secret = secret.unwrap_or_default();
    let kubeconfig: Option<ByteString> =
        serde_json::from_value(secret["data"][KUBECONFIG_KEY].clone()).ok();
    let token = kubeconfig.and_then(|ByteString(kubeconfig)| token_in(&kubeconfig));
    token.is_some_and(|token| world.accepts(name, &token))
}

/// Takes a registration away, so much of it as there is.
pub(crate) fn deregister(world: &World, name: &str) {
    for kind in REGISTRATIONS {
        world.api("").remove(&input(kind), NAMESPACE, name);
    }
}

/// Whether anything says that a cluster is registered under a name.
pub(crate) fn is_registered(world: &World, name: &str) -> bool {
    let mut kinds = REGISTRATIONS.into_iter();
    kinds.any(|kind| world.api("").get(&input(kind), NAMESPACE, name).is_some())
}

/// The names under which clusters are registered.
pub(crate) fn registered(world: &World) -> BTreeSet<String> {
    let names = world
        .managed()
        .flat_map(|name| [name.to_owned(), again(name)]);
    names.filter(|name| is_registered(world, name)).collect()
}

fn meta(name: &str) -> Value {
    json!({ "namespace": NAMESPACE, "name": name })
}
