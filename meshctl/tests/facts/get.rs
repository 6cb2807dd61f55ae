//! `get`.

use ferromesh_testkit::fakeapi::Fault;
use serde_json::{Value, json};

use crate::bench::without_authorities;
use crate::server::{Server, estate, kubeconfig, ours};

/// The cells of a table, by row. No cell holds two spaces in a row.
fn cells(table: &str) -> Vec<Vec<&str>> {
    let rows = table.lines().map(|line| {
        let cells = line.split("  ").map(str::trim);
        cells.filter(|cell| !cell.is_empty()).collect()
    });
    rows.collect()
}

#[test]
fn each_kind_has_a_table_that_tells_what_became_of_its_objects() {
    let server = estate("get-tables");
    for (kind, expected) in [
        (
            "mesh",
            &[
                &["NAME", "CLUSTER", "TYPE", "VERSION", "VIRTUAL MESH"][..],
                &["istiod-east", "east", "Istio", "1.26.2", "all"],
            ][..],
        ),
        (
            "workload",
            &[
                &["NAME", "CLUSTER", "WORKLOAD", "MESH"],
                &[
                    "reviews-shop-east-deployment",
                    "east",
                    "shop/reviews",
                    "istiod-east",
                ],
            ],
        ),
        (
            "destination",
            &[
                &[
                    "NAME",
                    "CLUSTER",
                    "SERVICE",
                    "PORTS",
                    "TRAFFIC POLICIES",
                    "ACCESS POLICIES",
                ],
                &[
                    "reviews-shop-east",
                    "east",
                    "shop/reviews",
                    "9080,9090",
                    "1",
                    "0",
                ],
            ],
        ),
        (
            "trafficpolicy",
            &[
                &[
                    "NAME",
                    "STATE",
                    "OBSERVED",
                    "REASON",
                    "DESTINATIONS",
                    "WORKLOADS",
                ],
                &["first", "ACCEPTED", "yes", "Accepted", "1", "1"],
                &["second", "INVALID", "yes", "Conflicted", "0/1", "0"],
            ],
        ),
        (
            "accesspolicy",
            &[
                &[
                    "NAME",
                    "STATE",
                    "OBSERVED",
                    "REASON",
                    "DESTINATIONS",
                    "WORKLOADS",
                ],
                &["readers", "ACCEPTED", "yes", "Accepted", "0", "0"],
            ],
        ),
        (
            "virtualmesh",
            &[
                &[
                    "NAME",
                    "STATE",
                    "OBSERVED",
                    "REASON",
                    "TRUST",
                    "MESHES",
                    "DESTINATIONS",
                ],
                &["all", "ACCEPTED", "yes", "Accepted", "True", "1", "0"],
            ],
        ),
        (
            "kubernetescluster",
            &[
                &["NAME", "READY", "REASON", "DOMAIN"],
                &["east", "True", "Synced", "cluster.local"],
            ],
        ),
    ] {
        let ran = server.run(&["get", kind]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{kind}");
        let rows = cells(&ran.stdout);
        // The last column is the age.
        let rows: Vec<_> = rows.iter().map(|row| &row[..row.len() - 1]).collect();
        assert_eq!(rows, expected, "{}", ran.stdout);
    }
}

#[test]
fn the_wide_table_tells_why() {
    let ran = estate("get-wide").run(&["get", "tp", "-o", "wide"]);
    let rows = cells(&ran.stdout);
    assert_eq!(rows[0].last(), Some(&"MESSAGE"));
    assert_eq!(
        rows[2].last(),
        Some(&"on reviews.shop.east: retries are set by first")
    );
}

#[test]
fn documents_hold_the_objects_as_they_are_stored() {
    let server = estate("get-documents");
    let one = server.run(&["get", "tp", "first", "-o", "json"]).json();
    assert_eq!(one["kind"], "TrafficPolicy");
    assert_eq!(one["apiVersion"], "networking.mesh.gloo.solo.io/v1");
    assert_eq!(one["spec"], json!({"policy": {"retries": {"attempts": 3}}}));
    let all = server.run(&["get", "tp", "-o", "json"]).json();
    assert_eq!(
        (&all["apiVersion"], &all["kind"]),
        (&json!("v1"), &json!("List"))
    );
    assert_eq!(all["items"][0], one);
    assert_eq!(all["items"].as_array().unwrap().len(), 2);
    let yaml = server.run(&["get", "tp", "-o", "yaml"]);
    assert_eq!(serde_saphyr::from_str::<Value>(&yaml.stdout).unwrap(), all);
    let names = server.run(&["get", "tp", "-o", "name"]);
    assert_eq!(names.stdout, "trafficpolicy/first\ntrafficpolicy/second\n");
}

#[test]
fn objects_are_chosen_by_cluster_by_name_and_by_namespace() {
    let server = estate("get-chosen");
    let elsewhere = json!({"metadata": {"name": "elsewhere", "namespace": "other"}, "spec": {}});
    server
        .api
        .put("somebody", &ours("TrafficPolicy"), &elsewhere);
    let names = |arguments: &[&str]| {
        let all = [&["get"], arguments, &["-o", "name"]].concat();
        let ran = server.run(&all);
        let words = ran.stdout.split_whitespace();
        words
            .map(|word| word.split_once('/').unwrap().1.to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&["dst", "--cluster", "east"]), ["reviews-shop-east"]);
    assert_eq!(names(&["dst", "--cluster", "west"]), [""; 0]);
    assert_eq!(names(&["tp", "-s", "sec,elsewh"]), ["second"]);
    assert_eq!(names(&["tp", "-s", "elsewh", "-A"]), ["elsewhere"]);
    assert_eq!(names(&["tp", "-n", "other"]), ["elsewhere"]);
}

#[test]
fn nothing_found_is_said_on_stderr() {
    let ran = Server::new("get-nothing").run(&["get", "virtualmeshes"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
    assert_eq!(ran.stderr, "no such VirtualMesh in namespace gloo-mesh\n");
}

#[test]
fn an_object_that_does_not_exist_is_a_finding_with_a_remedy() {
    let ran = estate("get-missing").run(&["get", "tp", "nobody"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    assert_eq!(
        ran.stderr,
        "error: TrafficPolicy gloo-mesh/nobody does not exist; `meshctl get trafficpolicy -A` lists those that do\n"
    );
}

#[test]
fn a_name_that_leads_nowhere_does_not_hide_the_others() {
    let server = estate("get-some");
    for verb in ["get", "describe"] {
        let ran = server.run(&[verb, "tp", "nobody", "first", "-o", "json"]);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(
            ran.stderr
                .starts_with("error: TrafficPolicy gloo-mesh/nobody does not exist"),
            "{ran:?}"
        );
        let list: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(list["items"].as_array().unwrap().len(), 1, "{list:#}");
    }
}

#[test]
fn a_cluster_that_cannot_be_asked_ends_with_3() {
    let server = estate("get-refused");
    for (code, hint) in [(401, "as the test wants it"), (403, "as the test wants it")] {
        server
            .api
            .fail_times(1, Fault::refuse(code), |request| request.plural == "meshes");
        let ran = server.run(&["get", "mesh"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (3, ""), "{ran:?}");
        assert!(ran.stderr.contains("listing meshes at http://"), "{ran:?}");
        assert!(ran.stderr.contains(hint), "{ran:?}");
    }
    let bare = Server::bare("get-bare").run(&["get", "mesh"]);
    assert_eq!(bare.code, 3);
    assert!(bare.stderr.contains("apply the CRDs first"), "{bare:?}");

    server
        .api
        .fail(Fault::Hang, |request| request.plural == "meshes");
    let ran = server.run(&["get", "mesh", "--request-timeout", "200ms"]);
    assert_eq!(ran.code, 3, "{ran:?}");
}

#[test]
fn a_list_of_authorities_is_missed_only_where_a_certificate_is_to_be_verified_by_it() {
    let get = |kubeconfig: &str| without_authorities(&["get", "tp", "--kubeconfig", kubeconfig]);
    let plain = get(&estate("get-no-authorities").kubeconfig);
    assert_eq!(plain.code, 0, "{plain:?}");

    let https = |name: &str, cluster: Value| get(&kubeconfig(name, &cluster));
    let nobody = "https://127.0.0.1:1";
    let verified = https("get-verified", json!({ "server": nobody }));
    assert_eq!(verified.code, 2, "{verified:?}");
    let remedy =
        "no list of certificate authorities: give the kubeconfig certificate-authority-data";
    assert!(verified.stderr.contains(remedy), "{verified:?}");
    let unverified = https(
        "get-unverified",
        json!({"server": nobody, "insecure-skip-tls-verify": true}),
    );
    assert_eq!(unverified.code, 3, "{unverified:?}");
}
