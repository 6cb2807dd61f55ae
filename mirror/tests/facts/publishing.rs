//! When a state is published, and who learns what has changed.

use std::{sync::Arc, time::Duration};

use ferromesh_core::Kind;
use prometheus_client::{encoding::text::encode, registry::Registry};
use serde_json::json;
use tokio::time::timeout;

use super::world::{World, meta, names, put, refuse_all, remove, service};

#[tokio::test(start_paused = true)]
async fn a_burst_is_published_once() {
    let (world, cluster) = World::with_cluster("east").await;
    world.settled().await;
    let before = world.revision();
    for i in 0..100 {
        put(&cluster, Kind::Service, &service(&format!("s{i}")));
    }
    world
        .until(|state| names(state, Kind::Service, "east").len() == 100)
        .await;
    world.settled().await;
    assert_eq!(world.revision(), before + 1);
}

#[tokio::test(start_paused = true)]
async fn what_never_pauses_is_published_all_the_same() {
    let (world, cluster) = World::with_cluster("east").await;
    world.settled().await;
    let before = world.revision();
    for i in 0..100 {
        put(&cluster, Kind::Service, &service(&format!("s{i}")));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    world.settled().await;
    let published = world.revision() - before;
    assert!(
        (5..=7).contains(&published),
        "{published} times in a second"
    );
}

#[tokio::test(start_paused = true)]
async fn what_changes_nothing_that_is_kept_is_not_published() {
    let (world, cluster) = World::with_cluster("east").await;
    let pod = |phase: &str| {
        json!({
            "metadata": meta("shop", "web-1"),
            "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
            "status": { "phase": phase },
        })
    };
    put(&cluster, Kind::Pod, &pod("Pending"));
    world
        .until(|state| !names(state, Kind::Pod, "east").is_empty())
        .await;
    world.settled().await;
    let before = world.revision();
    put(&cluster, Kind::Pod, &pod("Running"));
    // There and gone again within one batch.
    put(&cluster, Kind::Service, &service("web"));
    remove(&cluster, Kind::Service, "shop", "web");
    world.settled().await;
    assert_eq!(world.revision(), before);
}

#[tokio::test(start_paused = true)]
async fn a_reader_keeps_its_state_while_others_are_published() {
    let (world, cluster) = World::with_cluster("east").await;
    let held = world.state();
    put(&cluster, Kind::Service, &service("web"));
    let newer = world
        .until(|state| !names(state, Kind::Service, "east").is_empty())
        .await;
    assert!(!Arc::ptr_eq(&held, &newer));
    assert!(names(&held, Kind::Service, "east").is_empty());
}

#[tokio::test(start_paused = true)]
async fn deltas_merge_while_nobody_takes_them_and_none_is_lost() {
    let (mut world, cluster) = World::with_cluster("east").await;
    let mut deltas = world.deltas();
    let first = deltas.next().await.unwrap();
    assert!(first.before().snapshot().clusters.is_empty());
    assert!(first.after().is_complete("east"));

    let mut held = first.after().clone();
    for round in 0..3 {
        for i in 0..3 {
            put(&cluster, Kind::Service, &service(&format!("s{round}{i}")));
            world.settled().await;
        }
        let delta = deltas.next().await.unwrap();
        assert_eq!(delta.before().snapshot(), held.snapshot());
        held = delta.after().clone();
        assert_eq!(held.snapshot(), world.state().snapshot());
        let waiting = timeout(Duration::from_mins(1), deltas.next()).await;
        assert!(waiting.is_err(), "nothing else has changed");
    }
}

#[tokio::test(start_paused = true)]
async fn the_state_is_kept_though_nobody_takes_deltas() {
    let (mut world, cluster) = World::with_cluster("east").await;
    drop(world.deltas());
    put(&cluster, Kind::Service, &service("web"));
    world
        .until(|state| names(state, Kind::Service, "east") == ["web"])
        .await;
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_process_ends_the_deltas_and_every_task() {
    let (mut world, _) = World::with_cluster("east").await;
    let mut deltas = world.deltas();
    deltas.next().await.unwrap();
    let ended = async {
        while let Some(delta) = deltas.next().await {
            drop(delta);
        }
    };
    world.shutdown.token().cancel();
    let signals = futures_util::stream::pending();
    let deadline = Duration::from_secs(5);
    let (drained, ()) = tokio::join!(world.shutdown.run(signals, deadline), ended);
    drained.unwrap();
}

#[tokio::test(start_paused = true)]
async fn metrics_tell_events_steps_the_revision_and_how_stale_a_cluster_is() {
    let (world, east) = World::with_cluster("east").await;
    world.register("west");
    put(&east, Kind::Service, &service("web"));
    world
        .until(|state| state.is_complete("west") && !names(state, Kind::Service, "east").is_empty())
        .await;
    refuse_all(&east, 503);
    world.until_condition("east", "unreachable").await;
    tokio::time::sleep(Duration::from_secs(90)).await;

    let mut registry = Registry::with_prefix("ferromesh");
    world.handle.register(&mut registry);
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    let value = |line: &str| -> f64 {
        let found = text.lines().find_map(|it| it.strip_prefix(line));
        let found = found.unwrap_or_else(|| panic!("{line} is not in {text}"));
        found.trim().parse().unwrap()
    };
    let close = |value: f64, expected: f64, by: f64| (value - expected).abs() < by;
    let seen = value("ferromesh_mirror_events_total{kind=\"Service\",event=\"present\"}");
    assert!(close(seen, 1.0, 0.5), "{seen}");
    assert!(value("ferromesh_mirror_step_duration_seconds_count") >= 1.0);
    assert!(value("ferromesh_mirror_revision") >= 1.0);
    let stale = value("ferromesh_mirror_cluster_stale_seconds{cluster=\"east\"}");
    assert!(close(stale, 90.0, 15.0), "{stale}");
    assert!(value("ferromesh_mirror_cluster_stale_seconds{cluster=\"west\"}") < 1.0);
}
