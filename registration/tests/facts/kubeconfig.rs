use std::path::PathBuf;

use ferromesh_registration::{Address, ApiServer, Plan, Registration, kubeconfig::read};
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::given::{CERTIFICATE, east, kubeconfig, kubeconfig_in, planned};

const EAST: &str = "server: 'https://east.example.com:6443'";

/// The cluster entry that the management plane gets.
fn stored(api_server: ApiServer) -> Value {
    let plan = Plan::new(&Registration::new("east".parse().unwrap(), api_server));
    kubeconfig_in(&planned(&plan, "Secret gloo-mesh/east"))["clusters"][0]["cluster"].clone()
}

fn refusal(context: Option<&str>, east: &str) -> String {
    let refused = ApiServer::resolve(&kubeconfig(east), context, None);
    refused.unwrap_err().to_string()
}

#[test]
fn the_current_context_counts_unless_another_is_named() {
    let resolved = |context| ApiServer::resolve(&kubeconfig(EAST), context, None).unwrap();
    assert_eq!(resolved(None).address(), "https://west.example.com:6443");
    assert_eq!(
        resolved(Some("east-admin")).address(),
        "https://east.example.com:6443"
    );
}

#[test]
fn an_unknown_context_is_answered_with_the_known_ones() {
    assert_eq!(
        refusal(Some("north"), EAST),
        "the kubeconfig has no context `north`: choose one of `east-admin`, `west-admin`"
    );
    let mut without = kubeconfig(EAST);
    without.current_context = None;
    assert_eq!(
        ApiServer::resolve(&without, None, None)
            .unwrap_err()
            .to_string(),
        "the kubeconfig names no current-context: choose one of `east-admin`, `west-admin`"
    );
}

#[test]
fn a_field_that_is_of_no_use_is_named_with_its_cluster() {
    let cases = [
        (
            "{}",
            "kubeconfig cluster `east`: server is missing: give the address",
        ),
        (
            "server: ''",
            "kubeconfig cluster `east`: server is missing: give the address",
        ),
        (
            "server: 'east:6443'",
            "`east:6443` is not the address of an API server: the scheme",
        ),
        (
            "server: 'https://me:pw@east'",
            "`https://me:pw@east` is not the address of an API",
        ),
        (
            "server: 'https://east', proxy-url: 'http://proxy'",
            "kubeconfig cluster `east`: proxy-url is not supported: give a server",
        ),
    ];
    for (entry, expected) in cases {
        let told = refusal(Some("east-admin"), entry.trim_matches(['{', '}']));
        assert!(told.starts_with(expected), "{told}");
    }
    let mut dangling = kubeconfig(EAST);
    dangling.clusters.remove(0);
    assert_eq!(
        ApiServer::resolve(&dangling, Some("east-admin"), None)
            .unwrap_err()
            .to_string(),
        "kubeconfig cluster `east`: cluster is missing, and the context names it"
    );
}

#[test]
fn another_address_keeps_what_it_does_not_say_and_is_always_encrypted() {
    let table = [
        // original, given, stored
        ("https://east:6443", "10.0.0.1", "https://10.0.0.1:6443"),
        ("https://east:6443", "10.0.0.1:443", "https://10.0.0.1:443"),
        (
            "https://east:6443",
            "api.example.com:8443",
            "https://api.example.com:8443",
        ),
        ("https://east", "api.example.com", "https://api.example.com"),
        (
            "https://east",
            "api.example.com:6443",
            "https://api.example.com:6443",
        ),
        ("http://east:8080", "10.0.0.1:6443", "https://10.0.0.1:6443"),
        ("http://east:8080", "10.0.0.1", "https://10.0.0.1:8080"),
        (
            "https://east:6443",
            "https://API.example.com",
            "https://api.example.com:6443",
        ),
        (
            "https://east:6443",
            "https://api.example.com/",
            "https://api.example.com:6443",
        ),
        (
            "https://east:6443/a",
            "api/k8s/c-1",
            "https://api:6443/k8s/c-1",
        ),
        ("https://east:6443/a", "api", "https://api:6443"),
        ("https://east:6443", "fd00::1", "https://[fd00::1]:6443"),
        ("https://east:6443", "[fd00::1]", "https://[fd00::1]:6443"),
        (
            "https://east:6443",
            "[fd00::1]:443",
            "https://[fd00::1]:443",
        ),
        (
            "https://east:6443",
            "https://[fd00::1]:443",
            "https://[fd00::1]:443",
        ),
        (
            "https://[fd00::2]:6443",
            "10.0.0.1",
            "https://10.0.0.1:6443",
        ),
        ("https://[fd00::2]", "fd00::1", "https://[fd00::1]"),
        (
            "https://east:6443",
            "east-control-plane",
            "https://east-control-plane:6443",
        ),
    ];
    for (original, given, expected) in table {
        let resolved = east(&format!("server: '{original}'"), Some(given));
        assert_eq!(
            resolved.address(),
            expected,
            "{original} replaced by {given}"
        );
        assert_eq!(
            stored(resolved),
            json!({ "server": expected }),
            "{original}"
        );
    }
}

#[test]
fn what_is_no_address_is_refused_with_what_is_expected() {
    let table = [
        ("", "the host is missing"),
        (":6443", "the host is missing"),
        ("http://api:6443", "the credential would travel unencrypted"),
        ("ftp://api", "API servers speak https"),
        ("api:", "the port is not a number from 1 to 65535"),
        ("api:0", "the port is not a number from 1 to 65535"),
        ("api:65536", "the port is not a number from 1 to 65535"),
        ("api:+443", "the port is not a number from 1 to 65535"),
        ("me@api", "it carries credentials"),
        (
            "10.0.0.256",
            "the host ends in a number and is not an IPv4 address",
        ),
        (
            "10.0.0",
            "the host ends in a number and is not an IPv4 address",
        ),
        (
            "api..example.com",
            "the host is neither a DNS name nor an IP address",
        ),
        (
            "api server",
            "the host is neither a DNS name nor an IP address",
        ),
        ("[fd00::1", "the closing ] is missing"),
        (
            "[api]:443",
            "what stands between [ and ] is not an IPv6 address",
        ),
        ("[fd00::1]443", "after ] only a port may follow"),
        ("fd00:::1:443", "an IPv6 address with a port needs brackets"),
        ("fe80::1%eth0", "an IPv6 address with a port needs brackets"),
        (
            "api/a?b",
            "the path has characters that no API server expects",
        ),
    ];
    for (text, expected) in table {
        let told = text.parse::<Address>().unwrap_err().to_string();
        let beginning = format!("`{text}` is not the address of an API server: {expected}");
        assert!(told.starts_with(&beginning), "{told}");
    }
}

#[test]
fn replacing_an_address_of_the_own_machine_still_verifies_the_certificate() {
    let table = [
        ("127.0.0.1", "127.0.0.1"),
        ("localhost", "localhost"),
        ("[::1]", "::1"),
        ("0.0.0.0", "0.0.0.0"),
        ("east.localhost", "east.localhost"),
    ];
    for (original, name) in table {
        let entry = format!("server: 'https://{original}:36443', certificate-authority-data: MA==");
        assert_eq!(
            stored(east(&entry, Some("172.18.0.2:6443"))),
            json!({
                "server": "https://172.18.0.2:6443",
                "certificate-authority-data": "MA==",
                "tls-server-name": name,
            })
        );
    }
    let named = "server: 'https://localhost:1', tls-server-name: kubernetes";
    assert_eq!(
        stored(east(named, Some("api")))["tls-server-name"],
        "kubernetes"
    );
    assert_eq!(
        stored(east(EAST, Some("api")))["tls-server-name"],
        Value::Null
    );
    let local = "server: 'https://localhost:1'";
    assert_eq!(stored(east(local, None))["tls-server-name"], Value::Null);
    let insecure = "server: 'https://localhost:1', insecure-skip-tls-verify: true";
    assert_eq!(
        stored(east(insecure, Some("api"))),
        json!({ "server": "https://api:1", "insecure-skip-tls-verify": true })
    );
}

#[test]
fn an_address_of_the_own_machine_is_known_as_such() {
    for (server, address, is_local) in [
        ("https://127.0.0.1:6443", None, true),
        ("https://127.0.0.1:6443", Some("172.18.0.2"), false),
        ("https://east:6443", Some("localhost"), true),
        ("https://[::ffff:127.0.0.1]:6443", None, true),
        ("https://east:6443", None, false),
    ] {
        let resolved = east(&format!("server: '{server}'"), address);
        assert_eq!(resolved.is_local(), is_local, "{server} {address:?}");
    }
}

fn temporary(name: &str, content: &[u8]) -> PathBuf {
    let name = format!("registration-{}-{name}", std::process::id());
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, content).unwrap();
    path
}

#[test]
fn a_certificate_authority_in_a_file_is_taken_into_the_text() {
    let file = temporary("ca.pem", CERTIFICATE.as_bytes());
    let name = file.file_name().unwrap().to_str().unwrap();
    let kubeconfig = format!(
        "current-context: east-admin
contexts: [{{name: east-admin, context: {{cluster: east}}}}]
clusters: [{{name: east, cluster: {{server: 'https://east', certificate-authority: {name}}}}}]"
    );
    // A path that is relative is so to the kubeconfig.
    let kubeconfig = temporary("with-ca-file", kubeconfig.as_bytes());
    let resolved = ApiServer::resolve(&read(Some(&kubeconfig)).unwrap(), None, None).unwrap();
    let stored = stored(resolved);
    assert_eq!(stored["certificate-authority"], Value::Null);
    let ByteString(authority) =
        serde_json::from_value(stored["certificate-authority-data"].clone()).unwrap();
    assert_eq!(authority, CERTIFICATE.as_bytes());
    std::fs::remove_file(&file).unwrap();

    let error = ApiServer::resolve(&read(Some(&kubeconfig)).unwrap(), None, None).unwrap_err();
    let told = error.to_string();
    assert!(
        told.starts_with("reading the certificate-authority of kubeconfig cluster `east` from /")
            && told.contains(name),
        "{told}"
    );
    std::fs::remove_file(kubeconfig).unwrap();
}

#[test]
fn a_file_that_holds_no_certificate_is_not_taken_over() {
    for (name, content, problem) in [
        (
            "key",
            &b"-----BEGIN PRIVATE KEY-----"[..],
            "it has no PEM certificate",
        ),
        ("large", &vec![b'x'; 300_000][..], "it is larger"),
    ] {
        let file = temporary(name, content);
        let entry = format!(
            "server: 'https://east', certificate-authority: '{}'",
            file.display()
        );
        let kubeconfig = kubeconfig(&entry);
        let error = ApiServer::resolve(&kubeconfig, Some("east-admin"), None).unwrap_err();
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert_eq!(source, problem);
        std::fs::remove_file(&file).unwrap();
    }
}

#[test]
fn what_is_in_the_text_wins_over_a_file() {
    let entry =
        "server: 'https://east', certificate-authority: /nowhere, certificate-authority-data: MA==";
    let stored = stored(east(entry, None));
    let expected = json!({ "server": "https://east", "certificate-authority-data": "MA==" });
    assert_eq!(stored, expected);
}

#[test]
fn a_file_that_is_no_kubeconfig_is_refused_without_quoting_it() {
    let file = temporary("broken", b"users: [{name: a, user: {token: very-secret");
    let error = read(Some(&file)).unwrap_err();
    assert!(
        error.to_string().starts_with("the kubeconfig is not YAML"),
        "{error}"
    );
    assert!(!format!("{error:?}").contains("very-secret"));
    std::fs::remove_file(&file).unwrap();
    let gone = read(Some(&file)).unwrap_err();
    assert!(
        gone.to_string()
            .starts_with("reading the kubeconfig; give one with"),
        "{gone}"
    );
}

#[test]
fn a_cluster_name_is_a_dns_label() {
    use ferromesh_crds::name::ClusterName;
    for (name, problem) in [
        ("", "it is empty"),
        (
            "a.b",
            "it may contain only lower-case letters, digits and `-`, and has `.`",
        ),
        (
            "East",
            "it may contain only lower-case letters, digits and `-`, and has `E`",
        ),
        ("-a", "it must begin and end with a letter or a digit"),
        (&"a".repeat(64), "it has 64 characters, more than 63"),
    ] {
        let told = name.parse::<ClusterName>().unwrap_err().to_string();
        assert!(
            told.starts_with(&format!("`{name}` is not a cluster name: {problem}")),
            "{told}"
        );
    }
}
