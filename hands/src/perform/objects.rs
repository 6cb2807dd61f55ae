//! Reads and writes of one certificate's objects.

use std::fmt;

use ferromesh_crds::{CertificateRequest, IssuedCertificate, PodBounceDirective, meta};
use ferromesh_runtime::beside;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Resource, ResourceExt as _};
use serde_json::{Value, json};

use super::Hands;
use crate::error::Error;
use crate::mark::{Generation, Version};
use crate::sealed::Sealed;
use crate::state::{Action, Observed};
use crate::{cacerts, key};

impl Hands {
    /// All that there is about a certificate; none if there is no certificate.
    pub(super) async fn look(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Observed>, Error> {
        let certificates: Api<IssuedCertificate> = self.api(namespace);
        let Some(certificate) = read(&certificates, name).await? else {
            return Ok(None);
        };
        let target = certificate.spec.issued_certificate_secret.as_ref();
        let cacerts = match target {
            // Nothing else is ever read or written under a name that an object gives.
            Some(target) if target.name == meta::CACERTS_SECRET && !target.namespace.is_empty() => {
                self.read_secret(&target.namespace, &target.name).await?
            }
            _ => None,
        };
        let owner = cacerts.as_ref().and_then(cacerts::owner);
        let owner = match owner.filter(|owner| owner != name) {
            Some(owner) => read(&certificates, &owner).await?,
            None => None,
        };
        let directive = match &certificate.spec.pod_bounce_directive {
            Some(reference) if reference.namespace == namespace => {
                let directives: Api<PodBounceDirective> = self.api(namespace);
                read(&directives, &reference.name).await?
            }
            _ => None,
        };
        Ok(Some(Observed {
            key: self.read_secret(namespace, name).await?,
            request: read(&self.api::<CertificateRequest>(namespace), name).await?,
            certificate,
            cacerts,
            owner,
            directive,
        }))
    }

    /// Does `actions` in order, up to the first that fails.
    pub(super) async fn act(&self, observed: &Observed, actions: Vec<Action>) -> Result<(), Error> {
        let namespace = observed.certificate.namespace().unwrap_or_default();
        let name = observed.certificate.name_any();
        for action in actions {
            tracing::info!(namespace, name, ?action, "certificate step");
            self.act_once(observed, &namespace, &name, action).await?;
        }
        Ok(())
    }

    async fn act_once(
        &self,
        observed: &Observed,
        namespace: &str,
        name: &str,
        action: Action,
    ) -> Result<(), Error> {
        match action {
            Action::DropKey(version) => self.drop_key(namespace, name, version).await,
            Action::CreateKey {
                generation,
                algorithm,
                terms,
            } => {
                let key = self.make_key(algorithm, namespace, name).await?;
                let secret = key::object(&observed.certificate, generation, terms, &key);
                self.create_key(namespace, &secret, generation).await
            }
            Action::Ask { request, replaces } => self.ask(namespace, *request, replaces).await,
            Action::ResetDirective => match &observed.directive {
                Some(directive) => self.record(directive, Vec::new()).await,
                None => Ok(()),
            },
            Action::Strip {
                namespace,
                entries,
                version,
            } => self.strip(&namespace, &entries, &version).await,
            Action::Store { secret, .. } => self.store(&secret).await,
        }
    }

    async fn make_key(
        &self,
        algorithm: ferromesh_ca::key::KeyAlgorithm,
        namespace: &str,
        name: &str,
    ) -> Result<ferromesh_ca::key::PrivateKey, Error> {
        let new_key = self.sources.key.clone();
        let object = || format!("{namespace}/{name}");
        match beside::run(move || new_key(algorithm)).await {
            Ok(made) => made.map_err(|source| Error::Key {
                object: object(),
                source,
            }),
            Err(_) => Err(Error::Interrupted { object: object() }),
        }
    }

    async fn drop_key(&self, namespace: &str, name: &str, version: Version) -> Result<(), Error> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: version.uid,
                resource_version: version.resource_version,
            }),
            ..DeleteParams::default()
        };
        let secrets: Api<Secret> = self.api(namespace);
        match secrets.delete(name, &params).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(error) => Err(Error::api("deleting", place(&secrets, name), error)),
        }
    }

    async fn create_key(
        &self,
        namespace: &str,
        secret: &Sealed,
        generation: Generation,
    ) -> Result<(), Error> {
        let secrets: Api<Secret> = self.api(namespace);
        match secrets.create(&self.post(), secret.open()).await {
            Ok(created) => {
                drop(Sealed::from(created));
                tracing::info!(namespace, %generation, "private key created");
                Ok(())
            }
            Err(error) => {
                let name = secret.open().name_any();
                Err(Error::api("creating", place(&secrets, &name), error))
            }
        }
    }

    async fn ask(
        &self,
        namespace: &str,
        mut request: CertificateRequest,
        replaces: Option<Version>,
    ) -> Result<(), Error> {
        let requests: Api<CertificateRequest> = self.api(namespace);
        let name = request.name_any();
        let written = match replaces {
            None => requests.create(&self.post(), &request).await,
            Some(version) => {
                version.require(&mut request.metadata);
                let patch = Patch::Apply(&request);
                requests.patch(&name, &self.apply(), &patch).await
            }
        };
        match written {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::api("writing", place(&requests, &name), error)),
        }
    }

    /// Takes entries away from `cacerts`. Server-side apply cannot: they belong to somebody else.
    async fn strip(
        &self,
        namespace: &str,
        entries: &[&'static str],
        version: &Version,
    ) -> Result<(), Error> {
        let secrets: Api<Secret> = self.api(namespace);
        let removed: serde_json::Map<String, Value> = entries
            .iter()
            .map(|entry| ((*entry).to_owned(), Value::Null))
            .collect();
        let patch = Patch::Merge(json!({
            "metadata": { "uid": version.uid, "resourceVersion": version.resource_version },
            "data": removed,
        }));
        let params = PatchParams {
            field_manager: Some(self.field_manager.to_owned()),
            ..PatchParams::default()
        };
        let name = meta::CACERTS_SECRET;
        match secrets.patch(name, &params, &patch).await {
            Ok(stripped) => {
                drop(Sealed::from(stripped));
                Ok(())
            }
            Err(error) => Err(Error::api("repairing", place(&secrets, name), error)),
        }
    }

    /// Writes `cacerts`, complete: in the place of the version that it carries, or newly. A Secret that
    /// appeared meanwhile is not touched: it is looked at first.
    async fn store(&self, secret: &Sealed) -> Result<(), Error> {
        let secret = secret.open();
        let secrets: Api<Secret> = self.api(&secret.namespace().unwrap_or_default());
        let name = secret.name_any();
        let written = if secret.metadata.uid.is_some() || secret.metadata.resource_version.is_some()
        {
            let patch = Patch::Apply(secret);
            secrets.patch(&name, &self.apply(), &patch).await
        } else {
            secrets.create(&self.post(), secret).await
        };
        match written {
            Ok(stored) => {
                drop(Sealed::from(stored));
                Ok(())
            }
            Err(error) => Err(Error::api("writing", place(&secrets, &name), error)),
        }
    }

    pub(super) async fn put_status(
        &self,
        certificate: &IssuedCertificate,
    ) -> Result<IssuedCertificate, Error> {
        let certificates: Api<IssuedCertificate> =
            self.api(&certificate.namespace().unwrap_or_default());
        let name = certificate.name_any();
        let written = certificates
            .replace_status(&name, &self.post(), certificate)
            .await;
        written.map_err(|error| {
            Error::api("writing the status of", place(&certificates, &name), error)
        })
    }

    async fn read_secret(&self, namespace: &str, name: &str) -> Result<Option<Sealed>, Error> {
        let secret = read(&self.api::<Secret>(namespace), name).await?;
        Ok(secret.map(Sealed::from))
    }

    pub(super) fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub(super) fn post(&self) -> PostParams {
        PostParams {
            field_manager: Some(self.field_manager.to_owned()),
            ..PostParams::default()
        }
    }

    fn apply(&self) -> PatchParams {
        PatchParams::apply(self.field_manager).force()
    }
}

/// An object; none if there is no such.
async fn read<K>(api: &Api<K>, name: &str) -> Result<Option<K>, Error>
where
    K: Resource<DynamicType = ()> + Clone + fmt::Debug + serde::de::DeserializeOwned,
{
    api.get_opt(name)
        .await
        .map_err(|error| Error::api("reading", place(api, name), error))
}

/// Where an object is, as API servers write it.
fn place<K: Resource>(api: &Api<K>, name: &str) -> String {
    format!("{}/{name}", api.resource_url())
}
