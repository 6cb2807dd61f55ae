use std::{path::PathBuf, time::Duration};

use axum::{
    Json, Router,
    http::{HeaderMap, StatusCode},
    routing::{any, get},
};
use ferromesh_runtime::{
    client::{ClientWarning, Error, MAX_KUBECONFIG_SIZE, Options, from_bytes, local},
    serve::{Drain, Limits, Server},
    telemetry::Chain,
    tls::ServedCredential,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::wire::{LOOPBACK, Pair};

fn kubeconfig(cluster: &str, user: &str) -> String {
    format!(
        r#"{{
            "apiVersion": "v1", "kind": "Config", "current-context": "east",
            "contexts": [{{ "name": "east", "context": {{ "cluster": "east", "user": "admin" }} }}],
            "clusters": [{{ "name": "east", "cluster": {{ {cluster} }} }}],
            "users": [{{ "name": "admin", "user": {{ {user} }} }}]
        }}"#
    )
}

const CLUSTER: &str = r#""server": "https://east.example.com:6443""#;
const USER: &str = r#""token": "very-secret-token""#;

fn refusal(kubeconfig: &str) -> String {
    let refused = from_bytes(kubeconfig.as_bytes(), &Options::default());
    let error = refused
        .err()
        .unwrap_or_else(|| panic!("accepted: {kubeconfig}"));
    Chain(&error).to_string()
}

#[tokio::test]
async fn whatever_would_run_or_read_something_here_is_refused_by_name() {
    let users = [
        (
            r#""exec": { "apiVersion": "client.authentication.k8s.io/v1", "command": "sh" }"#,
            "users[0].user.exec",
        ),
        (
            r#""auth-provider": { "name": "gcp" }"#,
            "users[0].user.auth-provider",
        ),
        (
            r#""tokenFile": "/var/run/token""#,
            "users[0].user.tokenFile",
        ),
        (
            r#""token": "t", "tokenFile": "/var/run/token""#,
            "users[0].user.tokenFile",
        ),
        (
            r#""client-certificate": "/etc/cert""#,
            "users[0].user.client-certificate",
        ),
        (r#""client-key": "../key""#, "users[0].user.client-key"),
    ];
    for (user, field) in users {
        let told = refusal(&kubeconfig(CLUSTER, user));
        assert!(
            told.starts_with(&format!(
                "kubeconfig field {field} is not allowed here: give "
            )),
            "{told}"
        );
    }
    let clusters = [
        (
            r#""certificate-authority": "/etc/ca""#,
            "clusters[0].cluster.certificate-authority",
        ),
        (
            r#""proxy-url": "http://proxy:3128""#,
            "clusters[0].cluster.proxy-url",
        ),
    ];
    for (cluster, field) in clusters {
        let told = refusal(&kubeconfig(&format!("{CLUSTER}, {cluster}"), USER));
        assert!(
            told.starts_with(&format!(
                "kubeconfig field {field} is not allowed here: give "
            )),
            "{told}"
        );
    }
}

#[tokio::test]
async fn entries_that_do_not_count_may_hold_anything() {
    let text = kubeconfig(CLUSTER, USER).replace(
        r#""users": ["#,
        r#""users": [{ "name": "other", "user": { "exec": { "command": "sh" } } }, "#,
    );
    assert!(from_bytes(text.as_bytes(), &Options::default()).is_ok());
}

#[tokio::test]
async fn empty_paths_are_absent_ones() {
    let user = format!(r#"{USER}, "tokenFile": "", "client-key": """#);
    assert!(from_bytes(kubeconfig(CLUSTER, &user).as_bytes(), &Options::default()).is_ok());
}

#[tokio::test]
async fn a_field_that_is_missing_or_of_no_use_is_named() {
    let good = kubeconfig(CLUSTER, USER);
    let cases = [
        (
            good.replace(r#""current-context": "east","#, ""),
            "current-context is missing",
        ),
        (
            good.replace(
                r#""current-context": "east""#,
                r#""current-context": "west""#,
            ),
            "contexts names an entry that does not",
        ),
        (
            good.replace(r#""cluster": "east""#, r#""cluster": "west""#),
            "contexts[0].context.cluster names an entry that does not",
        ),
        (
            good.replace(r#""user": "admin""#, r#""user": "nobody""#),
            "contexts[0].context.user names an entry that does not",
        ),
        (
            good.replace(r#""clusters": ["#, r#""clusters": [{ "name": "east" }, "#),
            "contexts[0].context.cluster names an entry that exists twice",
        ),
        (
            kubeconfig("", USER),
            "clusters[0].cluster.server is missing",
        ),
        (
            kubeconfig(r#""server": "east.example.com""#, USER),
            "clusters[0].cluster.server is not an address",
        ),
        (
            kubeconfig(r#""server": "file:///etc/passwd""#, USER),
            "clusters[0].cluster.server is not an address",
        ),
        (
            kubeconfig(r#""server": "https://me:secret@east""#, USER),
            "clusters[0].cluster.server carries credentials",
        ),
        (
            kubeconfig(CLUSTER, r#""token": "two\nlines""#),
            "users[0].user.token holds what no HTTP header may",
        ),
    ];
    for (text, expected) in cases {
        let told = refusal(&text);
        assert!(
            told.starts_with(&format!("kubeconfig field {expected}")),
            "{told}"
        );
    }
}

#[tokio::test]
async fn errors_never_quote_the_text() {
    let good = kubeconfig(CLUSTER, USER);
    let broken = [
        good.replace(r#""very-secret-token""#, "[very-secret-token, 1"),
        good.replace(r#""very-secret-token""#, "{ very-secret-token: 1 }"),
        format!("very-secret-token: [\n{good}"),
        String::from("very-secret-token"),
        kubeconfig(
            CLUSTER,
            r#""client-certificate-data": "very-secret-token!", "client-key-data": "very-secret-token!""#,
        ),
        kubeconfig(
            &format!(r#"{CLUSTER}, "certificate-authority-data": "very-secret-token!""#),
            USER,
        ),
        kubeconfig(
            CLUSTER,
            r#""token": "very-secret-token\nwith a line break""#,
        ),
    ];
    for text in broken {
        let told = refusal(&text);
        assert!(!told.contains("very-secret-token"), "{told}");
    }
    assert!(refusal("a: [\n").starts_with("the kubeconfig is not YAML of kind Config (line "));
}

#[tokio::test]
async fn a_kubeconfig_that_is_too_large_is_refused_unread() {
    let text = format!(
        "{}{}",
        kubeconfig(CLUSTER, USER),
        " ".repeat(MAX_KUBECONFIG_SIZE)
    );
    let error = from_bytes(text.as_bytes(), &Options::default())
        .err()
        .unwrap();
    assert!(matches!(error, Error::TooLarge { size } if size == text.len()));
}

#[tokio::test]
async fn what_weakens_a_connection_is_reported() {
    let warnings = |cluster: &str| {
        let text = kubeconfig(cluster, USER);
        from_bytes(text.as_bytes(), &Options::default())
            .unwrap()
            .warnings
    };
    assert_eq!(warnings(CLUSTER), []);
    let server = || "https://east.example.com:6443".to_owned();
    assert_eq!(
        warnings(&format!(r#"{CLUSTER}, "insecure-skip-tls-verify": true"#)),
        [ClientWarning::UnverifiedServer { server: server() }]
    );
    let server = || "HTTP://east.example.com".to_owned();
    assert_eq!(
        warnings(r#""server": "HTTP://east.example.com""#),
        [ClientWarning::Plaintext { server: server() }]
    );
}

#[tokio::test]
async fn the_fingerprint_changes_with_the_content() {
    let fingerprint = |user: &str| {
        let text = kubeconfig(CLUSTER, user);
        from_bytes(text.as_bytes(), &Options::default())
            .unwrap()
            .fingerprint
    };
    assert_eq!(fingerprint(USER), fingerprint(USER));
    assert_ne!(fingerprint(USER), fingerprint(r#""token": "another""#));
}

/// An API server on loopback that tells what it was sent, and one that verifies.
async fn api_server(pair: &Pair) -> String {
    let version = async |headers: HeaderMap| {
        let header = |name: &str| {
            headers
                .get(name)
                .map(|value| value.to_str().unwrap().to_owned())
        };
        Json(json!({
            "major": "1", "minor": "36", "buildDate": "", "compiler": "", "gitCommit": "", "gitTreeState": "",
            "gitVersion": header("authorization"), "goVersion": header("user-agent"), "platform": "",
        }))
    };
    let app = Router::new()
        .route("/version", get(version))
        .route("/apis", any(async || StatusCode::SERVICE_UNAVAILABLE))
        .route("/api", any(async || std::future::pending::<()>().await));
    let server = Server::bind(LOOPBACK, Limits::default()).await.unwrap();
    let port = server.address().port();
    let credential = ServedCredential::new();
    credential.replace(pair.credential());
    tokio::spawn(async move {
        server
            .https(app, &credential, Drain::default(), CancellationToken::new())
            .await
    });
    format!("https://localhost:{port}")
}

/// Standard base64, as kubeconfigs hold certificates.
fn base64(text: &str) -> String {
    let secret = k8s_openapi::ByteString(text.as_bytes().to_vec());
    serde_json::to_value(secret)
        .unwrap()
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn token_and_user_agent_reach_a_server_whose_certificate_is_verified() {
    let pair = Pair::new();
    let server = api_server(&pair).await;
    let cluster = format!(
        r#""server": "{server}", "certificate-authority-data": "{}""#,
        base64(&pair.chain)
    );
    let connection =
        from_bytes(kubeconfig(&cluster, USER).as_bytes(), &Options::default()).unwrap();
    assert_eq!(connection.server, server);
    let version = connection.client.apiserver_version().await.unwrap();
    assert_eq!(version.git_version, "Bearer very-secret-token");
    assert!(
        version.go_version.starts_with("ferromesh/"),
        "{}",
        version.go_version
    );

    let stranger = Pair::new();
    let cluster = format!(
        r#""server": "{server}", "certificate-authority-data": "{}""#,
        base64(&stranger.chain)
    );
    let connection =
        from_bytes(kubeconfig(&cluster, USER).as_bytes(), &Options::default()).unwrap();
    assert!(connection.client.apiserver_version().await.is_err());

    let cluster = format!(r#""server": "{server}", "insecure-skip-tls-verify": true"#);
    let connection =
        from_bytes(kubeconfig(&cluster, USER).as_bytes(), &Options::default()).unwrap();
    assert!(connection.client.apiserver_version().await.is_ok());
}

#[tokio::test]
async fn an_answer_that_does_not_begin_is_not_waited_for() {
    let server = api_server(&Pair::new()).await;
    let cluster = format!(r#""server": "{server}", "insecure-skip-tls-verify": true"#);
    let options = Options {
        response_timeout: Duration::from_millis(50),
        ..Options::default()
    };
    let connection = from_bytes(kubeconfig(&cluster, USER).as_bytes(), &options).unwrap();
    let asked = tokio::time::timeout(
        Duration::from_secs(20),
        connection.client.list_core_api_versions(),
    )
    .await;
    assert!(asked.expect("in time").is_err());
}

#[tokio::test]
async fn a_busy_server_is_not_asked_again_when_the_caller_wants_to_know() {
    let server = api_server(&Pair::new()).await;
    let cluster = format!(r#""server": "{server}", "insecure-skip-tls-verify": true"#);
    let options = Options {
        retries: false,
        ..Options::default()
    };
    let connection = from_bytes(kubeconfig(&cluster, USER).as_bytes(), &options).unwrap();
    let error = connection.client.list_api_groups().await.unwrap_err();
    assert!(matches!(error, kube::Error::Api(status) if status.code == 503));
}

#[tokio::test]
async fn the_operators_own_kubeconfig_may_name_files_and_choose_a_context() {
    let pair = Pair::new();
    let server = api_server(&pair).await;
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let name = format!("kubeconfig-{}", std::process::id());
    std::fs::write(directory.join(format!("{name}.token")), "from a file").unwrap();
    let cluster = format!(r#""server": "{server}", "insecure-skip-tls-verify": true"#);
    let user = format!(r#""tokenFile": "{name}.token""#);
    let file = directory.join(&name);
    std::fs::write(
        &file,
        kubeconfig(&cluster, &user).replace(r#""current-context": "east","#, ""),
    )
    .unwrap();

    let none = local(Some(&file), None, &Options::default())
        .await
        .err()
        .unwrap();
    assert!(
        none.to_string()
            .starts_with("kubeconfig field current-context is missing"),
        "{none}"
    );
    let connection = local(Some(&file), Some("east"), &Options::default())
        .await
        .unwrap();
    assert_eq!(connection.warnings.len(), 1);
    let version = connection.client.apiserver_version().await.unwrap();
    assert_eq!(version.git_version, "Bearer from a file");

    std::fs::remove_file(&file).unwrap();
    std::fs::remove_file(directory.join(format!("{name}.token"))).unwrap();
    let gone = local(Some(&file), None, &Options::default())
        .await
        .err()
        .unwrap();
    assert!(matches!(gone, Error::Local(_)), "{gone}");
}
