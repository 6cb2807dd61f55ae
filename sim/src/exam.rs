//! What takes calm to be seen: somebody who keeps changing an object, and deletions of many at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ferromesh_core::{Kind, OutputKind};
use ferromesh_crds::condition::{Status, Type};
use ferromesh_crds::meta::RELEASE_MASS_DELETE_ANNOTATION;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::dice::Dice;
use crate::people::People;
use crate::registration::registered;
use crate::replica::Replica;
use crate::rival::Rival;
use crate::truth::Truth;
use crate::world::{NAMESPACE, PEOPLE, World, input, output};

/// So long after everything is well everything is as it is to be. The longest pause between two attempts is
/// 5 minutes, and a contest is over 10 minutes after the last of them.
const PEACE: Duration = Duration::from_mins(20);
/// How often it is looked whether it is.
const LOOK: Duration = Duration::from_secs(5);

/// How long somebody keeps changing an object, and when that is known.
const QUARREL: Duration = Duration::from_mins(4);
const KNOWN: Duration = Duration::from_mins(3);
/// The most times that an object is put right in that time.
const REPAIRS: u32 = 12;

/// After so long a deletion that may go ahead has.
const DONE: Duration = Duration::from_mins(2);
/// After so long one that may not would have.
const HELD: Duration = Duration::from_secs(40);
/// So many objects may be deleted without a question.
const LEAST: usize = 50;

/// What is wrong.
type Faults = Vec<String>;

/// Lets one or none of it happen.
pub(crate) async fn sit(
    world: &Arc<World>,
    people: &mut People,
    replicas: &[Replica],
    dice: &mut Dice,
) -> Result<(), Faults> {
    match dice.below(6) {
        0 => quarrel(world, dice).await,
        1 => crowd(world, people, replicas, dice).await,
        _ => Ok(()),
    }
}

/// Waits until everything stands as it is to stand. Returns how long that has taken.
pub(crate) async fn settle(world: &World, within: Duration) -> Result<Duration, Faults> {
    let truth = Truth::of(world);
    world.watchdog.want(&truth);
    let since = Instant::now();
    loop {
        sleep(LOOK).await;
        let violations = world.journal.violations();
        if !violations.is_empty() {
            return Err(violations);
        }
        let differences = truth.differences(world);
        if differences.is_empty() {
            return Ok(since.elapsed());
        }
        if since.elapsed() > within {
            return Err(differences);
        }
    }
}

/// Waits as long as everything may take.
pub(crate) async fn settle_at_last(world: &World) -> Result<Duration, Faults> {
    settle(world, PEACE).await
}

/// Somebody changes an object whenever it was put right: that is done ever less often, and people are told.
async fn quarrel(world: &Arc<World>, dice: &mut Dice) -> Result<(), Faults> {
    let clusters: Vec<_> = registered(world).into_iter().collect();
    if clusters.is_empty() {
        return Ok(());
    }
    let cluster = dice.one(&clusters).clone();
    let Some(rival) = Rival::of(world, &cluster, dice) else {
        return Ok(());
    };
    let about = rival.to_string();
    let truth = Truth::of(world);
    let is_somebodys = !truth.parents(&rival.key()).is_empty();
    let journal = &world.journal;
    journal.note(format_args!("=== somebody quarrels about {about}"));
    let quarrel = tokio::spawn(rival.quarrel(Arc::clone(world), QUARREL));
    sleep(KNOWN).await;
    let is_told = [Kind::AccessPolicy, Kind::TrafficPolicy, Kind::VirtualMesh]
        .into_iter()
        .flat_map(|kind| world.api("").list(&input(kind)))
        .any(|object| {
            let programmed = condition(&object, Type::Programmed);
            programmed["reason"] == "Contested"
                && programmed.to_string().contains("rival keeps changing it")
        });
    // What it was changed to first was not taken back from anybody.
    let repairs = quarrel.await.unwrap_or_default().saturating_sub(1);
    journal.note(format_args!("=== it was put right {repairs} times"));
    if is_somebodys && !is_told {
        return Err(vec![format!("nobody is told of the quarrel about {about}")]);
    }
    if repairs == 0 || repairs > REPAIRS {
        return Err(vec![format!("{about} was put right {repairs} times")]);
    }
    settle_at_last(world).await.map(drop)
}

/// Many objects are to be deleted at once: because somebody has deleted what they follow from, which is
/// done, and because they have vanished, which is asked for.
async fn crowd(
    world: &Arc<World>,
    people: &mut People,
    replicas: &[Replica],
    dice: &mut Dice,
) -> Result<(), Faults> {
    let note = |what: &str| world.journal.note(format_args!("=== {what}"));
    people.register_all(world);
    let clusters: Vec<_> = world.managed().map(str::to_owned).collect();
    let crowded = dice.one(&clusters).clone();
    let before = world.api(&crowded).snapshot();
    people.crowd(world, &crowded);
    people.federate_all(world);
    note("many services, known everywhere");
    settle_at_last(world).await?;

    let stood = standing(world, false);
    People::part_all(world);
    note("the virtual mesh is deleted");
    settle(world, DONE).await?;
    let deleted = stood.saturating_sub(standing(world, false));
    note(&format!("{deleted} objects are deleted with it"));
    if deleted <= LEAST {
        return Err(vec![format!(
            "{deleted} objects are too few to tell anything"
        )]);
    }

    if dice.percent(50) {
        people.federate_all(world);
        settle_at_last(world).await?;
    }
    let found = standing(world, true);
    let api = world.api(&crowded);
    api.restore(&before);
    world.network.cut(&crowded);
    note(&format!("{crowded:?} is restored to when it had few"));
    world.watchdog.want(&Truth::of(world));
    let looks = if dice.percent(50) { 2 } else { 1 };
    for look in 0..looks {
        sleep(HELD).await;
        let stands = standing(world, true);
        let held = is_held(world, &crowded);
        if stands + LEAST < found || !held {
            return Err(vec![format!(
                "a mass delete: {stands} of {found} objects are left, it is held: {held}"
            )]);
        }
        if look + 1 < looks {
            for replica in replicas {
                note(&format!("killed: {:?}", replica.kill()));
            }
        }
    }
    let violations = world.journal.violations();
    if !violations.is_empty() {
        return Err(violations);
    }
    release(world, &clusters).await?;
    settle_at_last(world).await?;
    let left = standing(world, true);
    note(&format!("{left} of {found} are left"));
    Ok(())
}

/// Releases what is held, again and again until nothing is.
async fn release(world: &World, clusters: &[String]) -> Result<(), Faults> {
    let since = Instant::now();
    let mut released = BTreeMap::new();
    loop {
        let held: Vec<_> = clusters.iter().filter(|it| is_held(world, it)).collect();
        if held.is_empty() && since.elapsed() > HELD {
            return Ok(());
        }
        if since.elapsed() > PEACE {
            return Err(vec![format!("still held: {held:?}, released {released:?}")]);
        }
        for cluster in held {
            let object = cluster_object(world, cluster);
            let told = condition(&object, Type::MassDeleteHeld);
            let told = told["message"].as_str().unwrap_or_default();
            let count = told.split(' ').next().unwrap_or_default().to_owned();
            let kind = input(Kind::KubernetesCluster);
            world
                .api("")
                .edit(PEOPLE, &kind, NAMESPACE, cluster, |object| {
                    let annotations = json!({ RELEASE_MASS_DELETE_ANNOTATION: count });
                    object["metadata"]["annotations"] = annotations;
                });
            let journal = &world.journal;
            journal.note(format_args!("=== people release {count} in {cluster}"));
            *released.entry(cluster.clone()).or_insert(0) += 1;
        }
        sleep(LOOK).await;
    }
}

/// How many objects of ours stand: those that were found, or those that were made in the clusters.
fn standing(world: &World, found: bool) -> usize {
    let kinds = if found {
        &OutputKind::DISCOVERED[..]
    } else {
        &OutputKind::PUSHED[..]
    };
    let places = world.places().filter(|place| place.is_empty() == found);
    let objects = |place| {
        kinds
            .iter()
            .map(move |kind| world.api(place).list(&output(*kind)))
    };
    places.flat_map(objects).map(|objects| objects.len()).sum()
}

fn is_held(world: &World, cluster: &str) -> bool {
    let object = cluster_object(world, cluster);
    condition(&object, Type::MassDeleteHeld)["status"] == Status::True.as_str()
}

fn cluster_object(world: &World, cluster: &str) -> Value {
    let kind = input(Kind::KubernetesCluster);
    let object = world.api("").get(&kind, NAMESPACE, cluster);
    object.unwrap_or_default()
}

/// A condition of an object; null if it has none.
fn condition(object: &Value, kind: Type) -> Value {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.into_iter().flatten();
    let mut found = found.filter(|it| it["type"] == kind.as_str());
    found.next().cloned().unwrap_or_default()
}
