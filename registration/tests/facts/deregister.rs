use ferromesh_registration::{
    Deregistration, Event, Side, deregister, error::Failure, progress::Warning,
};
use ferromesh_testkit::fakeapi::{FakeApi, Fault, Kind, Verb};
use serde_json::{Value, json};

use super::{
    estate::{
        ACCOUNT, CLUSTER, CLUSTER_ROLE, CLUSTER_ROLE_BINDING, DEFINITION, Estate, NAMESPACE, POD,
        SECRET, deleted, kept, name,
    },
    given::registration,
};

fn deregistration(purge: bool) -> Deregistration {
    Deregistration {
        name: "east".parse().unwrap(),
        management_namespace: "gloo-mesh".parse().unwrap(),
        purge,
    }
}

async fn registered() -> Estate {
    let estate = Estate::new();
    estate.registered(&registration("east")).await;
    for server in [&estate.management, &estate.remote] {
        server.forget_requests();
    }
    estate
}

/// Namespaces and definitions are nobody's to take away.
fn without_what_stays(estate: &Estate) -> Vec<String> {
    let mut names: Vec<_> = estate.content().into_keys().collect();
    names.retain(|name| !name.contains("Namespace") && !name.contains("CustomResourceDefinition"));
    names
}

#[tokio::test]
async fn what_was_registered_goes_and_namespaces_and_definitions_stay() {
    let estate = registered().await;
    let (done, events) = estate.deregister(&deregistration(false)).await;
    done.unwrap();
    assert_eq!(
        deleted(&events, Side::Management),
        ["KubernetesCluster gloo-mesh/east", "Secret gloo-mesh/east"]
    );
    assert_eq!(
        deleted(&events, Side::Remote),
        [
            "ServiceAccount gloo-mesh/east",
            "ClusterRoleBinding east-gloomesh-remote-access-clusterrole-binding",
            "RoleBinding gloo-mesh/east-gloomesh-remote-access-role-binding",
            "RoleBinding istio-system/east-gloomesh-remote-access-role-binding",
            "ClusterRole gloomesh-remote-access-east",
            "Role gloo-mesh/gloomesh-remote-access-east",
            "Role istio-system/gloomesh-remote-access-east",
        ]
    );
    assert_eq!(without_what_stays(&estate), [""; 0]);
    assert_eq!(estate.remote.list(&DEFINITION).len(), 3);
    assert_eq!(estate.remote.list(&NAMESPACE).len(), 3);
}

#[tokio::test]
async fn deregistering_again_or_what_never_was_is_no_error() {
    let estate = registered().await;
    estate.deregister(&deregistration(true)).await.0.unwrap();
    let (done, events) = estate.deregister(&deregistration(true)).await;
    done.unwrap();
    assert_eq!(events, []);

    // Clusters that serve nothing at all.
    let empty = Estate {
        management: FakeApi::new(),
        remote: FakeApi::new(),
    };
    let (done, events) = empty.deregister(&deregistration(true)).await;
    done.unwrap();
    assert_eq!(events, []);
}

#[tokio::test]
async fn what_vanishes_while_it_is_being_deleted_is_no_error() {
    let estate = registered().await;
    for server in [&estate.management, &estate.remote] {
        server.fail(Fault::refuse(404), |request| request.verb == Verb::Delete);
    }
    let (done, events) = estate.deregister(&deregistration(true)).await;
    done.unwrap();
    assert_eq!(events, []);
}

#[tokio::test]
async fn a_run_that_breaks_off_anywhere_can_be_repeated() {
    let whole = registered().await;
    whole.deregister(&deregistration(false)).await.0.unwrap();
    let deletions = [whole.management.writes().len(), whole.remote.writes().len()];
    assert_eq!(deletions, [2, 7]);
    for (side, deletions) in deletions.into_iter().enumerate() {
        for done in 0..deletions {
            for fault in [Fault::Break, Fault::LoseAnswer] {
                let estate = registered().await;
                let mut left = done;
                let server = [&estate.management, &estate.remote][side];
                server.fail_times(1, fault, move |request| {
                    let is_met = request.verb.is_write() && left == 0;
                    left = left.saturating_sub(usize::from(request.verb.is_write()));
                    is_met
                });
                assert!(estate.deregister(&deregistration(false)).await.0.is_err());
                estate.deregister(&deregistration(false)).await.0.unwrap();
                assert_eq!(without_what_stays(&estate), [""; 0]);
            }
        }
    }
}

#[tokio::test]
async fn a_remote_cluster_that_does_not_answer_stops_it_before_anything_goes() {
    let estate = registered().await;
    estate.remote.fail(Fault::Break, |_| true);
    let (done, _) = estate.deregister(&deregistration(false)).await;
    let error = done.unwrap_err();
    assert_eq!(error.failure(), Some(Failure::Unreachable));
    let told = error.to_string();
    assert!(
        told.contains("in the remote cluster") && told.contains("deregistered with --unreachable"),
        "{told}"
    );
    assert_eq!(estate.management.writes().len(), 0);
}

#[tokio::test]
async fn a_remote_cluster_that_is_gone_for_good_is_left_out() {
    let estate = registered().await;
    let mut events = Vec::new();
    let management = estate.management.client();
    deregister(&management, None, &deregistration(true), &mut |event| {
        events.push(event);
    })
    .await
    .unwrap();
    assert_eq!(deleted(&events, Side::Management).len(), 2);
    assert!(events.contains(&Event::Warning(Warning::RemoteUntouched)));
    assert_eq!(estate.remote.requests().len(), 0);
    assert_eq!(estate.management.get(&CLUSTER, "gloo-mesh", "east"), None);
    assert_eq!(estate.management.get(&SECRET, "gloo-mesh", "east"), None);
}

#[tokio::test]
async fn the_wrong_cluster_is_not_touched() {
    let estate = registered().await;
    let wrong = Estate::new();
    wrong.registered(&registration("east")).await;
    wrong.remote.forget_requests();
    // Every API server in memory gives the same uids in the same order.
    wrong.remote.remove(&NAMESPACE, "", "kube-system");
    wrong.remote.put(
        "x",
        &NAMESPACE,
        &json!({ "metadata": { "name": "kube-system" } }),
    );
    let mixed = Estate {
        management: estate.management.clone(),
        remote: wrong.remote.clone(),
    };
    let (done, events) = mixed.deregister(&deregistration(true)).await;
    let told = done.unwrap_err().to_string();
    assert!(
        told.starts_with("east is registered and is another cluster than the one given"),
        "{told}"
    );
    assert_eq!(events, []);
    assert_eq!(
        mixed.remote.writes().len() + mixed.management.writes().len(),
        0
    );
}

#[tokio::test]
async fn what_is_not_ours_stays() {
    let estate = Estate::new();
    let other = json!({ "registration.mesh.gloo.solo.io/cluster": "west" });
    let foreign: [(&FakeApi, &Kind, Value); 6] = [
        (
            &estate.remote,
            &ACCOUNT,
            json!({ "name": "east", "namespace": "gloo-mesh" }),
        ),
        (
            &estate.remote,
            &CLUSTER_ROLE,
            json!({ "name": "gloomesh-remote-access" }),
        ),
        (
            &estate.remote,
            &CLUSTER_ROLE_BINDING,
            json!({ "name": "east-gloomesh-remote-access-clusterrole-binding" }),
        ),
        (
            &estate.remote,
            &CLUSTER_ROLE,
            json!({ "name": "west", "labels": other }),
        ),
        (
            &estate.management,
            &CLUSTER,
            json!({ "name": "west", "namespace": "gloo-mesh" }),
        ),
        (
            &estate.management,
            &SECRET,
            json!({ "name": "east", "namespace": "gloo-mesh" }),
        ),
    ];
    for (server, kind, meta) in &foreign {
        server.put(
            "somebody",
            kind,
            &json!({ "metadata": meta, "type": "Opaque" }),
        );
    }
    let before = estate.content();
    let (done, events) = estate.deregister(&deregistration(true)).await;
    done.unwrap();
    assert_eq!(estate.content(), before);
    assert_eq!(kept(&events).len(), 1);
    assert_eq!(kept(&events)[0].to_string(), "Secret gloo-mesh/east");
}

#[tokio::test]
async fn the_management_cluster_survives_its_own_deregistration() {
    let mut estate = Estate::new();
    estate.remote.serve(&CLUSTER);
    estate.management = estate.remote.clone();
    let policies = Kind::new(
        "networking.mesh.gloo.solo.io",
        "TrafficPolicy",
        "trafficpolicies",
    );
    estate.remote.serve(&policies);
    let policy = json!({ "metadata": { "name": "mine", "namespace": "gloo-mesh" } });
    estate.remote.put("kubectl", &policies, &policy);
    let definition = json!({ "metadata": { "name": "meshes.discovery.mesh.gloo.solo.io",
        "labels": { "app": "gloo-mesh" } } });
    estate.remote.put("kubectl", &DEFINITION, &definition);
    let root =
        json!({ "metadata": { "name": "root", "namespace": "gloo-mesh" }, "type": "Opaque" });
    estate.remote.put("kubectl", &SECRET, &root);

    estate.registered(&registration("east")).await;
    estate.deregister(&deregistration(true)).await.0.unwrap();
    assert!(estate.remote.get(&policies, "gloo-mesh", "mine").is_some());
    assert!(estate.remote.get(&SECRET, "gloo-mesh", "root").is_some());
    assert_eq!(estate.remote.list(&DEFINITION).len(), 4);
    assert!(estate.remote.get(&NAMESPACE, "", "gloo-mesh").is_some());
    assert_eq!(estate.remote.list(&ACCOUNT).len(), 0);
}

/// Labels of what the management plane writes to cluster east.
fn owned() -> Value {
    json!({
        "owner.networking.mesh.gloo.solo.io": "gloo-mesh",
        "cluster.multicluster.solo.io": "east",
    })
}

fn virtual_service(version: &str) -> Kind {
    Kind::new("networking.istio.io", "VirtualService", "virtualservices").with_versions(&[version])
}

fn policy() -> Kind {
    Kind::new(
        "security.istio.io",
        "AuthorizationPolicy",
        "authorizationpolicies",
    )
}

fn certificates(kind: &str, plural: &str) -> Kind {
    Kind::new("certificates.mesh.gloo.solo.io", kind, plural)
}

fn put(server: &FakeApi, kind: &Kind, name: &str, namespace: &str, labels: &Value, of_type: &str) {
    server.serve(kind);
    let object = json!({
        "metadata": { "name": name, "namespace": namespace, "labels": labels }, "type": of_type,
    });
    server.put("somebody", kind, &object);
}

/// A cluster to which the management plane, and others, have written.
async fn used(istio: &str) -> Estate {
    let estate = registered().await;
    let remote = &estate.remote;
    let mut other_cluster = owned();
    other_cluster["cluster.multicluster.solo.io"] = json!("west");
    let mut other_plane = owned();
    other_plane["owner.networking.mesh.gloo.solo.io"] = json!("mesh-b");
    let none = json!({});
    let services = virtual_service(istio);
    for (name, labels) in [
        ("ours", &owned()),
        ("theirs", &none),
        ("west", &other_cluster),
        ("b", &other_plane),
    ] {
        put(remote, &services, name, "bookinfo", labels, "");
    }
    put(remote, &policy(), "ours", "bookinfo", &owned(), "");
    let issued = certificates("IssuedCertificate", "issuedcertificates");
    let requests = certificates("CertificateRequest", "certificaterequests");
    let directives = certificates("PodBounceDirective", "podbouncedirectives");
    put(remote, &issued, "istiod-east", "gloo-mesh", &owned(), "");
    put(
        remote,
        &directives,
        "istiod-east",
        "gloo-mesh",
        &owned(),
        "",
    );
    let agent = json!({ "agent.certificates.mesh.gloo.solo.io": "gloo-mesh" });
    for name in ["istiod-east", "istiod-west"] {
        put(remote, &requests, name, "gloo-mesh", &agent, "");
        let key = "certificates.mesh.gloo.solo.io/generated_private_key";
        put(remote, &SECRET, name, "gloo-mesh", &agent, key);
    }
    let authority = "certificates.mesh.gloo.solo.io/issued_certificate";
    put(
        remote,
        &SECRET,
        "cacerts",
        "istio-system",
        &agent,
        authority,
    );
    estate
}

#[tokio::test]
async fn what_was_written_stays_unless_a_purge_is_asked_for() {
    let estate = used("v1").await;
    let (done, events) = estate.deregister(&deregistration(false)).await;
    done.unwrap();
    assert_eq!(deleted(&events, Side::Remote).len(), 7);
    assert_eq!(estate.remote.list(&virtual_service("v1")).len(), 4);
    assert_eq!(estate.remote.list(&policy()).len(), 1);
}

#[tokio::test]
async fn a_purge_takes_what_this_management_plane_has_written_to_this_cluster() {
    for version in ["v1", "v1beta1", "v1alpha3"] {
        let estate = used(version).await;
        let (done, events) = estate.deregister(&deregistration(true)).await;
        done.unwrap();
        assert_eq!(
            deleted(&events, Side::Remote)[7..],
            [
                "VirtualService bookinfo/ours",
                "AuthorizationPolicy bookinfo/ours",
                "CertificateRequest gloo-mesh/istiod-east",
                "Secret gloo-mesh/istiod-east",
                "IssuedCertificate gloo-mesh/istiod-east",
                "PodBounceDirective gloo-mesh/istiod-east",
            ]
        );
        let secrets: Vec<_> = estate.remote.list(&SECRET).iter().map(name).collect();
        assert_eq!(
            secrets,
            [
                "Secret gloo-mesh/istiod-west",
                "Secret istio-system/cacerts"
            ]
        );
    }
}

#[tokio::test]
async fn a_purge_leaves_the_records_of_certificates_to_an_agent() {
    let estate = used("v1").await;
    put(
        &estate.remote,
        &POD,
        "cert-agent-x",
        "gloo-mesh",
        &json!({ "app": "cert-agent" }),
        "",
    );
    let (done, events) = estate.deregister(&deregistration(true)).await;
    done.unwrap();
    assert_eq!(
        kept(&events)[0].to_string(),
        "IssuedCertificate gloo-mesh/istiod-east"
    );
    assert_eq!(deleted(&events, Side::Remote).len(), 9);
}

#[tokio::test]
async fn the_management_side_goes_first_and_rights_go_before_what_was_written() {
    let estate = used("v1").await;
    estate
        .remote
        .fail(Fault::refuse(500), |request| request.verb == Verb::Delete);
    estate
        .deregister(&deregistration(true))
        .await
        .0
        .unwrap_err();
    assert_eq!(estate.management.get(&CLUSTER, "gloo-mesh", "east"), None);

    estate.remote.heal();
    let (done, events) = estate.deregister(&deregistration(true)).await;
    done.unwrap();
    let deleted = deleted(&events, Side::Remote);
    let at = |wanted: &str| deleted.iter().position(|name| name == wanted).unwrap();
    assert!(at("ServiceAccount gloo-mesh/east") < at("VirtualService bookinfo/ours"));
}
