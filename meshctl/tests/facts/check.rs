//! `check`.

use std::thread;
use std::time::Duration;

use ferromesh_testkit::fakeapi::{Fault, Request};
use serde_json::{Value, json};

use crate::server::{Server, VERSION, estate, ours, secret};

/// A management plane with which nothing is wrong.
fn sound(name: &str) -> Server {
    let server = estate(name);
    server.define();
    server.register_webhook();
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "east",
        "clusters": [{"name": "east", "cluster": {"server": "https://east.example.com:6443"}}],
        "contexts": [{"name": "east", "context": {"cluster": "east", "user": "east"}}],
        "users": [{"name": "east", "user": {"token": "very-secret"}}],
    });
    let object = json!({
        "metadata": {"name": "east", "namespace": "gloo-mesh"},
        "type": "solo.io/kubeconfig",
        "data": {"kubeconfig": base64(kubeconfig.to_string().as_bytes())},
    });
    server.api.put("somebody", &secret(), &object);
    let policy = r#"{"apiVersion":"networking.mesh.gloo.solo.io/v1","kind":"TrafficPolicy","metadata":{"name":"trial"},"spec":{}}"#;
    server.api.fail(Fault::Answer(policy), is_trial);
    server
        .api
        .remove(&ours("TrafficPolicy"), "gloo-mesh", "second");
    server
}

/// Whether a request is to change nothing. An API server in memory does not know such requests.
fn is_trial(request: &Request) -> bool {
    request.uri.contains("dryRun=All")
}

fn base64(bytes: &[u8]) -> Value {
    let bytes = k8s_openapi::ByteString(bytes.to_vec());
    serde_json::to_value(bytes).unwrap()
}

/// The verdict on each check, and what is found by them.
fn verdicts(report: &Value) -> (Vec<String>, Vec<String>) {
    let checks = report["checks"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let verdicts = checks
        .iter()
        .map(|check| format!("{} {}", text(&check["id"]), text(&check["verdict"])));
    let findings = checks
        .iter()
        .filter_map(|check| check["findings"].as_array())
        .flatten()
        .map(|finding| {
            assert_ne!(finding["remedy"], "", "{finding}");
            format!(
                "{}: {}",
                text(&finding["subject"]),
                text(&finding["problem"])
            )
        });
    (verdicts.collect(), findings.collect())
}

#[test]
fn a_sound_management_plane_passes() {
    let server = sound("check-sound");
    let ran = server.run(&["check"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
    assert!(
        ran.stdout.ends_with("\n6 passed, 0 failed, 1 skipped\n"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains("1 webhook, answering"),
        "{}",
        ran.stdout
    );
    assert!(!ran.stdout.contains("very-secret"));
    // Nothing was changed by looking: what was written was written for trial.
    for write in server.api.writes() {
        assert!(is_trial(&write), "{write:?}");
    }
}

/// Something that makes a management plane ill.
type Harm<'a> = &'a dyn Fn(&Server);

#[test]
fn what_is_not_healthy_is_named_with_a_remedy_and_ends_with_1() {
    let unregistered = |server: &Server| server.api.remove(&secret(), "gloo-mesh", "east");
    let unjudged = |server: &Server| server.put("AccessPolicy", "new", json!({"spec": {}}));
    let untrusted = |server: &Server| {
        let not_yet = json!([{"type": "TrustReady", "status": "False", "reason": "Issuing", "message": "waiting for east"}]);
        server
            .api
            .edit("s", &ours("VirtualMesh"), "gloo-mesh", "all", |it| {
                it["status"]["conditions"] = not_yet;
            });
    };
    let undefined = |server: &Server| {
        server.api.edit(
            "s",
            &crate::server::definition(),
            "",
            "meshes.discovery.mesh.gloo.solo.io",
            |it| {
                it["spec"]["versions"][0]["served"] = json!(false);
            },
        );
    };
    let deaf = |server: &Server| {
        let status = json!({
            "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 500, "reason": "InternalError",
            "message": "Internal error occurred: failed calling webhook \"validate.mesh\": connection refused",
        });
        server.api.heal();
        let answer = Fault::Answer(VERSION);
        server
            .api
            .fail(answer, |request| request.uri.starts_with("/version"));
        server.api.fail(Fault::Status(status), is_trial);
    };
    let harms: [(Harm<'_>, &str, &str); 5] = [
        (&unregistered, "R1", "east: has no kubeconfig Secret"),
        (
            &unjudged,
            "P1",
            "AccessPolicy gloo-mesh/new: has not been judged yet",
        ),
        (
            &untrusted,
            "F1",
            "VirtualMesh gloo-mesh/all: trust is not ready: waiting for east (Issuing)",
        ),
        (
            &undefined,
            "K3",
            "meshes.discovery.mesh.gloo.solo.io: does not serve version v1",
        ),
        (&deaf, "D3", "the webhook: the API server got no answer: "),
    ];
    for (harm, id, expected) in harms {
        let server = sound("check-harmed");
        harm(&server);
        let ran = server.run(&["check", "-o", "json"]);
        assert_eq!(ran.code, 1, "{id}: {ran:?}");
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(report["passed"], false);
        let (verdicts, findings) = verdicts(&report);
        let failed: Vec<_> = verdicts.iter().filter(|it| it.ends_with("fail")).collect();
        assert_eq!(failed, [&format!("{id} fail")]);
        assert!(findings[0].starts_with(expected), "{findings:?}");
        let text = server.run(&["check"]).stdout;
        assert!(
            text.contains(expected) && text.contains("remedy: "),
            "{text}"
        );
        assert_eq!(server.run(&["check", "--skip", id]).code, 0, "{id}");
        assert_eq!(server.run(&["check", "--only", id]).code, 1, "{id}");
    }
}

#[test]
fn a_cluster_that_does_not_answer_ends_with_3_and_is_told_once() {
    let server = sound("check-dead");
    server.api.heal();
    server.api.fail(Fault::refuse(401), |_| true);
    let ran = server.run(&["check", "-o", "json"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    let (verdicts, findings) = verdicts(&serde_json::from_str(&ran.stdout).unwrap());
    assert_eq!(verdicts[0], "K1 fail");
    assert!(
        verdicts[1..].iter().all(|it| it.ends_with("skip")),
        "{verdicts:?}"
    );
    assert_eq!(findings.len(), 1);
}

#[test]
fn an_old_api_server_is_told() {
    let server = sound("check-old");
    server.api.heal();
    let old = VERSION.replace("33", "29").leak();
    server.api.fail(Fault::Answer(old), |request| {
        request.uri.starts_with("/version")
    });
    let ran = server.run(&["check", "--only", "k1"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stdout.contains("is v1.29.1, older than 1.30"),
        "{}",
        ran.stdout
    );
}

#[test]
fn waiting_ends_when_all_is_well_and_with_4_when_it_never_is() {
    let server = sound("check-waiting");
    server.put("AccessPolicy", "new", json!({"spec": {}}));
    let ran = server.run(&["check", "--wait", "100ms"]);
    assert_eq!(ran.code, 4, "{ran:?}");
    server.api.forget_requests();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| server.run(&["check", "--wait", "1m"]));
        // What is wrong is put right once it has been seen: virtual meshes are looked at after it.
        let has_seen = || {
            let requests = server.api.requests();
            requests.iter().any(|it| it.plural == "virtualmeshes")
        };
        while !has_seen() && !waiting.is_finished() {
            thread::sleep(Duration::from_millis(10));
        }
        let status = json!({"observedGeneration": 1, "state": "ACCEPTED"});
        server.put("AccessPolicy", "new", json!({"spec": {}, "status": status}));
        let ran = waiting.join().unwrap();
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.stderr.starts_with("waiting for P1\n"), "{ran:?}");
    });
}
