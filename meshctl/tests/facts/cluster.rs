//! `cluster`.

use ferromesh_testkit::fakeapi::{Fault, Request};
use serde_json::{Value, json};

use crate::bench::meshctl;
use crate::server::{Server, namespace, ours, secret};

/// A token that is valid from 10 to 14 o'clock.
const TOKEN: &str = r#"{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","metadata":{},"spec":{"audiences":[],"expirationSeconds":14400},"status":{"token":"the-token","expirationTimestamp":"2026-11-21T14:00:00Z"}}"#;

/// A management cluster and a cluster to register.
struct Pair {
    management: Server,
    remote: Server,
}

impl Pair {
    fn new(name: &str) -> Self {
        let pair = Self {
            management: Server::new(&format!("{name}-management")),
            remote: Server::bare(&format!("{name}-remote")),
        };
        for name in ["kube-system", "istio-system"] {
            let object = json!({"metadata": {"name": name}});
            pair.remote.api.put("somebody", &namespace(), &object);
        }
        pair.remote.api.fail(Fault::Answer(TOKEN), is_token_request);
        pair
    }

    /// Runs a verb of `cluster` on both.
    fn run(&self, arguments: &[&str]) -> crate::bench::Ran {
        let remote = ["--remote-kubeconfig", &self.remote.kubeconfig];
        self.management
            .run(&[&["cluster"], arguments, &remote].concat())
    }
}

fn is_token_request(request: &Request) -> bool {
    let path = request.uri.split('?').next();
    path.is_some_and(|path| path.ends_with("/token"))
}

#[test]
fn a_cluster_is_registered_listed_and_deregistered() {
    let pair = Pair::new("registered");
    let ran = pair.run(&[
        "register",
        "east",
        "--api-server-address",
        "east.example.com",
    ]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.stdout, "cluster east registered\n");
    for line in [
        "ServiceAccount gloo-mesh/east created in the remote cluster\n",
        "KubernetesCluster gloo-mesh/east created in the management cluster\n",
        "credential issued, valid until 2026-11-21T14:00:00Z, renewed by the server before that\n",
    ] {
        assert!(ran.stderr.contains(line), "{}", ran.stderr);
    }
    let again = pair.run(&[
        "register",
        "east",
        "--api-server-address",
        "east.example.com",
    ]);
    assert_eq!(again.code, 0, "{again:?}");
    let changed = again.stderr.lines().filter(|line| {
        line.contains(" created in ")
            || line.contains(" changed in ")
            || line.contains(" deleted in ")
    });
    assert_eq!(changed.collect::<Vec<_>>(), [""; 0]);

    let list = pair
        .management
        .run(&["cluster", "list", "-o", "json"])
        .json();
    assert_eq!(list["kind"], "ClusterList");
    let east = json!({
        "name": "east", "registered": true, "namespace": "gloo-mesh", "domain": "cluster.local",
        "reached": "Unknown", "reason": "", "message": "", "credential": "stored",
        "server": list["items"][0]["server"], "expires": "2026-11-21T14:00:00Z",
    });
    assert_eq!(list["items"], json!([east]));
    let server = east["server"].as_str().unwrap();
    assert!(server.starts_with("https://east.example.com:"), "{server}");
    let table = pair.management.run(&["cluster", "list"]).stdout;
    assert!(
        table.starts_with("CLUSTER   NAMESPACE   REACHED   REASON   SERVER "),
        "{table}"
    );
    let names = pair.management.run(&["cluster", "list", "-o", "name"]);
    assert_eq!(names.stdout, "east\n");

    let gone = pair.run(&["deregister", "east"]);
    assert_eq!(
        (gone.code, gone.stdout.as_str()),
        (0, "cluster east deregistered\n")
    );
    assert!(
        gone.stderr
            .contains("ServiceAccount gloo-mesh/east deleted in the remote cluster")
    );
    for told in [ran, again, gone] {
        assert!(!format!("{told:?}").contains("the-token"));
    }
    let none = pair.management.run(&["cluster", "list"]);
    assert_eq!((none.code, none.stdout.as_str()), (0, ""));
    assert_eq!(
        none.stderr,
        "no cluster is registered in namespace gloo-mesh\n"
    );
    let again = pair.run(&["deregister", "east"]);
    assert_eq!(
        (again.code, again.stdout.as_str()),
        (
            0,
            "cluster east is not registered: there was nothing to take away\n"
        )
    );
}

#[test]
fn a_dry_run_shows_every_object_and_asks_nobody() {
    let pair = Pair::new("dry");
    let ran = pair.run(&["register", "east", "--dry-run", "-o", "yaml"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let objects: Vec<Value> = serde_saphyr::from_multiple(&ran.stdout).unwrap();
    let kinds: Vec<_> = objects
        .iter()
        .map(|it| it["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds.first(), Some(&"Namespace"));
    assert_eq!(kinds[kinds.len() - 2..], ["Secret", "KubernetesCluster"]);
    assert!(!ran.stdout.contains("secret-of-a-person"));
    assert_eq!(pair.management.api.requests().len(), 0);
    assert_eq!(pair.remote.api.requests().len(), 0);
    let again = pair.run(&["register", "east", "--dry-run"]);
    assert_eq!(again, ran);
}

#[test]
fn a_cluster_that_is_not_reached_is_told_and_can_be_deregistered() {
    let pair = Pair::new("lost");
    assert_eq!(pair.run(&["register", "east"]).code, 0);
    pair.remote.api.fail(Fault::refuse(401), |_| true);
    let ran = pair.run(&["deregister", "east"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (3, ""));
    assert!(
        ran.stderr
            .contains("error: reading Namespace kube-system in the remote cluster")
    );
    assert!(
        pair.management
            .api
            .get(&secret(), "gloo-mesh", "east")
            .is_some()
    );

    let ran = pair
        .management
        .run(&["cluster", "deregister", "east", "--unreachable"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        ran.stderr
            .contains("warning: the remote cluster was left as it is")
    );
    assert_eq!(
        pair.management.api.get(&secret(), "gloo-mesh", "east"),
        None
    );
    let clusters = pair.management.api.list(&ours("KubernetesCluster"));
    assert_eq!(clusters, [Value::Null; 0]);
}

#[test]
fn another_cluster_is_not_taken_for_the_one_that_is_registered() {
    let pair = Pair::new("other");
    assert_eq!(pair.run(&["register", "east"]).code, 0);
    pair.remote.api.remove(&namespace(), "", "kube-system");
    let object = json!({"metadata": {"name": "kube-system"}});
    pair.remote.api.put("somebody", &namespace(), &object);
    for verb in ["register", "deregister"] {
        let ran = pair.run(&[verb, "east"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{ran:?}");
        assert!(
            ran.stderr.contains("is another cluster than the one given"),
            "{ran:?}"
        );
    }
}

#[test]
fn wrong_calls_end_with_2_before_anybody_is_asked() {
    let pair = Pair::new("wrong");
    for (arguments, hint) in [
        (&["register", "East"][..], "`East` is not a cluster name"),
        (&["register", "one", "two"], "give the name of one cluster"),
        (
            &["register", "east", "--token-lifetime", "5m"],
            "less than 600s",
        ),
        (
            &[
                "register",
                "east",
                "--credential",
                "long-lived",
                "--token-lifetime",
                "1h",
            ],
            "leave one of the two out",
        ),
        (
            &["register", "east", "--api-server-address", "http://east"],
            "unencrypted",
        ),
        (
            &["register", "east", "--remote-context", "nowhere"],
            "choose one of `here`",
        ),
        (&["register", "east", "-o", "yaml"], "--dry-run"),
        (&["deregister", "east", "--unreachable"], "--unreachable"),
    ] {
        let ran = pair.run(arguments);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (2, ""),
            "{arguments:?}: {ran:?}"
        );
        assert!(ran.stderr.contains(hint), "{arguments:?}: {}", ran.stderr);
    }
    for verb in ["register", "deregister"] {
        let ran = meshctl(&["cluster", verb, "east"]);
        assert_eq!(ran.code, 2);
        assert!(
            ran.stderr
                .contains("--remote-context <NAME>|--remote-kubeconfig <FILE>"),
            "{ran:?}"
        );
    }
    assert_eq!(pair.management.api.requests().len(), 0);
    assert_eq!(pair.remote.api.requests().len(), 0);
}

#[test]
fn what_other_command_lines_say_is_understood() {
    let pair = Pair::new("older");
    let remote = ["--remote-kubeconfig", &pair.remote.kubeconfig];
    let management = ["--mgmt-kubeconfig", &pair.management.kubeconfig];
    let options = ["--mgmt-context", "here", "--mgmt-namespace", "gloo-mesh"];
    let words = ["cluster", "register", "community", "east"];
    let ran = meshctl(&[&words[..], &remote, &management, &options].concat());
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "cluster east registered\n"),
        "{ran:?}"
    );
    let list = ["cluster", "list", "--kubecontext", "here", "-o", "name"];
    assert_eq!(pair.management.run(&list).stdout, "east\n");
}
