//! A look into a replica, by whoever may.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use ferromesh_e2e::{eventually, yaml};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, Error};
use serde_json::{Value, json};

use crate::world::{NAMES, NAMESPACE, World, is, is_current};

/// What a person asks with, as documented: the certificate of the webhook is verified by what API servers
/// verify it by.
async fn client(world: &World, token: Option<&str>) -> Client {
    let registrations: Api<ValidatingWebhookConfiguration> = Api::all(world.management.clone());
    let registration = registrations.get("ferromesh").await.unwrap();
    let registration = serde_json::to_value(registration).unwrap();
    let config = json!({
        "clusters": [{ "name": "it", "cluster": {
            "server": format!("https://127.0.0.1:{}", world.start.listening()),
            "certificate-authority-data": registration["webhooks"][0]["clientConfig"]["caBundle"],
        } }],
        "users": [{ "name": "it", "user": { "token": token } }],
        "contexts": [{ "name": "it", "context": { "cluster": "it", "user": "it" } }],
        "current-context": "it",
    });
    let config: Kubeconfig = serde_json::from_value(config).unwrap();
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await;
    Client::try_from(config.unwrap()).unwrap()
}

/// The status and the text of an answer.
async fn ask(world: &World, token: Option<&str>, query: &str) -> (u16, String) {
    let client = client(world, token).await;
    let request = http::Request::get(format!("/debug/snapshot{query}"));
    match client.request_text(request.body(Vec::new()).unwrap()).await {
        Ok(text) => (200, text),
        Err(Error::Api(status)) => (status.code, status.message.clone()),
        Err(error) => panic!("{error:?}"),
    }
}

/// A token of a service account.
async fn token(world: &World, account: &str) -> String {
    let accounts: Api<ServiceAccount> = Api::namespaced(world.management.clone(), NAMESPACE);
    let request = TokenRequest {
        spec: TokenRequestSpec::default(),
        ..TokenRequest::default()
    };
    let answer = accounts
        .create_token_request(account, &PostParams::default(), &request)
        .await;
    answer.unwrap().status.unwrap().token
}

pub(crate) async fn whoever_has_the_right_sees_what_a_replica_knows_and_nobody_else(world: &World) {
    let rights = format!(
        r"
apiVersion: v1
kind: ServiceAccount
metadata: {{ name: debugger, namespace: {NAMESPACE} }}
---
apiVersion: v1
kind: ServiceAccount
metadata: {{ name: passer-by, namespace: {NAMESPACE} }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{ name: ferromesh-debug }}
rules:
  - nonResourceURLs: [/debug/snapshot]
    verbs: [get]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{ name: ferromesh-debug }}
roleRef: {{ apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ferromesh-debug }}
subjects: [{{ kind: ServiceAccount, name: debugger, namespace: {NAMESPACE} }}]
"
    );
    yaml::apply(&world.management, &rights).await.unwrap();
    let shop = world.shop().await;
    let policy = shop.policy("looked", "{ requestTimeout: 3s }");
    yaml::apply(&world.management, &policy).await.unwrap();
    let is_done = |object: &_| is("Programmed", "True")(object) && is_current(object);
    let policies = world.own("TrafficPolicy");
    world.until(&policies, &shop.name("looked"), is_done).await;

    assert_eq!(ask(world, None, "").await.0, 401);
    assert_eq!(ask(world, Some("made-up"), "").await.0, 401);
    let passer_by = token(world, "passer-by").await;
    let (status, text) = ask(world, Some(&passer_by), "").await;
    assert_eq!(status, 403);
    let who = format!("system:serviceaccount:{NAMESPACE}:passer-by may not get /debug/snapshot");
    assert!(text.contains(&who), "{text}");

    let debugger: Arc<str> = token(world, "debugger").await.into();
    // API servers take notice of a new right after a while.
    let text = eventually("whoever has the right is answered", async || {
        let (status, text) = ask(world, Some(&debugger), "").await;
        (status == 200).then_some(text)
    })
    .await;
    let all: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(all["lease"]["state"], "held", "{text}");
    assert_eq!(all["management"]["isComplete"], true, "{text}");
    for name in NAMES {
        let clusters = all["clusters"]["first"].as_array().unwrap();
        let cluster = clusters.iter().find(|it| it["name"] == name).unwrap();
        assert_eq!(cluster["condition"], "connected", "{cluster}");
        for kind in cluster["kinds"].as_array().unwrap() {
            assert_eq!(kind["isListed"], true, "{kind}");
            assert!(kind["listedSecondsAgo"].is_u64(), "{kind}");
        }
        assert!(cluster["writing"]["pushed"]["ownedObjects"].as_u64() > Some(0));
        assert_eq!(cluster["writing"]["pushed"]["heldDeletions"], 0);
        assert!(all["counts"]["objects"][name]["Service"].as_u64() > Some(0));
        assert!(all["counts"]["outputs"][name]["VirtualService"].as_u64() > Some(0));
    }
    assert!(!text.contains("PRIVATE KEY"), "a key is told");

    let name = shop.name("looked");
    let query = format!("?kind=TrafficPolicy&namespace={NAMESPACE}&name={name}");
    let (status, text) = ask(world, Some(&debugger), &query).await;
    assert_eq!(status, 200, "{text}");
    let told: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(told["status"]["state"], "ACCEPTED", "{text}");
    let places = told["destinations"]["first"].as_array().unwrap();
    assert_eq!(places.len(), NAMES.len(), "{text}");
    assert!(places.iter().all(|place| place["isApplied"] == true));
    let outputs = told["outputs"]["first"].as_array().unwrap();
    let is_route = |output: &&Value| output["kind"] == "VirtualService";
    let route = outputs.iter().find(is_route).unwrap();
    let part = |field: &str| route[field].as_str().unwrap();
    let query = format!(
        "?kind=VirtualService&namespace={}&name={}&cluster={}",
        part("namespace"),
        part("name"),
        part("cluster")
    );
    let (_, text) = ask(world, Some(&debugger), &query).await;
    let told: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        told["desired"]["spec"]["http"][0]["timeout"], "3s",
        "{text}"
    );
    let parents = told["contributors"]["first"].as_array().unwrap();
    assert!(
        parents.iter().any(|parent| parent["name"] == *name),
        "{text}"
    );

    let (status, text) = ask(world, Some(&debugger), "?kind=Nothing&name=a").await;
    assert_eq!(status, 400);
    assert!(text.contains("TrafficPolicy"), "{text}");
}

/// What Prometheus adds to the name of a metric.
const SUFFIXES: [&str; 2] = ["_bucket", "_total"];

fn family(name: &str) -> &str {
    let found = SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix));
    found.unwrap_or(name)
}

pub(crate) async fn every_metric_that_is_documented_is_shown_and_no_other(world: &World) {
    let documented = include_str!("../../../docs/operations/metrics-and-alerts.md");
    let rows = documented
        .lines()
        .filter_map(|line| line.strip_prefix("| `"));
    let names = rows.filter_map(|row| row.split('`').next());
    let documented: BTreeSet<_> = names
        .filter(|name| name.starts_with("ferromesh_"))
        .map(family)
        .collect();
    assert!(documented.len() > 15, "{documented:?}");
    // Something must have been reviewed, and certificates been looked at.
    let shop = world.shop().await;
    let policy = shop.policy("counted", "{ requestTimeout: 3s }");
    yaml::apply(&world.management, &policy).await.unwrap();
    let last = Mutex::new(String::new());
    let what = Shown(&last);
    eventually(what, async || {
        let text = world.get("/metrics").await?;
        let shown = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        let shown: BTreeSet<_> = shown.filter_map(|line| line.split(' ').next()).collect();
        let differs: Vec<_> = shown.symmetric_difference(&documented).collect();
        *last.lock().unwrap() = format!("{differs:?}");
        differs.is_empty().then_some(())
    })
    .await;
}

/// What was told last, for whoever waited in vain.
struct Shown<'a>(&'a Mutex<String>);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let last = self.0.lock().unwrap();
        write!(f, "these are shown or documented, and not both: {last}")
    }
}
