//! What the process still waits for before it may be sent traffic.
//!
//! Whoever must have done something first takes a [`Blocker`] with a name and drops it when that is done.
//! The owner may latch readiness: from then on new blockers are listed but no longer count. Closing it, at
//! the beginning of a shutdown, beats everything.

use std::{borrow::Cow, collections::BTreeMap, fmt, sync::Arc, time::Duration};

use tokio::{sync::watch, time::Instant};

type Name = Cow<'static, str>;

/// The readiness of this process. Clones share it.
#[derive(Clone, Debug)]
pub struct Readiness {
    state: Arc<watch::Sender<State>>,
}

#[derive(Debug, Default)]
struct State {
    blockers: BTreeMap<u64, (Name, Instant)>,
    next: u64,
    is_latched: bool,
    closed: Option<Name>,
}

/// One reason not to be ready, lifted when this is dropped.
#[must_use = "dropping a blocker lifts it"]
#[derive(Debug)]
pub struct Blocker {
    id: u64,
    state: Arc<watch::Sender<State>>,
}

/// A blocker as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// What is waited for.
    pub name: Name,
    /// For how long.
    pub waited: Duration,
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (for {} s)", self.name, self.waited.as_secs())
    }
}

// === impl State ===

impl State {
    fn is_ready(&self) -> bool {
        self.closed.is_none() && (self.is_latched || self.blockers.is_empty())
    }
}

// === impl Readiness ===

impl Default for Readiness {
    fn default() -> Self {
        Self {
            state: Arc::new(watch::Sender::new(State::default())),
        }
    }
}

impl Readiness {
    /// A process is ready as long as nobody blocks it: take the first blockers before anything is served.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits for `name` from now on. Names are shown to operators: `first list of pods in east`.
    pub fn block(&self, name: impl Into<Name>) -> Blocker {
        let mut id = 0;
        self.state.send_modify(|state| {
            id = state.next;
            state.next += 1;
            state.blockers.insert(id, (name.into(), Instant::now()));
        });
        Blocker {
            id,
            state: Arc::clone(&self.state),
        }
    }

    /// Ready from now on, whatever still blocks or will block, until [`close`](Self::close).
    pub fn latch(&self) {
        self.state.send_modify(|state| state.is_latched = true);
    }

    /// Never ready again, for this reason: the process is about to end.
    pub fn close(&self, reason: impl Into<Name>) {
        self.state
            .send_modify(|state| state.closed = Some(reason.into()));
    }

    /// Whether traffic may be sent here.
    pub fn is_ready(&self) -> bool {
        self.state.borrow().is_ready()
    }

    /// Why the process was closed.
    pub fn closed(&self) -> Option<Name> {
        self.state.borrow().closed.clone()
    }

    /// What is waited for, the longest wait first. Not empty after a latch if something came later.
    pub fn blockers(&self) -> Vec<Blocked> {
        let now = Instant::now();
        let state = self.state.borrow();
        state
            .blockers
            .values()
            .map(|(name, since)| Blocked {
                name: name.clone(),
                waited: now.saturating_duration_since(*since),
            })
            .collect()
    }

    /// Returns once the process is ready.
    pub async fn ready(&self) {
        let mut state = self.state.subscribe();
        let waited = state.wait_for(State::is_ready).await;
        drop(waited.expect("the sender lives in self"));
    }
}

// === impl Blocker ===

impl Blocker {
    /// What was waited for has happened. The same as dropping.
    pub fn lift(self) {
        drop(self);
    }
}

impl Drop for Blocker {
    fn drop(&mut self) {
        self.state.send_modify(|state| {
            state.blockers.remove(&self.id);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(readiness: &Readiness) -> Vec<String> {
        let blockers = readiness.blockers();
        blockers
            .into_iter()
            .map(|blocked| blocked.name.into_owned())
            .collect()
    }

    #[test]
    fn is_ready_when_the_last_blocker_is_lifted_or_dropped() {
        let readiness = Readiness::new();
        let first = readiness.block("first list");
        let second = readiness.block(String::from("certificate"));
        assert_eq!(names(&readiness), ["first list", "certificate"]);

        first.lift();
        assert!(!readiness.is_ready());
        assert_eq!(names(&readiness), ["certificate"]);

        drop(second);
        assert!(readiness.is_ready());
    }

    #[test]
    fn two_blockers_of_one_name_are_lifted_one_by_one() {
        let readiness = Readiness::new();
        let first = readiness.block("list");
        let _second = readiness.block("list");
        first.lift();
        assert!(!readiness.is_ready());
    }

    #[test]
    fn a_latch_outlasts_later_blockers_but_shows_them() {
        let readiness = Readiness::new();
        readiness.latch();
        let _late = readiness.block("new source");
        assert!(readiness.is_ready());
        assert_eq!(names(&readiness), ["new source"]);
    }

    #[test]
    fn closing_beats_the_latch() {
        let readiness = Readiness::new();
        readiness.latch();
        readiness.close("shutting down");
        assert!(!readiness.is_ready());
        assert_eq!(readiness.closed().as_deref(), Some("shutting down"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_blocker_tells_how_long_it_has_blocked() {
        let readiness = Readiness::new();
        let _blocker = readiness.block("lease");
        tokio::time::advance(Duration::from_secs(7)).await;
        assert_eq!(readiness.blockers()[0].to_string(), "lease (for 7 s)");
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_for_readiness_ends_with_the_last_blocker() {
        let readiness = Readiness::new();
        let blocker = readiness.block("list");
        let waiting = tokio::spawn({
            let readiness = readiness.clone();
            async move { readiness.ready().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        blocker.lift();
        waiting.await.unwrap();
    }
}
