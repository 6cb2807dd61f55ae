//! What people do in a day: services come and go, policies are written, clusters are registered.

use std::collections::BTreeSet;

use ferromesh_core::{Kind, OutputKind};
use ferromesh_testkit::fleet::{Fleet, Service, broad_policy};
use serde_json::{Value, json};

use crate::broken::Broken;
use crate::dice::Dice;
use crate::registration::{deregister, garble, is_let_in, is_registered, register, registered};
use crate::world::{NAMESPACE, World, again, input, output};

/// Services that there may be.
const SERVICES: u32 = 9;
/// Services more in a cluster where there are many.
const CROWD: u32 = 30;
/// What policies are called.
const POLICIES: [&str; 4] = ["p-0", "p-1", "p-2", "p-3"];
/// The name of the virtual mesh.
pub(crate) const VIRTUAL_MESH: &str = "all";

/// People, and what they have in their repositories.
pub(crate) struct People {
    fleet: Fleet,
    dice: Dice,
    /// Objects that people have put where ours belong: the cluster and the object.
    planted: Vec<(String, Value)>,
    /// Objects that they have written so that nobody can read them. They stay here: what was mended may come
    /// back from a backup.
    broken: Vec<Broken>,
    /// Access policies, by what they are called.
    access: Vec<Value>,
    /// How many tokens they have made.
    tokens: u32,
}

impl People {
    pub(crate) fn new(clusters: u32, seed: u64, dice: Dice) -> Self {
        let fleet = Fleet {
            clusters,
            services: SERVICES,
            traffic_policies: 0,
            access_policies: 3,
            seed,
        };
        let is_access = |object: &Value| object["kind"] == "AccessPolicy";
        Self {
            access: fleet.policies().filter(is_access).collect(),
            fleet,
            dice,
            planted: Vec::new(),
            broken: Vec::new(),
            tokens: 0,
        }
    }

    /// Clusters with Istio and some services each, most of them registered.
    pub(crate) fn install(&mut self, world: &World) {
        let names: Vec<_> = self.fleet.cluster_names().collect();
        for (number, name) in (0..).zip(&names) {
            for object in self.fleet.kubernetes(number) {
                if self.is_base(&object) {
                    world.put(name, &object);
                }
            }
            if number == 0 || self.dice.percent(80) {
                self.register(world, name);
            }
        }
        for number in 0..SERVICES {
            if self.dice.percent(60) {
                self.deploy(world, number);
            }
        }
        for _ in 0..3 {
            self.act(world);
        }
    }

    /// Does something, and says what.
    pub(crate) fn act(&mut self, world: &World) -> String {
        match self.dice.below(26) {
            0..=2 => {
                let number = self.dice.below(SERVICES);
                self.deploy(world, number)
            }
            3..=4 => self.withdraw(world),
            5..=7 => self.scale(world),
            8..=11 => self.apply_policy(world),
            12 => {
                let name = *self.dice.one(&POLICIES);
                let kind = input(Kind::TrafficPolicy);
                world.api("").remove(&kind, NAMESPACE, name);
                format!("people delete the traffic policy {name}")
            }
            13 => {
                let policy = self.dice.one(&self.access).clone();
                world.put("", &policy);
                format!(
                    "people apply the access policy {}",
                    policy["metadata"]["name"]
                )
            }
            14 => {
                let policy = self.dice.one(&self.access).clone();
                world.remove("", &policy);
                format!(
                    "people delete the access policy {}",
                    policy["metadata"]["name"]
                )
            }
            15..=16 => self.unite(world),
            17 => {
                world
                    .api("")
                    .remove(&input(Kind::VirtualMesh), NAMESPACE, VIRTUAL_MESH);
                "people delete the virtual mesh".to_owned()
            }
            18 => self.register_or_not(world),
            19 => self.register_again_or_not(world),
            20..=21 => self.rotate(world),
            22 => self.garble(world),
            23..=24 => self.break_something(world),
            _ => self.plant(world),
        }
    }

    /// Takes back what is in the way.
    pub(crate) fn clear(&mut self, world: &World) {
        for (place, object) in self.planted.drain(..) {
            world.remove(&place, &object);
        }
        self.mend(world);
        for name in self.fleet.cluster_names() {
            deregister(world, &again(&name));
            // Who is let in keeps his connection: a new one would make good what was done wrong before.
            if is_registered(world, &name) && !is_let_in(world, &name) {
                self.register(world, &name);
            }
        }
    }

    fn mend(&self, world: &World) {
        self.broken.iter().for_each(|broken| broken.mend(world));
    }

    /// Registers a cluster with a new token, or gives it one.
    fn register(&mut self, world: &World, name: &str) -> String {
        self.tokens += 1;
        let token = format!("token-{}", self.tokens);
        register(world, name, &token);
        token
    }

    /// What is not of any service.
    fn is_base(&self, object: &Value) -> bool {
        match object["kind"].as_str() {
            Some("Namespace") => {
                let mut services = self.fleet.all();
                let name = &object["metadata"]["name"];
                name == "istio-system" || services.any(|service| *name == service.namespace)
            }
            Some("Node") => true,
            _ => object["metadata"]["namespace"] == "istio-system",
        }
    }

    /// Registers every cluster that is not.
    pub(crate) fn register_all(&mut self, world: &World) {
        for name in self.fleet.cluster_names() {
            if !is_registered(world, &name) {
                self.register(world, &name);
            }
        }
    }

    /// Many services in one cluster.
    pub(crate) fn crowd(&self, world: &World, cluster: &str) {
        let fleet = Fleet {
            services: SERVICES + CROWD * self.fleet.clusters,
            ..self.fleet
        };
        let mut crowd = fleet.all();
        let crowd: BTreeSet<_> = crowd
            .by_ref()
            .filter(|it| it.number >= SERVICES && it.cluster == cluster)
            .flat_map(|service| {
                let name = service.name;
                ["", "-abcde", "-v1", "-v2", "-v1-0", "-v2-0"].map(|end| format!("{name}{end}"))
            })
            .collect();
        let number = fleet.cluster_names().position(|name| name == cluster);
        let number = u32::try_from(number.unwrap_or_default()).unwrap_or_default();
        for object in fleet.kubernetes(number) {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            if object["kind"] == "Namespace" || crowd.contains(name) {
                world.put(cluster, &object);
            }
        }
    }

    /// One virtual mesh of all clusters, in which every service is known everywhere.
    pub(crate) fn federate_all(&self, world: &World) {
        let names: Vec<_> = self.fleet.cluster_names().collect();
        world.put(
            "",
            &virtual_mesh(&names, &json!({ "selectors": [{}] }), false),
        );
    }

    /// No virtual mesh.
    pub(crate) fn part_all(world: &World) {
        let kind = input(Kind::VirtualMesh);
        world.api("").remove(&kind, NAMESPACE, VIRTUAL_MESH);
    }

    /// Everything of a service that stands in its cluster.
    fn objects(&self, service: &Service) -> Vec<Value> {
        let (name, versions) = (&service.name, format!("{}-", service.name));
        let is_of_it = |object: &Value| {
            let found = object["metadata"]["name"].as_str().unwrap_or_default();
            found == name || found.starts_with(&versions)
        };
        let number = service.number % self.fleet.clusters;
        self.fleet.kubernetes(number).filter(is_of_it).collect()
    }

    fn deploy(&mut self, world: &World, number: u32) -> String {
        let service = self.fleet.service(number);
        for object in self.objects(&service) {
            world.put(&service.cluster, &object);
        }
        format!("people deploy {} in {}", service.name, service.cluster)
    }

    fn withdraw(&mut self, world: &World) -> String {
        let service = self.fleet.service(self.dice.below(SERVICES));
        for object in self.objects(&service) {
            world.remove(&service.cluster, &object);
        }
        format!("people withdraw {} from {}", service.name, service.cluster)
    }

    /// Other endpoints, or a pod elsewhere.
    fn scale(&mut self, world: &World) -> String {
        let service = self.fleet.service(self.dice.below(SERVICES));
        let slice = service.endpoint_slice(self.dice.below(3));
        world.put(&service.cluster, &slice);
        format!("people scale {} in {}", service.name, service.cluster)
    }

    fn apply_policy(&mut self, world: &World) -> String {
        let name = *self.dice.one(&POLICIES);
        let seconds = self.dice.below(6) + 1;
        let policy = if self.dice.percent(25) {
            broad_policy(name, seconds)
        } else {
            let service = self.fleet.service(self.dice.below(SERVICES));
            service.traffic_policy(name, seconds)
        };
        world.put("", &policy);
        format!("people apply the traffic policy {name}")
    }

    fn unite(&mut self, world: &World) -> String {
        let mut names: Vec<_> = self.fleet.cluster_names().collect();
        if self.dice.percent(40) {
            let out = usize::try_from(self.dice.below(self.fleet.clusters)).unwrap_or_default();
            names.remove(out);
        }
        let federation = if self.dice.percent(60) {
            json!({ "selectors": [{}] })
        } else {
            json!({ "permissive": {} })
        };
        let is_trusting = self.dice.percent(70);
        world.put("", &virtual_mesh(&names, &federation, is_trusting));
        format!("people unite {}", names.join(", "))
    }

    fn register_or_not(&mut self, world: &World) -> String {
        let names: Vec<_> = self.fleet.cluster_names().collect();
        let name = self.dice.one(&names);
        if is_registered(world, name) {
            deregister(world, name);
            return format!("people deregister {name}");
        }
        self.register(world, name);
        format!("people register {name}")
    }

    /// The same cluster under another name, beside its own.
    fn register_again_or_not(&mut self, world: &World) -> String {
        let names: Vec<_> = self.fleet.cluster_names().collect();
        let name = self.dice.one(&names).clone();
        let name = again(&name);
        if is_registered(world, &name) {
            deregister(world, &name);
            return format!("people deregister {name}");
        }
        self.register(world, &name);
        format!("people register {name}")
    }

    /// Another token for a cluster; the one before is good no longer, perhaps even before the other is known.
    fn rotate(&mut self, world: &World) -> String {
        let names: Vec<_> = registered(world).into_iter().collect();
        if names.is_empty() {
            return "people have nothing to rotate".to_owned();
        }
        let name = self.dice.one(&names).clone();
        let token = self.register(world, &name);
        if self.dice.percent(70) {
            world.accept(&name, BTreeSet::from([token]));
            return format!("people rotate the token of {name} and revoke the others");
        }
        format!("people rotate the token of {name}")
    }

    /// A kubeconfig that is none.
    fn garble(&mut self, world: &World) -> String {
        let names: Vec<_> = registered(world).into_iter().collect();
        if names.is_empty() {
            return "people have nothing to garble".to_owned();
        }
        let name = self.dice.one(&names);
        garble(world, name);
        format!("people garble the kubeconfig of {name}")
    }

    /// Writes an object so that nobody can read it, as under an earlier definition of its kind.
    fn break_something(&mut self, world: &World) -> String {
        if self.broken.iter().any(|broken| broken.is_broken(world)) && self.dice.percent(70) {
            self.mend(world);
            return "people mend what they have broken".to_owned();
        }
        let Some(broken) = Broken::one(world, &mut self.dice) else {
            return "people find nothing to break".to_owned();
        };
        let told = format!("people break the {broken}");
        self.broken.push(broken);
        told
    }

    /// Puts an object where ours may come to stand, or takes the first one away.
    fn plant(&mut self, world: &World) -> String {
        if !self.planted.is_empty() && self.dice.percent(50) {
            let (place, object) = self.planted.remove(0);
            world.remove(&place, &object);
            return format!("people take {} away", object["metadata"]["name"]);
        }
        let service = self.fleet.service(self.dice.below(SERVICES));
        let kinds = OutputKind::PUSHED.into_iter().take(4).collect::<Vec<_>>();
        let kind = output(*self.dice.one(&kinds));
        let api = world.api(&service.cluster);
        if api.get(&kind, &service.namespace, &service.name).is_some() {
            return "people look around".to_owned();
        }
        let object = json!({
            "kind": kind.name(), "metadata": meta(&service.namespace, &service.name),
            "spec": { "hosts": ["theirs.example"], "host": "theirs.example" },
        });
        world.put(&service.cluster, &object);
        let said = format!(
            "people make a {} {} of their own",
            kind.name(),
            service.name
        );
        self.planted.push((service.cluster, object));
        said
    }
}

fn virtual_mesh(clusters: &[String], federation: &Value, is_trusting: bool) -> Value {
    let meshes = clusters.iter();
    let meshes = meshes.map(|it| meta(NAMESPACE, &format!("istiod-istio-system-{it}")));
    let mut spec = json!({ "meshes": meshes.collect::<Vec<_>>(), "federation": federation });
    if is_trusting {
        spec["mtlsConfig"] =
            json!({ "shared": { "rootCertificateAuthority": { "generated": {} } } });
    }
    json!({
        "apiVersion": "networking.mesh.gloo.solo.io/v1", "kind": "VirtualMesh",
        "metadata": meta(NAMESPACE, VIRTUAL_MESH), "spec": spec,
    })
}

fn meta(namespace: &str, name: &str) -> Value {
    json!({ "namespace": namespace, "name": name })
}
