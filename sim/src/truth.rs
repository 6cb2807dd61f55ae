//! What is to stand: what one step from nothing makes of everything there is.
//!
//! Objects are read here as files are, and not by the mirror.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ferromesh_core::{Change, Kind, Output, OutputKey, OutputKind, State, StatusKey, StatusKind};
use ferromesh_crds::condition::{Status, Type};
use ferromesh_crds::meta;
use serde_json::Value;

use crate::people::VIRTUAL_MESH;
use crate::registration::registered;
use crate::world::{NAMESPACE, World, input, inputs, output, place_of};

pub(crate) struct Truth {
    state: State,
    /// Whether everything could be read that there is.
    is_whole: bool,
    registered: BTreeSet<String>,
    outputs: BTreeMap<OutputKey, Output>,
}

impl Truth {
    /// What follows from what there is now.
    pub(crate) fn of(world: &World) -> Self {
        let registered = registered(world);
        let (mut changes, mut is_whole) = (Vec::new(), true);
        for place in registered.iter().map(String::as_str).chain([""]) {
            for kind in inputs(place) {
                // What discovery has stored says nothing where every cluster can be asked.
                if !matches!(kind, Kind::Mesh | Kind::Workload | Kind::Destination) {
                    let objects = world.api(place_of(place)).list(&input(kind));
                    for object in objects {
                        match kind.read(&object, place) {
                            Ok(object) => changes.push(Change::Upsert(object)),
                            Err(_) => is_whole = false,
                        }
                    }
                }
                let cluster = place.into();
                changes.push(Change::Synced { cluster, kind });
            }
        }
        let (state, _) = State::default().step(changes);
        let outputs = state.outputs();
        let outputs = outputs.map(|output| (output.key.clone(), output)).collect();
        Self {
            state,
            is_whole,
            registered,
            outputs,
        }
    }

    /// Whether everything could be read that there is. What cannot be read in full says something all the
    /// same, which is not known here.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Everything that is to stand in registered clusters and in the management cluster.
    pub(crate) fn outputs(&self) -> &BTreeMap<OutputKey, Output> {
        &self.outputs
    }

    /// The policies and virtual meshes that an object follows from.
    pub(crate) fn parents(&self, key: &OutputKey) -> Arc<[StatusKey]> {
        self.state.parents(key)
    }

    /// What stands otherwise than it is to stand; nothing if all is well.
    pub(crate) fn differences(&self, world: &World) -> Vec<String> {
        let mut differences = Vec::new();
        let managed = self.registered.iter();
        let managed = managed.map(|cluster| {
            (
                &**cluster,
                &OutputKind::PUSHED[..],
                meta::NETWORKING_OWNER_LABEL,
            )
        });
        let management = ("", &OutputKind::DISCOVERED[..], meta::DISCOVERY_OWNER_LABEL);
        for (place, kinds, owner) in managed.chain([management]) {
            for kind in kinds {
                self.compare(world, place, *kind, owner, &mut differences);
            }
        }
        differences.extend(
            self.state
                .statuses()
                .filter_map(|key| self.misstated(world, &key)),
        );
        differences.extend(self.unfinished(world));
        differences.extend(self.distrusted(world));
        differences
    }

    /// Conditions that tell people that all is well, and do not.
    fn unfinished(&self, world: &World) -> Vec<String> {
        let mut unfinished = Vec::new();
        let mut expect = |kind: Kind, name: &str, conditions: &[(Type, Status)]| {
            let stored = world.api("").get(&input(kind), NAMESPACE, name);
            let Some(stored) = stored else { return };
            let found = stored["status"]["conditions"].as_array();
            for (condition, status) in conditions {
                let mut found = found.into_iter().flatten();
                let found = found.find(|it| it["type"] == condition.as_str());
                if found.is_none_or(|it| it["status"] != status.as_str()) {
                    let found = found.unwrap_or(&Value::Null);
                    let kind = kind.name();
                    unfinished.push(format!("{kind} {name}: {condition} is {found}"));
                }
            }
        };
        let certificates = self.outputs.keys();
        let mut certificates = certificates.filter(|it| it.kind == OutputKind::IssuedCertificate);
        let is_trusting = certificates.next().is_some();
        for StatusKey { kind, key } in self.state.statuses() {
            let done = (Type::Programmed, Status::True);
            match kind {
                StatusKind::AccessPolicy => expect(Kind::AccessPolicy, key.name(), &[done]),
                StatusKind::TrafficPolicy => expect(Kind::TrafficPolicy, key.name(), &[done]),
                StatusKind::VirtualMesh if is_trusting => {
                    let trusted = (Type::TrustReady, Status::True);
                    expect(Kind::VirtualMesh, key.name(), &[done, trusted]);
                }
                StatusKind::VirtualMesh => expect(Kind::VirtualMesh, key.name(), &[done]),
                StatusKind::Destination
                | StatusKind::Mesh
                | StatusKind::Settings
                | StatusKind::Workload => {}
            }
        }
        for cluster in &self.registered {
            let well = [
                (Type::Ready, Status::True),
                (Type::MassDeleteHeld, Status::False),
            ];
            expect(Kind::KubernetesCluster, cluster, &well);
        }
        unfinished
    }

    /// Control planes that do not have the root of their virtual mesh.
    fn distrusted(&self, world: &World) -> Vec<String> {
        let secret = input(Kind::Secret);
        let certificate = |place: &str, namespace: &str, name: &str| {
            let secret = world.api(place).get(&secret, namespace, name)?;
            let certificate = secret["data"][meta::ROOT_CERT_KEY].as_str()?;
            Some(certificate.to_owned())
        };
        let root = certificate("", NAMESPACE, &format!("{VIRTUAL_MESH}.{NAMESPACE}"));
        let mut distrusted = Vec::new();
        for wanted in self.outputs.values() {
            let key = &wanted.key;
            if key.kind != OutputKind::IssuedCertificate {
                continue;
            }
            let spec = serde_json::to_value(&wanted.spec).expect("specs are JSON");
            let namespace = spec["issuedCertificateSecret"]["namespace"].as_str();
            let place = place_of(&key.cluster);
            let found = certificate(place, namespace.unwrap_or_default(), meta::CACERTS_SECRET);
            if found.is_none() || found != root {
                distrusted.push(format!("{key}: {found:?} is trusted, the root is {root:?}"));
            }
        }
        distrusted
    }

    fn compare(
        &self,
        world: &World,
        place: &str,
        kind: OutputKind,
        owner: &str,
        differences: &mut Vec<String>,
    ) {
        let stored = world.api(place_of(place)).list(&output(kind));
        let mut stored: BTreeMap<OutputKey, Value> = stored
            .into_iter()
            .map(|object| {
                let text = |field: &str| {
                    object["metadata"][field]
                        .as_str()
                        .unwrap_or_default()
                        .into()
                };
                let key = OutputKey {
                    cluster: place.into(),
                    kind,
                    namespace: text("namespace"),
                    name: text("name"),
                };
                (key, object)
            })
            .collect();
        let wanted = self.outputs.values();
        for wanted in wanted.filter(|it| it.key.kind == kind && *it.key.cluster == *place) {
            let Some(object) = stored.remove(&wanted.key) else {
                differences.push(format!("{} is missing", wanted.key));
                continue;
            };
            // Where somebody else was first, his object stays.
            if object["metadata"]["labels"][owner] == NAMESPACE
                && let Some(difference) = difference(wanted, &object)
            {
                differences.push(format!("{}: {difference}", wanted.key));
            }
        }
        for (key, object) in stored {
            let labels = &object["metadata"]["labels"];
            // What was written under another name of the same cluster stays when that is deregistered.
            let is_of_another = !place.is_empty() && labels[meta::CLUSTER_LABEL] != *place;
            if labels[owner] == NAMESPACE && !is_of_another {
                differences.push(format!("{key} is too much"));
            }
        }
    }

    /// A status that does not say what it is to say.
    fn misstated(&self, world: &World, key: &StatusKey) -> Option<String> {
        let wanted = self.state.status(key)?.to_json();
        let kind = Kind::ALL
            .iter()
            .find(|kind| kind.name() == key.kind.name())?;
        let stored = world
            .api("")
            .get(&input(*kind), key.key.namespace(), key.key.name());
        let is_discovered = matches!(
            key.kind,
            StatusKind::Destination | StatusKind::Mesh | StatusKind::Workload
        );
        match stored {
            // Which generation that is the API server alone knows.
            Some(mut stored) if is_discovered => {
                let mut wanted = wanted;
                for status in [&mut wanted, &mut stored["status"]] {
                    without_generations(status);
                }
                lacking(&wanted, &stored["status"])
            }
            Some(stored) => lacking(&wanted, &stored["status"]),
            None => Some("there is no such object".to_owned()),
        }
        .map(|lacking| format!("the status of {} {}: {lacking}", key.kind, key.key))
    }
}

fn without_generations(status: &mut Value) {
    match status {
        Value::Object(fields) => {
            fields.remove("observedGeneration");
            fields.values_mut().for_each(without_generations);
        }
        Value::Array(items) => items.iter_mut().for_each(without_generations),
        _ => {}
    }
}

fn difference(wanted: &Output, object: &Value) -> Option<String> {
    let spec = serde_json::to_value(&wanted.spec).expect("specs are JSON");
    if spec != object["spec"] {
        return Some(format!(
            "its spec is {} and is to be {spec}",
            object["spec"]
        ));
    }
    let maps = [
        ("labels", &wanted.labels),
        ("annotations", &wanted.annotations),
    ];
    maps.into_iter().find_map(|(field, wanted)| {
        let found = &object["metadata"][field];
        let (name, _) = wanted.iter().find(|(name, value)| found[name] != **value)?;
        Some(format!("its {field} lack {name}: {found}"))
    })
}

/// What is wanted and is not there. Other conditions may be, others say when something happened.
fn lacking(wanted: &Value, found: &Value) -> Option<String> {
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => {
            wanted.iter().find_map(|(name, wanted)| {
                let lacking = lacking(wanted, found.get(name).unwrap_or(&Value::Null))?;
                Some(format!("{name}: {lacking}"))
            })
        }
        (Value::Array(wanted), Value::Array(found)) => wanted
            .iter()
            .find(|wanted| found.iter().all(|found| lacking(wanted, found).is_some()))
            .map(|wanted| format!("lacks {wanted}")),
        _ if wanted == found => None,
        (Value::Null, _) => None,
        _ => Some(format!("is {found} and is to be {wanted}")),
    }
}
