//! Whatever happens, in the end the cluster is as it is wanted.

use std::time::Duration;

use ferromesh_apply::{Desired, ObjectId};
use ferromesh_testkit::fakeapi::{Fault, Verb};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::bench::{Bench, NS, entry, labelled, route, routes, scope, served};

/// Few objects, so that much happens to each.
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

#[derive(Clone, Debug)]
enum Step {
    Want(Object, u8, bool),
    Unwant(Object),
    /// The source changes and nobody tells; the next restart or telling must find out.
    Complete,
    /// Somebody else writes, deletes, disowns or hands over.
    Edit(Object, u8),
    Add(Object),
    Remove(Object),
    Disown(Object),
    HandOver(Object),
    ForgetManagers(Object),
    /// Finalizers keep it, or no longer.
    Keep(Object, bool),
    /// Nobody can tell of it, or somebody can again.
    Doubt(Object, bool),
    /// The next requests of a verb meet a fault.
    Trouble(Verb, usize, Failure),
    BreakWatches,
    Compact,
    Restart,
    Pass(u8),
}

#[derive(Clone, Debug)]
enum Failure {
    Refuse(u16),
    Break,
    LoseAnswer,
    Hang,
}

#[derive(Clone, Debug)]
struct Object(bool, usize);

impl Object {
    fn id(&self) -> ObjectId {
        if self.0 {
            route(NAMES[self.1])
        } else {
            entry(NAMES[self.1])
        }
    }
}

fn object() -> impl Strategy<Value = Object> {
    (any::<bool>(), 0..NAMES.len()).prop_map(|(kind, name)| Object(kind, name))
}

fn step() -> impl Strategy<Value = Step> {
    let verb = prop::sample::select(vec![
        Verb::Apply,
        Verb::Merge,
        Verb::Delete,
        Verb::Get,
        Verb::List,
        Verb::Watch,
        Verb::Discover,
    ]);
    let failure = prop_oneof![
        prop::sample::select(vec![403, 404, 409, 422, 429, 500, 503]).prop_map(Failure::Refuse),
        Just(Failure::Break),
        Just(Failure::LoseAnswer),
        Just(Failure::Hang),
    ];
    prop_oneof![
        6 => (object(), 0..4_u8, any::<bool>()).prop_map(|(object, value, extra)| Step::Want(object, value, extra)),
        3 => object().prop_map(Step::Unwant),
        1 => Just(Step::Complete),
        3 => (object(), 0..4_u8).prop_map(|(object, value)| Step::Edit(object, value)),
        1 => object().prop_map(Step::Add),
        2 => object().prop_map(Step::Remove),
        1 => object().prop_map(Step::Disown),
        1 => object().prop_map(Step::HandOver),
        1 => object().prop_map(Step::ForgetManagers),
        2 => (object(), any::<bool>()).prop_map(|(object, is_kept)| Step::Keep(object, is_kept)),
        2 => (object(), any::<bool>()).prop_map(|(object, is_unknown)| Step::Doubt(object, is_unknown)),
        3 => (verb, 1..4_usize, failure).prop_map(|(verb, count, failure)| Step::Trouble(verb, count, failure)),
        1 => Just(Step::BreakWatches),
        1 => Just(Step::Compact),
        1 => Just(Step::Restart),
        4 => (0..60_u8).prop_map(Step::Pass),
    ]
}

fn desired(value: u8, has_extra: bool) -> Desired {
    let mut spec =
        json!({ "hosts": [format!("h{value}")], "ports": [{ "name": "p", "number": value }] });
    if has_extra {
        spec["nested"] = json!({ "more": { "value": value } });
    }
    Desired {
        rank: value,
        spec,
        ..Desired::default()
    }
}

fn edit(bench: &Bench, id: &ObjectId, edit: impl FnOnce(&mut Value)) {
    let kind = kind_of(id);
    bench.api.edit("user", &kind, NS, &id.name, edit);
}

fn kind_of(id: &ObjectId) -> ferromesh_testkit::fakeapi::Kind {
    let kind = scope().kinds.into_iter().find(|kind| kind.name == id.kind);
    served(&kind.unwrap_or_else(routes))
}

async fn take(step: Step, mut bench: Bench) -> Bench {
    match step {
        Step::Want(object, value, extra) => bench.want(&object.id(), desired(value, extra)),
        Step::Unwant(object) => bench.unwant(&object.id()),
        Step::Complete => bench.handle.complete(),
        Step::Edit(object, value) => edit(&bench, &object.id(), |object| match value {
            0 => object["spec"]["hosts"] = json!(["user's"]),
            1 => object["spec"]["added"] = json!({ "by": "user" }),
            2 => {
                object["spec"] =
                    json!({ "ports": [{ "name": "p", "number": 9 }, { "name": "q" }] });
            }
            _ => object["status"] = json!({ "count": value }),
        }),
        Step::Add(object) => {
            let id = object.id();
            let spec = json!({ "hosts": ["orphan"], "orphan": true });
            if bench.stored(&id).is_none() {
                bench
                    .api
                    .put("user", &kind_of(&id), &labelled(&id.name, &spec));
            }
        }
        Step::Remove(object) => bench
            .api
            .remove(&kind_of(&object.id()), NS, &object.id().name),
        Step::Disown(object) => edit(&bench, &object.id(), |object| {
            object["metadata"]["labels"] = Value::Null;
            object["spec"]["disowned"] = json!(true);
        }),
        Step::HandOver(object) => edit(&bench, &object.id(), |object| {
            object["metadata"]["labels"] = labelled("", &Value::Null)["metadata"]["labels"].clone();
        }),
        Step::ForgetManagers(object) => {
            bench
                .api
                .forget_managers(&kind_of(&object.id()), NS, &object.id().name);
        }
        Step::Keep(object, is_kept) => edit(&bench, &object.id(), |object| {
            object["metadata"]["finalizers"] = if is_kept {
                json!(["them/wait"])
            } else {
                json!([])
            };
        }),
        Step::Doubt(object, is_unknown) => {
            bench.wanted.set_unknown(&object.id(), is_unknown);
            bench.handle.want([object.id()]);
        }
        Step::Trouble(verb, count, failure) => {
            let fault = match failure {
                Failure::Refuse(code) => Fault::refuse(code),
                Failure::Break => Fault::Break,
                Failure::LoseAnswer => Fault::LoseAnswer,
                Failure::Hang => Fault::Hang,
            };
            bench
                .api
                .fail_times(count, fault, move |request| request.verb == verb);
        }
        Step::BreakWatches => bench.api.end_watches(),
        Step::Compact => bench.api.compact(),
        Step::Restart => {
            bench = bench.restarted();
            bench.handle.want(bench.wanted.ids());
        }
        Step::Pass(seconds) => bench.pass(Duration::from_secs(seconds.into())).await,
    }
    bench
}

fn is_disowned(object: &Value) -> bool {
    object["metadata"]["labels"].is_null() || object["spec"]["disowned"] == json!(true)
}

async fn run(steps: Vec<Step>) {
    let mut bench = Bench::new();
    let mut foreign: Vec<(ObjectId, Value)> = Vec::new();
    for step in steps {
        // What is not ours before a step of ours is the same after it.
        if let Step::HandOver(object)
        | Step::Remove(object)
        | Step::Edit(object, _)
        | Step::ForgetManagers(object)
        | Step::Keep(object, _)
        | Step::Disown(object) = &step
        {
            let id = object.id();
            foreign.retain(|(foreign, _)| *foreign != id);
        }
        let disowned = match &step {
            Step::Disown(object) => Some(object.id()),
            _ => None,
        };
        bench = take(step, bench).await;
        if let Some(id) = disowned
            && let Some(object) = bench.stored(&id).filter(is_disowned)
        {
            foreign.push((id, object));
        }
        for (id, object) in &foreign {
            assert_eq!(bench.stored(id).as_ref(), Some(object), "{id} is not ours");
        }
    }
    for name in NAMES {
        for id in [route(name), entry(name)] {
            edit(&bench, &id, |object| {
                object["metadata"]["finalizers"] = json!([]);
            });
            bench.wanted.set_unknown(&id, false);
        }
    }
    for (id, _) in foreign {
        bench.api.remove(&kind_of(&id), NS, &id.name);
    }
    for kind in scope().kinds {
        for object in bench.api.list(&served(&kind)) {
            if object["metadata"]["labels"].is_null() {
                let name = object["metadata"]["name"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned();
                bench.api.remove(&served(&kind), NS, &name);
            }
        }
    }
    // Of what stands the applier knows by itself that nobody could tell.
    bench.handle.want(bench.wanted.ids());
    bench.handle.complete();
    bench
        .until("the cluster is as it is wanted", Bench::is_equal)
        .await;

    // And then there is peace.
    bench.pass(Duration::from_hours(1)).await;
    bench.api.forget_requests();
    bench.pass(Duration::from_hours(1)).await;
    assert!(bench.is_equal());
    let writes = bench.api.writes();
    assert!(writes.is_empty(), "{writes:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_history_ends_with_what_is_wanted(steps in prop::collection::vec(step(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(run(steps));
    }
}
