//! When reviews can be answered.
//!
//! Before everything has been listed, much would be unknown and let through. So the process is not
//! ready until every cluster has been listed or is known to be failing. It does not wait for ever:
//! where nothing has moved for a while, waiting longer is of no use, and whoever cannot be judged
//! for certain is told so. Once ready, it stays: a cluster that is registered later must not take
//! away the judge of all others.

use std::collections::BTreeMap;
use std::time::Duration;

use ferromesh_runtime::ready::{Blocker, Readiness};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How often it is looked what is still waited for.
const PERIOD: Duration = Duration::from_millis(200);
/// How long nothing may move before waiting is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Blocks `readiness` by what `blockers` says, until that is nothing, or the same for 30 s; then
/// latches it and returns. `first` is lifted once it has been asked.
pub(crate) async fn latch(
    readiness: &Readiness,
    first: Blocker,
    blockers: impl Fn() -> Vec<String>,
    cancel: CancellationToken,
) {
    let mut held: BTreeMap<String, Blocker> = BTreeMap::new();
    let mut first = Some(first);
    let mut moved = Instant::now();
    loop {
        let now = blockers();
        let before = held.len();
        held.retain(|name, _| now.contains(name));
        let mut has_moved = held.len() != before;
        for name in now {
            if !held.contains_key(&name) {
                has_moved = true;
                held.insert(name.clone(), readiness.block(name));
            }
        }
        drop(first.take());
        if has_moved {
            moved = Instant::now();
        }
        if held.is_empty() {
            break;
        }
        if moved.elapsed() >= PATIENCE {
            let waiting: Vec<&str> = held.keys().take(5).map(String::as_str).collect();
            tracing::warn!(
                waiting = waiting.join(", "),
                blockers = held.len(),
                "ready without everything having been listed: nothing has moved for 30 s"
            );
            break;
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => return,
            () = tokio::time::sleep(PERIOD) => {}
        }
    }
    readiness.latch();
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// What is waited for, as a test sets it.
    #[derive(Clone, Default)]
    struct Waiting(Arc<Mutex<Vec<String>>>);

    impl Waiting {
        fn set(&self, names: &[&str]) {
            *self.0.lock().unwrap() = names.iter().map(ToString::to_string).collect();
        }

        fn begin(&self) -> Readiness {
            let readiness = Readiness::new();
            let (task, waiting) = (readiness.clone(), self.clone());
            let first = readiness.block("first look");
            tokio::spawn(async move {
                let blockers = || waiting.0.lock().unwrap().clone();
                latch(&task, first, blockers, CancellationToken::new()).await;
            });
            readiness
        }
    }

    async fn pass(time: Duration) {
        tokio::time::sleep(time).await;
    }

    fn names(readiness: &Readiness) -> Vec<String> {
        let blockers = readiness.blockers().into_iter();
        blockers.map(|it| it.name.into_owned()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn is_ready_once_everything_is_listed_and_stays_so() {
        let waiting = Waiting::default();
        waiting.set(&["cluster-1: Pod not listed", "cluster-2: Pod not listed"]);
        let readiness = waiting.begin();
        pass(Duration::from_secs(1)).await;
        assert_eq!(names(&readiness).len(), 2);
        waiting.set(&["cluster-2: Pod not listed"]);
        pass(Duration::from_secs(1)).await;
        assert!(!readiness.is_ready());
        assert_eq!(names(&readiness), ["cluster-2: Pod not listed"]);
        waiting.set(&[]);
        pass(Duration::from_secs(1)).await;
        assert!(readiness.is_ready());
        waiting.set(&["cluster-3: Pod not listed"]);
        pass(Duration::from_mins(1)).await;
        assert!(readiness.is_ready());
    }

    #[tokio::test(start_paused = true)]
    async fn is_ready_30_s_after_the_last_progress() {
        let waiting = Waiting::default();
        waiting.set(&["a", "b", "c"]);
        let readiness = waiting.begin();
        for left in [&["b", "c"][..], &["c"]] {
            pass(Duration::from_secs(29)).await;
            assert!(!readiness.is_ready());
            waiting.set(left);
        }
        pass(Duration::from_secs(29)).await;
        assert!(!readiness.is_ready());
        pass(Duration::from_secs(2)).await;
        assert!(readiness.is_ready());
    }

    #[tokio::test(start_paused = true)]
    async fn is_ready_at_once_where_nothing_is_waited_for() {
        let readiness = Waiting::default().begin();
        assert!(!readiness.is_ready());
        pass(Duration::from_millis(1)).await;
        assert!(readiness.is_ready());
    }
}
