//! Takes away what the management plane has written to a remote cluster.

use ferromesh_crds::{CertificateRequest, IssuedCertificate, PodBounceDirective, meta};
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::core::{ApiResource, GroupVersionKind, ObjectMeta};

use super::Deregistration;
use crate::{door::Door, error::Error, object::Reference, progress::Event, right::ISTIO};

/// Versions of Istio's groups, the newest first. Objects are deleted through whichever is served.
const ISTIO_VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha3"];

/// Deletes what is labelled as written by this management plane to this cluster.
pub(super) async fn purge(
    remote: &Door<'_>,
    deregistration: &Deregistration,
    progress: &mut (dyn FnMut(Event) + Send),
) -> Result<(), Error> {
    let labels = format!(
        "{}={},{}={}",
        meta::NETWORKING_OWNER_LABEL,
        deregistration.management_namespace,
        meta::CLUSTER_LABEL,
        deregistration.name,
    );
    for (group, kinds) in ISTIO {
        for (kind, plural) in kinds {
            purge_kind(remote, (group, kind, plural), &labels, progress).await?;
        }
    }
    purge_certificates(remote, &labels, progress).await
}

async fn purge_kind(
    remote: &Door<'_>,
    kind: (&str, &str, &str),
    labels: &str,
    progress: &mut (dyn FnMut(Event) + Send),
) -> Result<(), Error> {
    let (group, kind, plural) = kind;
    for version in ISTIO_VERSIONS {
        let kind = GroupVersionKind::gvk(group, version, kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        let Some(found) = remote.list(&resource, labels).await? else {
            continue;
        };
        for object in found {
            remote.delete(&resource, &object, progress).await?;
        }
        return Ok(());
    }
    Ok(())
}

/// Deletes the records of certificates, each with its request and its key.
///
/// An agent of an older release takes a missing record as an order to delete `cacerts`. So where an agent
/// runs, the records stay.
async fn purge_certificates(
    remote: &Door<'_>,
    labels: &str,
    progress: &mut (dyn FnMut(Event) + Send),
) -> Result<(), Error> {
    let certificates = ApiResource::erase::<IssuedCertificate>(&());
    let requests = ApiResource::erase::<CertificateRequest>(&());
    let directives = ApiResource::erase::<PodBounceDirective>(&());
    let pods = ApiResource::erase::<Pod>(&());

    let records = remote
        .list(&certificates, labels)
        .await?
        .unwrap_or_default();
    let (key, value) = meta::AGENT_LABEL;
    let agents = remote.list(&pods, &format!("{key}={value}")).await?;
    if agents.is_some_and(|agents| !agents.is_empty()) {
        for record in records {
            progress(Event::Kept {
                side: remote.side(),
                object: Reference::of(&certificates.kind, &record),
                reason: "an agent runs in the cluster and may delete cacerts with it: \
                         uninstall the agent, then purge again",
            });
        }
        return Ok(());
    }
    let asked = remote
        .list(&requests, meta::CERTIFICATES_AGENT_LABEL)
        .await?
        .unwrap_or_default();
    for record in records {
        // The same name and namespace is what ties a request to a record.
        let is_of_record = |request: &&ObjectMeta| {
            request.namespace == record.namespace && request.name == record.name
        };
        if let Some(request) = asked.iter().find(is_of_record) {
            remote.delete(&requests, request, progress).await?;
        }
        delete_key(remote, &record, progress).await?;
        remote.delete(&certificates, &record, progress).await?;
    }
    for directive in remote.list(&directives, labels).await?.unwrap_or_default() {
        remote.delete(&directives, &directive, progress).await?;
    }
    Ok(())
}

/// Deletes the key that waits for a certificate. It is known by its type: nothing that istiod reads has it.
async fn delete_key(
    remote: &Door<'_>,
    record: &ObjectMeta,
    progress: &mut (dyn FnMut(Event) + Send),
) -> Result<(), Error> {
    let namespace = record.namespace.as_deref().unwrap_or_default();
    let name = record.name.as_deref().unwrap_or_default();
    match remote.find_secret(namespace, name).await? {
        Some(key) if key.type_.as_deref() == Some(meta::GENERATED_KEY_SECRET_TYPE) => {
            remote
                .delete(&ApiResource::erase::<Secret>(&()), &key.metadata, progress)
                .await
        }
        _ => Ok(()),
    }
}
