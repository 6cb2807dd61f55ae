//! A server that is started again whenever it ends, as Kubernetes does.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::balancer::Endpoint;
use crate::eventually;
use crate::server::{Server, Start};

/// How often it is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(50);

/// A server that is kept running. It is ended when this is dropped.
pub struct Replica {
    /// What it is started with.
    pub start: Start,
    running: Arc<Mutex<Running>>,
    keeper: JoinHandle<()>,
}

struct Running {
    server: Server,
    /// Whether somebody here has ended it.
    is_expected: bool,
    /// How often it has ended by itself.
    ended: usize,
    /// How often it was started.
    started: usize,
}

impl Replica {
    /// Starts it, and waits until it is ready.
    pub async fn start(start: Start) -> Self {
        let replica = Self::begin(start).await;
        replica.until_ready().await;
        replica
    }

    /// Starts it.
    pub async fn begin(start: Start) -> Self {
        let running = Arc::new(Mutex::new(Running {
            server: start.begin().await,
            is_expected: false,
            ended: 0,
            started: 1,
        }));
        let keeper = tokio::spawn(keep(start.clone(), Arc::clone(&running)));
        Self {
            start,
            running,
            keeper,
        }
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap()
    }

    /// Whether it is ready.
    pub fn is_ready(&self) -> bool {
        self.get("/readyz").is_some()
    }

    /// Where a balancer finds it.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint {
            port: self.start.listening(),
            admin: self.running().server.admin(),
        }
    }

    /// What the admin server answers with success.
    pub fn get(&self, path: &str) -> Option<String> {
        let admin = self.running().server.admin();
        crate::server::get(admin, path)
    }

    /// Waits until it is ready.
    pub async fn until_ready(&self) {
        let what = format!(
            "the server is ready; its log is {}",
            self.start.log.display()
        );
        eventually(what, async || self.is_ready().then_some(())).await;
    }

    /// How often it has ended though nobody here has ended it.
    pub fn ended(&self) -> usize {
        self.running().ended
    }

    /// How often it was started.
    pub fn started(&self) -> usize {
        self.running().started
    }

    /// Sends it a signal, by its name.
    pub fn signal(&self, signal: &str) {
        self.running().server.signal(signal);
    }

    /// Ends it at once; it is started again.
    pub fn kill(&self) {
        let mut running = self.running();
        running.is_expected = true;
        running.server.end();
    }

    /// Has it end in order, for good, and waits until it has.
    pub async fn end(self) {
        self.keeper.abort();
        self.signal("TERM");
        eventually("it has ended in order", async || {
            self.running().server.has_ended().then_some(())
        })
        .await;
    }

    /// Has it end in order, and waits until it has and the next one is ready.
    pub async fn roll(&self) {
        let before = {
            let mut running = self.running();
            running.is_expected = true;
            running.server.signal("TERM");
            running.started
        };
        eventually("it has ended in order", async || {
            (self.started() > before).then_some(())
        })
        .await;
        self.until_ready().await;
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.keeper.abort();
        // A keeper at work holds it until its next pause, and then lets go of it.
        if let Ok(mut running) = self.running.lock() {
            running.server.end();
        }
    }
}

async fn keep(start: Start, running: Arc<Mutex<Running>>) {
    loop {
        sleep(LOOK).await;
        if !running.lock().unwrap().server.has_ended() {
            continue;
        }
        let server = start.begin().await;
        let mut running = running.lock().unwrap();
        running.server = server;
        running.started += 1;
        if !std::mem::take(&mut running.is_expected) {
            running.ended += 1;
        }
    }
}
