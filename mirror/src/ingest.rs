//! From the wire form of an object to the engine's, in the task of its watch.
//!
//! Most of what an API server sends is not kept. What must not be kept (keys, and the secrets of others)
//! is taken away before anything else looks at the object.

mod partial;

use std::{any::Any, fmt, sync::Arc};

use ferromesh_ca::{Error, lint::lint_certificate};
use ferromesh_core::{Code, Finding, Input, Object, model::Rejection};
use ferromesh_crds::meta::{
    KUBECONFIG_KEY, KUBECONFIG_SECRET_TYPE, LAST_APPLIED_ANNOTATION, ROOT_CERT_KEY, ROOT_KEY_KEY,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::Resource;

pub(crate) use self::partial::Partial;

/// What an object of the wire amounts to.
pub(crate) struct Taken {
    /// The object.
    pub(crate) object: Object,
    /// What of it could not be read and was left out.
    pub(crate) left_out: Option<String>,
    /// The kubeconfig that it carries.
    pub(crate) kubeconfig: Option<Kubeconfig>,
}

/// A kubeconfig as it stands in a Secret; empty where the Secret has none. It never shows itself.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Kubeconfig(pub(crate) Vec<u8>);

impl fmt::Debug for Kubeconfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kubeconfig({} bytes)", self.0.len())
    }
}

/// Takes away what nobody needs and what nobody may keep.
pub(crate) fn prune<W: Resource + 'static>(object: &mut Partial<W>) {
    let meta = object.object.meta_mut();
    meta.managed_fields = None;
    if let Some(annotations) = &mut meta.annotations {
        annotations.remove(LAST_APPLIED_ANNOTATION);
    }
    let object: &mut dyn Any = &mut object.object;
    if let Some(secret) = object.downcast_mut::<Secret>() {
        strip(secret);
    }
}

/// Leaves the certificate of a root, whether there is a key for it, and a kubeconfig.
fn strip(secret: &mut Secret) {
    let is_kubeconfig = is_kubeconfig(secret);
    secret.string_data = None;
    if let Some(data) = &mut secret.data {
        data.retain(|name, value| match name.as_str() {
            ROOT_CERT_KEY => true,
            ROOT_KEY_KEY => {
                value.0 = if value.0.is_empty() {
                    Vec::new()
                } else {
                    vec![0]
                };
                true
            }
            KUBECONFIG_KEY => is_kubeconfig,
            _ => false,
        });
    }
}

fn is_kubeconfig(secret: &Secret) -> bool {
    secret.type_.as_deref() == Some(KUBECONFIG_SECRET_TYPE)
}

/// Reads an object of `cluster`, empty for the management cluster.
pub(crate) fn take<W: Input + 'static>(object: Partial<W>, cluster: &str) -> Taken {
    let Partial {
        object: wire,
        left_out,
    } = object;
    let mut object = wire.parse(cluster);
    let mut kubeconfig = None;
    let wire: &dyn Any = &wire;
    if let (Object::Secret(reduced), Some(secret)) = (&mut object, wire.downcast_ref::<Secret>()) {
        Arc::make_mut(reduced).findings = findings(secret, Timestamp::now());
        if is_kubeconfig(secret) {
            let data = secret.data.as_ref();
            let bytes = data.and_then(|data| data.get(KUBECONFIG_KEY));
            kubeconfig = Some(Kubeconfig(bytes.cloned().unwrap_or_default().0));
        }
    }
    let reasons: Vec<_> = left_out.iter().map(ToString::to_string).collect();
    refuse(&mut object, left_out);
    Taken {
        object,
        left_out: (!reasons.is_empty()).then(|| reasons.join("; ")),
        kubeconfig,
    }
}

/// What is wrong with the certificate of a root. Whether it is still valid is judged now, and again when
/// the Secret is read again.
fn findings(secret: &Secret, now: Timestamp) -> Box<[Finding]> {
    let data = secret.data.as_ref();
    let Some(certificate) = data.and_then(|data| data.get(ROOT_CERT_KEY)) else {
        return Box::default();
    };
    let finding = |why: &dyn fmt::Display| {
        let message = format!("has a certificate that cannot be a root: {why}");
        Finding::new(Code::Invalid, message)
    };
    match lint_certificate(&certificate.0, now) {
        Ok(_) => Box::default(),
        Err(Error::Refused(findings)) => findings.iter().map(|why| finding(why)).collect(),
        Err(error) => Box::new([finding(&error)]),
    }
}

/// Notes on an object that people write what could not be read of it. So a traffic policy does nothing,
/// and an access policy allows nothing and closes what it selects.
fn refuse(object: &mut Object, left_out: Vec<Rejection>) {
    if left_out.is_empty() {
        return;
    }
    match object {
        Object::AccessPolicy(policy) => {
            let policy = Arc::make_mut(policy);
            policy.rejections = join(&policy.rejections, left_out).into();
        }
        Object::TrafficPolicy(policy) => {
            let policy = Arc::make_mut(policy);
            policy.rejections = join(&policy.rejections, left_out).into();
        }
        Object::VirtualMesh(virtual_mesh) => {
            let virtual_mesh = Arc::make_mut(virtual_mesh);
            virtual_mesh.rejections = join(&virtual_mesh.rejections, left_out).into();
        }
        Object::Settings(settings) => {
            let settings = Arc::make_mut(settings);
            settings.rejections = join(&settings.rejections, left_out).into();
        }
        // Nobody reads a status there; the registry tells of it.
        Object::KubernetesCluster(_)
        | Object::Mesh(_)
        | Object::Workload(_)
        | Object::Destination(_)
        | Object::Secret(_)
        | Object::Namespace(_)
        | Object::Node(_)
        | Object::ConfigMap(_)
        | Object::Deployment(_)
        | Object::ReplicaSet(_)
        | Object::DaemonSet(_)
        | Object::StatefulSet(_)
        | Object::Pod(_)
        | Object::Service(_)
        | Object::EndpointSlice(_)
        | Object::Endpoints(_) => {}
    }
}

fn join(rejections: &[Rejection], more: Vec<Rejection>) -> Vec<Rejection> {
    rejections.iter().cloned().chain(more).collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::{
        ByteString,
        apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta},
    };

    use super::*;

    fn pruned(sort: &str) -> Secret {
        let data = ["root-cert.pem", "key.pem", "kubeconfig", "tls.key"];
        let data = data.map(|name| (name.to_owned(), ByteString(b"hunter2".to_vec())));
        let mut object = Partial {
            object: Secret {
                metadata: ObjectMeta {
                    annotations: Some(
                        [
                            (LAST_APPLIED_ANNOTATION.to_owned(), "hunter2".to_owned()),
                            ("kept".to_owned(), "yes".to_owned()),
                        ]
                        .into(),
                    ),
                    managed_fields: Some(vec![ManagedFieldsEntry::default()]),
                    ..ObjectMeta::default()
                },
                type_: Some(sort.to_owned()),
                data: Some(data.into()),
                ..Secret::default()
            },
            left_out: Vec::new(),
        };
        prune(&mut object);
        object.object
    }

    #[test]
    fn a_key_and_what_belongs_to_others_is_gone_before_anybody_looks() {
        let secret = pruned("Opaque");
        let data = secret.data.unwrap();
        assert_eq!(
            data.keys().collect::<Vec<_>>(),
            ["key.pem", "root-cert.pem"]
        );
        assert_eq!(data["key.pem"].0, [0], "there is one, and no more is known");

        let data = pruned(KUBECONFIG_SECRET_TYPE).data.unwrap();
        assert_eq!(data["kubeconfig"].0, b"hunter2");
        assert!(!data.contains_key("tls.key"));
    }

    #[test]
    fn what_tools_keep_in_metadata_is_gone_too() {
        let meta = pruned("Opaque").metadata;
        assert_eq!(meta.managed_fields, None);
        assert_eq!(
            meta.annotations.unwrap().keys().collect::<Vec<_>>(),
            ["kept"]
        );
    }

    #[test]
    fn a_kubeconfig_does_not_show_itself() {
        let shown = format!("{:?}", Kubeconfig(b"hunter2".to_vec()));
        assert_eq!(shown, "Kubeconfig(7 bytes)");
    }
}
