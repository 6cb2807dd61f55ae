//! Commands: what is typed, and what comes back.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

/// How long something that must come is waited for.
const DEADLINE: Duration = Duration::from_mins(2);
/// So many lines of an answer are shown.
const SHOWN: usize = 16;

/// Runs commands as a person at a terminal would.
#[derive(Clone, Debug)]
pub(crate) struct Shell {
    /// The kubeconfigs, as `KUBECONFIG` names them.
    pub(crate) kubeconfig: OsString,
    pub(crate) kubectl: PathBuf,
    pub(crate) meshctl: PathBuf,
}

/// What a command has answered.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) is_ok: bool,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Shell {
    /// Runs a command that must work, and shows both.
    pub(crate) async fn typed(&self, line: &str) -> anyhow::Result<Answer> {
        let answer = self.answered(line).await?;
        if !answer.is_ok {
            bail!("`{line}` failed");
        }
        Ok(answer)
    }

    /// Runs a command that must be refused, and shows both.
    pub(crate) async fn refused(&self, line: &str) -> anyhow::Result<Answer> {
        let answer = self.answered(line).await?;
        if answer.is_ok {
            bail!("`{line}` was to be refused");
        }
        Ok(answer)
    }

    async fn answered(&self, line: &str) -> anyhow::Result<Answer> {
        println!("\n  $ {line}");
        let answer = self.run(line, None).await?;
        show(&answer.err);
        show(&answer.out);
        Ok(answer)
    }

    /// Runs a command in silence; it must work. `input` is what it reads.
    pub(crate) async fn quiet(&self, line: &str, input: Option<&str>) -> anyhow::Result<String> {
        let answer = self.run(line, input).await?;
        if !answer.is_ok {
            bail!("`{line}` failed: {}", answer.err.trim());
        }
        Ok(answer.out)
    }

    /// What `kubectl get` says of objects, as JSON; none where there is nothing of that name.
    pub(crate) async fn get(&self, context: &str, what: &str) -> anyhow::Result<Option<Value>> {
        let line = format!("kubectl --context {context} get {what} -o json");
        let answer = self.run(&line, None).await?;
        match answer.is_ok {
            true => Ok(Some(serde_json::from_str(&answer.out)?)),
            false if answer.err.contains("NotFound") => Ok(None),
            false => bail!("`{line}` failed: {}", answer.err.trim()),
        }
    }

    /// Waits until `found` finds something in what `kubectl get` says.
    pub(crate) async fn until<T>(
        &self,
        context: &str,
        what: &str,
        found: impl Fn(&Value) -> Option<T>,
    ) -> anyhow::Result<T> {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let got = self.get(context, what).await?;
            if let Some(found) = got.as_ref().and_then(&found) {
                return Ok(found);
            }
            if Instant::now() > deadline {
                bail!(
                    "waited in vain for {what} on {context}; it is now {}",
                    got.map_or_else(|| "not there".to_owned(), |got| got.to_string())
                );
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn run(&self, line: &str, input: Option<&str>) -> anyhow::Result<Answer> {
        let mut words = line.split_whitespace();
        let program: &Path = match words.next() {
            Some("kubectl") => &self.kubectl,
            Some("meshctl") => &self.meshctl,
            Some(other) => Path::new(other),
            None => bail!("an empty command"),
        };
        let mut child = Command::new(program)
            .args(words)
            .env("KUBECONFIG", &self.kubeconfig)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("running {}", program.display()))?;
        if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
            stdin.write_all(input.as_bytes()).await?;
        }
        let output = child.wait_with_output().await?;
        Ok(Answer {
            is_ok: output.status.success(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }
}

fn show(text: &str) {
    let lines: Vec<_> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    for line in lines.iter().take(SHOWN) {
        println!("    {}", line.trim_end());
    }
    if let Some(more @ 1..) = lines.len().checked_sub(SHOWN) {
        println!("    … {more} lines more");
    }
}
