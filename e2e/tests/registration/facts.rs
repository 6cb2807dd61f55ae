//! What registering and deregistering come to.

use std::collections::BTreeMap;

use ferromesh_registration::credential::DEFAULT_LIFETIME;
use ferromesh_registration::error::Failure;
use ferromesh_registration::{Account, Plan, Renewal, Side, renew};
use ferromesh_runtime::client::{Options, from_bytes};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::ObjectMeta;

use crate::estate::{Estate, changed};

/// Whether a client may do something: `verb group/resource namespace name`, `-` for what is empty.
async fn may(client: &Client, what: &str) -> bool {
    let words: Vec<&str> = what.split(' ').collect();
    let [verb, kind, namespace, name] = words[..] else {
        panic!("{what}")
    };
    let (group, resource) = kind.split_once('/').unwrap();
    let (resource, subresource) = resource.split_once(':').unwrap_or((resource, ""));
    let text = |text: &str| Some(text.to_owned()).filter(|text| text != "-" && !text.is_empty());
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                verb: text(verb),
                group: text(group),
                resource: text(resource),
                subresource: text(subresource),
                namespace: text(namespace),
                name: text(name),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let reviews = Api::all(client.clone());
    let reviewed: SelfSubjectAccessReview = reviews
        .create(&PostParams::default(), &review)
        .await
        .unwrap();
    reviewed.status.unwrap().allowed
}

#[tokio::test]
async fn the_credential_can_do_what_it_is_for_and_nothing_more() {
    let estate = Estate::new("rights").await;
    estate.register().await;
    let client = estate.as_management_plane().await;
    Api::<Pod>::all(client.clone())
        .list(&ListParams::default().limit(1))
        .await
        .unwrap();
    let (name, agent, istio) = (estate.name(), estate.agent(), estate.istio());
    for (what, expected) in [
        ("watch /services - -".to_owned(), true),
        ("watch /nodes - -".to_owned(), true),
        ("watch discovery.k8s.io/endpointslices - -".to_owned(), true),
        (
            "patch networking.istio.io/virtualservices default -".to_owned(),
            true,
        ),
        (
            "delete security.istio.io/authorizationpolicies default -".to_owned(),
            true,
        ),
        (
            "patch certificates.mesh.gloo.solo.io/issuedcertificates default -".to_owned(),
            true,
        ),
        ("create /pods:eviction default -".to_owned(), true),
        (
            "get /configmaps default istio-ca-root-cert".to_owned(),
            true,
        ),
        (format!("create /secrets {agent} -"), true),
        (format!("create /secrets {istio} -"), true),
        (format!("patch /secrets {istio} cacerts"), true),
        (
            format!("create /serviceaccounts:token {agent} {name}"),
            true,
        ),
        (format!("watch /configmaps {istio} istio-canary"), true),
        // What is other people's.
        ("get /secrets default -".to_owned(), false),
        ("list /secrets - -".to_owned(), false),
        (format!("get /secrets {istio} other"), false),
        (format!("delete /secrets {istio} cacerts"), false),
        (
            format!("create /serviceaccounts:token {agent} default"),
            false,
        ),
        (
            "create /serviceaccounts:token kube-system default".to_owned(),
            false,
        ),
        (format!("delete /serviceaccounts {agent} {name}"), false),
        ("get /configmaps default other".to_owned(), false),
        ("delete /pods default -".to_owned(), false),
        ("create /pods default -".to_owned(), false),
        ("create /pods:exec default -".to_owned(), false),
        ("patch apps/deployments default -".to_owned(), false),
        ("delete /namespaces - default".to_owned(), false),
        (
            "create rbac.authorization.k8s.io/clusterrolebindings - -".to_owned(),
            false,
        ),
        (
            "escalate rbac.authorization.k8s.io/clusterroles - -".to_owned(),
            false,
        ),
        ("impersonate /users - -".to_owned(), false),
        (
            "patch apiextensions.k8s.io/customresourcedefinitions - -".to_owned(),
            false,
        ),
        ("* */* - -".to_owned(), false),
    ] {
        assert_eq!(may(&client, &what).await, expected, "{what}");
    }
    let secrets: Api<Secret> = Api::namespaced(client, "kube-system");
    let refused = secrets.list(&ListParams::default()).await.unwrap_err();
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 403));
    estate.end().await;
}

#[tokio::test]
async fn registering_twice_changes_nothing_but_the_token() {
    let estate = Estate::new("twice").await;
    estate.register().await;
    let before = estate.content().await;
    assert!(before.len() >= 9, "{before:#?}");
    let old = estate.as_management_plane().await;
    let again = estate.register().await;
    let secret = format!("Secret {0}/{0}", estate.name());
    let expected = [(Side::Management, secret.clone())];
    assert_eq!(changed(&again), expected);
    let mut after = estate.content().await;
    assert_ne!(after.get(&secret), before.get(&secret));
    after.insert(secret.clone(), before[&secret].clone());
    assert_eq!(after, before);
    // Both tokens are of the same account: who holds the old one is not cut off.
    for client in [old, estate.as_management_plane().await] {
        let pods = Api::<Pod>::namespaced(client, "default");
        pods.list(&ListParams::default()).await.unwrap();
    }
    estate.end().await;
}

#[tokio::test]
async fn the_credential_renews_itself() {
    let estate = Estate::new("renewal").await;
    estate.register().await;
    let before = estate.kubeconfig().await;
    let account = Account {
        cluster: estate.registration.name.clone(),
        management_namespace: estate.registration.management_namespace.clone(),
        remote_namespace: estate.registration.remote_namespace.clone(),
    };
    let client = estate.as_management_plane().await;
    let renewal = renew(&estate.management, &client, &account, DEFAULT_LIFETIME);
    assert!(matches!(renewal.await, Ok(Renewal::Renewed(_))));
    assert_ne!(estate.kubeconfig().await, before);
    let pods = Api::<Pod>::all(estate.as_management_plane().await);
    pods.list(&ListParams::default().limit(1)).await.unwrap();
    estate.end().await;
}

#[tokio::test]
async fn deregistering_leaves_nothing_of_ours_and_everything_of_others() {
    let estate = Estate::new("leaving").await;
    // The same cluster, registered under another name by another management plane.
    let other = Estate::new("staying").await;
    other.register().await;
    let others = other.content().await;
    let cacerts = Secret {
        metadata: ObjectMeta {
            name: Some("cacerts".to_owned()),
            ..ObjectMeta::default()
        },
        ..Secret::default()
    };
    let secrets: Api<Secret> = Api::namespaced(estate.remote.clone(), estate.istio());
    secrets
        .create(&PostParams::default(), &cacerts)
        .await
        .unwrap();

    estate.register().await;
    let client = estate.as_management_plane().await;
    estate.deregister(Some(&estate.remote)).await.unwrap();
    assert_eq!(estate.content().await, BTreeMap::new());
    secrets.get("cacerts").await.unwrap();
    assert_eq!(other.content().await, others);
    let pods = Api::<Pod>::all(other.as_management_plane().await);
    pods.list(&ListParams::default().limit(1)).await.unwrap();
    // The token died with the account. API servers may remember it for some seconds.
    ferromesh_e2e::eventually("the token is refused", || async {
        let pods = Api::<Pod>::all(client.clone());
        let answer = pods.list(&ListParams::default().limit(1)).await;
        answer.err()
    })
    .await;
    assert_eq!(
        changed(&estate.deregister(Some(&estate.remote)).await.unwrap()),
        []
    );
    estate.end().await;
    other.end().await;
}

#[tokio::test]
async fn a_cluster_that_is_not_reached_can_be_deregistered_and_cleaned_up_later() {
    let estate = Estate::new("lost").await;
    estate.register().await;
    let dead = String::from_utf8(estate.kubeconfig().await).unwrap();
    let server = estate.registration.api_server.address();
    let dead = dead.replace(server, "https://127.0.0.1:1");
    let dead = from_bytes(dead.as_bytes(), &Options::default())
        .unwrap()
        .client;
    let error = estate.deregister(Some(&dead)).await.unwrap_err();
    assert_eq!(error.failure(), Some(Failure::Unreachable), "{error}");
    estate.secrets().get(estate.name()).await.unwrap();

    let events = estate.deregister(None).await.unwrap();
    let sides = changed(&events).into_iter().map(|(side, _)| side);
    assert_eq!(sides.collect::<Vec<_>>(), [Side::Management; 2]);
    let left = estate.content().await;
    assert!(left.contains_key(&format!(
        "ServiceAccount {}/{}",
        estate.agent(),
        estate.name()
    )));
    estate.deregister(Some(&estate.remote)).await.unwrap();
    assert_eq!(estate.content().await, BTreeMap::new());
    estate.end().await;
}

#[tokio::test]
async fn what_a_dry_run_shows_is_accepted_and_changes_nothing() {
    let estate = Estate::new("dry").await;
    let documents = Plan::new(&estate.registration).to_yaml();
    let objects: Vec<DynamicObject> = serde_saphyr::from_multiple(&documents).unwrap();
    let plan = Plan::new(&estate.registration);
    assert_eq!(objects.len(), plan.objects().count());
    let trial = PatchParams::apply("meshctl").force().dry_run();
    for (shown, planned) in objects.iter().zip(plan.objects()) {
        let client = match planned.side() {
            Side::Management => &estate.management,
            Side::Remote => &estate.remote,
        };
        let api: Api<DynamicObject> = match &shown.metadata.namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, planned.resource()),
            None => Api::all_with(client.clone(), planned.resource()),
        };
        let name = shown.metadata.name.as_deref().unwrap();
        let applied = api.patch(name, &trial, &Patch::Apply(shown)).await;
        applied.unwrap_or_else(|error| panic!("{planned:?}: {error}"));
    }
    assert_eq!(estate.content().await, BTreeMap::new());
    estate.end().await;
}

#[tokio::test]
async fn another_cluster_is_not_taken_for_the_one_that_is_registered() {
    let estate = Estate::new("mistaken").await;
    estate.register().await;
    // The management cluster itself, by mistake.
    let error = estate
        .deregister(Some(&estate.management))
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("is another cluster than the one given"),
        "{error}"
    );
    assert!(estate.content().await.len() >= 9);
    let secrets = estate.secrets();
    secrets
        .delete(estate.name(), &DeleteParams::default())
        .await
        .unwrap();
    estate.register().await;
    secrets.get(estate.name()).await.unwrap();
    estate.end().await;
}
