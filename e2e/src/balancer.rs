//! Takes connections to whichever replica is ready, as a Service does in Kubernetes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{Duration, sleep};

use crate::server;

/// How often a replica is asked whether it is ready, as the manifests say.
const PROBE: Duration = Duration::from_secs(2);
/// How often in a row it has to say that it is not, as the manifests say.
const FAILURES: usize = 2;

/// One replica, as a Service knows it.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The port of its webhook.
    pub port: u16,
    /// The port where it says whether it is ready.
    pub admin: u16,
}

/// A listener that forwards connections. It ends when it is dropped; connections then go on.
pub struct Balancer {
    tasks: Vec<JoinHandle<()>>,
}

impl Balancer {
    /// Listens on a port; `endpoints` says which replicas there are.
    ///
    /// # Panics
    ///
    /// Panics if the port is taken.
    pub async fn start(port: u16, endpoints: impl Fn() -> Vec<Endpoint> + Send + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).await;
        let listener = listener.expect("nobody listens there");
        let ready: Arc<Mutex<Vec<u16>>> = Arc::default();
        let known = Arc::clone(&ready);
        let probes = tokio::spawn(async move {
            let mut failures: BTreeMap<u16, usize> = BTreeMap::new();
            loop {
                let all = endpoints();
                let asked = tokio::task::spawn_blocking(move || {
                    let asked = all
                        .into_iter()
                        .map(|it| (it.port, server::get(it.admin, "/readyz").is_some()));
                    asked.collect::<Vec<_>>()
                });
                let asked = asked.await.unwrap();
                for &(port, is_ready) in &asked {
                    // One that was never ready has failed as often as it takes.
                    let failed = failures.entry(port).or_insert(FAILURES);
                    *failed = if is_ready { 0 } else { *failed + 1 };
                }
                let ports = asked.into_iter().map(|(port, _)| port);
                let ports = ports.filter(|port| failures[port] < FAILURES);
                *known.lock().unwrap() = ports.collect();
                sleep(PROBE).await;
            }
        });
        let forward = tokio::spawn(async move {
            let mut turn = 0_usize;
            loop {
                let Ok((client, _)) = listener.accept().await else {
                    continue;
                };
                let port = {
                    let ready = ready.lock().unwrap();
                    turn = turn.wrapping_add(1);
                    ready.get(turn % ready.len().max(1)).copied()
                };
                // Nobody is ready: the connection is refused, as by a Service without endpoints.
                if let Some(port) = port {
                    tokio::spawn(join(client, port));
                }
            }
        });
        Self {
            tasks: vec![probes, forward],
        }
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

async fn join(mut client: TcpStream, port: u16) {
    if let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)).await {
        // Either side may close at any time.
        tokio::io::copy_bidirectional(&mut client, &mut server)
            .await
            .unwrap_or_default();
    }
}
