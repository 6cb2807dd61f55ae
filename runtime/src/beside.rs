//! Work that takes long, beside the threads that serve everybody.

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::{JoinError, spawn_blocking};

/// Runs `work` on a thread that may block.
///
/// In a runtime of one thread it runs in place: with a second one it would be left to chance what happens
/// first, and a simulation could not be repeated.
pub async fn run<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    match Handle::current().runtime_flavor() {
        RuntimeFlavor::CurrentThread => Ok(work()),
        _ => spawn_blocking(work).await,
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[tokio::test]
    async fn one_thread_does_all_the_work() {
        let here = thread::current().id();
        assert_eq!(run(|| thread::current().id()).await.unwrap(), here);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn threads_that_serve_are_not_held_up() {
        let served = tokio::spawn(async {
            let here = thread::current().id();
            run(|| thread::current().id()).await.unwrap() != here
        });
        assert!(served.await.unwrap());
    }
}
