use std::time::Duration;

use ferromesh_runtime::shutdown::{Drained, Shutdown, Signal, signals};

use super::wire::raise;

#[tokio::test]
async fn a_signal_to_the_process_drains_it() {
    let shutdown = Shutdown::new();
    let signals = signals().unwrap();
    let token = shutdown.token().clone();
    let task = shutdown.spawn(async move { token.cancelled().await });
    raise("TERM");
    let drained = shutdown.run(signals, Duration::from_secs(20)).await;
    assert_eq!(
        drained,
        Ok(Drained {
            cause: Some(Signal::Terminate)
        })
    );
    task.await.unwrap();
}
