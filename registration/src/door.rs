//! Requests to the API server of one side.

use std::fmt;

use ferromesh_crds::meta;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions},
    core::{ApiResource, DynamicObject, ObjectMeta, PartialObjectMeta},
};

use crate::{
    error::{Error, Failure},
    object::{Claim, Object, Reference, Side},
    progress::{Change, Event},
};

/// Objects per page of a list, as client-go has it.
const PAGE: u32 = 500;

/// What is being done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is read.
    Read,
    /// It is written.
    Write,
    /// It is deleted.
    Delete,
    /// A token is requested of it.
    RequestToken,
}

/// The API server of one side.
pub(crate) struct Door<'a> {
    side: Side,
    client: &'a Client,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "reading",
            Self::Write => "writing",
            Self::Delete => "deleting",
            Self::RequestToken => "requesting a token of",
        })
    }
}

// === impl Door ===

impl<'a> Door<'a> {
    pub(crate) fn new(side: Side, client: &'a Client) -> Self {
        Self { side, client }
    }

    pub(crate) fn side(&self) -> Side {
        self.side
    }

    pub(crate) fn client(&self) -> &'a Client {
        self.client
    }

    /// The error of a request that failed.
    pub(crate) fn failed(
        &self,
        action: Action,
        object: &Reference,
    ) -> impl FnOnce(kube::Error) -> Error + use<> {
        let (side, object) = (self.side, object.clone());
        move |source| Error::Request {
            action,
            object,
            side,
            failure: Failure::of(&source),
            source: Box::new(source),
        }
    }

    fn api(&self, resource: &ApiResource, namespace: Option<&str>) -> Api<DynamicObject> {
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
        }
    }

    /// The object as it is now; none if it, its namespace or its kind does not exist.
    pub(crate) async fn find(&self, object: &Object) -> Result<Option<DynamicObject>, Error> {
        let api = self.api(object.resource(), object.namespace());
        let found = present(api.get(object.name()).await);
        found.map_err(self.failed(Action::Read, &object.reference()))
    }

    /// A Secret, if it exists.
    pub(crate) async fn find_secret(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Secret>, Error> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let reference = Reference::new("Secret", Some(namespace), name);
        present(secrets.get(name).await).map_err(self.failed(Action::Read, &reference))
    }

    /// The metadata of an object, if it exists.
    pub(crate) async fn find_metadata(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<ObjectMeta>, Error> {
        let reference = Reference::new(&resource.kind, namespace, name);
        let found = present(self.api(resource, namespace).get_metadata(name).await);
        let found = found.map_err(self.failed(Action::Read, &reference))?;
        Ok(found.map(|object| object.metadata))
    }

    /// Whether the cluster knows the kind at all: a list of it fails in that case alone.
    pub(crate) async fn serves(
        &self,
        resource: &ApiResource,
        namespace: &str,
    ) -> Result<bool, Error> {
        let api = self.api(resource, Some(namespace));
        let all = Reference::new(&resource.kind, Some(namespace), "*");
        let listed = present(api.list_metadata(&ListParams::default().limit(1)).await);
        let listed = listed.map_err(self.failed(Action::Read, &all))?;
        Ok(listed.is_some())
    }

    /// Makes an object as planned. `current` is what it is now.
    pub(crate) async fn apply(
        &self,
        object: &Object,
        current: Option<&DynamicObject>,
    ) -> Result<Change, Error> {
        let api = self.api(object.resource(), object.namespace());
        let failed = || self.failed(Action::Write, &object.reference());
        let (body, status) = object.split();
        if object.claim() == Claim::Everybodys {
            if current.is_some() {
                return Ok(Change::Unchanged);
            }
            let parameters = PostParams {
                field_manager: Some(meta::CLI_FIELD_MANAGER.to_owned()),
                ..PostParams::default()
            };
            return match api.create(&parameters, &body).await {
                Ok(_) => Ok(Change::Created),
                // Where both sides are one cluster, the other one has just made it.
                Err(kube::Error::Api(status)) if status.code == 409 => Ok(Change::Unchanged),
                Err(error) => Err(failed()(error)),
            };
        }
        let parameters = PatchParams {
            force: object.claim() != Claim::Shared,
            ..PatchParams::apply(meta::CLI_FIELD_MANAGER)
        };
        let mut written = api
            .patch(object.name(), &parameters, &Patch::Apply(&body))
            .await
            .map_err(failed())?;
        if let Some(status) = status {
            written = api
                .patch_status(object.name(), &parameters, &Patch::Apply(&status))
                .await
                .map_err(failed())?;
        }
        Ok(match current {
            None => Change::Created,
            Some(current)
                if current.metadata.resource_version == written.metadata.resource_version =>
            {
                Change::Unchanged
            }
            Some(_) => Change::Changed,
        })
    }

    /// The metadata of all objects of a kind with these labels, in all namespaces; none if the cluster does
    /// not serve the kind.
    pub(crate) async fn list(
        &self,
        resource: &ApiResource,
        labels: &str,
    ) -> Result<Option<Vec<ObjectMeta>>, Error> {
        let api = self.api(resource, None);
        let mut parameters = ListParams::default().labels(labels).limit(PAGE);
        let mut found = Vec::new();
        loop {
            let all = Reference::new(&resource.kind, None, &format!("with labels {labels}"));
            let page = present(api.list_metadata(&parameters).await);
            let Some(page) = page.map_err(self.failed(Action::Read, &all))? else {
                return Ok(None);
            };
            found.extend(
                page.items
                    .into_iter()
                    .map(|object: PartialObjectMeta<DynamicObject>| object.metadata),
            );
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => parameters.continue_token = Some(token),
                None => return Ok(Some(found)),
            }
        }
    }

    /// Deletes an object that was seen as `seen`, and no other that has taken its name since.
    pub(crate) async fn delete(
        &self,
        resource: &ApiResource,
        seen: &ObjectMeta,
        progress: &mut (dyn FnMut(Event) + Send),
    ) -> Result<(), Error> {
        let object = Reference::of(&resource.kind, seen);
        let parameters = DeleteParams {
            preconditions: Some(Preconditions {
                uid: seen.uid.clone(),
                resource_version: None,
            }),
            ..DeleteParams::background()
        };
        let api = self.api(resource, seen.namespace.as_deref());
        let deleted = present(api.delete(&object.name, &parameters).await);
        if deleted
            .map_err(self.failed(Action::Delete, &object))?
            .is_some()
        {
            let side = self.side;
            progress(Event::Deleted { side, object });
        }
        Ok(())
    }
}

/// What was asked for, if it exists.
///
/// By the code alone: of a kind that it does not serve an API server says 404 in words of its own.
fn present<T>(answer: Result<T, kube::Error>) -> Result<Option<T>, kube::Error> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}
