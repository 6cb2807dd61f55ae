//! What API servers know of our kinds: in a file anything can be written.

use ferromesh_core::Kind;
use ferromesh_core::model::{Code, Rejection};
use ferromesh_crds as crds;
use ferromesh_crds::name::{ClusterName, Namespace, ObjectName};
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

/// What an API server would say to an object before it reads it: an error where it serves no such
/// kind of ours, or is not told which, and a doubt where that depends on what else is installed.
/// Kinds of others are nobody's business.
pub(super) fn look(object: &Value) -> Result<Option<String>, Rejection> {
    let text = |field: &str| object.get(field).and_then(Value::as_str);
    let refused = |field: &str, code, message| {
        Err(Rejection {
            path: field.to_owned(),
            code,
            message,
        })
    };
    let kinds = kinds();
    match (text("apiVersion"), text("kind")) {
        (None, Some(kind)) => match kinds.iter().find(|it| it.kind == kind) {
            Some(known) => {
                let message = format!("is missing; write {}", known.api_version);
                refused("apiVersion", Code::Required, message)
            }
            None => Ok(None),
        },
        (Some(api_version), kind) => {
            let group = api_version.split_once('/').map_or("", |(group, _)| group);
            let of_group: Vec<_> = kinds.iter().filter(|it| it.group == group).collect();
            let names = || {
                let names: Vec<_> = of_group.iter().map(|it| &*it.kind).collect();
                names.join(", ")
            };
            match (kind, of_group.iter().find(|it| Some(&*it.kind) == kind)) {
                (_, Some(known)) if known.api_version == api_version => Ok(None),
                (_, Some(known)) => {
                    let message =
                        format!("{api_version} is not served; write {}", known.api_version);
                    refused("apiVersion", Code::NotFound, message)
                }
                (Some(kind), None) if of_group.is_empty() => Ok(is_ours(group)
                    .then(|| format!("{kind} is passed over: {group} is not supported"))),
                (Some(kind), None) => {
                    let message = format!("{group} has no {kind}; write one of {}", names());
                    refused("kind", Code::NotFound, message)
                }
                (None, None) if of_group.is_empty() => Ok(None),
                (None, None) => {
                    let message = format!("is missing; write one of {}", names());
                    refused("kind", Code::Required, message)
                }
            }
        }
        (None, None) => Ok(None),
    }
}

/// Refuses names that no API server takes.
pub(super) fn check_name(kind: Kind, object: &Value) -> Result<(), Rejection> {
    let field = |field: &str| {
        let value = object.pointer(&format!("/metadata/{field}"));
        value.filter(|value| !value.is_null() && *value != "")
    };
    let refused = |field: &str, code, message| {
        Err(Rejection {
            path: format!("metadata.{field}"),
            code,
            message,
        })
    };
    // What is no text is refused with its whole object.
    match field("name").map(Value::as_str) {
        None => {
            let message = "is missing; give the object a name".to_owned();
            return refused("name", Code::Required, message);
        }
        Some(Some(name)) => {
            let checked = match kind {
                Kind::KubernetesCluster => name.parse::<ClusterName>().err(),
                _ => name.parse::<ObjectName>().err(),
            };
            if let Some(error) = checked {
                return refused("name", Code::Invalid, error.to_string());
            }
        }
        Some(None) => {}
    }
    match field("namespace").and_then(Value::as_str) {
        Some(namespace) => match namespace.parse::<Namespace>() {
            Ok(_) => Ok(()),
            Err(error) => refused("namespace", Code::Invalid, error.to_string()),
        },
        None => Ok(()),
    }
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
