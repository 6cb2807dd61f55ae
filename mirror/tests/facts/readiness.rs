//! What is waited for, by name.

use ferromesh_core::Kind;
use ferromesh_testkit::fakeapi::Fault;

use super::world::{World, about, refuse_all};

#[tokio::test(start_paused = true)]
async fn blockers_are_named_until_they_are_listed() {
    let unfollowed = World::empty();
    let east = unfollowed.register("east");
    let management = unfollowed.management.clone();
    management.fail(Fault::Hang, about(Kind::TrafficPolicy));
    east.fail(Fault::Hang, about(Kind::Pod));
    let world = unfollowed.follow();
    assert!(
        world
            .handle
            .readiness()
            .contains(&"management: Secret not listed".to_owned()),
        "nothing has been listed yet"
    );
    world
        .until(|state| state.unsynced("").count() == 1 && state.unsynced("east").count() == 1)
        .await;
    let blockers = world.handle.readiness();
    assert_eq!(
        blockers,
        [
            "management: TrafficPolicy not listed",
            "east: Pod not listed"
        ]
    );
    management.heal();
    east.heal();
    world
        .until(|state| state.is_complete("") && state.is_complete("east"))
        .await;
    assert!(world.handle.readiness().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_cannot_be_listed_says_why() {
    let unfollowed = World::empty();
    let management = &unfollowed.management;
    management.fail(Fault::refuse(403), about(Kind::AccessPolicy));
    let world = unfollowed.follow();
    world.until(|state| state.unsynced("").count() == 1).await;
    let [blocker] = &*world.handle.readiness() else {
        panic!("one kind is not listed");
    };
    assert!(
        blocker.starts_with("management: AccessPolicy not listed: the API server refused "),
        "{blocker}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_marked_as_failing_blocks_nothing() {
    let unfollowed = World::empty();
    let east = unfollowed.register("east");
    east.fail(Fault::refuse(503), |_| true);
    let world = unfollowed.follow();
    world.until(|state| state.is_complete("")).await;
    world.until_condition("east", "unreachable").await;
    assert!(world.handle.readiness().is_empty());
    assert!(!world.state().is_complete("east"));

    east.heal();
    world.until(|state| state.is_complete("east")).await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_registered_later_blocks_again() {
    let world = World::new().await;
    assert!(world.handle.readiness().is_empty());
    let east = world.register("east");
    east.fail(Fault::Hang, about(Kind::Pod));
    world
        .until(|state| state.unsynced("east").count() == 1)
        .await;
    assert_eq!(world.handle.readiness(), ["east: Pod not listed"]);
    refuse_all(&east, 401);
    world.until_condition("east", "credential_rejected").await;
    assert!(world.handle.readiness().is_empty());
}
