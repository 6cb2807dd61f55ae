//! Takes the account of a registration away, or what is left of an earlier one.

use std::collections::BTreeSet;

use ferromesh_crds::name::ClusterName;
use k8s_openapi::api::{
    core::v1::{Secret, ServiceAccount},
    rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
};
use kube::{
    Resource,
    core::{ApiResource, ObjectMeta},
};

use crate::{
    door::Door,
    error::Error,
    object::{REGISTRATION_LABEL, Reference},
    plan::token_secret,
    progress::Event,
};

/// Deletes the account of a cluster and everything that gives it rights, except what is to be kept.
pub(crate) async fn remove(
    remote: &Door<'_>,
    cluster: &ClusterName,
    keep: &BTreeSet<Reference>,
    progress: &mut (dyn FnMut(Event) + Send),
) -> Result<(), Error> {
    let labels = format!("{REGISTRATION_LABEL}={cluster}");
    let removal = Removal {
        remote,
        labels: &labels,
        keep,
    };
    for account in removal.all::<ServiceAccount>().await? {
        // The cluster deletes the token of an account that is gone by itself, some time.
        let secrets = ApiResource::erase::<Secret>(&());
        let namespace = account.namespace.as_deref();
        let token = remote
            .find_metadata(&secrets, namespace, &token_secret(cluster))
            .await?;
        if let Some(token) = token.filter(|token| has_label(token, cluster)) {
            removal.delete::<Secret>(&token, progress).await?;
        }
        removal.delete::<ServiceAccount>(&account, progress).await?;
    }
    removal.delete_all::<ClusterRoleBinding>(progress).await?;
    removal.delete_all::<RoleBinding>(progress).await?;
    removal.delete_all::<ClusterRole>(progress).await?;
    removal.delete_all::<Role>(progress).await
}

/// Whether an object is part of the registration of a cluster.
pub(crate) fn has_label(object: &ObjectMeta, cluster: &ClusterName) -> bool {
    let label = object
        .labels
        .as_ref()
        .and_then(|labels| labels.get(REGISTRATION_LABEL));
    label.map(String::as_str) == Some(cluster.as_str())
}

struct Removal<'a> {
    remote: &'a Door<'a>,
    labels: &'a str,
    keep: &'a BTreeSet<Reference>,
}

impl Removal<'_> {
    async fn all<K: Resource<DynamicType = ()>>(&self) -> Result<Vec<ObjectMeta>, Error> {
        let found = self
            .remote
            .list(&ApiResource::erase::<K>(&()), self.labels)
            .await?;
        Ok(found.unwrap_or_default())
    }

    async fn delete_all<K: Resource<DynamicType = ()>>(
        &self,
        progress: &mut (dyn FnMut(Event) + Send),
    ) -> Result<(), Error> {
        for object in self.all::<K>().await? {
            self.delete::<K>(&object, progress).await?;
        }
        Ok(())
    }

    async fn delete<K: Resource<DynamicType = ()>>(
        &self,
        object: &ObjectMeta,
        progress: &mut (dyn FnMut(Event) + Send),
    ) -> Result<(), Error> {
        let resource = ApiResource::erase::<K>(&());
        if self.keep.contains(&Reference::of(&resource.kind, object)) {
            return Ok(());
        }
        self.remote.delete(&resource, object, progress).await
    }
}
