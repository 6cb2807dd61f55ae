//! Takes a registration away, and nothing else.
//!
//! What belongs to a registration is known by its label, so neither the namespaces of the registration nor
//! its options have to be remembered, and the management cluster can be deregistered from itself. CRDs,
//! namespaces and `cacerts` stay in every case: without `cacerts` istiod would make a root of its own at its
//! next start, and workloads would no longer trust each other.

mod purge;

use std::collections::BTreeSet;

use ferromesh_crds::{
    KubernetesCluster, meta,
    name::{ClusterName, Namespace},
};
use k8s_openapi::api::core::v1::Secret;
use kube::{Client, core::ApiResource};

use crate::{
    account,
    door::Door,
    error::Error,
    object::{Reference, Side},
    progress::{Event, Warning},
    register::{check_same_cluster, cluster_uid},
};

/// Which cluster is to be deregistered.
#[derive(Clone, Debug)]
pub struct Deregistration {
    /// Its name.
    pub name: ClusterName,
    /// The namespace of the management plane.
    pub management_namespace: Namespace,
    /// Whether what the management plane has written to the remote cluster goes too: the objects of Istio
    /// and the records of certificates. Without it they stay, and traffic flows on as it does.
    pub purge: bool,
}

/// Deregisters a cluster: first in the management cluster, then in the remote one.
///
/// `remote` is none if the remote cluster is not reached; then only the management side is done. What does
/// not exist any more is no error, so a run that broke off can be repeated.
pub async fn deregister(
    management: &Client,
    remote: Option<&Client>,
    deregistration: &Deregistration,
    progress: &mut (dyn FnMut(Event) + Send),
) -> Result<(), Error> {
    let management = Door::new(Side::Management, management);
    let remote = remote.map(|client| Door::new(Side::Remote, client));
    let clusters = ApiResource::erase::<KubernetesCluster>(&());
    let namespace = deregistration.management_namespace.as_str();
    let name = deregistration.name.as_str();
    let registered = management
        .find_metadata(&clusters, Some(namespace), name)
        .await?;
    if let Some(remote) = &remote {
        // Also finds out whether it answers, before anything is taken away.
        let given = cluster_uid(remote).await?;
        if let Some(registered) = &registered {
            check_same_cluster(&deregistration.name, registered, &given)?;
        }
    }

    if let Some(registered) = registered {
        management.delete(&clusters, &registered, progress).await?;
    }
    delete_kubeconfig(&management, deregistration, progress).await?;

    match &remote {
        Some(remote) => {
            // The account first, so that whoever still holds its token cannot write back what is purged.
            account::remove(remote, &deregistration.name, &BTreeSet::new(), progress).await?;
            if deregistration.purge {
                purge::purge(remote, deregistration, progress).await?;
            }
        }
        None => progress(Event::Warning(Warning::RemoteUntouched)),
    }
    Ok(())
}

/// Deletes the Secret of the kubeconfig, if what has its name is one.
async fn delete_kubeconfig(
    management: &Door<'_>,
    deregistration: &Deregistration,
    progress: &mut (dyn FnMut(Event) + Send),
) -> Result<(), Error> {
    let namespace = deregistration.management_namespace.as_str();
    let name = deregistration.name.as_str();
    match management.find_secret(namespace, name).await? {
        None => {}
        Some(secret) if secret.type_.as_deref() == Some(meta::KUBECONFIG_SECRET_TYPE) => {
            let resource = ApiResource::erase::<Secret>(&());
            management
                .delete(&resource, &secret.metadata, progress)
                .await?;
        }
        Some(_) => progress(Event::Kept {
            side: management.side(),
            object: Reference::new("Secret", Some(namespace), name),
            reason: "it holds no kubeconfig",
        }),
    }
    Ok(())
}
