use std::time::Duration;

use ferromesh_registration::{
    CredentialKind, Deregistration, Error, Event, Plan, Registration, Side, Validity,
    error::Failure,
    progress::{Change, Warning},
};
use ferromesh_runtime::{client::ClientWarning, telemetry::Chain};
use ferromesh_testkit::fakeapi::{Fault, Kind, Verb};
use serde_json::{Value, json};

use super::{
    estate::{
        ACCOUNT, CLUSTER, CLUSTER_ROLE, CLUSTER_ROLE_BINDING, DEFINITION, Estate, NAMESPACE, ROLE,
        ROLE_BINDING, SECRET, applied, deleted, is_token_request, kept, set_status, token,
        unreachable,
    },
    given::{east, kubeconfig_in, planned, registration},
};

/// Whether everything that `part` says is in `whole`.
fn is_in(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => part
            .iter()
            .all(|(key, part)| whole.get(key).is_some_and(|whole| is_in(part, whole))),
        (part, whole) => part == whole,
    }
}

fn kind_of(name: &str) -> &'static Kind {
    match name {
        "Namespace" => &NAMESPACE,
        "Secret" => &SECRET,
        "ServiceAccount" => &ACCOUNT,
        "ClusterRole" => &CLUSTER_ROLE,
        "ClusterRoleBinding" => &CLUSTER_ROLE_BINDING,
        "Role" => &ROLE,
        "RoleBinding" => &ROLE_BINDING,
        "CustomResourceDefinition" => &DEFINITION,
        "KubernetesCluster" => &CLUSTER,
        other => panic!("{other} is not served"),
    }
}

#[tokio::test]
async fn what_is_planned_is_what_is_written() {
    let estate = Estate::new();
    let registration = registration("east");
    estate.registered(&registration).await;
    let plan = Plan::new(&registration);
    for object in plan.objects() {
        let server = match object.side() {
            Side::Management => &estate.management,
            Side::Remote => &estate.remote,
        };
        let reference = object.reference();
        let namespace = reference.namespace.clone().unwrap_or_default();
        let written = server
            .get(kind_of(&reference.kind), &namespace, &reference.name)
            .unwrap_or_else(|| panic!("{object:?} is missing"));
        let mut body = serde_json::to_value(object.body()).unwrap();
        // What only the remote cluster could tell.
        if object.side() == Side::Management {
            body.as_object_mut().unwrap().remove("data");
            body["metadata"]
                .as_object_mut()
                .unwrap()
                .remove("annotations");
        }
        assert!(is_in(&body, &written), "{body:#} is not in {written:#}");
    }
    let writes = estate.remote.writes().len() + estate.management.writes().len();
    // The status of the cluster is written on its own.
    assert_eq!(writes, plan.objects().count() + 1);
}

#[tokio::test]
async fn the_management_plane_gets_the_token_and_its_validity() {
    let estate = Estate::new();
    let (validity, events) = estate.register(&registration("east")).await;
    let expected = Validity {
        issued: "2026-11-21T10:00:00Z".parse().unwrap(),
        expires: "2026-11-21T14:00:00Z".parse().unwrap(),
    };
    assert_eq!(validity.unwrap(), Some(expected));
    assert!(events.contains(&Event::CredentialIssued {
        validity: Some(expected)
    }));
    assert!(!format!("{events:?}").contains("the-token"));

    let asked: Vec<_> = estate
        .remote
        .requests()
        .into_iter()
        .filter(is_token_request)
        .collect();
    assert!(
        asked[0]
            .uri
            .contains("/namespaces/gloo-mesh/serviceaccounts/east/token")
    );

    let mut secret = estate.management.get(&SECRET, "gloo-mesh", "east").unwrap();
    assert_eq!(
        kubeconfig_in(&secret)["users"][0]["user"],
        json!({ "token": "the-token" })
    );
    let meta = secret["metadata"].take();
    assert_eq!(
        meta["annotations"],
        json!({
            "registration.mesh.gloo.solo.io/credential-issued": "2026-11-21T10:00:00Z",
            "registration.mesh.gloo.solo.io/credential-expires": "2026-11-21T14:00:00Z",
        })
    );
    assert!(!meta.to_string().contains("the-token"));
}

#[tokio::test]
async fn registering_again_renews_the_token_and_changes_nothing_else() {
    let estate = Estate::new();
    let registration = registration("east");
    let first = estate.registered(&registration).await;
    assert_eq!(applied(&first, Change::Unchanged), [""; 0]);
    let before = estate.content();

    estate.remote.heal();
    estate
        .remote
        .fail(token("the-next-token"), is_token_request);
    let again = estate.registered(&registration).await;
    assert_eq!(applied(&again, Change::Created), [""; 0]);
    assert_eq!(applied(&again, Change::Changed), ["Secret gloo-mesh/east"]);
    assert_eq!(deleted(&again, Side::Remote), [""; 0]);
    let secret = estate.management.get(&SECRET, "gloo-mesh", "east").unwrap();
    assert_eq!(
        kubeconfig_in(&secret)["users"][0]["user"]["token"],
        "the-next-token"
    );

    let mut after = estate.content();
    let data = before["management: Secret gloo-mesh/east"]["data"].clone();
    after.get_mut("management: Secret gloo-mesh/east").unwrap()["data"] = data;
    assert_eq!(after, before);
}

#[tokio::test]
async fn a_run_that_breaks_off_anywhere_can_be_repeated() {
    let registration = registration("east");
    let whole = Estate::new();
    whole.registered(&registration).await;
    let writes = [whole.remote.writes().len(), whole.management.writes().len()];
    for (side, writes) in writes.into_iter().enumerate() {
        for done in 0..writes {
            for fault in [Fault::Break, Fault::LoseAnswer] {
                let estate = Estate::new();
                let server = [&estate.remote, &estate.management][side];
                let mut left = done;
                server.fail_times(1, fault, move |request| {
                    let is_met = request.verb.is_write() && left == 0;
                    left = left.saturating_sub(usize::from(request.verb.is_write()));
                    is_met
                });
                assert!(estate.register(&registration).await.0.is_err());
                estate.registered(&registration).await;
                assert_eq!(estate.content(), whole.content());
            }
        }
    }
}

#[tokio::test]
async fn without_our_definitions_nothing_is_written() {
    let estate = Estate::new();
    estate.management.stop_serving(&CLUSTER);
    let (done, _) = estate.register(&registration("east")).await;
    let told = done.unwrap_err().to_string();
    assert!(
        told.starts_with(
            "the management cluster serves no KubernetesCluster (multicluster.solo.io/v1alpha1): apply the CRDs first"
        ),
        "{told}"
    );
    assert_eq!(
        estate.remote.writes().len() + estate.management.writes().len(),
        0
    );
}

#[tokio::test]
async fn what_belongs_to_somebody_else_is_refused_before_anything_is_written() {
    const HAND_OVER: &str = ", or hand it over: kubectl label";
    let cases: [(Side, &Kind, &str, &str, bool); 6] = [
        (Side::Remote, &ACCOUNT, "gloo-mesh", "east", true),
        (
            Side::Remote,
            &CLUSTER_ROLE,
            "",
            "gloomesh-remote-access-east",
            true,
        ),
        (
            Side::Remote,
            &CLUSTER_ROLE_BINDING,
            "",
            "east-gloomesh-remote-access-clusterrole-binding",
            false,
        ),
        (
            Side::Remote,
            &ROLE,
            "istio-system",
            "gloomesh-remote-access-east",
            true,
        ),
        (
            Side::Remote,
            &ROLE_BINDING,
            "gloo-mesh",
            "east-gloomesh-remote-access-role-binding",
            false,
        ),
        (Side::Management, &SECRET, "gloo-mesh", "east", false),
    ];
    for (side, kind, namespace, name, can_be_handed_over) in cases {
        let estate = Estate::new();
        let server = match side {
            Side::Management => &estate.management,
            Side::Remote => &estate.remote,
        };
        let mut object = json!({ "metadata": { "name": name }, "type": "Opaque" });
        if !namespace.is_empty() {
            object["metadata"]["namespace"] = json!(namespace);
        }
        server.put("somebody", kind, &object);
        let (done, _) = estate.register(&registration("east")).await;
        let error = done.unwrap_err();
        assert!(matches!(error, Error::Foreign { .. }), "{error}");
        let told = error.to_string();
        assert!(told.contains(name), "{told}");
        let where_it_is = format!("exists in {side} and is not part of this registration");
        assert!(told.contains(&where_it_is), "{told}");
        assert_eq!(told.contains(HAND_OVER), can_be_handed_over, "{told}");
        assert_eq!(
            estate.remote.writes().len() + estate.management.writes().len(),
            0
        );
    }
}

#[tokio::test]
async fn an_account_that_was_handed_over_is_taken() {
    let estate = Estate::new();
    let label = json!({ "registration.mesh.gloo.solo.io/cluster": "east" });
    let account =
        json!({ "metadata": { "name": "east", "namespace": "gloo-mesh", "labels": label } });
    estate.remote.put("somebody", &ACCOUNT, &account);
    let events = estate.registered(&registration("east")).await;
    assert!(!applied(&events, Change::Created).contains(&"ServiceAccount gloo-mesh/east".into()));
}

#[tokio::test]
async fn a_kubeconfig_that_is_there_already_is_replaced() {
    let estate = Estate::new();
    let secret = json!({
        "metadata": { "name": "east", "namespace": "gloo-mesh" }, "type": "solo.io/kubeconfig",
        "data": { "kubeconfig": "b2xk" },
    });
    estate.management.put("another-release", &SECRET, &secret);
    estate.registered(&registration("east")).await;
    let secret = estate.management.get(&SECRET, "gloo-mesh", "east").unwrap();
    assert_eq!(
        kubeconfig_in(&secret)["users"][0]["user"]["token"],
        "the-token"
    );
}

#[tokio::test]
async fn a_namespace_that_exists_gets_one_label_and_keeps_its_own() {
    let estate = Estate::new();
    let namespace = json!({ "metadata": { "name": "gloo-mesh", "labels": { "team": "green" } } });
    estate.remote.put("somebody", &NAMESPACE, &namespace);
    estate.management.put("somebody", &NAMESPACE, &namespace);
    estate.registered(&registration("east")).await;
    let labels = |namespace: Option<Value>| namespace.unwrap()["metadata"]["labels"].clone();
    assert_eq!(
        labels(estate.remote.get(&NAMESPACE, "", "gloo-mesh")),
        json!({ "team": "green", "istio-injection": "disabled" })
    );
    assert_eq!(
        labels(estate.management.get(&NAMESPACE, "", "gloo-mesh")),
        json!({ "team": "green" })
    );
}

#[tokio::test]
async fn injection_that_somebody_else_has_asked_for_is_a_conflict() {
    let estate = Estate::new();
    let labels = json!({ "istio-injection": "enabled" });
    let namespace = json!({ "metadata": { "name": "gloo-mesh", "labels": labels } });
    estate.remote.put("kubectl", &NAMESPACE, &namespace);
    let (done, _) = estate.register(&registration("east")).await;
    let error = done.unwrap_err();
    assert_eq!(error.failure(), Some(Failure::Conflict));
    let told = error.to_string();
    assert!(
        told.starts_with(
            "writing Namespace gloo-mesh in the remote cluster (somebody else holds that field"
        ),
        "{told}"
    );
    assert_eq!(estate.remote.writes().len(), 1);
    assert_eq!(estate.management.writes().len(), 0);
}

#[tokio::test]
async fn definitions_that_somebody_else_installed_are_left_alone() {
    let estate = Estate::new();
    let name = "issuedcertificates.certificates.mesh.gloo.solo.io";
    estate.remote.put(
        "helm",
        &DEFINITION,
        &json!({ "metadata": { "name": name }, "spec": {} }),
    );
    let events = estate.registered(&registration("east")).await;
    assert_eq!(kept(&events).len(), 1);
    let definition = estate.remote.get(&DEFINITION, "", name).unwrap();
    assert_eq!(definition["spec"], json!({}));

    // What a registration has made, the next one keeps up to date.
    let ours = "certificaterequests.certificates.mesh.gloo.solo.io";
    estate
        .remote
        .edit("meshctl", &DEFINITION, "", ours, |object| {
            object["spec"] = json!({});
        });
    estate.registered(&registration("east")).await;
    let definition = estate.remote.get(&DEFINITION, "", ours).unwrap();
    assert_eq!(
        definition["spec"]["group"],
        "certificates.mesh.gloo.solo.io"
    );
}

#[tokio::test]
async fn rights_in_a_namespace_of_istiod_follow_once_it_exists() {
    let estate = Estate::new();
    estate.remote.remove(&NAMESPACE, "", "istio-system");
    let events = estate.registered(&registration("east")).await;
    let namespace = "istio-system".parse().unwrap();
    assert!(events.contains(&Event::Warning(Warning::NoIstioNamespace { namespace })));
    assert_eq!(estate.remote.list(&ROLE).len(), 1);

    estate.remote.put(
        "istioctl",
        &NAMESPACE,
        &json!({ "metadata": { "name": "istio-system" } }),
    );
    let events = estate.registered(&registration("east")).await;
    assert_eq!(
        applied(&events, Change::Created),
        [
            "Role istio-system/gloomesh-remote-access-east",
            "RoleBinding istio-system/east-gloomesh-remote-access-role-binding",
        ]
    );
}

#[tokio::test]
async fn a_name_that_another_cluster_has_is_refused() {
    let estate = Estate::new();
    estate.registered(&registration("east")).await;
    estate.remote.remove(&NAMESPACE, "", "kube-system");
    estate.remote.put(
        "x",
        &NAMESPACE,
        &json!({ "metadata": { "name": "kube-system" } }),
    );
    estate.remote.forget_requests();
    let (done, _) = estate.register(&registration("east")).await;
    let told = done.unwrap_err().to_string();
    assert!(
        told.starts_with("east is registered and is another cluster than the one given"),
        "{told}"
    );
    assert!(
        told.contains("deregister it with --unreachable first"),
        "{told}"
    );
    assert_eq!(estate.remote.writes().len(), 0);
}

#[tokio::test]
async fn one_cluster_under_two_names_keeps_one_when_the_other_goes() {
    let both = Estate::new();
    let alone = both.registered(&registration("east")).await;
    let is_twice = |event: &Event| matches!(event, Event::Warning(Warning::RegisteredTwice { other }) if other == "east");
    assert!(!alone.iter().any(is_twice));
    let twice = both.registered(&registration("far-east")).await;
    assert!(twice.iter().any(is_twice), "{twice:?}");
    let deregistration = Deregistration {
        name: "far-east".parse().unwrap(),
        management_namespace: "gloo-mesh".parse().unwrap(),
        purge: true,
    };
    both.deregister(&deregistration).await.0.unwrap();
    let one = Estate::new();
    one.registered(&registration("east")).await;
    assert_eq!(both.content(), one.content());
}

#[tokio::test]
async fn the_management_cluster_can_be_registered_with_itself() {
    let mut estate = Estate::new();
    estate.remote.serve(&CLUSTER);
    estate.management = estate.remote.clone();
    let registration = registration("here");
    let events = estate.registered(&registration).await;
    assert!(events.contains(&Event::Warning(Warning::SameCluster)));
    let events = estate.registered(&registration).await;
    assert_eq!(
        applied(&events, Change::Changed),
        [""; 0],
        "the token is the same"
    );
    let namespace = estate.remote.get(&NAMESPACE, "", "gloo-mesh").unwrap();
    assert_eq!(
        namespace["metadata"]["labels"],
        json!({ "istio-injection": "disabled" })
    );
}

/// A registration whose credential does not expire.
fn long_lived(name: &str) -> Registration {
    let mut registration = registration(name);
    registration.credential = CredentialKind::LongLived;
    registration
}

/// Fills token Secrets at the `count`th look at them.
fn fill_tokens(estate: &Estate, count: usize) {
    let (server, mut left) = (estate.remote.clone(), count);
    estate.remote.fail(Fault::Break, move |request| {
        if request.verb == Verb::Get && request.name == "east-token" {
            left = left.saturating_sub(1);
            if left == 0 {
                let fill = |secret: &mut Value| secret["data"] = json!({ "token": "Zm9yZXZlcg==" });
                server.edit("kcm", &SECRET, "gloo-mesh", "east-token", fill);
            }
        }
        false
    });
}

#[tokio::test(start_paused = true)]
async fn a_token_that_does_not_expire_is_waited_for() {
    let estate = Estate::new();
    fill_tokens(&estate, 5);
    let (validity, _) = estate.register(&long_lived("east")).await;
    assert_eq!(validity.unwrap(), None);
    let secret = estate.management.get(&SECRET, "gloo-mesh", "east").unwrap();
    assert_eq!(
        kubeconfig_in(&secret)["users"][0]["user"]["token"],
        "forever"
    );
    assert!(!estate.remote.requests().iter().any(is_token_request));
}

#[tokio::test(start_paused = true)]
async fn a_token_that_never_comes_is_an_error_with_the_way_out() {
    let estate = Estate::new();
    let (done, _) = estate.register(&long_lived("east")).await;
    let told = done.unwrap_err().to_string();
    assert!(
        told.starts_with(
            "Secret gloo-mesh/east-token in the remote cluster got no token: see whether"
        ),
        "{told}"
    );
    assert_eq!(estate.management.writes().len(), 0);
}

#[tokio::test]
async fn what_an_earlier_registration_had_and_this_one_has_not_is_taken_away() {
    let estate = Estate::new();
    fill_tokens(&estate, 1);
    for namespace in ["istio-b", "elsewhere"] {
        estate.remote.put(
            "x",
            &NAMESPACE,
            &json!({ "metadata": { "name": namespace } }),
        );
    }
    let mut before = long_lived("east");
    before.istio_namespaces.insert("istio-b".parse().unwrap());
    before.remote_namespace = "elsewhere".parse().unwrap();
    let fill = json!({
        "metadata": {
            "name": "east-token", "namespace": "elsewhere",
            "labels": { "registration.mesh.gloo.solo.io/cluster": "east" },
        },
        "type": "kubernetes.io/service-account-token", "data": { "token": "Zm9yZXZlcg==" },
    });
    estate.remote.put("kcm", &SECRET, &fill);
    estate.registered(&before).await;

    let events = estate.registered(&registration("east")).await;
    assert_eq!(
        deleted(&events, Side::Remote),
        [
            "Secret elsewhere/east-token",
            "ServiceAccount elsewhere/east",
            "RoleBinding elsewhere/east-gloomesh-remote-access-role-binding",
            "RoleBinding istio-b/east-gloomesh-remote-access-role-binding",
            "Role elsewhere/gloomesh-remote-access-east",
            "Role istio-b/gloomesh-remote-access-east",
        ]
    );
    let clean = Estate::new();
    clean.registered(&registration("east")).await;
    let mut content = estate.content();
    content.retain(|name, _| !name.ends_with("istio-b") && !name.ends_with("elsewhere"));
    assert_eq!(content, clean.content());
}

#[tokio::test]
async fn a_failed_request_tells_what_where_and_what_to_do() {
    let cases = [
        (
            Fault::refuse(403),
            "writing ClusterRole gloomesh-remote-access-east in the remote cluster (that takes the rights of a cluster administrator there",
            Failure::Forbidden,
        ),
        (
            Fault::refuse(401),
            "writing ClusterRole gloomesh-remote-access-east in the remote cluster (the kubeconfig's credential is not accepted",
            Failure::Unauthorized,
        ),
        (
            Fault::Break,
            "writing ClusterRole gloomesh-remote-access-east in the remote cluster (is the API server up",
            Failure::Unreachable,
        ),
    ];
    for (fault, expected, failure) in cases {
        let estate = Estate::new();
        estate.remote.fail(fault, |request| {
            request.verb == Verb::Apply && request.plural == "clusterroles"
        });
        let (done, _) = estate.register(&registration("east")).await;
        let error = done.unwrap_err();
        assert_eq!(error.failure(), Some(failure));
        let told = Chain(&error).to_string();
        assert!(told.starts_with(expected), "{told}");
    }
}

#[tokio::test]
async fn what_is_allowed_and_perhaps_not_meant_is_warned_about() {
    let warnings = async |entry: &str| {
        let mut registration = registration("east");
        registration.api_server = east(entry, None);
        let events = Estate::new().registered(&registration).await;
        let warnings = events.into_iter().filter_map(|event| match event {
            Event::Warning(warning) => Some(warning),
            _ => None,
        });
        warnings.collect::<Vec<_>>()
    };
    let server = || String::from("https://127.0.0.1:6443");
    assert_eq!(
        warnings("server: 'https://127.0.0.1:6443'").await,
        [Warning::LocalAddress { server: server() }]
    );
    let server = || String::from("https://api:6443");
    assert_eq!(
        warnings("server: 'https://api:6443', insecure-skip-tls-verify: true").await,
        [Warning::Connection(ClientWarning::UnverifiedServer {
            server: server()
        })]
    );
    assert_eq!(warnings("server: 'https://api:6443'").await, []);
}

#[tokio::test]
async fn a_kubeconfig_that_the_management_plane_would_refuse_is_refused_here() {
    let estate = Estate::new();
    let mut registration = registration("east");
    registration.api_server = east(
        "server: 'https://api:6443', certificate-authority-data: '!'",
        None,
    );
    let (done, _) = estate.register(&registration).await;
    let told = Chain(&done.unwrap_err()).to_string();
    assert!(
        told.starts_with("east cannot be registered with this kubeconfig: reading the"),
        "{told}"
    );
    assert_eq!(
        estate.remote.requests().len() + estate.management.requests().len(),
        0
    );
}

#[tokio::test]
async fn whoever_may_not_read_kube_system_can_register_all_the_same() {
    let estate = Estate::new();
    estate
        .remote
        .fail(Fault::refuse(403), |request| request.name == "kube-system");
    estate.registered(&registration("east")).await;
    let cluster = estate
        .management
        .get(&CLUSTER, "gloo-mesh", "east")
        .unwrap();
    assert_eq!(cluster["metadata"]["annotations"], Value::Null);
}

#[tokio::test]
async fn conditions_of_the_server_survive_another_registration() {
    let estate = Estate::new();
    estate.registered(&registration("east")).await;
    let conditions = json!([unreachable()]);
    set_status(
        &estate.management,
        "east",
        &json!({ "conditions": conditions }),
    )
    .await;
    estate.registered(&registration("east")).await;
    let cluster = estate
        .management
        .get(&CLUSTER, "gloo-mesh", "east")
        .unwrap();
    assert_eq!(cluster["status"]["conditions"], conditions);
    assert_eq!(cluster["status"]["namespace"], "gloo-mesh");
}

#[tokio::test]
async fn a_shorter_life_can_be_asked_for() {
    let estate = Estate::new();
    let mut registration = registration("east");
    registration.credential = CredentialKind::Requested {
        lifetime: Duration::from_hours(1),
    };
    // What was granted counts, not what was asked for.
    let validity = estate.register(&registration).await.0.unwrap().unwrap();
    assert_eq!(validity.renewal(), "2026-11-21T12:00:00Z".parse().unwrap());
    let secret = planned(&Plan::new(&registration), "Secret gloo-mesh/east");
    assert!(secret["data"]["kubeconfig"].is_string());
}
