//! The same at the wire: what is written, and what becomes of it when writing fails.

use ferromesh_ca::cacerts::Found;
use ferromesh_hands::Error;
use ferromesh_hands::state::{Obstacle, Standing};
use ferromesh_testkit::fakeapi::{Fault, Verb};
use serde_json::json;

use super::cluster::{Cluster, certificates, foreign_secret, requests, secrets};
use super::world::{ISTIO, MESH, NAMESPACE};

#[tokio::test(start_paused = true)]
async fn a_certificate_is_asked_for_stored_and_read_back() {
    let mut cluster = Cluster::new();
    let asked = cluster.pass().await;
    assert_eq!(asked.standing, Standing::Asked);
    assert_eq!(cluster.status(), ("REQUESTED".into(), String::new()));
    assert!(cluster.cacerts().is_none());

    cluster.sign().await;
    let stored = cluster.pass().await;
    assert_eq!(stored.standing, Standing::Stored);
    assert_eq!(cluster.status(), ("FINISHED".into(), String::new()));
    let Some(Found::Valid { signer, .. }) = cluster.found() else {
        panic!("{:?}", cluster.found());
    };
    let live = stored.live.unwrap();
    assert_eq!(
        (live.root, live.not_after),
        (signer.root_id(), signer.not_after())
    );
    let status = cluster.certificate().status.unwrap();
    assert_eq!(status.observed_generation, 1);
}

#[tokio::test(start_paused = true)]
async fn another_pass_and_another_process_write_nothing() {
    let mut cluster = Cluster::new();
    cluster.issue().await;
    cluster.api.forget_requests();
    assert_eq!(cluster.pass().await.standing, Standing::Stored);
    cluster.memory = ferromesh_hands::Memory::new(ferromesh_runtime::backoff::Jitter::seeded(2));
    assert_eq!(cluster.pass().await.standing, Standing::Stored);
    assert!(
        cluster.api.writes().is_empty(),
        "{:?}",
        cluster.api.writes()
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_is_done_for_a_certificate_that_nobody_wants() {
    let mut cluster = Cluster::new();
    cluster.api.remove(&certificates(), NAMESPACE, MESH);
    assert_eq!(cluster.try_pass().await.unwrap(), None);
    assert!(cluster.api.writes().is_empty());
}

/// Every write in turn is lost on its way, or done with its answer lost.
#[tokio::test(start_paused = true)]
async fn any_write_may_be_lost_or_its_answer_and_the_end_is_the_same() {
    let mut usual = Cluster::new();
    usual.issue().await;
    let writes = usual.api.writes().len();
    assert!(writes >= 6, "{writes}");
    for fault in [Fault::Break, Fault::LoseAnswer, Fault::refuse(409)] {
        for lost in 0..writes {
            let mut cluster = Cluster::new();
            let mut count = 0;
            // Signing is somebody else's write.
            cluster.api.fail(fault.clone(), move |request| {
                let ours =
                    request.uri.contains("fieldManager=ferromesh") || request.verb == Verb::Delete;
                let hit = request.verb.is_write() && ours && count == lost;
                count += usize::from(request.verb.is_write() && ours);
                hit
            });
            for _ in 0..4 {
                drop(cluster.try_pass().await);
                cluster.sign().await;
            }
            let progress = cluster.pass().await;
            assert_eq!(progress.standing, Standing::Stored, "{fault:?} {lost}");
            assert_eq!(cluster.status().0, "FINISHED", "{fault:?} {lost}");
            assert!(matches!(cluster.found(), Some(Found::Valid { .. })));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_private_key_is_sent_to_secrets_only() {
    let mut cluster = Cluster::new();
    cluster.issue().await;
    let key = cluster.api.get(&secrets(), NAMESPACE, MESH).unwrap();
    let encoded = key["data"]["private-key"].as_str().unwrap().to_owned();
    let mut sent = Vec::new();
    for write in cluster.api.writes() {
        if write.body.to_string().contains(&encoded) {
            assert_eq!(write.plural, "secrets");
            sent.push(write.namespace);
        }
    }
    assert_eq!(sent, [NAMESPACE, ISTIO]);
}

#[tokio::test(start_paused = true)]
async fn a_ca_that_is_not_ours_is_left_and_the_status_names_the_remedy() {
    let mut cluster = Cluster::new();
    cluster.api.put("user", &secrets(), &foreign_secret());
    let before = cluster.cacerts();
    let progress = cluster.pass().await;
    assert!(matches!(
        progress.standing,
        Standing::Blocked(Obstacle::ForeignCa(_))
    ));
    let (state, error) = cluster.status();
    assert_eq!(state, "FAILED");
    assert!(
        error.contains("istio-system/cacerts is not ours") && error.contains("delete it"),
        "{error}"
    );
    assert_eq!(cluster.cacerts(), before);
}

#[tokio::test(start_paused = true)]
async fn a_ca_that_somebody_stores_at_the_same_moment_is_not_overwritten() {
    let mut cluster = Cluster::new();
    cluster.pass().await;
    cluster.sign().await;
    let api = cluster.api.clone();
    cluster.api.fail(Fault::refuse(500), move |request| {
        if request.verb == Verb::Create && request.namespace == ISTIO {
            api.put("user", &secrets(), &foreign_secret());
        }
        false
    });
    let progress = cluster.pass().await;
    assert!(matches!(
        progress.standing,
        Standing::Blocked(Obstacle::ForeignCa(_))
    ));
    let data = cluster.cacerts().unwrap()["data"].clone();
    assert!(data.get("key.pem").is_some());
    assert!(cluster.cacerts().unwrap()["metadata"]["labels"].is_null());
}

#[tokio::test(start_paused = true)]
async fn an_edit_is_put_right_and_its_author_named() {
    let mut cluster = Cluster::new();
    cluster.issue().await;
    let before = cluster.cacerts().unwrap()["data"].clone();
    cluster.edit_cacerts("kubectl-edit", |secret| {
        secret["data"]["ca-cert.pem"] = json!("eA==");
        secret["data"]["tls.crt"] = json!("eA==");
    });
    let progress = cluster.pass().await;
    let repair = progress.repaired.unwrap();
    assert_eq!(repair.by.as_deref(), Some("kubectl-edit"));
    // Two repairs at once would be a chase: the second one comes a little later.
    let delay = progress.again.unwrap();
    tokio::time::advance(delay).await;
    assert_eq!(cluster.pass().await.standing, Standing::Stored);
    assert_eq!(cluster.cacerts().unwrap()["data"], before);
}

#[tokio::test(start_paused = true)]
async fn whoever_keeps_editing_is_not_chased() {
    let mut cluster = Cluster::new();
    cluster.issue().await;
    cluster.api.forget_requests();
    for _ in 0..50 {
        cluster.edit_cacerts("other", |secret| secret["data"] = json!({}));
        cluster.pass().await;
    }
    assert_eq!(cluster.stores(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_missing_right_is_told_in_the_status() {
    let mut cluster = Cluster::new();
    cluster.api.fail(Fault::refuse(403), |request| {
        request.verb == Verb::Create && request.plural == "secrets"
    });
    let error = cluster.try_pass().await.unwrap_err();
    assert!(matches!(error, Error::Api { .. }));
    let (state, told) = cluster.status();
    assert_eq!(state, "FAILED");
    assert!(told.contains("creating"), "{told}");
    cluster.api.heal();
    assert_eq!(cluster.pass().await.standing, Standing::Asked);
}

#[tokio::test(start_paused = true)]
async fn a_missing_namespace_is_told_in_the_status() {
    let mut cluster = Cluster::new();
    cluster.pass().await;
    cluster.sign().await;
    cluster.api.fail(Fault::refuse(404), |request| {
        request.verb == Verb::Create && request.namespace == ISTIO
    });
    assert!(cluster.try_pass().await.is_err());
    let (state, told) = cluster.status();
    assert_eq!(state, "FAILED");
    assert!(told.contains("/namespaces/istio-system/"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_is_away_leaves_the_status_alone() {
    let mut cluster = Cluster::new();
    cluster.issue().await;
    cluster.api.fail(Fault::Break, |_| true);
    assert!(cluster.try_pass().await.is_err());
    cluster.api.heal();
    assert_eq!(cluster.status().0, "FINISHED");
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_is_always_faster_ends_the_pass() {
    let mut cluster = Cluster::new();
    cluster.api.fail(Fault::refuse(409), |request| {
        request.verb == Verb::Create && request.plural == "certificaterequests"
    });
    let error = cluster.try_pass().await.unwrap_err();
    assert!(matches!(error, Error::Contended { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn other_terms_replace_key_and_request_and_then_cacerts() {
    let mut cluster = Cluster::new();
    cluster.issue().await;
    let before = cluster.cacerts().unwrap()["data"].clone();
    let key = cluster.api.get(&secrets(), NAMESPACE, MESH).unwrap();
    cluster
        .api
        .edit("apply", &certificates(), NAMESPACE, MESH, |object| {
            object["spec"]["certOptions"] = json!({ "ttlDays": 30 });
        });
    assert_eq!(cluster.pass().await.standing, Standing::Asked);
    assert_eq!(cluster.status().0, "REQUESTED");
    assert_eq!(cluster.cacerts().unwrap()["data"], before);
    let next = cluster.api.get(&secrets(), NAMESPACE, MESH).unwrap();
    assert_ne!(key["data"], next["data"]);
    assert_eq!(next["immutable"], true);
    let request = cluster.api.get(&requests(), NAMESPACE, MESH).unwrap();
    let generation = "certificates.mesh.gloo.solo.io/generation";
    assert_eq!(request["metadata"]["annotations"][generation], "2");
    assert_eq!(request["metadata"]["generation"], 2);
}
