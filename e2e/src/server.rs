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
    /// The port of the webhook. It stays the same, as API servers know it.
    webhook: u16,
    /// Path of the kubeconfig of the server's own account, which does not do more than it may.
    account: Arc<OnceCell<PathBuf>>,
}

impl Start {
    /// On a port that is free now.
    pub fn new(kubeconfig: &str, log: PathBuf) -> Self {
        Self {
            kubeconfig: kubeconfig.to_owned(),
            log,
            webhook: free_port(),
            account: Arc::default(),
        }
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
        let log = File::options().create(true).append(true).open(&self.log);
        let log = log.expect("the log can be written");
        let admin = free_port();
        let child = Command::new(binary("ferromesh"))
            .arg("--kubeconfig")
            .arg(self.account().await)
            .args(["--webhook-address", &format!("127.0.0.1:{}", self.webhook)])
            .args([
                "--webhook-url",
                &format!("https://127.0.0.1:{}", self.webhook),
            ])
            .args(["--admin-address", &format!("127.0.0.1:{admin}")])
            .stdin(Stdio::null())
            .stderr(log.try_clone().expect("the log can be written"))
            .stdout(log)
            .spawn()
            .expect("the server can be started: hack/test builds it");
        let server = Server { child, admin };
        let what = format!("the server is ready; its log is {}", self.log.display());
        eventually(what, async || server.get("/readyz").map(drop)).await;
        server
    }
}

impl Server {
    /// What the admin server answers with success.
    pub fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.admin)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        answer.starts_with("HTTP/1.1 200").then_some(answer)
    }

    /// Ends it at once, as by `kill -9`.
    ///
    /// # Panics
    ///
    /// Panics if the process cannot be waited for.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
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

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("there is a free port");
    listener.local_addr().expect("it is bound").port()
}
