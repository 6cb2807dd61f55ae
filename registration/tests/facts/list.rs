use ferromesh_registration::{
    RegisteredCluster, Validity, list,
    list::{Reached, Registered, Stored},
};
use ferromesh_testkit::fakeapi::{FakeApi, Fault};
use serde_json::json;

use super::{
    estate::{CLUSTER, Estate, SECRET, set_status, unreachable},
    given::registration,
};

async fn listed(server: &FakeApi) -> Vec<RegisteredCluster> {
    list(&server.client(), &"gloo-mesh".parse().unwrap())
        .await
        .unwrap()
}

#[tokio::test]
async fn a_registered_cluster_is_listed_with_address_and_validity() {
    let estate = Estate::new();
    estate.registered(&registration("east")).await;
    assert_eq!(
        listed(&estate.management).await,
        [RegisteredCluster {
            name: "east".into(),
            registered: Some(Registered {
                domain: "cluster.local".into(),
                namespace: "gloo-mesh".into(),
                reached: None,
                held: None,
            }),
            credential: Stored::Kubeconfig {
                server: "https://east.example.com:6443".into(),
                validity: Some(Validity {
                    issued: "2026-11-21T10:00:00Z".parse().unwrap(),
                    expires: "2026-11-21T14:00:00Z".parse().unwrap(),
                }),
            },
        }]
    );
}

#[tokio::test]
async fn whether_a_cluster_is_reached_is_what_its_condition_says() {
    let estate = Estate::new();
    let cluster = json!({ "metadata": { "name": "east", "namespace": "gloo-mesh" }, "spec": {} });
    estate.management.put("kubectl", &CLUSTER, &cluster);
    set_status(
        &estate.management,
        "east",
        &json!({ "conditions": [unreachable()] }),
    )
    .await;
    let cluster = listed(&estate.management).await.remove(0);
    assert_eq!(
        cluster.registered.unwrap().reached,
        Some(Reached {
            status: "False".into(),
            reason: "ClusterUnreachable".into(),
            message: "no route".into(),
            since: "2026-11-21T10:00:00Z".parse().unwrap(),
        })
    );
    assert_eq!(cluster.credential, Stored::Missing);
}

#[tokio::test]
async fn a_deletion_that_waits_for_a_person_is_told() {
    let estate = Estate::new();
    let cluster = json!({ "metadata": { "name": "east", "namespace": "gloo-mesh" }, "spec": {} });
    estate.management.put("kubectl", &CLUSTER, &cluster);
    for (status, expected) in [("True", Some("800 of 900 objects")), ("False", None)] {
        let held = json!({
            "type": "MassDeleteHeld", "status": status, "reason": "TooManyDeletions",
            "message": "800 of 900 objects", "lastTransitionTime": "2026-11-21T10:00:00Z",
        });
        let status = json!({ "conditions": [held] });
        set_status(&estate.management, "east", &status).await;
        let cluster = listed(&estate.management).await.remove(0);
        assert_eq!(cluster.registered.unwrap().held.as_deref(), expected);
    }
}

#[tokio::test]
async fn halves_of_a_registration_are_listed_too() {
    let estate = Estate::new();
    let secret = |name: &str, of_type: &str, kubeconfig: &str| {
        let secret = json!({
            "metadata": { "name": name, "namespace": "gloo-mesh" }, "type": of_type,
            "data": { "kubeconfig": kubeconfig },
        });
        estate.management.put("somebody", &SECRET, &secret);
    };
    secret("orphan", "solo.io/kubeconfig", "dmVyeS1zZWNyZXQ=");
    secret("other", "Opaque", "dmVyeS1zZWNyZXQ=");
    let clusters = listed(&estate.management).await;
    assert_eq!(clusters.len(), 1);
    assert_eq!(clusters[0].registered, None);
    let Stored::Unusable { problem } = &clusters[0].credential else {
        panic!("{clusters:?}")
    };
    assert!(
        problem.starts_with("the kubeconfig is not YAML of kind Config"),
        "{problem}"
    );
    assert!(!format!("{clusters:?}").contains("very-secret"));
}

#[tokio::test]
async fn whoever_may_not_read_secrets_still_sees_the_clusters() {
    let estate = Estate::new();
    estate.registered(&registration("east")).await;
    estate
        .management
        .fail(Fault::refuse(403), |request| request.plural == "secrets");
    assert_eq!(
        listed(&estate.management).await[0].credential,
        Stored::Hidden
    );
}

#[tokio::test]
async fn without_our_definitions_the_remedy_is_told() {
    let estate = Estate::new();
    estate.management.stop_serving(&CLUSTER);
    let client = estate.management.client();
    let error = list(&client, &"gloo-mesh".parse().unwrap())
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("apply the CRDs first"),
        "{error}"
    );
}
