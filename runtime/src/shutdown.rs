//! Two-stage shutdown: the first signal drains, the second one aborts.
//!
//! Tasks are spawned on a [`Shutdown`] and watch its token; when the token is cancelled they finish what
//! they have begun and return. What must go last, as giving up a lease, is done after [`Shutdown::run`]
//! has returned.

use std::{fmt, future::Future, io, time::Duration};

use futures_util::{Stream, StreamExt, stream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// A request to end, from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// `SIGTERM`, as kubelet sends it.
    Terminate,
    /// `SIGINT`, as a terminal sends it.
    Interrupt,
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Terminate => "SIGTERM",
            Self::Interrupt => "SIGINT",
        })
    }
}

/// Every task had ended before the deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// The signal that began it; none if a task of this process did by cancelling the token.
    pub cause: Option<Signal>,
}

/// Tasks were still running when the process had to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Aborted {
    /// A second signal came.
    #[error("a second signal, {signal}, ended {tasks} tasks that were still draining")]
    Signal {
        /// The second signal.
        signal: Signal,
        /// Tasks that had not ended.
        tasks: usize,
    },
    /// The deadline passed.
    #[error("{tasks} tasks had not drained within {} s", deadline.as_secs())]
    Deadline {
        /// The time they were given.
        deadline: Duration,
        /// Tasks that had not ended.
        tasks: usize,
    },
}

/// The life of this process as its tasks see it. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    token: CancellationToken,
    tasks: TaskTracker,
}

/// `SIGTERM` and `SIGINT` of this process, without end. From here on they no longer kill it.
///
/// Must be called within a Tokio runtime.
pub fn signals() -> io::Result<impl Stream<Item = Signal> + Send + Unpin> {
    let terminate = signal(SignalKind::terminate())?;
    let interrupt = signal(SignalKind::interrupt())?;
    let next = |(mut terminate, mut interrupt): (
        tokio::signal::unix::Signal,
        tokio::signal::unix::Signal,
    )| async move {
        let signal = tokio::select! {
            Some(()) = terminate.recv() => Signal::Terminate,
            Some(()) = interrupt.recv() => Signal::Interrupt,
            else => return None,
        };
        Some((signal, (terminate, interrupt)))
    };
    Ok(stream::unfold((terminate, interrupt), next).boxed())
}

// === impl Shutdown ===

impl Shutdown {
    /// Nothing has been asked to end yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancelled when draining begins. Cancelling it begins the draining: a lost lease may do so.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Spawns a task that the shutdown waits for.
    pub fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.tasks.spawn(task)
    }

    /// Waits for a signal or for the token, cancels the token, and waits for the tasks.
    ///
    /// After an error tasks are still running; the caller ends the process.
    pub async fn run(
        &self,
        mut signals: impl Stream<Item = Signal> + Unpin,
        deadline: Duration,
    ) -> Result<Drained, Aborted> {
        let cause = tokio::select! {
            biased;
            () = self.token.cancelled() => None,
            Some(signal) = signals.next() => Some(signal),
        };
        if let Some(signal) = cause {
            tracing::info!(%signal, "draining; a second signal aborts");
        } else {
            tracing::info!("draining");
        }
        self.token.cancel();
        self.tasks.close();
        tokio::select! {
            biased;
            () = self.tasks.wait() => Ok(Drained { cause }),
            Some(signal) = signals.next() => Err(Aborted::Signal { signal, tasks: self.tasks.len() }),
            () = tokio::time::sleep(deadline) => Err(Aborted::Deadline { deadline, tasks: self.tasks.len() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream::pending;

    use super::*;

    const DEADLINE: Duration = Duration::from_secs(10);

    fn signals(given: &[Signal]) -> impl Stream<Item = Signal> + Unpin {
        stream::iter(given.to_vec()).chain(pending())
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_signal_drains_the_tasks() {
        let shutdown = Shutdown::new();
        let token = shutdown.token().clone();
        let task = shutdown.spawn(async move {
            token.cancelled().await;
            tokio::time::sleep(Duration::from_secs(9)).await;
            "finished"
        });
        let drained = shutdown.run(signals(&[Signal::Terminate]), DEADLINE).await;
        assert_eq!(
            drained,
            Ok(Drained {
                cause: Some(Signal::Terminate)
            })
        );
        assert_eq!(task.await.unwrap(), "finished");
    }

    #[tokio::test(start_paused = true)]
    async fn the_second_signal_aborts() {
        let shutdown = Shutdown::new();
        shutdown.spawn(std::future::pending::<()>());
        let aborted = shutdown
            .run(signals(&[Signal::Terminate, Signal::Interrupt]), DEADLINE)
            .await;
        assert_eq!(
            aborted,
            Err(Aborted::Signal {
                signal: Signal::Interrupt,
                tasks: 1
            })
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_deadline_ends_the_wait() {
        let shutdown = Shutdown::new();
        shutdown.spawn(std::future::pending::<()>());
        let began = tokio::time::Instant::now();
        let aborted = shutdown.run(signals(&[Signal::Interrupt]), DEADLINE).await;
        assert_eq!(
            aborted,
            Err(Aborted::Deadline {
                deadline: DEADLINE,
                tasks: 1
            })
        );
        assert_eq!(began.elapsed(), DEADLINE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_may_begin_the_shutdown() {
        let shutdown = Shutdown::new();
        let token = shutdown.token().clone();
        shutdown.spawn(async move { token.cancel() });
        let drained = shutdown.run(signals(&[]), DEADLINE).await;
        assert_eq!(drained, Ok(Drained { cause: None }));
    }
}
