use ferromesh_registration::{
    CredentialKind, Error,
    credential::{Account, DEFAULT_LIFETIME, Renewal, renew},
    error::Failure,
};
use ferromesh_runtime::telemetry::Chain;
use ferromesh_testkit::fakeapi::Fault;
use serde_json::{Value, json};

use super::{
    estate::{Estate, SECRET, is_token_request, token},
    given::{kubeconfig_in, registration},
};

async fn renewed(estate: &Estate) -> Result<Renewal, Error> {
    let account = Account {
        cluster: "east".parse().unwrap(),
        management_namespace: "gloo-mesh".parse().unwrap(),
        remote_namespace: "gloo-mesh".parse().unwrap(),
    };
    let (management, remote) = (estate.management.client(), estate.remote.client());
    renew(&management, &remote, &account, DEFAULT_LIFETIME).await
}

fn secret(estate: &Estate) -> Value {
    estate.management.get(&SECRET, "gloo-mesh", "east").unwrap()
}

/// A registered cluster, with another token for the next who asks.
async fn registered() -> Estate {
    let estate = Estate::new();
    estate.registered(&registration("east")).await;
    estate.remote.heal();
    estate
        .remote
        .fail(token("the-next-token"), is_token_request);
    estate.remote.forget_requests();
    estate.management.forget_requests();
    estate
}

#[tokio::test]
async fn a_renewal_changes_the_token_and_its_dates_alone() {
    let estate = registered().await;
    let shift = |secret: &mut Value| {
        secret["metadata"]["labels"]["team"] = json!("green");
        secret["metadata"]["annotations"] = json!({
            "registration.mesh.gloo.solo.io/credential-issued": "2026-11-20T10:00:00Z",
            "registration.mesh.gloo.solo.io/credential-expires": "2026-11-20T14:00:00Z",
            "note": "kept",
        });
        secret["data"]["other"] = json!("a2VwdA==");
    };
    estate
        .management
        .edit("somebody", &SECRET, "gloo-mesh", "east", shift);
    let before = secret(&estate);

    let Renewal::Renewed(validity) = renewed(&estate).await.unwrap() else {
        panic!("not renewed")
    };
    assert_eq!(validity.renewal(), "2026-11-21T12:00:00Z".parse().unwrap());
    let after = secret(&estate);
    let mut expected = kubeconfig_in(&before);
    expected["users"][0]["user"]["token"] = json!("the-next-token");
    assert_eq!(kubeconfig_in(&after), expected);
    let mut expected = before.clone();
    expected["data"]["kubeconfig"] = after["data"]["kubeconfig"].clone();
    expected["metadata"]["annotations"] = json!({
        "registration.mesh.gloo.solo.io/credential-issued": "2026-11-21T10:00:00Z",
        "registration.mesh.gloo.solo.io/credential-expires": "2026-11-21T14:00:00Z",
        "note": "kept",
    });
    for field in ["resourceVersion", "managedFields"] {
        expected["metadata"][field] = after["metadata"][field].clone();
    }
    assert_eq!(after, expected);

    let asked = estate.remote.requests();
    assert_eq!(
        asked.len(),
        1,
        "nothing but the token is asked of the remote cluster"
    );
    assert!(
        asked[0]
            .uri
            .contains("/namespaces/gloo-mesh/serviceaccounts/east/token")
    );
}

#[tokio::test]
async fn a_secret_that_is_gone_does_not_come_back() {
    let estate = registered().await;
    estate.management.remove(&SECRET, "gloo-mesh", "east");
    assert_eq!(renewed(&estate).await.unwrap(), Renewal::Deregistered);
    assert!(estate.remote.requests().is_empty());

    // Nor does one that goes while the token is being requested.
    let estate = registered().await;
    let management = estate.management.clone();
    estate.remote.heal();
    estate.remote.fail(token("the-next-token"), move |request| {
        management.remove(&SECRET, "gloo-mesh", "east");
        is_token_request(request)
    });
    assert_eq!(renewed(&estate).await.unwrap(), Renewal::Deregistered);
    assert_eq!(estate.management.get(&SECRET, "gloo-mesh", "east"), None);
}

#[tokio::test]
async fn a_secret_that_changes_meanwhile_is_left_alone() {
    let estate = registered().await;
    let management = estate.management.clone();
    estate.remote.heal();
    estate.remote.fail(token("the-next-token"), move |request| {
        let replace = |secret: &mut Value| secret["data"]["kubeconfig"] = json!("bmV3");
        management.edit("meshctl", &SECRET, "gloo-mesh", "east", replace);
        is_token_request(request)
    });
    let error = renewed(&estate).await.unwrap_err();
    assert_eq!(error.failure(), Some(Failure::Conflict));
    assert_eq!(secret(&estate)["data"]["kubeconfig"], "bmV3");
}

#[tokio::test]
async fn a_token_that_does_not_expire_is_not_renewed() {
    for annotations in [
        json!(null),
        json!({ "registration.mesh.gloo.solo.io/credential-expires": "never" }),
    ] {
        let estate = registered().await;
        let edit = |secret: &mut Value| secret["metadata"]["annotations"] = annotations;
        estate
            .management
            .edit("somebody", &SECRET, "gloo-mesh", "east", edit);
        assert_eq!(renewed(&estate).await.unwrap(), Renewal::NeverExpires);
        assert!(estate.remote.requests().is_empty());
    }
}

#[tokio::test]
async fn after_a_renewal_one_can_change_to_a_token_that_does_not_expire() {
    let estate = registered().await;
    renewed(&estate).await.unwrap();
    let mut registration = registration("east");
    registration.credential = CredentialKind::LongLived;
    let token = json!({
        "metadata": {
            "name": "east-token", "namespace": "gloo-mesh",
            "labels": { "registration.mesh.gloo.solo.io/cluster": "east" },
        },
        "data": { "token": "Zm9yZXZlcg==" },
    });
    estate.remote.put("kcm", &SECRET, &token);
    estate.registered(&registration).await;
    assert_eq!(renewed(&estate).await.unwrap(), Renewal::NeverExpires);
}

#[tokio::test]
async fn what_cannot_be_renewed_says_so_and_quotes_nothing() {
    let broken = "dXNlcnM6IFt7dmVyeS1zZWNyZXQ="; // users: [{very-secret
    let estate = registered().await;
    let edit = |secret: &mut Value| secret["data"]["kubeconfig"] = json!(broken);
    estate
        .management
        .edit("somebody", &SECRET, "gloo-mesh", "east", edit);
    let told = Chain(&renewed(&estate).await.unwrap_err()).to_string();
    assert_eq!(
        told,
        "renewing the token in Secret gloo-mesh/east in the management cluster: \
         the kubeconfig is not YAML of kind Config (line 0, column 0)"
    );

    let estate = registered().await;
    estate.remote.heal();
    estate.remote.fail(Fault::refuse(401), is_token_request);
    let before = secret(&estate);
    let told = Chain(&renewed(&estate).await.unwrap_err()).to_string();
    assert!(
        told.starts_with(
            "requesting a token of ServiceAccount gloo-mesh/east in the remote cluster (the kubeconfig's credential is not accepted"
        ),
        "{told}"
    );
    assert_eq!(secret(&estate), before);
}
