//! What must never happen, asked of each request at the moment when an API server does what it asks for.
//!
//! - Whoever writes holds the lease, as the API server of the management cluster has it at that moment.
//! - What is deleted has been unwanted at some moment of the last minutes.
//! - Who deletes has seen complete lists of everything that he works from.
//! - What is not ours stays as it is.
//! - Nobody writes one object again and again, whatever comes of it.
//! - A root of trust that was made is not made anew.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Mutex;
use std::time::Duration;

use ferromesh_core::{Kind, OutputKey, OutputKind};
use ferromesh_crds::meta;
use ferromesh_testkit::fakeapi::{FakeApi, Request, Verb};
use serde_json::Value;
use tokio::time::Instant;

use crate::network::Caller;
use crate::truth::Truth;
use crate::world::{LEASE, NAMESPACE, World, input, inputs, leases, output};

/// What a replica knows may be as old as this: the longest partition, the time after which a watch that
/// says nothing is given up, that for which a list is kept though watches break, and what follows until it
/// has been read again.
const STALE: Duration = Duration::from_mins(6);

/// Whoever has lost the lease to somebody who did not wait for it to expire may write until he asks again.
const UNAWARE: Duration = Duration::from_secs(11);

/// So often an object may be written in so long a time: whoever tries again waits ever longer.
const OFTEN: usize = 100;
const OF_LATE: Duration = Duration::from_mins(5);

#[derive(Default)]
pub(crate) struct Watchdog {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Who holds the lease.
    holder: String,
    /// Who may not know yet that it was taken from him, and until when.
    robbed: BTreeMap<String, Instant>,
    /// Since when an object has been wanted.
    wanted: BTreeMap<OutputKey, Instant>,
    /// What each life of a replica has listed: the cluster and the plural.
    listed: BTreeMap<String, BTreeSet<(String, String)>>,
    /// When a life of a replica has written an object of late.
    written: BTreeMap<(String, String), VecDeque<Instant>>,
}

/// What was seen of the object of a request before the request was taken in, and just after.
pub(crate) struct Sight {
    request: Request,
    before: Option<Value>,
    after: Option<Value>,
}

const UNPOISONED: &str = "nobody panics while holding this lock";

impl Sight {
    pub(crate) fn verb(&self) -> Verb {
        self.request.verb
    }

    /// Looks when the request has been taken in, and nobody else since. Its answer may take its time.
    pub(crate) fn look_again(&mut self, world: &World, place: &str) {
        self.after = object(world, place, &self.request);
    }

    fn is_about_leases(&self) -> bool {
        self.request.plural == "leases"
    }
}

impl Watchdog {
    /// What is wanted from now on.
    pub(crate) fn want(&self, truth: &Truth) {
        let now = Instant::now();
        let before = std::mem::take(&mut self.inner.lock().expect(UNPOISONED).wanted);
        let before = |key: &OutputKey| before.get(key).copied().filter(|_| truth.is_whole());
        let since = |key: &OutputKey| before(key).unwrap_or(now);
        let wanted = truth.outputs().keys();
        let wanted = wanted.map(|key| (key.clone(), since(key))).collect();
        self.inner.lock().expect(UNPOISONED).wanted = wanted;
    }

    /// People have changed the lease, or gone back to an older one.
    pub(crate) fn robbed(&self, management: &FakeApi) {
        let holder = holder(management);
        let mut inner = self.inner.lock().expect(UNPOISONED);
        if inner.holder != holder {
            let robbed = std::mem::replace(&mut inner.holder, holder);
            inner.robbed.insert(robbed, Instant::now() + UNAWARE);
        }
    }

    /// Looks before a request is answered.
    pub(crate) fn before(
        &self,
        world: &World,
        caller: &Caller,
        place: &str,
        request: Request,
    ) -> Sight {
        let sight = Sight {
            before: object(world, place, &request),
            after: None,
            request,
        };
        if sight.request.verb.is_write() && !sight.is_about_leases() {
            self.expect_holder(world, caller, place, &sight.request);
            self.expect_patience(world, caller, place, &sight.request);
        }
        sight
    }

    fn expect_patience(&self, world: &World, caller: &Caller, place: &str, request: &Request) {
        if request.name.is_empty() {
            return;
        }
        let said = said(caller, place, request);
        let now = Instant::now();
        let mut inner = self.inner.lock().expect(UNPOISONED);
        let path = format!("{place} {}", path(request));
        let written = inner.written.entry((caller.identity.clone(), path));
        let written = written.or_default();
        written.push_back(now);
        while written.front().is_some_and(|at| *at + OF_LATE < now) {
            written.pop_front();
        }
        if written.len() > OFTEN {
            let times = written.len();
            let late = OF_LATE.as_secs();
            world
                .journal
                .violation(format_args!("{said}: {times} times in {late} s"));
        }
    }

    fn expect_holder(&self, world: &World, caller: &Caller, place: &str, request: &Request) {
        let inner = self.inner.lock().expect(UNPOISONED);
        let unaware = inner.robbed.get(&caller.identity);
        let is_unaware = unaware.is_some_and(|until| Instant::now() < *until);
        if inner.holder != caller.identity && !is_unaware {
            let said = said(caller, place, request);
            let holder = &inner.holder;
            world
                .journal
                .violation(format_args!("{said}, and {holder:?} holds the lease"));
        }
    }

    /// Judges what has become of a request; there is no code where there is no answer.
    pub(crate) fn after(
        &self,
        world: &World,
        caller: &Caller,
        place: &str,
        sight: &Sight,
        code: Option<u16>,
    ) {
        let Sight {
            request,
            before,
            after,
        } = sight;
        let said = said(caller, place, request);
        let told = code.map_or_else(|| "no answer".to_owned(), |code| code.to_string());
        world.journal.note(format_args!("{said}: {told}"));
        if sight.is_about_leases() && request.verb.is_write() {
            let holder = holder(world.api(""));
            let mut inner = self.inner.lock().expect(UNPOISONED);
            if inner.holder != holder {
                world.journal.note(format_args!("the lease: {holder:?}"));
                inner.holder = holder;
            }
            return;
        }
        let is_done = code.is_some_and(|code| code < 300);
        if request.verb == Verb::List && is_done {
            let mut inner = self.inner.lock().expect(UNPOISONED);
            let listed = inner.listed.entry(caller.identity.clone()).or_default();
            listed.insert((place.to_owned(), request.plural.clone()));
        }
        let Some(before) = before else { return };
        if after.as_ref() == Some(before) {
            return;
        }
        let is_root = |it: &Value| place.is_empty() && it["data"][meta::ROOT_KEY_KEY].is_string();
        let key = |it: &Value| it["data"][meta::ROOT_KEY_KEY].clone();
        if is_root(before) && after.as_ref().map(key) != Some(key(before)) {
            world
                .journal
                .violation(format_args!("{said}: a root is made anew"));
        }
        if !is_ours(place, &request.plural, before, request) {
            world
                .journal
                .violation(format_args!("{said}: it is not ours: {before}"));
        }
        if after.is_none() && request.verb == Verb::Delete {
            self.expect_unwanted(world, caller, place, request, before);
        }
    }

    fn expect_unwanted(
        &self,
        world: &World,
        caller: &Caller,
        place: &str,
        request: &Request,
        object: &Value,
    ) {
        let kinds = if place.is_empty() {
            &OutputKind::DISCOVERED[..]
        } else {
            &OutputKind::PUSHED[..]
        };
        let kind = kinds.iter().find(|kind| kind.plural() == request.plural);
        let Some(kind) = kind else { return };
        let said = said(caller, place, request);
        // A cluster may be registered under another name, too.
        let label = &object["metadata"]["labels"][meta::CLUSTER_LABEL];
        let cluster = label.as_str().filter(|_| !place.is_empty());
        let key = OutputKey {
            cluster: cluster.unwrap_or(place).into(),
            kind: *kind,
            namespace: request.namespace.as_str().into(),
            name: request.name.as_str().into(),
        };
        let inner = self.inner.lock().expect(UNPOISONED);
        let since = inner.wanted.get(&key).map(Instant::elapsed);
        if let Some(since) = since.filter(|since| *since > STALE) {
            let seconds = since.as_secs();
            world
                .journal
                .violation(format_args!("{said}: it has been wanted for {seconds} s"));
        }
        let listed = inner.listed.get(&caller.identity);
        let needed = |place: &str, kind: Kind| (place.to_owned(), input(kind).plural().to_owned());
        let mut needs: Vec<_> = inputs("")
            .into_iter()
            .map(|kind| needed("", kind))
            .collect();
        if !place.is_empty() {
            needs.extend(inputs(place).into_iter().map(|kind| needed(place, kind)));
        }
        needs.extend(
            kinds
                .iter()
                .map(|kind| (place.to_owned(), output(*kind).plural().to_owned())),
        );
        needs.retain(|need| listed.is_none_or(|listed| !listed.contains(need)));
        if let Some((cluster, plural)) = needs.first() {
            world.journal.violation(format_args!(
                "{said}: {plural} of {cluster:?} were never listed"
            ));
        }
    }
}

/// The object that a request would write.
fn object(world: &World, place: &str, request: &Request) -> Option<Value> {
    let kind = world.kind_of(place, &request.plural);
    let kind = kind.filter(|_| request.verb.is_write() && !request.name.is_empty())?;
    let api = world.api(place);
    api.get(kind, &request.namespace, &request.name)
}

/// Whether a replica may change what stands there.
fn is_ours(place: &str, plural: &str, object: &Value, request: &Request) -> bool {
    let has = |label: &str| object["metadata"]["labels"][label] == NAMESPACE;
    let is_output =
        |kinds: &[ferromesh_core::OutputKind]| kinds.iter().any(|kind| kind.plural() == plural);
    let is_status = path(request).ends_with("/status");
    match place {
        "" if is_status => true,
        "" if is_output(&OutputKind::DISCOVERED) => has(meta::DISCOVERY_OWNER_LABEL),
        // Roots and credentials, and the annotation that releases a mass delete.
        "" => matches!(plural, "secrets" | "kubernetesclusters"),
        _ if is_output(&OutputKind::PUSHED) => has(meta::NETWORKING_OWNER_LABEL),
        _ => matches!(plural, "secrets" | "certificaterequests"),
    }
}

fn holder(management: &FakeApi) -> String {
    let lease = management.get(&leases(), NAMESPACE, LEASE);
    let holder = lease.map(|lease| lease["spec"]["holderIdentity"].clone());
    let holder = holder.as_ref().and_then(Value::as_str);
    holder.unwrap_or_default().to_owned()
}

fn path(request: &Request) -> &str {
    request.uri.split('?').next().unwrap_or_default()
}

fn said(caller: &Caller, place: &str, request: &Request) -> String {
    let path = path(request);
    let place = if place.is_empty() {
        "management"
    } else {
        place
    };
    format!("{} {place} {:?} {path}", caller.identity, request.verb)
}
