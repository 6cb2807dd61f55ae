//! The files, and what comes of them.

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use ferromesh_crds::meta;
use ferromesh_e2e::account::NAMESPACE;
use ferromesh_e2e::kstatus::{Progress, progress};
use ferromesh_e2e::world::{NAMES, World};
use ferromesh_e2e::{DEADLINE, eventually, yaml};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams};
use kube::{Client, Error, ResourceExt};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

const NETWORKING: &str = "networking.mesh.gloo.solo.io/v1";
const DISCOVERY: &str = "discovery.mesh.gloo.solo.io/v1";
/// How long a tool waits before it asks again for what was refused.
const PAUSE: Duration = Duration::from_millis(200);

/// A directory of files.
pub(crate) struct Repository {
    pub(crate) files: Vec<File>,
}

/// One file.
pub(crate) struct File {
    pub(crate) name: String,
    text: String,
}

impl Repository {
    pub(crate) fn read() -> Self {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples/gitops");
        let mut files = Vec::new();
        for file in fs::read_dir(directory).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|it| it == "yaml") {
                files.push(File {
                    name: path.file_stem().unwrap().to_string_lossy().into_owned(),
                    text: fs::read_to_string(&path).unwrap(),
                });
            }
        }
        files.sort_by(|left, right| left.name.cmp(&right.name));
        assert!(files.len() >= 15, "{} files", files.len());
        Self { files }
    }

    fn objects(&self) -> impl Iterator<Item = DynamicObject> {
        self.files.iter().flat_map(|file| yaml::objects(&file.text))
    }

    /// Services that policies speak of, in both clusters.
    pub(crate) async fn services(&self, world: &World) {
        for (cluster, names) in [
            (0, &["details", "productpage", "ratings", "reviews"][..]),
            (1, &["ratings", "reviews"][..]),
        ] {
            for name in names {
                let text = service(name);
                yaml::apply(&world.clusters[cluster], &text).await.unwrap();
            }
            for name in names {
                let destination = format!("{name}-bookinfo-{}", NAMES[cluster]);
                let destinations = world.own("Destination");
                world.until(&destinations, &destination, |_| true).await;
            }
        }
    }

    /// Deletes every policy there is, and waits until nothing is left of them.
    pub(crate) async fn clear(&self, world: &World) {
        for kind in ["TrafficPolicy", "AccessPolicy", "VirtualMesh"] {
            for object in list(&world.management, NETWORKING, kind).await {
                delete(world, &object).await;
            }
        }
        for object in self.objects() {
            delete(world, &object).await;
        }
        // A destination has a rule without any policy, too.
        let is_made_of_policies =
            |name: &&String| !name.starts_with("DestinationRule") || name.contains("billing");
        let last = Mutex::default();
        eventually(Left(&last), async || {
            let left = written(world).await;
            let left = left.as_object().unwrap().keys();
            let left: Vec<_> = left.filter(is_made_of_policies).cloned().collect();
            let is_gone = left.is_empty();
            *last.lock().unwrap() = left;
            is_gone.then_some(())
        })
        .await;
    }

    /// Waits until a tool that waits for these objects would go on.
    pub(crate) async fn until_current(&self, world: &World) {
        for object in self.objects() {
            until(world, &object, |stored| {
                progress(stored) == Progress::Current
            })
            .await;
        }
    }

    /// Everything that comes of the files: the objects with their statuses, those of their destinations, and
    /// what was written to the clusters; without times, and what API servers count.
    pub(crate) async fn whole(&self, world: &World) -> Value {
        let mut judged = serde_json::Map::new();
        let mut kinds = vec![(DISCOVERY, "Destination")];
        let policies = ["TrafficPolicy", "AccessPolicy", "VirtualMesh"];
        kinds.extend(policies.map(|kind| (NETWORKING, kind)));
        for (version, kind) in kinds {
            for object in list(&world.management, version, kind).await {
                let mut data = object.data.clone();
                forget_times(&mut data);
                judged.insert(format!("{kind} {}", object.name_any()), data);
            }
        }
        json!({ "management": judged, "clusters": written(world).await })
    }

    /// Waits until everything is as it was.
    pub(crate) async fn until_equal(&self, world: &World, expected: &Value) {
        let last = Mutex::new(Value::Null);
        eventually(Difference(expected, &last), async || {
            let whole = self.whole(world).await;
            let is_equal = whole == *expected;
            *last.lock().unwrap() = whole;
            is_equal.then_some(())
        })
        .await;
    }
}

/// What is left, for whoever waited in vain.
struct Left<'a>(&'a Mutex<Vec<String>>);

impl std::fmt::Display for Left<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let left = self.0.lock().unwrap().join(", ");
        write!(f, "what was made of policies is gone, but for {left}")
    }
}

/// What differs, for whoever waited in vain.
struct Difference<'a>(&'a Value, &'a Mutex<Value>);

impl std::fmt::Display for Difference<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(expected, found) = self;
        f.write_str("everything is as it was with the first order")?;
        let found = found.lock().unwrap();
        for part in ["management", "clusters"] {
            let (left, right) = (&expected[part], &found[part]);
            let all = left.as_object().into_iter().chain(right.as_object());
            let mut names: Vec<_> = all.flat_map(|all| all.keys()).collect();
            names.sort();
            names.dedup();
            for name in names.into_iter().filter(|name| left[*name] != right[*name]) {
                write!(f, "\n{name}\n  was {}\n  is  {}", left[name], right[name])?;
            }
        }
        Ok(())
    }
}

/// Applies files in this order, and what was refused again and again; tells how often something was.
pub(crate) async fn apply(world: &World, mut files: Vec<&File>) -> u64 {
    let deadline = Instant::now() + DEADLINE;
    let mut refused = 0;
    loop {
        let mut left = Vec::new();
        let mut reasons = Vec::new();
        for file in files {
            match yaml::apply(&world.management, &file.text).await {
                Ok(()) => {}
                Err(Error::Api(status)) if status.message.contains("denied the request") => {
                    reasons.push(format!("{}: {}", file.name, status.message));
                    left.push(file);
                    refused += 1;
                }
                Err(error) => panic!("{}: {error:?}", file.name),
            }
        }
        if left.is_empty() {
            return refused;
        }
        assert!(Instant::now() < deadline, "never taken: {reasons:#?}");
        files = left;
        sleep(PAUSE).await;
    }
}

/// An object as it is stored.
pub(crate) async fn get(world: &World, object: &DynamicObject) -> Option<DynamicObject> {
    api_of(world, object)
        .get_opt(&object.name_any())
        .await
        .unwrap()
}

/// Waits until an object is as `is_it` says.
pub(crate) async fn until(
    world: &World,
    object: &DynamicObject,
    is_it: impl Fn(&DynamicObject) -> bool,
) {
    let api = api_of(world, object);
    world.until(&api, &object.name_any(), is_it).await;
}

/// Deletes an object, if it is there.
pub(crate) async fn delete(world: &World, object: &DynamicObject) {
    let (api, name) = (api_of(world, object), object.name_any());
    match api.delete(&name, &DeleteParams::default()).await {
        Ok(_) => {}
        Err(Error::Api(status)) if status.code == 404 => return,
        Err(error) => panic!("{name}: {error:?}"),
    }
    world.until_gone(&api, &name).await;
}

fn api_of(world: &World, object: &DynamicObject) -> Api<DynamicObject> {
    let types = object.types.clone().unwrap();
    let namespace = object.namespace().unwrap_or(NAMESPACE.to_owned());
    yaml::api(
        &world.management,
        &types.api_version,
        &types.kind,
        &namespace,
    )
}

/// Every object of a kind, which says what it is.
async fn list(client: &Client, version: &str, kind: &str) -> Vec<DynamicObject> {
    let api = yaml::api(client, version, kind, "");
    let mut objects = api.list(&ListParams::default()).await.unwrap().items;
    for object in &mut objects {
        object.types.get_or_insert_with(|| kube::core::TypeMeta {
            api_version: version.to_owned(),
            kind: kind.to_owned(),
        });
    }
    objects
}

/// What was made of policies, in both clusters.
async fn written(world: &World) -> Value {
    let mut written = serde_json::Map::new();
    for (client, cluster) in world.clusters.iter().zip(NAMES) {
        for (version, kind) in [
            ("networking.istio.io/v1", "DestinationRule"),
            ("networking.istio.io/v1", "Gateway"),
            ("networking.istio.io/v1", "ServiceEntry"),
            ("networking.istio.io/v1", "VirtualService"),
            ("security.istio.io/v1", "AuthorizationPolicy"),
        ] {
            for object in list(client, version, kind).await {
                if !object.labels().contains_key(meta::NETWORKING_OWNER_LABEL) {
                    continue;
                }
                let namespace = object.namespace().unwrap_or_default();
                let name = format!("{kind} {namespace}/{} on {cluster}", object.name_any());
                let content = json!({
                    "labels": object.labels(),
                    "annotations": object.annotations(),
                    "spec": object.data["spec"],
                });
                written.insert(name, content);
            }
        }
    }
    written.into()
}

fn forget_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("lastTransitionTime");
            fields.values_mut().for_each(forget_times);
        }
        Value::Array(entries) => entries.iter_mut().for_each(forget_times),
        _ => {}
    }
}

fn service(name: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Namespace
metadata: {{ name: bookinfo }}
---
apiVersion: v1
kind: Service
metadata: {{ name: {name}, namespace: bookinfo, labels: {{ app: {name} }} }}
spec:
  selector: {{ app: {name} }}
  ports: [{{ name: http, port: 9080 }}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {{ name: {name}-v1, namespace: bookinfo }}
spec:
  selector:
    matchLabels: {{ app: {name}, version: v1 }}
  template:
    metadata:
      labels: {{ app: {name}, version: v1 }}
    spec:
      containers:
        - {{ name: {name}, image: "example.com/{name}:v1" }}
        - {{ name: istio-proxy, image: "docker.io/istio/proxyv2:1.29.2" }}
"#
    )
}

/// A fixed shuffle of this seed.
pub(crate) fn shuffle<T>(list: &mut [T], seed: u64) {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for at in (1..list.len()).rev() {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let bound = u64::try_from(at).unwrap() + 1;
        list.swap(at, usize::try_from(random % bound).unwrap());
    }
}
