//! The clusters and the server that the story plays on.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use crate::args::Args;
use crate::shell::Shell;

/// How long the server may take to be ready, and to end.
const PATIENCE: Duration = Duration::from_mins(1);
/// So many lines of the log are shown when the story breaks off.
const SHOWN: usize = 30;

/// What is to be cleaned up.
#[derive(Debug, Default)]
pub(crate) struct Stage {
    testbed: Option<String>,
    server: Option<Server>,
    shell: Option<Shell>,
    /// Commands that take back what was done to clusters that were there before, the last one first.
    undo: Vec<String>,
}

#[derive(Debug)]
struct Server {
    child: Child,
    log: PathBuf,
    /// How much there was to take back when it was started.
    since: usize,
}

/// The clusters, and how they are named.
#[derive(Clone, Debug)]
pub(crate) struct Clusters {
    pub(crate) shell: Shell,
    /// Contexts: the management cluster, cluster-1, cluster-2.
    pub(crate) contexts: [String; 3],
    /// Whether they run an Istio of their own.
    pub(crate) has_istio: bool,
}

impl Stage {
    /// Three clusters: those of the user, or new ones.
    pub(crate) async fn clusters(&mut self, args: &Args) -> anyhow::Result<Clusters> {
        let tools = |name: &str| root().join("target/testbed/bin").join(name);
        let kubectl = tools("kubectl");
        let kubectl = if kubectl.exists() {
            kubectl
        } else {
            "kubectl".into()
        };
        let mut shell = Shell {
            kubeconfig: std::env::var_os("KUBECONFIG").unwrap_or_default(),
            kubectl,
            meshctl: binary("meshctl")?,
        };
        let clusters = if args.contexts.is_empty() {
            shell.kubeconfig = self.start_testbed().await?;
            let contexts = ["management", "cluster-1", "cluster-2"].map(str::to_owned);
            Clusters {
                shell,
                contexts,
                has_istio: false,
            }
        } else {
            let Ok(contexts) = <[String; 3]>::try_from(args.contexts.clone()) else {
                bail!("--contexts takes three: the management cluster and two that run Istio");
            };
            if let Some(file) = &args.kubeconfig {
                shell.kubeconfig = file.into();
            }
            Clusters {
                shell,
                contexts,
                has_istio: true,
            }
        };
        self.shell = Some(clusters.shell.clone());
        Ok(clusters)
    }

    async fn start_testbed(&mut self) -> anyhow::Result<OsString> {
        let name = format!("demo-{}", std::process::id());
        self.testbed = Some(name.clone());
        let up = testbed(&name).args(["up", "3"]).status().await?;
        if !up.success() {
            bail!("the test bed did not start");
        }
        let mut kubeconfigs = Vec::new();
        for cluster in ["1", "2", "3"] {
            let told = testbed(&name)
                .args(["kubeconfig", cluster])
                .output()
                .await?;
            kubeconfigs.push(String::from_utf8(told.stdout)?.trim().to_owned());
        }
        Ok(std::env::join_paths(kubeconfigs)?)
    }

    /// Remembers how something is taken back that was done to clusters of the user.
    pub(crate) fn undo_by(&mut self, line: String) {
        if self.testbed.is_none() {
            self.undo.push(line);
        }
    }

    /// Starts the server beside the management cluster, and waits until it is ready and API servers ask it.
    pub(crate) async fn start_server(
        &mut self,
        clusters: &Clusters,
        args: &Args,
    ) -> anyhow::Result<String> {
        let [webhook, admin] = [free_port()?, free_port()?];
        let log = std::env::temp_dir().join(format!("ferromesh-demo-{}.log", std::process::id()));
        let output = File::create(&log).with_context(|| format!("writing {}", log.display()))?;
        let address = if args.contexts.is_empty() {
            "127.0.0.1"
        } else {
            "0.0.0.0"
        };
        let child = Command::new(binary("ferromesh")?)
            .args(["--context", &clusters.contexts[0]])
            .args(["--webhook-address", &format!("{address}:{webhook}")])
            .args([
                "--webhook-url",
                &format!("https://{}:{webhook}", args.webhook_host),
            ])
            .args(["--admin-address", &format!("127.0.0.1:{admin}")])
            .env("KUBECONFIG", &clusters.shell.kubeconfig)
            .stdin(Stdio::null())
            .stderr(output.try_clone()?)
            .stdout(output)
            .kill_on_drop(!args.keep)
            .spawn()
            .context("starting ferromesh")?;
        println!(
            "  ferromesh runs beside the management cluster; its log is {}",
            log.display()
        );
        // The server keeps its registration: only when it has ended can that be taken away.
        self.undo_by(format!(
            "kubectl --context {} delete validatingwebhookconfiguration,mutatingwebhookconfiguration ferromesh",
            clusters.contexts[0]
        ));
        self.server = Some(Server {
            child,
            log,
            since: self.undo.len(),
        });
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(Server { child, .. }) = &mut self.server
                && let Some(status) = child.try_wait()?
            {
                bail!("ferromesh has ended: {status}");
            }
            let line = "validatingwebhookconfiguration ferromesh";
            let registered = clusters.shell.get(&clusters.contexts[0], line).await?;
            if registered.is_some() {
                return Ok(format!("http://127.0.0.1:{admin}"));
            }
            if Instant::now() > deadline {
                bail!("ferromesh has not registered its webhook within {PATIENCE:?}");
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// The end of the server's log.
    pub(crate) fn show_log(&self) {
        let Some(Server { log, .. }) = &self.server else {
            return;
        };
        let text = std::fs::read_to_string(log).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        println!("The end of {}:", log.display());
        for line in lines.iter().skip(lines.len().saturating_sub(SHOWN)) {
            println!("    {line}");
        }
    }

    /// Says how what is left running is reached, and ended.
    pub(crate) fn keep(&self) {
        if let Some(shell) = &self.shell {
            println!(
                "Left running. export KUBECONFIG={}",
                shell.kubeconfig.display()
            );
        }
        if let Some(Server { child, log, .. }) = &self.server
            && let Some(pid) = child.id()
        {
            println!(
                "The server: process {pid}, log {}. To end it: kill {pid}",
                log.display()
            );
        }
        if let Some(name) = &self.testbed {
            println!(
                "The clusters: hack/testbed status --name {name}. To end them: hack/testbed down --name {name}"
            );
        }
    }

    /// Takes back what was done to clusters of the user, the last first.
    async fn take_back(&self, lines: &[String], failed: &mut Vec<String>) {
        let Some(shell) = self.shell.as_ref().filter(|_| !lines.is_empty()) else {
            return;
        };
        for line in lines.iter().rev() {
            if let Err(error) = shell.quiet(line, None).await {
                failed.push(format!("{error:#}"));
            }
        }
    }

    /// Ends what was started, and takes back what was done.
    pub(crate) async fn clean_up(mut self) -> anyhow::Result<()> {
        let mut failed = Vec::new();
        if !self.undo.is_empty() {
            println!("Taking back what was done to the clusters");
        }
        let since = self.server.as_ref().map_or(0, |server| server.since);
        let after = self.undo.split_off(since);
        self.take_back(&after, &mut failed).await;
        if let Some(Server { child, .. }) = &mut self.server {
            child.start_kill()?;
            timeout(PATIENCE, child.wait()).await??;
        }
        let before = std::mem::take(&mut self.undo);
        self.take_back(&before, &mut failed).await;
        if let (Some(Server { log, .. }), true) = (&self.server, failed.is_empty()) {
            std::fs::remove_file(log)?;
        }
        if let Some(name) = &self.testbed
            && !testbed(name).arg("down").status().await?.success()
        {
            failed.push(format!("hack/testbed down --name {name}"));
        }
        if failed.is_empty() {
            Ok(())
        } else {
            bail!("{}", failed.join("; "))
        }
    }
}

/// The root of the checkout.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A file below `docs/examples`.
pub(crate) fn example(path: &str) -> PathBuf {
    Path::new("docs/examples").join(path)
}

fn testbed(name: &str) -> Command {
    let mut command = Command::new(root().join("hack/testbed"));
    command.env("FERROMESH_TESTBED", name);
    command
}

/// A binary that was built beside this one.
fn binary(name: &str) -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(name);
    if path.exists() {
        Ok(path)
    } else {
        bail!(
            "{} is not there: run hack/demo, which builds it",
            path.display()
        )
    }
}

fn free_port() -> anyhow::Result<u16> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
    Ok(listener.local_addr()?.port())
}
