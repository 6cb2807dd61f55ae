//! Private keys and tokens are where they were made, and nowhere else.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use ferromesh_crds::meta::{self, KUBECONFIG_KEY};
use ferromesh_e2e::{MANAGEMENT, kubeconfigs, yaml};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DynamicObject, ListParams};
use kube::discovery::{Discovery, verbs};
use kube::{Client, ResourceExt};
use serde_json::Value;

use crate::world::{NAMES, NAMESPACE, World, is, is_current};

/// What every private key in PEM says of itself: `PRIVATE KEY`, `RSA PRIVATE KEY`, `EC PRIVATE KEY`.
const MARKER: &str = "PRIVATE KEY-----";
/// The Secret of the webhook's own CA and serving key.
const WEBHOOK: &str = "ferromesh-webhook";

/// A secret text by the forms in which it may be written.
struct Needle {
    /// Whose it is.
    what: String,
    forms: Vec<String>,
}

impl Needle {
    /// A text, and what it becomes in base64, once and twice, wherever it stands in what is encoded.
    fn new(what: String, text: &str) -> Self {
        let once = encoded(text);
        let twice: Vec<_> = once.iter().flat_map(|form| encoded(form)).collect();
        let forms = [vec![text.to_owned()], once, twice].concat();
        Self { what, forms }
    }

    fn is_in(&self, text: &str) -> bool {
        self.forms.iter().any(|form| text.contains(form.as_str()))
    }
}

/// What is in the base64 of every text that has `text` in it: one of these three.
fn encoded(text: &str) -> Vec<String> {
    let shift = |shift: usize| {
        let padded = [&b"\0\0"[..shift], text.as_bytes()].concat();
        let whole = serde_json::to_value(ByteString(padded)).unwrap();
        let whole = whole.as_str().unwrap().trim_end_matches('=').to_owned();
        // The letters at the ends depend on what stands beside the text.
        let begin = (shift * 8).div_ceil(6);
        whole[begin..whole.len() - 1].to_owned()
    };
    (0..3).map(shift).collect()
}

/// The middle of each private key, and each token, that is in a cluster's Secrets.
async fn needles(client: &Client, cluster: &str) -> Vec<Needle> {
    let secrets: Api<Secret> = Api::all(client.clone());
    let mut needles = Vec::new();
    for secret in secrets.list(&ListParams::default()).await.unwrap() {
        let name = format!(
            "{cluster}: Secret {}/{}",
            secret.namespace().unwrap_or_default(),
            secret.name_any()
        );
        for (entry, ByteString(content)) in secret.data.into_iter().flatten() {
            let Ok(text) = String::from_utf8(content) else {
                continue;
            };
            let what = format!("{name}, {entry}");
            if text.contains(MARKER) {
                let body = text.lines().filter(|line| !line.contains("-----"));
                // The first line begins with what is the same for all keys of a kind.
                let lines: Vec<_> = body.collect();
                let line = lines.get(1).or(lines.first()).unwrap();
                needles.push(Needle::new(what, line));
            } else if entry == "token" {
                needles.push(Needle::new(what, &text));
            } else if entry == KUBECONFIG_KEY {
                let tokens = tokens(&text).into_iter();
                let what = format!("{what}, token");
                needles.extend(tokens.map(|token| Needle::new(what.clone(), &token)));
            }
        }
    }
    needles
}

/// The tokens of a kubeconfig.
fn tokens(kubeconfig: &str) -> Vec<String> {
    let config: Value = serde_saphyr::from_str(kubeconfig).unwrap();
    let users = config["users"].as_array().unwrap().iter();
    let tokens = users.filter_map(|user| user["user"]["token"].as_str());
    tokens.map(str::to_owned).collect()
}

/// Everything that an API server has stored, as JSON.
async fn stored(client: &Client) -> Vec<DynamicObject> {
    let discovery = Discovery::new(client.clone()).run().await.unwrap();
    let mut all = Vec::new();
    for group in discovery.groups() {
        for (resource, capabilities) in group.recommended_resources() {
            if capabilities.supports_operation(verbs::LIST) {
                let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
                let listed = api.list(&ListParams::default()).await.unwrap();
                all.extend(listed.into_iter().map(|mut object| {
                    // Objects of a list do not say what they are.
                    object.types.get_or_insert_with(|| kube::core::TypeMeta {
                        api_version: resource.api_version.clone(),
                        kind: resource.kind.clone(),
                    });
                    object
                }));
            }
        }
    }
    all
}

fn name(object: &DynamicObject) -> String {
    format!(
        "{} {}/{}",
        object.types.as_ref().unwrap().kind,
        object.namespace().unwrap_or_default(),
        object.name_any()
    )
}

/// Everything that is written below a directory, as text; what is no text is replaced.
fn files(directory: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let kind = fs::symlink_metadata(&path).unwrap().file_type();
        if kind.is_dir() && !path.ends_with("pki") {
            found.extend(files(&path));
        } else if kind.is_file() {
            // etcd may have replaced it by now.
            let content = fs::read(&path).unwrap_or_default();
            let text = String::from_utf8_lossy(&content).into_owned();
            found.push((path.display().to_string(), text));
        }
    }
    found
}

pub(crate) async fn no_private_key_leaves_the_cluster_that_it_was_made_in(world: &World) {
    // What a run does: two registrations and a virtual mesh, and here a policy that was refused, too.
    let shop = world.shop().await;
    for (name, policy) in [
        ("kept", "{ requestTimeout: 3s }"),
        ("refused", "{ requestTimeout: never }"),
    ] {
        let applied = yaml::apply(&world.management, &shop.policy(name, policy)).await;
        assert_eq!(applied.is_ok(), name == "kept");
    }
    let is_done = |object: &_| is("Programmed", "True")(object) && is_current(object);
    let policies = world.own("TrafficPolicy");
    world.until(&policies, &shop.name("kept"), is_done).await;

    let mut keys = Vec::new();
    for (cluster, client) in ["cluster-1", "cluster-2"].into_iter().zip(&world.clusters) {
        let of_cluster = needles(client, cluster).await;
        let has = |part: &str| of_cluster.iter().any(|needle| needle.what.ends_with(part));
        assert!(has("ca-key.pem"), "{cluster} has no certificate authority");
        keys.extend(of_cluster);
    }
    let is_key = |needle: &&Needle| !needle.what.ends_with(", token");
    let marker = Needle::new("a private key".to_owned(), MARKER);
    let mut homes = BTreeSet::new();
    for object in stored(&world.management).await {
        let text = serde_json::to_string(&object).unwrap();
        let name = name(&object);
        for key in keys.iter().filter(is_key) {
            assert!(!key.is_in(&text), "{name} holds a key of {}", key.what);
        }
        if marker.is_in(&text) {
            homes.insert((name, object.data["type"].as_str().map(str::to_owned)));
        }
    }
    // The server's own, by name and by type.
    let root = Some(meta::GENERATED_ROOT_SECRET_TYPE.to_owned());
    let webhook = format!("Secret {NAMESPACE}/{WEBHOOK}");
    assert!(homes.iter().any(|(name, _)| *name == webhook), "{homes:?}");
    assert!(homes.iter().any(|(_, sort)| *sort == root), "{homes:?}");
    let mut others = homes
        .iter()
        .filter(|(name, sort)| *name != webhook && *sort != root);
    assert_eq!(others.next(), None, "a private key is where none belongs");

    // What was there and was deleted is still in the files of etcd, and what was said is in logs.
    let kubeconfigs = kubeconfigs();
    let management = Path::new(&kubeconfigs[MANAGEMENT]).parent().unwrap();
    for (file, text) in files(management) {
        for key in keys.iter().filter(is_key) {
            assert!(!key.is_in(&text), "{file} holds a key of {}", key.what);
        }
    }
    keys.extend(needles(&world.management, "management").await);
    let has_tokens = keys.iter().filter(|key| !is_key(key)).count() >= NAMES.len();
    assert!(has_tokens, "the credentials of clusters are not found");
    let log = fs::read_to_string(world.log()).unwrap();
    assert!(!log.is_empty(), "the server says what it does");
    for key in keys.iter().chain([&marker]) {
        assert!(!key.is_in(&log), "the log holds {}", key.what);
    }
    for (place, client) in ["cluster-1", "cluster-2"].into_iter().zip(&world.clusters) {
        for object in stored(client).await {
            let text = serde_json::to_string(&object).unwrap();
            for key in keys.iter().filter(|key| !key.what.starts_with(place)) {
                assert!(
                    !key.is_in(&text),
                    "{place}: {} holds {}",
                    name(&object),
                    key.what
                );
            }
        }
    }
}
