//! Death at any point, and everything at once.

use std::collections::BTreeMap;

use ferromesh_ca::bundle::RootId;
use ferromesh_ca::cacerts::Found;
use ferromesh_hands::state::{Obstacle, Standing};
use k8s_openapi::ByteString;
use proptest::prelude::*;

use super::world::{ROOTS, World, content, days, entries};

/// Every path on which each look is followed by death after none, one, or all of its writes, and the
/// answer comes at any moment, ends in the same place, and `cacerts` is never away in between.
#[test]
fn death_after_any_write_leads_to_the_same_end() {
    fn explore(world: &World, depth: usize, paths: &mut usize) {
        if depth == 0 {
            let mut world = world.clone();
            assert_eq!(world.settle().standing, Standing::Stored);
            *paths += 1;
            return;
        }
        let all = world.decide().actions.len();
        for writes in 0..=all {
            for answers in [false, true] {
                let mut next = world.clone();
                let had = next.cacerts.is_some();
                next.step(writes);
                let was_answered = answers && next.answer();
                if answers != was_answered || (writes == 0 && !was_answered && all > 0) {
                    // The same as another path, one look shorter.
                    continue;
                }
                assert!(!had || next.cacerts.is_some(), "cacerts was removed");
                explore(&next, depth - 1, paths);
            }
        }
    }
    let mut paths = 0;
    explore(&World::new(), 8, &mut paths);
    // And the same while a second generation follows a first one.
    let mut world = World::settled();
    world.put_directive();
    world.change(|spec| spec.hosts.clear());
    explore(&world, 8, &mut paths);
    assert!(paths > 20, "{paths}");
}

/// Two of us at once: a lease that is held twice for a moment.
#[test]
fn two_who_do_the_same_make_one_key_and_one_cacerts() {
    let mut world = World::new();
    for _ in 0..6 {
        let first = world.decide();
        let second = world.decide();
        for action in first.actions {
            world.act(action);
        }
        for action in second.actions {
            // The second one comes too late for each of them.
            assert!(!world.act(action));
        }
        world.answer();
    }
    assert_eq!(world.decide().standing, Standing::Stored);
    assert_eq!(world.stores, 1);
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Step(usize),
    Answer,
    Refuse,
    DeleteCacerts,
    EditSigner,
    EditRoots,
    DropEntry,
    AddStray,
    DropLabels,
    DropAnnotations,
    PutForeign,
    DeleteKey,
    DeleteRequest,
    Hosts(usize),
    UseRoot(usize),
    Days(i64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (0_usize..4).prop_map(Event::Step),
        4 => Just(Event::Answer),
        1 => Just(Event::Refuse),
        1 => Just(Event::DeleteCacerts),
        1 => Just(Event::EditSigner),
        1 => Just(Event::EditRoots),
        1 => Just(Event::DropEntry),
        1 => Just(Event::AddStray),
        1 => Just(Event::DropLabels),
        1 => Just(Event::DropAnnotations),
        1 => Just(Event::PutForeign),
        1 => Just(Event::DeleteKey),
        1 => Just(Event::DeleteRequest),
        2 => (0_usize..3).prop_map(Event::Hosts),
        1 => (0_usize..2).prop_map(Event::UseRoot),
        2 => (0_i64..70).prop_map(Event::Days),
    ]
}

fn happen(world: &mut World, event: Event) {
    let now = world.now;
    match event {
        Event::Step(actions) => {
            let root = world.live_root();
            let had = world.cacerts.is_some();
            world.step(actions);
            assert!(!had || world.cacerts.is_some(), "cacerts was removed");
            if let Some(root) = root.filter(|root| *root != RootId::of(ROOTS[2].certificate())) {
                assert!(
                    world.live_root().is_none_or(|now| now == root),
                    "the root was changed under running workloads"
                );
            }
        }
        Event::Answer => drop(world.answer()),
        Event::Refuse => world.refuse("no"),
        Event::DeleteCacerts => world.cacerts = None,
        Event::EditSigner => {
            world.edit(|secret| secret.data = Some(entries(&ROOTS[2], now)));
        }
        Event::EditRoots => world.edit(|secret| {
            let roots = secret
                .data
                .as_mut()
                .and_then(|data| data.get_mut("root-cert.pem"));
            if let Some(roots) = roots {
                roots.0.extend(ROOTS[2].certificate().to_pem().into_bytes());
            }
        }),
        Event::DropEntry => world.edit(|secret| {
            if let Some(data) = &mut secret.data {
                data.remove("ca-cert.pem");
            }
        }),
        Event::AddStray => world.edit(|secret| {
            let data = secret.data.get_or_insert_default();
            data.insert("tls.crt".to_owned(), ByteString(b"x".to_vec()));
        }),
        Event::DropLabels => world.edit(|secret| secret.metadata.labels = None),
        Event::DropAnnotations => world.edit(|secret| secret.metadata.annotations = None),
        Event::PutForeign => world.put_cacerts(entries(&ROOTS[2], now), BTreeMap::new()),
        Event::DeleteKey => world.key = None,
        Event::DeleteRequest => world.request = None,
        Event::Hosts(count) => world.change(|spec| {
            spec.hosts = (0..count)
                .map(|host| format!("istiod-{host}.svc"))
                .collect();
        }),
        Event::UseRoot(index) => world.use_root(index),
        Event::Days(count) => world.now += days(count),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Whatever happens, in whatever order, with a death after any write: in the end the certificate is
    /// stored, or a person is told what to do, and nothing of anybody else was touched.
    #[test]
    fn any_history_ends_well(events in prop::collection::vec(event(), 0..30)) {
        let mut world = World::new();
        for event in events {
            happen(&mut world, event);
        }
        let before = world.cacerts.clone();
        let end = world.settle();
        match end.standing {
            Standing::Stored => {
                let root = RootId::of(world.issuer().certificate());
                prop_assert_eq!(world.live_root(), Some(root));
            }
            Standing::Blocked(Obstacle::ForeignCa(_)) => {
                let after = world.cacerts.as_ref().map(content);
                prop_assert_eq!(before.as_ref().map(content), after);
            }
            Standing::Blocked(Obstacle::RootChanged { relied, .. }) => {
                prop_assert_eq!(world.live_root(), Some(relied));
            }
            other => prop_assert!(false, "{:?}, {:?}", other, world.found().map(|found| {
                matches!(found, Found::Valid { .. })
            })),
        }
    }
}
