//! Objects that people write so that nobody can read them, as under an earlier definition of their kind.

use std::fmt;

use ferromesh_core::Kind;
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::world::{World, input};

/// One of them, as it was before.
pub(crate) struct Broken {
    place: String,
    kind: Kind,
    object: Value,
}

impl Broken {
    /// Breaks an object somewhere, if there is one.
    pub(crate) fn one(world: &World, dice: &mut Dice) -> Option<Self> {
        let places: Vec<_> = world.places().collect();
        let place = *dice.one(&places);
        let (kind, field) = *dice.one(if place.is_empty() {
            &[
                (Kind::TrafficPolicy, "policy"),
                (Kind::AccessPolicy, "allowedMethods"),
                (Kind::VirtualMesh, "meshes"),
                (Kind::KubernetesCluster, "clusterDomain"),
            ][..]
        } else {
            &[
                (Kind::Service, "ports"),
                (Kind::Deployment, "template"),
                (Kind::Pod, "containers"),
            ][..]
        });
        let mut objects = world.api(place).list(&input(kind));
        objects.retain(|object| kind.read(object, place).is_ok());
        if objects.is_empty() {
            return None;
        }
        let mut object = dice.one(&objects).clone();
        // It may have been deleted and made anew when it is written as it was.
        let metadata = object["metadata"].as_object_mut();
        metadata.map(|fields| fields.remove("uid"));
        let mut broken = object.clone();
        // Sometimes nothing can be read of it, and sometimes a field cannot.
        match dice.below(2) {
            1 if broken["spec"].is_object() => broken["spec"][field] = json!("none"),
            _ => broken["spec"] = json!("none"),
        }
        world.put(place, &broken);
        let place = place.to_owned();
        Some(Self {
            place,
            kind,
            object,
        })
    }

    /// Whether it stands so that nobody can read it.
    pub(crate) fn is_broken(&self, world: &World) -> bool {
        let text = |field: &str| self.object["metadata"][field].as_str().unwrap_or_default();
        let api = world.api(&self.place);
        let stored = api.get(&input(self.kind), text("namespace"), text("name"));
        stored.is_some_and(|stored| self.kind.read(&stored, &self.place).is_err())
    }

    /// Writes it as it was, if it is broken still.
    pub(crate) fn mend(&self, world: &World) {
        if self.is_broken(world) {
            world.put(&self.place, &self.object);
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name) = (self.kind.name(), &self.object["metadata"]["name"]);
        write!(f, "{kind} {name} in {:?}", self.place)
    }
}
