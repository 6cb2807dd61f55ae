//! An object of a registration: where it belongs, whose it is, what it says.

use std::fmt;

use kube::{
    Resource,
    core::{ApiResource, DynamicObject, ObjectMeta},
};
use serde::Serialize;
use serde_json::Value;

/// Label on everything that a registration writes: the name of the registered cluster.
///
/// What is found under a name of ours without it belongs to somebody else.
pub const REGISTRATION_LABEL: &str = "registration.mesh.gloo.solo.io/cluster";

/// One of the two clusters of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// Where the management plane runs.
    Management,
    /// The cluster that is registered.
    Remote,
}

/// Which object, for a person.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// Its kind.
    pub kind: String,
    /// Its namespace; none if its kind is cluster-scoped.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

/// An object as it is to stand on one side.
///
/// It may hold a credential, so `Debug` shows only which object it is.
#[derive(Clone, PartialEq)]
pub struct Object {
    side: Side,
    claim: Claim,
    resource: ApiResource,
    body: DynamicObject,
}

/// Whose an object is, and so what is done if it exists already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Everybody's: created where it is missing, otherwise left alone.
    Everybodys,
    /// Shared: what the plan says is applied, unless somebody else says otherwise.
    Shared,
    /// Ours if it has the label of this registration.
    Labelled,
    /// Ours by its kind, its type and its name, whoever made it.
    Named,
    /// A definition: ours if we created it. Somebody else's is used as it is.
    Definition,
}

// === impl Side ===

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Management => "the management cluster",
            Self::Remote => "the remote cluster",
        })
    }
}

// === impl Reference ===

impl Reference {
    /// Names an object.
    pub(crate) fn new(kind: &str, namespace: Option<&str>, name: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        }
    }

    /// Names the object of that kind with this metadata.
    pub(crate) fn of(kind: &str, object: &ObjectMeta) -> Self {
        let name = object.name.as_deref().unwrap_or_default();
        Self::new(kind, object.namespace.as_deref(), name)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            namespace,
            name,
        } = self;
        match namespace {
            Some(namespace) => write!(f, "{kind} {namespace}/{name}"),
            None => write!(f, "{kind} {name}"),
        }
    }
}

// === impl Object ===

impl Object {
    /// An object of a registration, from its own type.
    pub(crate) fn new<K>(side: Side, claim: Claim, object: &K) -> Self
    where
        K: Resource<DynamicType = ()> + Serialize,
    {
        let object = serde_json::to_value(object).expect("an API type is JSON");
        Self {
            side,
            claim,
            resource: ApiResource::erase::<K>(&()),
            body: serde_json::from_value(object).expect("an API type is an object"),
        }
    }

    /// The side that it belongs to.
    pub fn side(&self) -> Side {
        self.side
    }

    /// Its kind, as the API server names it.
    pub fn resource(&self) -> &ApiResource {
        &self.resource
    }

    /// All that it says. A kubeconfig Secret says a token.
    pub fn body(&self) -> &DynamicObject {
        &self.body
    }

    /// Which object it is.
    pub fn reference(&self) -> Reference {
        Reference::new(&self.resource.kind, self.namespace(), self.name())
    }

    pub(crate) fn claim(&self) -> Claim {
        self.claim
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        self.body.metadata.namespace.as_deref()
    }

    pub(crate) fn name(&self) -> &str {
        let name = self.body.metadata.name.as_deref();
        name.expect("every object of a plan has a name")
    }

    /// What is written by the object itself, and what only by its status.
    pub(crate) fn split(&self) -> (DynamicObject, Option<DynamicObject>) {
        let mut body = self.body.clone();
        let status = body
            .data
            .as_object_mut()
            .and_then(|data| data.remove("status"));
        let status = status.map(|status| DynamicObject {
            types: body.types.clone(),
            metadata: ObjectMeta {
                name: body.metadata.name.clone(),
                namespace: body.metadata.namespace.clone(),
                ..ObjectMeta::default()
            },
            data: Value::Object([("status".to_owned(), status)].into_iter().collect()),
        });
        (body, status)
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.reference(), self.side)
    }
}
