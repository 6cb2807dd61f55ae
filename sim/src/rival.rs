//! Others who write what is ours: once, or whenever we have put it right.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ferromesh_core::{OutputKey, OutputKind};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::dice::Dice;
use crate::world::{NAMESPACE, PEOPLE, World, output};

/// How soon a rival notices that his change is gone.
const NOTICE: Duration = Duration::from_millis(300);

/// Somebody who sets a field of an object of ours whenever it is not set.
pub(crate) struct Rival {
    place: String,
    kind: OutputKind,
    namespace: String,
    name: String,
}

impl Rival {
    /// A rival for any object of ours, if there is one.
    pub(crate) fn of_any(world: &World, dice: &mut Dice) -> Option<Self> {
        let places: Vec<_> = world.places().collect();
        let place = *dice.one(&places);
        Self::of(world, place, dice)
    }

    /// A rival for an object of ours in a cluster, if there is one.
    pub(crate) fn of(world: &World, place: &str, dice: &mut Dice) -> Option<Self> {
        let kinds = if place.is_empty() {
            &OutputKind::DISCOVERED[..]
        } else {
            &OutputKind::PUSHED[..5]
        };
        let mut ours = Vec::new();
        for kind in kinds {
            let objects = world.api(place).list(&output(*kind));
            let objects = objects.iter().filter(|it| is_ours(it));
            ours.extend(objects.map(|object| {
                let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
                (*kind, text("namespace").to_owned(), text("name").to_owned())
            }));
        }
        if ours.is_empty() {
            return None;
        }
        let (kind, namespace, name) = dice.one(&ours).clone();
        Some(Self {
            place: place.to_owned(),
            kind,
            namespace,
            name,
        })
    }

    /// What he quarrels about.
    pub(crate) fn key(&self) -> OutputKey {
        OutputKey {
            cluster: self.place.as_str().into(),
            kind: self.kind,
            namespace: self.namespace.as_str().into(),
            name: self.name.as_str().into(),
        }
    }

    /// Quarrels for a while. Returns how often the change was gone.
    pub(crate) async fn quarrel(self, world: Arc<World>, lasting: Duration) -> u32 {
        let began = Instant::now();
        let mut lost = 0;
        while began.elapsed() < lasting {
            lost += u32::from(self.insist(&world));
            sleep(NOTICE).await;
        }
        lost
    }

    /// Sets the field if it is not set. Tells whether it was not.
    fn insist(&self, world: &World) -> bool {
        let (api, kind) = (world.api(&self.place), output(self.kind));
        let object = api.get(&kind, &self.namespace, &self.name);
        let is_lost = object.is_some_and(|it| is_ours(&it) && it["spec"]["rival"].is_null());
        if is_lost {
            api.edit("rival", &kind, &self.namespace, &self.name, |object| {
                object["spec"]["rival"] = json!(true);
            });
        }
        is_lost
    }
}

impl fmt::Display for Rival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            place,
            kind,
            namespace,
            name,
        } = self;
        write!(f, "{} {namespace}/{name} in {place:?}", kind.name())
    }
}

/// Whether somebody has put our labels on it.
fn is_ours(object: &Value) -> bool {
    let labels = object["metadata"]["labels"].as_object();
    labels.is_some_and(|labels| labels.values().any(|value| value == NAMESPACE))
}

/// Somebody who thinks that our objects are his, once.
pub(crate) fn meddle(world: &World, dice: &mut Dice) -> String {
    let places: Vec<_> = world.places().collect();
    let place = *dice.one(&places);
    let Some(rival) = Rival::of(world, place, dice) else {
        return "somebody looks for something to change".to_owned();
    };
    let (api, kind) = (world.api(place), output(rival.kind));
    let (namespace, name) = (&*rival.namespace, &*rival.name);
    let how = match dice.below(4) {
        0 => {
            api.remove(&kind, namespace, name);
            "deletes"
        }
        1 => {
            api.edit(PEOPLE, &kind, namespace, name, |object| {
                object["spec"]["meddled"] = json!({ "with": true });
            });
            "adds to"
        }
        2 => {
            api.edit(PEOPLE, &kind, namespace, name, |object| {
                object["spec"] = json!({ "hosts": ["meddled.example"] });
            });
            "changes"
        }
        _ => {
            api.forget_managers(&kind, namespace, name);
            "restores"
        }
    };
    format!("somebody {how} {rival}")
}
