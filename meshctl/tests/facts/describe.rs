//! `describe`.

use serde_json::Value;

use crate::server::estate;

#[test]
fn the_page_of_a_destination_tells_what_applies_what_loses_and_why() {
    let ran = estate("describe-page").run(&["describe", "destination", "reviews-shop-east"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let (head, effects) = ran.stdout.split_once("\nApplied:\n").unwrap();
    assert!(
        head.starts_with("Name:         reviews-shop-east\n"),
        "{head}"
    );
    assert_eq!(
        effects,
        "  KIND            NAME              STATE      ORDER   SETS      MESSAGES
  TrafficPolicy   gloo-mesh/first   ACCEPTED   0       retries   -

Not applied:
  KIND            NAME               STATE     ORDER   SETS      MESSAGES
  TrafficPolicy   gloo-mesh/second   INVALID   -       retries   retries are set by first
"
    );
}

#[test]
fn every_kind_has_a_table_and_a_page() {
    let server = estate("describe-all");
    for (kind, name) in [
        ("mesh", "istiod-east"),
        ("workload", "reviews-shop-east-deployment"),
        ("destination", "reviews-shop-east"),
        ("trafficpolicy", "second"),
        ("accesspolicy", "readers"),
        ("virtualmesh", "all"),
        ("kubernetescluster", "east"),
    ] {
        let grid = server.run(&["describe", kind]);
        assert_eq!((grid.code, grid.stderr.as_str()), (0, ""), "{kind}");
        assert!(grid.stdout.contains("| METADATA"), "{}", grid.stdout);
        assert!(
            grid.stdout.contains(&format!("Name: {name}")),
            "{}",
            grid.stdout
        );
        let page = server.run(&["describe", kind, name]);
        assert_eq!((page.code, page.stderr.as_str()), (0, ""), "{kind}");
        assert!(page.stdout.contains("\nSpec:\n"), "{}", page.stdout);
    }
}

#[test]
fn documents_hold_the_object_and_the_effects_on_it() {
    let server = estate("describe-documents");
    let named = [
        "describe",
        "mwl",
        "reviews-shop-east-deployment",
        "-o",
        "json",
    ];
    let one = server.run(&named).json();
    assert_eq!(one["apiVersion"], "cli.mesh/v1");
    assert_eq!(one["kind"], "Description");
    assert_eq!(one["object"]["kind"], "Workload");
    assert_eq!(one["effects"][0]["name"], "first");
    let all = server.run(&["describe", "mwl", "-o", "json"]).json();
    assert_eq!(all["kind"], "DescriptionList");
    assert_eq!(all["items"][0], one);
    let yaml = server.run(&["describe", "mwl", "-o", "yaml"]);
    assert_eq!(serde_saphyr::from_str::<Value>(&yaml.stdout).unwrap(), all);
}
