//! What has happened, in order, and what must not have happened.

use std::cell::Cell;
use std::fmt::Display;
use std::panic;
use std::sync::{Mutex, Once};

use tokio::time::Instant;

/// Everything that has happened in one run.
#[derive(Debug)]
pub(crate) struct Journal {
    began: Instant,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    events: Vec<String>,
    violations: Vec<String>,
}

const UNPOISONED: &str = "nobody panics while holding this lock";

impl Journal {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            inner: Mutex::default(),
        }
    }

    /// When this began.
    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    /// Notes an event.
    pub(crate) fn note(&self, what: impl Display) {
        let event = self.dated(what);
        self.inner.lock().expect(UNPOISONED).events.push(event);
    }

    /// Something has happened that must never happen.
    pub(crate) fn violation(&self, what: impl Display) {
        let event = self.dated(format_args!("VIOLATION: {what}"));
        let mut inner = self.inner.lock().expect(UNPOISONED);
        inner.events.push(event.clone());
        inner.violations.push(event);
    }

    /// What must not have happened and has. A panic anywhere in this thread counts.
    pub(crate) fn violations(&self) -> Vec<String> {
        if let Some(place) = PANIC.take() {
            self.violation(format_args!("a panic: {place}"));
        }
        self.inner.lock().expect(UNPOISONED).violations.clone()
    }

    /// Everything, in order.
    pub(crate) fn events(&self) -> Vec<String> {
        self.inner.lock().expect(UNPOISONED).events.clone()
    }

    fn dated(&self, what: impl Display) -> String {
        let at = self.began.elapsed();
        format!("{:>9.3} {what}", at.as_secs_f64())
    }
}

thread_local! {
    /// The last panic in this thread.
    static PANIC: Cell<Option<String>> = const { Cell::new(None) };
}

/// From now on a panic in a task is kept for the journal of its thread: who panics in a task of Tokio is
/// heard by nobody else.
pub(crate) fn hear_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |reason| {
            PANIC.set(Some(reason.to_string()));
            before(reason);
        }));
    });
    PANIC.set(None);
}
