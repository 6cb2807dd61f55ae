//! Roots: made once, or given.

use ferromesh_controller::certs::RootSource;
use ferromesh_controller::certs::root::RootFault;
use ferromesh_crds::cert_options::CommonCertOptions;
use ferromesh_testkit::fakeapi::{FakeApi, Fault, Verb};
use serde_json::{Value, json};

use super::fleet::{
    Clock, NAMESPACE, api, config_maps, other_root, reference, root_secret, roots, secrets, wanted,
};

const ROOT: &str = "vm.gloo-mesh";
const RECORD: &str = "vm.gloo-mesh.root";

async fn fault(api: &FakeApi, wanted: &ferromesh_controller::certs::Wanted) -> RootFault {
    let root = roots(api, &Clock::new()).root(wanted).await;
    root.map(|root| root.id()).unwrap_err()
}

fn provided(name: &str) -> ferromesh_controller::certs::Wanted {
    ferromesh_controller::certs::Wanted {
        root: RootSource::Provided(reference(NAMESPACE, name)),
        ..wanted("cluster-1")
    }
}

#[tokio::test]
async fn a_root_is_generated_as_the_compatible_api_has_it() {
    let api = api();
    let root = roots(&api, &Clock::new())
        .root(&wanted("cluster-1"))
        .await
        .unwrap();
    let secret = api.get(&secrets(), NAMESPACE, ROOT).unwrap();
    assert_eq!(
        secret["type"],
        "certificates.mesh.gloo.solo.io/generated_signing_cert"
    );
    assert_eq!(secret["immutable"], true);
    let entries: Vec<&String> = secret["data"].as_object().unwrap().keys().collect();
    assert_eq!(entries, ["key.pem", "root-cert.pem"]);
    let labels = &secret["metadata"]["labels"];
    assert_eq!(labels["owner.networking.mesh.gloo.solo.io"], NAMESPACE);
    assert_eq!(labels["certificates.mesh.gloo.solo.io/epoch"], "1");
    let subject = root.ca.certificate().subject().to_string();
    assert!(subject.contains("vm.gloo-mesh root e1"), "{subject}");
    assert!(root.warnings.is_empty(), "{:?}", root.warnings);
    let record = api.get(&config_maps(), NAMESPACE, RECORD).unwrap();
    assert_eq!(
        record["data"]["root-cert.pem"],
        root.ca.certificate().to_pem()
    );
    assert!(!record.to_string().contains("PRIVATE"));
}

#[tokio::test]
async fn two_replicas_and_all_clusters_get_one_root() {
    let api = api();
    let clock = Clock::new();
    let (one, other) = (roots(&api, &clock), roots(&api, &clock));
    let (first, second) = (wanted("cluster-1"), wanted("cluster-2"));
    let (one, other) = tokio::join!(one.root(&first), other.root(&second));
    let id = one.unwrap().id();
    assert_eq!(other.unwrap().id(), id);
    let later = roots(&api, &clock).root(&first).await.unwrap();
    assert_eq!(later.id(), id);
    assert_eq!(api.list(&secrets()).len(), 1);
}

#[tokio::test]
async fn a_death_at_any_write_makes_no_second_root() {
    for fault in [Fault::Break, Fault::LoseAnswer] {
        for lost in 0..2 {
            let api = api();
            let clock = Clock::new();
            let mut count = 0;
            api.fail(fault.clone(), move |request| {
                let is_write = request.verb.is_write();
                count += usize::from(is_write);
                is_write && count == lost + 1
            });
            let died = roots(&api, &clock).root(&wanted("cluster-1")).await;
            assert!(matches!(died, Err(RootFault::Api(_))));
            let before = api.get(&secrets(), NAMESPACE, ROOT);
            roots(&api, &clock)
                .root(&wanted("cluster-1"))
                .await
                .unwrap();
            let after = api.get(&secrets(), NAMESPACE, ROOT);
            if before.is_some() {
                assert_eq!(before, after, "{fault:?} {lost}");
            }
            assert!(api.get(&config_maps(), NAMESPACE, RECORD).is_some());
        }
    }
}

#[tokio::test]
async fn a_root_that_was_there_is_not_made_anew() {
    let api = api();
    let clock = Clock::new();
    let root = roots(&api, &clock)
        .root(&wanted("cluster-1"))
        .await
        .unwrap();
    let backup = api.get(&secrets(), NAMESPACE, ROOT).unwrap();
    api.remove(&secrets(), NAMESPACE, ROOT);
    let lost = fault(&api, &wanted("cluster-1")).await;
    assert!(matches!(lost, RootFault::Lost { .. }));
    assert!(lost.text().contains("restore it"), "{}", lost.text());
    assert!(api.list(&secrets()).is_empty());
    // Restored.
    api.put("restore", &secrets(), &backup);
    let again = roots(&api, &clock)
        .root(&wanted("cluster-1"))
        .await
        .unwrap();
    assert_eq!(again.id(), root.id());
    // Given up by a person.
    api.remove(&secrets(), NAMESPACE, ROOT);
    api.remove(&config_maps(), NAMESPACE, RECORD);
    let next = roots(&api, &clock)
        .root(&wanted("cluster-1"))
        .await
        .unwrap();
    assert_ne!(next.id(), root.id());
}

#[tokio::test]
async fn a_generated_root_that_was_exchanged_is_not_used() {
    let api = api();
    let clock = Clock::new();
    roots(&api, &clock)
        .root(&wanted("cluster-1"))
        .await
        .unwrap();
    let other = other_root(&clock).await;
    let mut secret = root_secret(ROOT, &other);
    secret["type"] = json!("certificates.mesh.gloo.solo.io/generated_signing_cert");
    api.put("user", &secrets(), &secret);
    let replaced = fault(&api, &wanted("cluster-1")).await;
    assert!(matches!(replaced, RootFault::Replaced { .. }));
}

#[tokio::test]
async fn a_secret_of_somebody_else_is_not_taken_for_a_generated_root() {
    let api = api();
    let other = other_root(&Clock::new()).await;
    let secret = root_secret(ROOT, &other);
    api.put("user", &secrets(), &secret);
    let before = api.get(&secrets(), NAMESPACE, ROOT);
    let foreign = fault(&api, &wanted("cluster-1")).await;
    assert!(matches!(foreign, RootFault::Foreign(_)));
    assert_eq!(api.get(&secrets(), NAMESPACE, ROOT), before);
}

#[tokio::test]
async fn a_root_that_could_sign_nothing_is_not_stored() {
    for options in [
        CommonCertOptions {
            ttl_days: 1,
            ..CommonCertOptions::default()
        },
        CommonCertOptions {
            rsa_key_size_bytes: 1000,
            ..CommonCertOptions::default()
        },
    ] {
        let api = api();
        let mut wanted = wanted("cluster-1");
        wanted.root = RootSource::Generated(options);
        let fault = fault(&api, &wanted).await;
        assert!(
            matches!(fault, RootFault::Unsound { .. } | RootFault::Options(_)),
            "{fault}"
        );
        assert!(api.writes().is_empty());
    }
}

#[tokio::test]
async fn a_provided_root_is_judged_and_the_reason_told() {
    let api = api();
    let clock = Clock::new();
    let missing = fault(&api, &provided("corp")).await;
    assert!(missing.text().contains("gloo-mesh/corp"), "{missing}");
    assert!(missing.text().contains("root-cert.pem"), "{missing}");

    let root = other_root(&clock).await;
    let good = root_secret("corp", &root);
    let id = root.id();
    let other = root_secret("corp", &roots_of_another(&clock).await);
    for (entry, content, said) in [
        ("key.pem", Value::Null, "key.pem"),
        ("root-cert.pem", Value::Null, "root-cert.pem"),
        (
            "key.pem",
            other["data"]["key.pem"].clone(),
            "does not belong",
        ),
    ] {
        let mut secret = good.clone();
        secret["data"][entry] = content;
        if secret["data"][entry].is_null() {
            secret["data"].as_object_mut().unwrap().remove(entry);
        }
        api.put("user", &secrets(), &secret);
        let fault = fault(&api, &provided("corp")).await;
        let text = fault.text();
        assert!(matches!(fault, RootFault::Unsound { .. }));
        assert!(
            text.contains(said) && text.contains("gloo-mesh/corp"),
            "{text}"
        );
        assert!(!text.contains("BEGIN PRIVATE KEY-----\n"), "{text}");
    }
    api.put("user", &secrets(), &good);
    let imported = roots(&api, &clock).root(&provided("corp")).await.unwrap();
    assert_eq!(imported.id(), id);
    // It is used by reference: nothing is written.
    assert!(api.writes().is_empty());
}

async fn roots_of_another(clock: &Clock) -> ferromesh_controller::certs::root::Root {
    other_root(clock).await
}

#[tokio::test(start_paused = true)]
async fn a_management_cluster_that_is_away_is_no_missing_root() {
    let api = api();
    api.fail(Fault::Break, |request| request.verb == Verb::Get);
    let fault = fault(&api, &wanted("cluster-1")).await;
    let RootFault::Api(error) = fault else {
        panic!("{fault}");
    };
    assert!(error.is_transient());
    assert!(api.writes().is_empty());
}
