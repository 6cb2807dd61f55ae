//! Requests about one object, as others use them.

use std::time::Duration;

use ferromesh_apply::{
    Error,
    ssa::{Address, OtherManagers, Writer},
};
use ferromesh_testkit::fakeapi::{FakeApi, Fault};
use kube::api::Preconditions;
use serde_json::{Value, json};

use super::bench::{NS, US, cluster, routes, served};

fn writer(api: &FakeApi, manager: &'static str) -> Writer {
    Writer::new(api.client(), manager, Duration::from_secs(5))
}

fn address(name: &str) -> Address {
    Address {
        group: routes().group.to_string(),
        version: "v1".to_owned(),
        plural: routes().plural.to_string(),
        namespace: NS.to_owned(),
        name: name.to_owned(),
    }
}

fn body(field: &str, value: Value) -> Value {
    let mut body = json!({ "apiVersion": "networking.istio.io/v1", "kind": "VirtualService" });
    body["metadata"] = json!({ "name": "a", "namespace": NS });
    body[field] = value;
    body
}

#[tokio::test(start_paused = true)]
async fn a_status_is_applied_to_what_exists() {
    let api = cluster();
    let us = writer(&api, US);
    let status = body("status", json!({ "state": "ACCEPTED" }));
    let applied = us
        .apply_status(&address("a"), &status, OtherManagers::Override)
        .await;
    assert!(
        matches!(applied, Err(Error::NotFound { .. })),
        "{applied:?}"
    );

    let spec = body("spec", json!({ "hosts": ["a"] }));
    us.apply(&address("a"), &spec, OtherManagers::Override)
        .await
        .unwrap();
    us.apply_status(&address("a"), &status, OtherManagers::Override)
        .await
        .unwrap();
    let object = api.get(&served(&routes()), NS, "a").unwrap();
    assert_eq!(object["status"], json!({ "state": "ACCEPTED" }));
    assert_eq!(object["spec"], json!({ "hosts": ["a"] }));
}

#[tokio::test(start_paused = true)]
async fn fields_of_another_manager_are_respected_or_overridden() {
    let api = cluster();
    let spec = |host: &str| body("spec", json!({ "hosts": [host] }));
    let them = writer(&api, "them");
    them.apply(&address("a"), &spec("theirs"), OtherManagers::Respect)
        .await
        .unwrap();
    let us = writer(&api, US);
    let respected = us
        .apply(&address("a"), &spec("ours"), OtherManagers::Respect)
        .await;
    assert!(
        matches!(respected, Err(Error::Conflict { .. })),
        "{respected:?}"
    );
    us.apply(&address("a"), &spec("ours"), OtherManagers::Override)
        .await
        .unwrap();
    let object = us.read(&address("a")).await.unwrap().unwrap();
    assert_eq!(object.data["spec"], json!({ "hosts": ["ours"] }));
}

#[tokio::test(start_paused = true)]
async fn what_does_not_exist_reads_as_nothing() {
    let us = writer(&cluster(), US);
    assert!(us.read(&address("a")).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_name_that_would_lead_elsewhere_is_not_sent() {
    let api = cluster();
    let us = writer(&api, US);
    for (namespace, name) in [
        (NS, "../../other/virtualservices/x"),
        (NS, "a?force=true"),
        (NS, "a%2fb"),
        (NS, ".."),
        (NS, ""),
        ("shop/virtualservices", "a"),
    ] {
        let address = Address {
            namespace: namespace.to_owned(),
            ..address(name)
        };
        let read = us.read(&address).await;
        assert!(
            matches!(read, Err(Error::Invalid { .. })),
            "{address}: {read:?}"
        );
    }
    assert!(api.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_apply_a_patch_and_a_deletion_heed_their_preconditions() {
    let api = cluster();
    let us = writer(&api, US);
    let mut spec = body("spec", json!({ "hosts": ["a"] }));
    us.apply(&address("a"), &spec, OtherManagers::Override)
        .await
        .unwrap();
    let before = api.get(&served(&routes()), NS, "a");

    spec["metadata"]["resourceVersion"] = json!("1");
    let applied = us
        .apply(&address("a"), &spec, OtherManagers::Override)
        .await;
    assert!(matches!(applied, Err(Error::Conflict { .. })));
    let patch = json!({ "metadata": { "resourceVersion": "1" }, "spec": { "hosts": null } });
    let patched = us.merge(&address("a"), &patch).await;
    assert!(matches!(patched, Err(Error::Conflict { .. })));
    let another = Preconditions {
        uid: Some("another".to_owned()),
        resource_version: None,
    };
    let deleted = us.delete(&address("a"), another).await;
    assert!(matches!(deleted, Err(Error::Conflict { .. })));
    assert_eq!(api.get(&served(&routes()), NS, "a"), before);

    us.delete(&address("a"), Preconditions::default())
        .await
        .unwrap();
    let deleted = us.delete(&address("a"), Preconditions::default()).await;
    assert!(matches!(deleted, Err(Error::NotFound { .. })));
    spec["metadata"] = json!({ "name": "a", "namespace": NS, "uid": "gone" });
    let applied = us
        .apply(&address("a"), &spec, OtherManagers::Override)
        .await;
    assert!(
        matches!(applied, Err(Error::Conflict { .. })),
        "what is gone is not created anew"
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_come_or_does_not_end_is_an_error() {
    let api = cluster();
    let us = writer(&api, US);
    api.fail_times(1, Fault::Hang, |_| true);
    let read = us.read(&address("a")).await;
    assert!(
        matches!(&read, Err(Error::Timeout { after, .. }) if *after == Duration::from_secs(5)),
        "{read:?}"
    );
    api.fail_times(1, Fault::Mute, |_| true);
    let read = us.read(&address("a")).await;
    assert!(matches!(read, Err(Error::Timeout { .. })), "{read:?}");

    let long: &'static str = "x".repeat(17 << 20).leak();
    api.fail_times(1, Fault::Answer(long), |_| true);
    let read = us.read(&address("a")).await;
    let Err(Error::Unreachable { cause, .. }) = read else {
        panic!("{read:?}");
    };
    assert!(cause.to_string().contains("length limit"), "{cause}");
}

#[tokio::test(start_paused = true)]
async fn nobody_is_left_alone_for_longer_than_five_minutes() {
    let api = cluster();
    let us = writer(&api, US);
    for (asked, granted) in [(7, 7), (299, 299), (86400, 300)] {
        let fault = Fault::Refuse {
            code: 429,
            retry_after: Some(Duration::from_secs(asked)),
        };
        api.fail_times(1, fault, |_| true);
        let read = us.read(&address("a")).await;
        let granted = Some(Duration::from_secs(granted));
        assert!(
            matches!(&read, Err(Error::Throttled { after, .. }) if *after == granted),
            "{read:?}"
        );
    }
}
