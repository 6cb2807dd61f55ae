//! What API servers know of our kinds: in a file anything can be written.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use ferromesh_core::model::{Code, Rejection};
use ferromesh_crds as crds;
use serde_json::Value;

/// Versions by group and kind.
static SERVED: LazyLock<BTreeMap<(String, String), Vec<String>>> = LazyLock::new(|| {
    let definitions = crds::all().into_iter();
    let served = definitions.map(|definition| {
        let spec = definition.spec;
        let served = spec.versions.into_iter().filter(|version| version.served);
        let versions = served.map(|version| version.name).collect();
        ((spec.group, spec.names.kind), versions)
    });
    served.collect()
});

/// What an API server would say to an object of one of our kinds in a version that is not served.
pub(super) fn refusal(object: &Value) -> Option<Rejection> {
    let text = |field: &str| object.get(field).and_then(Value::as_str);
    let (group, version) = text("apiVersion")?.split_once('/')?;
    if !is_ours(group) {
        return None;
    }
    let versions = SERVED.get(&(group.to_owned(), text("kind")?.to_owned()))?;
    if versions.iter().any(|served| served == version) {
        return None;
    }
    let newest = versions.first()?;
    Some(Rejection {
        path: "apiVersion".to_owned(),
        code: Code::NotFound,
        message: format!("{group}/{version} is not served; write {group}/{newest}"),
    })
}

/// What is to be said about a kind that is not read: a group of ours has no such kind. Kinds of
/// others are nobody's business.
pub(super) fn doubt(api_version: &str, kind: &str) -> Option<String> {
    let (group, _) = api_version.split_once('/')?;
    if !is_ours(group) || SERVED.contains_key(&(group.to_owned(), kind.to_owned())) {
        return None;
    }
    let kinds: Vec<_> = SERVED
        .keys()
        .filter(|(known, _)| known == group)
        .map(|(_, kind)| kind.as_str())
        .collect();
    Some(match kinds.join(", ") {
        none if none.is_empty() => format!("{kind} is passed over: {group} is not supported"),
        kinds => format!("{kind} is passed over: {group} has no such kind, only {kinds}"),
    })
}

fn is_ours(group: &str) -> bool {
    group.ends_with(".mesh.gloo.solo.io") || group == "multicluster.solo.io"
}
