//! Makes one object stand as it is wanted, or not at all, without ever touching one that is not ours.
//!
//! Between what the watch has shown and the moment of writing, the object may have been created,
//! deleted, created anew or disowned by somebody else. So each write says which state it replaces, and
//! the API server refuses it in any other:
//!
//! - Nothing stands there: server-side apply with a `resourceVersion` that no object has. It creates
//!   what does not exist and is a conflict for what does. (A plain create would not do: it would leave
//!   fields to us under another operation, and later applies could not remove them.)
//! - Ours stands there, as last seen: apply with its `uid` and `resourceVersion`.
//! - Deletion: preconditions on both.
//!
//! After a conflict the object is read, and what it is then decides.

use kube::api::{DynamicObject, Preconditions};
use serde_json::{Value, json};

use crate::{
    drift::{self, Standing},
    error::Error,
    object::{Desired, Kind, Label, ObjectId},
    ssa::{Address, OtherManagers, Writer},
};

/// How often a conflict is looked into at once. After that the object waits for its turn.
const ATTEMPTS: usize = 3;

/// The version before that of any object: etcd counts from 1 and writes none under it.
const NO_OBJECT: &str = "1";

/// What has become of an attempt to make an object stand.
#[derive(Debug)]
pub(crate) enum Applied {
    /// It was written. `altered` is the path of what the API server keeps otherwise.
    Written {
        standing: Standing,
        altered: Option<String>,
    },
    /// It stood as it is wanted already.
    Unchanged(Standing),
    /// It is being deleted: it has to be gone before it can be created anew.
    Terminating(Standing),
    /// An object of this name is not ours.
    Foreign,
}

/// What has become of an attempt to delete an object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Deleted {
    /// It is gone, or finalizers keep it for a while.
    Gone,
    /// What stands there now is not what was to be deleted.
    Left,
}

/// What one object is, and who writes it.
pub(crate) struct Task {
    pub(crate) writer: Writer,
    pub(crate) owner: Label,
    pub(crate) place: Label,
    pub(crate) address: Address,
    /// What stood there when it was last seen; none if nothing of ours did.
    pub(crate) seen: Option<Standing>,
}

impl Task {
    /// Where an object of `kind` is in `version`.
    pub(crate) fn address(kind: &Kind, version: &str, id: &ObjectId) -> Address {
        Address {
            group: kind.group.to_string(),
            version: version.to_owned(),
            plural: kind.plural.to_string(),
            namespace: id.namespace.to_string(),
            name: id.name.to_string(),
        }
    }

    /// Makes the object stand as `desired`, whose form for the API server is `body`.
    pub(crate) async fn apply(self, desired: Desired, mut body: Value) -> Result<Applied, Error> {
        let mut seen = self.seen.clone();
        let mut conflict = None;
        for _ in 0..ATTEMPTS {
            expect(&mut body, seen.as_ref());
            // Fields of ours that somebody else has set are taken back; that is what `seen` proves.
            let applied = self
                .writer
                .apply(&self.address, &body, OtherManagers::Override)
                .await;
            let settled = match applied {
                Ok(object) => self.settle(object, &desired).await,
                Err(error) => Err(error),
            };
            match settled {
                Err(error @ Error::Conflict { .. }) => conflict = Some(error),
                settled => return settled,
            }
            let Some(object) = self.writer.read(&self.address).await? else {
                seen = None;
                continue;
            };
            if !self.owner.is_on(object.metadata.labels.as_ref()) {
                return Ok(Applied::Foreign);
            }
            let standing = self.reduced(&object);
            if standing.is_terminating {
                return Ok(Applied::Terminating(standing));
            }
            if standing.digest == drift::wanted(&desired) {
                return Ok(Applied::Unchanged(standing));
            }
            seen = Some(standing);
        }
        Err(conflict.expect("every attempt that goes on was a conflict"))
    }

    /// Deletes what stood there.
    pub(crate) async fn delete(self) -> Result<Deleted, Error> {
        let Some(mut seen) = self.seen.clone() else {
            return Ok(Deleted::Gone);
        };
        let mut conflict = None;
        for _ in 0..ATTEMPTS {
            let preconditions = Preconditions {
                uid: Some(seen.uid.to_string()),
                resource_version: Some(seen.version.to_string()),
            };
            match self.writer.delete(&self.address, preconditions).await {
                Ok(()) | Err(Error::NotFound { .. }) => return Ok(Deleted::Gone),
                Err(error @ Error::Conflict { .. }) => conflict = Some(error),
                Err(error) => return Err(error),
            }
            let Some(object) = self.writer.read(&self.address).await? else {
                return Ok(Deleted::Gone);
            };
            let labels = object.metadata.labels.as_ref();
            let standing = self.reduced(&object);
            let is_ours = self.owner.is_on(labels) && self.place.is_on(labels);
            if !is_ours || standing.uid != seen.uid {
                return Ok(Deleted::Left);
            }
            seen = standing;
        }
        Err(conflict.expect("every attempt that goes on was a conflict"))
    }

    /// Takes away what others have added to the spec. Server-side apply leaves it alone, and it also
    /// leaves what they have set as we have: it would stay when we no longer want it.
    async fn settle(&self, object: DynamicObject, desired: &Desired) -> Result<Applied, Error> {
        let object = match drift::surplus(&object, self.writer.manager(), desired) {
            Some(patch) => self.writer.merge(&self.address, &patch).await?,
            None => object,
        };
        Ok(Applied::Written {
            standing: self.reduced(&object),
            altered: drift::difference(desired, &object),
        })
    }

    fn reduced(&self, object: &DynamicObject) -> Standing {
        Standing::of(object, self.writer.manager())
    }
}

/// Says in the body of an apply which state of the object it replaces.
fn expect(body: &mut Value, seen: Option<&Standing>) {
    let Some(meta) = body["metadata"].as_object_mut() else {
        return;
    };
    meta.remove("uid");
    meta.extend(seen.map(|standing| ("uid".to_owned(), json!(standing.uid))));
    let version = seen.map_or(NO_OBJECT, |standing| &standing.version);
    meta.insert("resourceVersion".to_owned(), json!(version));
}
