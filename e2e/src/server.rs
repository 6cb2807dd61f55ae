//! The server, as a process of its own.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OnceCell;

use crate::{account, eventually};

/// A server that runs. It is killed when it is dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    admin: u16,
}

/// What a server is started with, again and again.
#[derive(Clone, Debug)]
pub struct Start {
    /// Path of the management cluster's kubeconfig, that of an administrator.
    pub kubeconfig: String,
    /// Where its log goes; what is there already stays.
    pub log: PathBuf,
    /// What it calls itself; nothing for the only one.
    name: Option<String>,
    /// The port by which API servers know the webhook. It stays the same.
    registered: u16,
    /// The port that this replica listens on.
    listening: u16,
    /// Path of the kubeconfig of the server's own account, which does not do more than it may.
    account: Arc<OnceCell<PathBuf>>,
}

impl Start {
    /// On a port that is free now.
    pub fn new(kubeconfig: &str, log: PathBuf) -> Self {
        let port = free_port();
        Self {
            kubeconfig: kubeconfig.to_owned(),
            log,
            name: None,
            registered: port,
            listening: port,
            account: Arc::default(),
        }
    }

    /// One of several replicas behind the same registration: a [`Balancer`](crate::balancer::Balancer)
    /// takes reviews to it. Its log is its own.
    #[must_use]
    pub fn replica(&self, name: &str) -> Self {
        let stem = self.log.file_stem().unwrap_or_default().to_string_lossy();
        Self {
            log: self.log.with_file_name(format!("{stem}-{name}.log")),
            name: Some(name.to_owned()),
            listening: free_port(),
            ..self.clone()
        }
    }

    /// What the replica calls itself.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The port by which API servers know the webhook.
    pub fn registered(&self) -> u16 {
        self.registered
    }

    /// The port that this replica's webhook listens on.
    pub fn listening(&self) -> u16 {
        self.listening
    }

    async fn account(&self) -> PathBuf {
        let made = self.account.get_or_init(async || {
            let file = self.log.with_extension("kubeconfig");
            account::kubeconfig(&self.kubeconfig, &file).await;
            file
        });
        made.await.clone()
    }

    /// Starts a server, and waits until it is ready.
    ///
    /// # Panics
    ///
    /// Panics if it does not start: tests cannot go on without it.
    pub async fn server(&self) -> Server {
        let server = self.begin().await;
        let what = format!("the server is ready; its log is {}", self.log.display());
        eventually(what, async || server.get("/readyz").map(drop)).await;
        server
    }

    /// Starts a server.
    ///
    /// # Panics
    ///
    /// Panics if there is nothing to start.
    pub async fn begin(&self) -> Server {
        let log = File::options().create(true).append(true).open(&self.log);
        let log = log.expect("the log can be written");
        let admin = free_port();
        let child = Command::new(binary("ferromesh"))
            // As Kubernetes sets it in a pod.
            .envs(self.name.iter().map(|name| ("HOSTNAME", name)))
            .arg("--kubeconfig")
            .arg(self.account().await)
            .args([
                "--webhook-address",
                &format!("127.0.0.1:{}", self.listening),
            ])
            .args([
                "--webhook-url",
                &format!("https://127.0.0.1:{}", self.registered),
            ])
            .args(["--admin-address", &format!("127.0.0.1:{admin}")])
            .stdin(Stdio::null())
            .stderr(log.try_clone().expect("the log can be written"))
            .stdout(log)
            .spawn()
            .expect("the server can be started: hack/test builds it");
        Server { child, admin }
    }
}

impl Server {
    /// What the admin server answers with success.
    pub fn get(&self, path: &str) -> Option<String> {
        get(self.admin, path)
    }

    /// The port of its admin server.
    pub fn admin(&self) -> u16 {
        self.admin
    }

    /// Ends it at once, as by `kill -9`.
    ///
    /// # Panics
    ///
    /// Panics if the process cannot be waited for.
    pub fn kill(mut self) {
        self.end();
    }

    /// Whether it has ended.
    ///
    /// # Panics
    ///
    /// Panics if the process cannot be asked.
    pub fn has_ended(&mut self) -> bool {
        let ended = self.child.try_wait();
        ended.expect("a child can be waited for").is_some()
    }

    /// Sends a signal to it, by its name.
    ///
    /// # Panics
    ///
    /// Panics if it is not there.
    pub fn signal(&self, signal: &str) {
        let done = Command::new("kill")
            .args([&format!("-{signal}"), &self.child.id().to_string()])
            .status();
        assert!(done.expect("there is kill").success(), "it has ended");
    }

    /// Ends it at once, and waits until it is gone.
    ///
    /// # Panics
    ///
    /// Panics if the process cannot be waited for.
    pub fn end(&mut self) {
        // It may have ended by itself.
        self.child.kill().unwrap_or_default();
        self.child.wait().expect("a child can be waited for");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// A binary of the product; `hack/test` says where they are.
///
/// # Panics
///
/// Panics where nobody has said so.
pub fn binary(name: &str) -> PathBuf {
    let directory = std::env::var_os("FERROMESH_BINARIES").expect(
        "FERROMESH_BINARIES must name the directory of the server and meshctl: run hack/test, or cargo build and set it to target/debug",
    );
    PathBuf::from(directory).join(name)
}

/// What a server on this machine answers with success.
pub(crate) fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.starts_with("HTTP/1.1 200").then_some(answer)
}

/// A port that nobody listens on now.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("there is a free port");
    listener.local_addr().expect("it is bound").port()
}
