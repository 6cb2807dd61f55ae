//! What API servers know of our kinds: in a file anything can be written.

use ferromesh_core::model::{Code, Rejection};
use ferromesh_crds as crds;
use kube::core::ApiResource;
use serde_json::Value;

/// Our kinds. Their definitions would say the same, and take longer to make than most files to
/// read.
fn kinds() -> [ApiResource; 11] {
    [
        ApiResource::erase::<crds::AccessPolicy>(&()),
        ApiResource::erase::<crds::CertificateRequest>(&()),
        ApiResource::erase::<crds::Destination>(&()),
        ApiResource::erase::<crds::IssuedCertificate>(&()),
        ApiResource::erase::<crds::KubernetesCluster>(&()),
        ApiResource::erase::<crds::Mesh>(&()),
        ApiResource::erase::<crds::PodBounceDirective>(&()),
        ApiResource::erase::<crds::Settings>(&()),
        ApiResource::erase::<crds::TrafficPolicy>(&()),
        ApiResource::erase::<crds::VirtualMesh>(&()),
        ApiResource::erase::<crds::Workload>(&()),
    ]
}

/// What an API server would say to an object of one of our kinds in a version that is not served.
pub(super) fn refusal(object: &Value) -> Option<Rejection> {
    let text = |field: &str| object.get(field).and_then(Value::as_str);
    let (api_version, kind) = (text("apiVersion")?, text("kind")?);
    let (group, _) = api_version.split_once('/')?;
    if !is_ours(group) {
        return None;
    }
    let mut served = kinds().into_iter();
    let served = served.find(|served| served.group == group && served.kind == kind)?;
    (served.api_version != api_version).then(|| Rejection {
        path: "apiVersion".to_owned(),
        code: Code::NotFound,
        message: format!("{api_version} is not served; write {}", served.api_version),
    })
}

/// What is to be said about a kind that is not read: a group of ours has no such kind. Kinds of
/// others are nobody's business.
pub(super) fn doubt(api_version: &str, kind: &str) -> Option<String> {
    let (group, _) = api_version.split_once('/')?;
    if !is_ours(group) {
        return None;
    }
    let served = kinds().into_iter().filter(|served| served.group == group);
    let kinds: Vec<_> = served.map(|served| served.kind).collect();
    if kinds.iter().any(|known| known == kind) {
        return None;
    }
    Some(if kinds.is_empty() {
        format!("{kind} is passed over: {group} is not supported")
    } else {
        let kinds = kinds.join(", ");
        format!("{kind} is passed over: {group} has no such kind, only {kinds}")
    })
}

fn is_ours(group: &str) -> bool {
    group.ends_with(".mesh.gloo.solo.io") || group == "multicluster.solo.io"
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn kinds_are_those_that_have_definitions() {
        let known = kinds().into_iter();
        let known: BTreeSet<_> = known.map(|it| (it.group, it.kind, it.version)).collect();
        let defined = crds::all().into_iter().flat_map(|definition| {
            let spec = definition.spec;
            let versions = spec.versions.into_iter();
            versions.map(move |it| (spec.group.clone(), spec.names.kind.clone(), it.name))
        });
        assert_eq!(known, defined.collect());
    }
}
