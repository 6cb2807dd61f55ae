//! What the API server holds, and what has happened to it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    Kind, Request,
    fields::{APPLY, Lists, Managers, UPDATE, merge_patch},
    refusal::Refusal,
};

/// Group and plural.
pub(super) type Collection = (String, String);
/// Namespace, empty if there is none, and name.
pub(super) type Key = (String, String);

#[derive(Default)]
pub(super) struct Store {
    pub(super) kinds: BTreeMap<Collection, Kind>,
    pub(super) version: u64,
    objects: BTreeMap<Collection, BTreeMap<Key, Stored>>,
    pub(super) events: Vec<Event>,
    /// Watches from before this version are told 410.
    pub(super) compacted: u64,
    /// Watches that began under an earlier number are ended.
    pub(super) generation: u64,
    pub(super) requests: Vec<Request>,
    uids: u64,
}

/// What an API server holds at a moment, as a backup of its storage keeps it.
#[derive(Clone)]
pub struct Snapshot {
    version: u64,
    objects: BTreeMap<Collection, BTreeMap<Key, Stored>>,
}

#[derive(Clone, Default, PartialEq)]
struct Stored {
    object: Value,
    managers: Managers,
}

/// A change, or a bookmark if it has neither state.
pub(super) struct Event {
    pub(super) version: u64,
    pub(super) collection: Collection,
    pub(super) before: Option<Value>,
    pub(super) after: Option<Value>,
}

/// Where something is to be done, and by whom.
pub(super) struct Target<'a> {
    pub(super) collection: &'a Collection,
    pub(super) key: &'a Key,
    pub(super) api_version: String,
    pub(super) manager: &'a str,
    pub(super) subresource: &'static str,
}

/// What is made of an object on its way in, as a webhook would.
pub(super) type Mutate = dyn Fn(&mut Value) + Send + Sync;

// === impl Store ===

impl Store {
    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot {
            version: self.version,
            objects: self.objects.clone(),
        }
    }

    /// Goes back to a snapshot. Of what was before it nobody remembers the events; who has seen what was
    /// after it is ahead.
    pub(super) fn restore(&mut self, snapshot: &Snapshot) {
        self.version = snapshot.version;
        self.objects.clone_from(&snapshot.objects);
        self.events.clear();
        self.compacted = self.version;
        self.generation += 1;
    }

    pub(super) fn get(&self, collection: &Collection, key: &Key) -> Option<Value> {
        self.objects.get(collection)?.get(key).map(Stored::shown)
    }

    /// Every object of a collection, in the order of keys.
    pub(super) fn list(&self, collection: &Collection) -> Vec<(Key, Value)> {
        let objects = self.objects.get(collection).into_iter().flatten();
        objects
            .map(|(key, stored)| (key.clone(), stored.shown()))
            .collect()
    }

    pub(super) fn apply(
        &mut self,
        target: &Target<'_>,
        body: &Value,
        is_forced: bool,
        mutate: Option<&Mutate>,
    ) -> Result<Value, Refusal> {
        let live = self.stored(target);
        let meta = &body["metadata"];
        if live.is_none() && target.subresource == "status" {
            return Err(Refusal::not_found());
        }
        if live.is_none() && meta["uid"].is_string() {
            return Err(Refusal::new(
                409,
                "uid mismatch: no existing object was found",
            ));
        }
        let live = live.unwrap_or_default();
        live.expect_version(meta)?;
        let mut managers = live.managers.clone();
        let by = (target.manager.to_owned(), APPLY, target.subresource);
        let lists = self.lists(target.collection);
        let mut applied = body.clone();
        target.keep_own_part(&mut applied, None);
        let object = match live.object {
            Value::Null => json!({}),
            object => object,
        };
        let merged = managers
            .apply(
                by,
                &target.api_version,
                &object,
                &applied,
                &lists,
                is_forced,
            )
            .map_err(Refusal::from)?;
        self.commit(target, merged, managers, mutate)
    }

    pub(super) fn create(
        &mut self,
        target: &Target<'_>,
        object: &Value,
        mutate: Option<&Mutate>,
    ) -> Result<Value, Refusal> {
        if self.stored(target).is_some() {
            return Err(Refusal::new(409, "the object already exists"));
        }
        self.replace_stored(target, &Stored::default(), object.clone(), mutate)
    }

    pub(super) fn replace(
        &mut self,
        target: &Target<'_>,
        object: &Value,
        mutate: Option<&Mutate>,
    ) -> Result<Value, Refusal> {
        let live = self.stored(target).ok_or_else(Refusal::not_found)?;
        live.expect_version(&object["metadata"])?;
        self.replace_stored(target, &live, object.clone(), mutate)
    }

    /// A JSON merge patch.
    pub(super) fn merge(
        &mut self,
        target: &Target<'_>,
        patch: &Value,
        mutate: Option<&Mutate>,
    ) -> Result<Value, Refusal> {
        let live = self.stored(target).ok_or_else(Refusal::not_found)?;
        live.expect_version(&patch["metadata"])?;
        let mut object = live.object.clone();
        merge_patch(&mut object, patch);
        self.replace_stored(target, &live, object, mutate)
    }

    pub(super) fn delete(
        &mut self,
        collection: &Collection,
        key: &Key,
        preconditions: &Value,
    ) -> Result<Value, Refusal> {
        let objects = self.objects.entry(collection.clone()).or_default();
        let live = objects.get_mut(key).ok_or_else(Refusal::not_found)?;
        for field in ["uid", "resourceVersion"] {
            let wanted = &preconditions[field];
            if !wanted.is_null() && *wanted != live.object["metadata"][field] {
                let message = format!("the {field} in the precondition does not match");
                return Err(Refusal::new(409, &message));
            }
        }
        let is_held = live.object["metadata"]["finalizers"] != Value::Null;
        if !is_held {
            return Ok(self.remove(collection, key));
        }
        let before = live.shown();
        if before["metadata"]["deletionTimestamp"].is_null() {
            live.object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            self.record(collection, key, Some(before));
        }
        Ok(self.get(collection, key).unwrap_or_default())
    }

    /// Forgets who set which field, as backup tools do.
    pub(super) fn forget_managers(&mut self, collection: &Collection, key: &Key) {
        let objects = self.objects.get_mut(collection);
        let Some(stored) = objects.and_then(|objects| objects.get_mut(key)) else {
            return;
        };
        let before = stored.shown();
        stored.managers = Managers::default();
        self.record(collection, key, Some(before));
    }

    fn stored(&self, target: &Target<'_>) -> Option<Stored> {
        self.objects
            .get(target.collection)?
            .get(target.key)
            .cloned()
    }

    fn lists(&self, collection: &Collection) -> Lists {
        self.kinds
            .get(collection)
            .map(|kind| kind.lists.clone())
            .unwrap_or_default()
    }

    fn replace_stored(
        &mut self,
        target: &Target<'_>,
        live: &Stored,
        mut object: Value,
        mutate: Option<&Mutate>,
    ) -> Result<Value, Refusal> {
        let mut managers = live.managers.clone();
        target.keep_own_part(&mut object, Some(&live.object));
        let by = (target.manager.to_owned(), UPDATE, target.subresource);
        let lists = self.lists(target.collection);
        managers.update(by, &target.api_version, &live.object, &object, &lists);
        self.commit(target, object, managers, mutate)
    }

    /// Stores an object if it differs from what is there.
    fn commit(
        &mut self,
        target: &Target<'_>,
        mut object: Value,
        managers: Managers,
        mutate: Option<&Mutate>,
    ) -> Result<Value, Refusal> {
        let Target {
            collection, key, ..
        } = *target;
        let live = self.stored(target).unwrap_or_default();
        if let Some(mutate) = mutate {
            mutate(&mut object);
        }
        let uid = live.object["metadata"]["uid"].clone();
        let given = object["metadata"]["uid"].clone();
        if !uid.is_null() && !given.is_null() && uid != given {
            return Err(Refusal::new(422, "metadata.uid: field is immutable"));
        }
        let Some(kind) = self.kinds.get(collection) else {
            return Err(Refusal::new(
                404,
                "the server could not find the requested resource",
            ));
        };
        object["kind"] = json!(kind.name);
        object["apiVersion"] = json!(target.api_version);
        let meta = &mut object["metadata"];
        meta["name"] = json!(key.1);
        if !key.0.is_empty() {
            meta["namespace"] = json!(key.0);
        }
        for field in [
            "resourceVersion",
            "generation",
            "deletionTimestamp",
            "creationTimestamp",
        ] {
            meta[field] = live.object["metadata"][field].clone();
        }
        meta["uid"] = uid;
        for (name, empty) in [("finalizers", json!([])), ("labels", json!({}))] {
            if meta[name] == empty {
                meta[name] = Value::Null;
            }
        }
        if let Value::Object(fields) = meta {
            fields.retain(|_, value| !value.is_null());
        }
        // A request in another version does not change what is stored.
        let mut same = live.object.clone();
        same["apiVersion"] = object["apiVersion"].clone();
        let is_new = live.object.is_null();
        if !is_new && same == object && live.managers == managers {
            return Ok(live.shown());
        }
        if is_new {
            self.uids += 1;
            let uid = format!("00000000-0000-4000-8000-{:012}", self.uids);
            object["metadata"]["uid"] = json!(uid);
            object["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        if is_new || live.object["spec"] != object["spec"] {
            let generation = live.object["metadata"]["generation"].as_u64().unwrap_or(0);
            object["metadata"]["generation"] = json!(generation + 1);
        }
        let is_gone = object["metadata"]["deletionTimestamp"].is_string()
            && object["metadata"]["finalizers"].is_null();
        let objects = self.objects.entry(collection.clone()).or_default();
        objects.insert(key.clone(), Stored { object, managers });
        if is_gone {
            return Ok(self.remove(collection, key));
        }
        self.record(collection, key, (!is_new).then(|| live.shown()));
        Ok(self.get(collection, key).unwrap_or_default())
    }

    fn remove(&mut self, collection: &Collection, key: &Key) -> Value {
        let objects = self.objects.entry(collection.clone()).or_default();
        let Some(gone) = objects.remove(key) else {
            return Value::Null;
        };
        self.record(collection, key, Some(gone.shown()));
        gone.shown()
    }

    /// Gives the object a version and tells those who watch.
    fn record(&mut self, collection: &Collection, key: &Key, before: Option<Value>) {
        self.version += 1;
        let objects = self.objects.entry(collection.clone()).or_default();
        let after = objects.get_mut(key).map(|stored| {
            stored.object["metadata"]["resourceVersion"] = json!(self.version.to_string());
            stored.shown()
        });
        self.events.push(Event {
            version: self.version,
            collection: collection.clone(),
            before,
            after,
        });
    }
}

// === impl Target ===

impl Target<'_> {
    /// Through the status subresource only the status is taken, and otherwise all but it.
    fn keep_own_part(&self, object: &mut Value, live: Option<&Value>) {
        let Some(fields) = object.as_object_mut() else {
            return;
        };
        let status = fields.remove("status");
        if self.subresource == "status" {
            let meta = fields.get("metadata").cloned();
            fields.clear();
            match live.and_then(Value::as_object) {
                Some(live) => fields.clone_from(live),
                None => fields.extend(meta.map(|meta| ("metadata".to_owned(), meta))),
            }
            fields.remove("status");
            fields.extend(status.map(|status| ("status".to_owned(), status)));
        } else if let Some(status) = live.and_then(|live| live.get("status")) {
            fields.insert("status".to_owned(), status.clone());
        }
    }
}

// === impl Stored ===

impl Stored {
    fn shown(&self) -> Value {
        let mut object = self.object.clone();
        if !object.is_null() {
            object["metadata"]["managedFields"] = self.managers.to_json();
        }
        object
    }

    /// Compares the version that a request names, if it names one.
    fn expect_version(&self, meta: &Value) -> Result<(), Refusal> {
        let wanted = &meta["resourceVersion"];
        let is_new = self.object.is_null();
        if wanted.is_null() || is_new || *wanted == self.object["metadata"]["resourceVersion"] {
            return Ok(());
        }
        Err(Refusal::new(
            409,
            "the object has been modified; apply to the latest version",
        ))
    }
}
