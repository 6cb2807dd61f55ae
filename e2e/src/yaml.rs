//! Objects written as YAML.

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt};

/// The API of a kind, in a namespace or in none.
///
/// # Panics
///
/// Panics at what is no `apiVersion`.
pub fn api(client: &Client, api_version: &str, kind: &str, namespace: &str) -> Api<DynamicObject> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = GroupVersionKind::gvk(group, version, kind);
    let resource = match &*kind.kind {
        // A word that is its own plural.
        "Settings" => ApiResource::from_gvk_with_plural(&kind, "settings"),
        _ => ApiResource::from_gvk(&kind),
    };
    match namespace {
        "" => Api::all_with(client.clone(), &resource),
        namespace => Api::namespaced_with(client.clone(), namespace, &resource),
    }
}

/// The objects of a YAML text.
///
/// # Panics
///
/// Panics at what is no object.
pub fn objects(yaml: &str) -> Vec<DynamicObject> {
    let read: Result<Vec<_>, _> = serde_saphyr::from_multiple(yaml);
    read.unwrap_or_else(|error| panic!("{error} in\n{yaml}"))
}

/// Applies every object of a YAML text, as `kubectl apply --server-side` does.
pub async fn apply(client: &Client, yaml: &str) -> Result<(), kube::Error> {
    for object in objects(yaml) {
        put(client, &object, &PatchParams::apply("e2e").force()).await?;
    }
    Ok(())
}

/// As [`apply`], and changes nothing: the API server alone, with those that it asks, says what it thinks.
pub async fn try_out(client: &Client, yaml: &str) -> Result<(), kube::Error> {
    for object in objects(yaml) {
        put(
            client,
            &object,
            &PatchParams::apply("e2e").force().dry_run(),
        )
        .await?;
    }
    Ok(())
}

/// Applies one object.
pub async fn put(
    client: &Client,
    object: &DynamicObject,
    params: &PatchParams,
) -> Result<(), kube::Error> {
    let types = object.types.clone().unwrap_or_default();
    let namespace = object.namespace().unwrap_or_default();
    let api = api(client, &types.api_version, &types.kind, &namespace);
    api.patch(&object.name_any(), params, &Patch::Apply(object))
        .await
        .map(drop)
}
