//! The whole of it: management cluster, managed clusters, time and trouble.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ferromesh_ca::bundle::RootId;
use ferromesh_ca::cacerts::Found;
use ferromesh_controller::certs::{
    CertificateController, Cluster, Inputs, RootSource, TrustReport, TrustReports, Wanted,
    WantedSet,
};
use ferromesh_crds::condition::{Reason, Status};
use ferromesh_runtime::backoff::Jitter;
use ferromesh_testkit::fakeapi::{FakeApi, Fault, Request};
use jiff::SignedDuration;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::fleet::{
    Clock, ISTIO, NAMESPACE, api, cacerts, certificates, csr, found, mesh, new_key, other_root,
    put_certificate, put_request, reference, requests, root_secret, secrets, start, wanted,
};

/// Longer than any of them should take on the clock of the test.
const LONG: Duration = Duration::from_hours(1);

struct Fleet {
    management: FakeApi,
    managed: BTreeMap<String, FakeApi>,
    clock: Clock,
    wanted: watch::Sender<Option<Arc<WantedSet>>>,
    clusters: watch::Sender<Arc<BTreeMap<String, Cluster>>>,
    reports: watch::Receiver<TrustReports>,
    cancel: CancellationToken,
    task: JoinHandle<()>,
}

impl Fleet {
    /// Clusters with a certificate each, by name.
    fn new(names: &[&str]) -> Self {
        Self::with(names, &api(), &Clock::new(), |_| {})
    }

    fn with(
        names: &[&str],
        management: &FakeApi,
        clock: &Clock,
        prepare: impl Fn(&BTreeMap<String, FakeApi>),
    ) -> Self {
        let managed: BTreeMap<String, FakeApi> = names
            .iter()
            .map(|name| ((*name).to_owned(), api()))
            .collect();
        for (name, api) in &managed {
            put_certificate(api, &wanted(name));
        }
        prepare(&managed);
        let set: WantedSet = names.iter().map(|name| wanted(name)).collect();
        Self::run(management.clone(), managed, clock.clone(), set)
    }

    fn run(
        management: FakeApi,
        managed: BTreeMap<String, FakeApi>,
        clock: Clock,
        set: WantedSet,
    ) -> Self {
        let clusters = managed
            .iter()
            .map(|(name, api)| (name.clone(), cluster(api, 1)))
            .collect();
        let (wanted, wanted_receiver) = watch::channel(Some(Arc::new(set)));
        let (clusters, clusters_receiver) = watch::channel(Arc::new(clusters));
        let (sender, reports) = watch::channel(TrustReports::new());
        let cancel = CancellationToken::new();
        let controller = CertificateController::new(
            management.client(),
            NAMESPACE.to_owned(),
            clock.sources(),
            Jitter::seeded(1),
        );
        let inputs = Inputs {
            wanted: wanted_receiver,
            clusters: clusters_receiver,
        };
        let task = tokio::spawn(controller.run(inputs, sender, cancel.clone()));
        Self {
            management,
            managed,
            clock,
            wanted,
            clusters,
            reports,
            cancel,
            task,
        }
    }

    fn api(&self, cluster: &str) -> &FakeApi {
        &self.managed[cluster]
    }

    /// Waits for a report on the mesh of a cluster.
    async fn until(&mut self, cluster: &str, is_it: impl Fn(&TrustReport) -> bool) -> TrustReport {
        let of = |reports: &TrustReports| {
            let mut of_cluster = reports.iter().filter(|(key, _)| key.cluster == cluster);
            of_cluster.next().map(|(_, report)| report.clone())
        };
        let waited = self
            .reports
            .wait_for(|reports| of(reports).is_some_and(|report| is_it(&report)));
        let waited = tokio::time::timeout(LONG, waited).await;
        let found = waited.ok().and_then(|reports| of(&reports.unwrap()));
        found.unwrap_or_else(|| panic!("{:?}", self.reports.borrow()))
    }

    async fn ready(&mut self, cluster: &str) -> TrustReport {
        self.until(cluster, |report| report.state == Status::True)
            .await
    }

    fn root(&self, cluster: &str) -> RootId {
        match found(self.api(cluster), start()) {
            Some(Found::Valid { signer, .. }) => signer.root_id(),
            other => panic!("{other:?}"),
        }
    }

    fn want(&self, set: impl IntoIterator<Item = Wanted>) {
        let set: WantedSet = set.into_iter().collect();
        self.wanted.send_replace(Some(Arc::new(set)));
    }

    async fn stop(self) {
        self.cancel.cancel();
        self.task.await.unwrap();
    }
}

fn cluster(api: &FakeApi, credential: u8) -> Cluster {
    Cluster {
        client: api.client(),
        connection: u64::from(credential),
    }
}

#[tokio::test(start_paused = true)]
async fn the_meshes_of_a_virtual_mesh_get_intermediates_of_one_root() {
    let mut fleet = Fleet::new(&["cluster-1", "cluster-2"]);
    for cluster in ["cluster-1", "cluster-2"] {
        let report = fleet.ready(cluster).await;
        assert_eq!(report.reason, Reason::Verified);
        assert!(report.not_after.unwrap() > start());
        let certificate = fleet
            .api(cluster)
            .get(&certificates(), NAMESPACE, &mesh(cluster))
            .unwrap();
        assert_eq!(certificate["status"]["state"], "FINISHED");
    }
    assert_eq!(fleet.root("cluster-1"), fleet.root("cluster-2"));
    let keys = ["cluster-1", "cluster-2"]
        .map(|cluster| cacerts(fleet.api(cluster)).unwrap()["data"]["ca-key.pem"].clone());
    assert_ne!(keys[0], keys[1]);
    fleet.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_changes_nothing() {
    let mut fleet = Fleet::new(&["cluster-1"]);
    fleet.ready("cluster-1").await;
    let (management, managed) = (fleet.management.clone(), fleet.managed.clone());
    fleet.stop().await;
    for api in managed.values().chain([&management]) {
        api.forget_requests();
    }
    let set = [wanted("cluster-1")].into_iter().collect();
    let mut again = Fleet::run(management.clone(), managed.clone(), Clock::new(), set);
    again.ready("cluster-1").await;
    again.stop().await;
    for api in managed.values().chain([&management]) {
        assert!(api.writes().is_empty(), "{:?}", api.writes());
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_hangs_delays_no_other() {
    let mut fleet = Fleet::with(
        &["cluster-1", "cluster-2"],
        &api(),
        &Clock::new(),
        |managed| managed["cluster-1"].fail(Fault::Hang, |_| true),
    );
    let began = Instant::now();
    fleet.ready("cluster-2").await;
    assert!(began.elapsed() < Duration::from_secs(10));
    let away = fleet
        .until("cluster-1", |report| report.state == Status::Unknown)
        .await;
    assert_eq!(away.reason, Reason::ClusterUnreachable);
    // It comes back.
    fleet.api("cluster-1").heal();
    fleet.ready("cluster-1").await;
    assert_eq!(fleet.root("cluster-1"), fleet.root("cluster-2"));
    fleet.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_without_a_connection_is_told_and_followed_up() {
    let mut fleet = Fleet::new(&["cluster-1"]);
    let at_first = fleet.ready("cluster-1").await;
    fleet.clusters.send_replace(Arc::default());
    let report = fleet
        .until("cluster-1", |report| report.state == Status::Unknown)
        .await;
    assert_eq!(report.reason, Reason::ClusterUnreachable);
    assert_eq!(report.not_after, at_first.not_after);
    // Another credential.
    let clusters = [("cluster-1".to_owned(), cluster(fleet.api("cluster-1"), 2))];
    fleet.clusters.send_replace(Arc::new(clusters.into()));
    fleet.ready("cluster-1").await;
    fleet.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_done_before_it_is_known_what_is_wanted() {
    let fleet = Fleet::new(&["cluster-1"]);
    fleet.wanted.send_replace(None);
    tokio::time::sleep(LONG).await;
    assert!(fleet.api("cluster-1").writes().is_empty());
    assert!(fleet.management.writes().is_empty());
    fleet.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_mesh_that_leaves_keeps_its_certificate() {
    let mut fleet = Fleet::new(&["cluster-1", "cluster-2"]);
    fleet.ready("cluster-1").await;
    fleet.ready("cluster-2").await;
    let before = cacerts(fleet.api("cluster-1"));
    fleet.want([wanted("cluster-2")]);
    fleet
        .api("cluster-1")
        .remove(&certificates(), NAMESPACE, &mesh("cluster-1"));
    let gone = fleet.reports.wait_for(|reports| reports.len() == 1);
    drop(tokio::time::timeout(LONG, gone).await.unwrap().unwrap());
    tokio::time::sleep(LONG).await;
    assert_eq!(cacerts(fleet.api("cluster-1")), before);
    assert_eq!(fleet.reports.borrow().len(), 1);
    fleet.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_provided_root_takes_effect_as_soon_as_it_is_there() {
    let clock = Clock::new();
    let mut fleet = Fleet::with(&["cluster-1"], &api(), &clock, |_| {});
    fleet.want([Wanted {
        root: RootSource::Provided(reference(NAMESPACE, "corp")),
        ..wanted("cluster-1")
    }]);
    let missing = fleet
        .until("cluster-1", |report| {
            report.message.contains("gloo-mesh/corp")
        })
        .await;
    assert_eq!(missing.reason, Reason::IssuanceFailed);
    // Until all is quiet.
    tokio::time::sleep(Duration::from_mins(1)).await;
    let root = other_root(&clock).await;
    let began = Instant::now();
    let secret = root_secret("corp", &root);
    fleet.management.put("user", &secrets(), &secret);
    fleet.ready("cluster-1").await;
    assert!(began.elapsed() < Duration::from_mins(1));
    assert_eq!(fleet.root("cluster-1"), root.id());
    fleet.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_cacerts_is_put_right_within_seconds() {
    let mut fleet = Fleet::new(&["cluster-1"]);
    fleet.ready("cluster-1").await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let before = cacerts(fleet.api("cluster-1")).unwrap()["data"].clone();
    fleet
        .api("cluster-1")
        .edit("kubectl-edit", &secrets(), ISTIO, "cacerts", |secret| {
            secret["data"]["ca-cert.pem"] = json!("eA==");
        });
    let began = Instant::now();
    let repaired = fleet
        .until("cluster-1", |report| {
            report.message.contains("kubectl-edit")
        })
        .await;
    assert_eq!(repaired.state, Status::True);
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(cacerts(fleet.api("cluster-1")).unwrap()["data"], before);
    fleet.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_is_not_tried_more_often_because_something_else_changes() {
    let is_cacerts = |request: &Request| {
        request.plural == "secrets" && request.body["metadata"]["name"] == "cacerts"
    };
    let mut fleet = Fleet::with(&["cluster-1"], &api(), &Clock::new(), |managed| {
        managed["cluster-1"].fail(Fault::refuse(403), is_cacerts);
    });
    let refused = fleet
        .until("cluster-1", |report| report.state == Status::False)
        .await;
    assert_eq!(refused.reason, Reason::IssuanceFailed);
    let api = fleet.api("cluster-1").clone();
    for nth in 0..300 {
        api.edit(
            "somebody",
            &certificates(),
            NAMESPACE,
            &mesh("cluster-1"),
            |certificate| certificate["metadata"]["annotations"]["nth"] = json!(nth.to_string()),
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let attempts = api.requests().iter().filter(|it| is_cacerts(it)).count();
    assert!(attempts < 20, "{attempts} in a minute");
    fleet.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_cacerts_that_vanished_while_the_watch_was_away_is_restored() {
    let mut fleet = Fleet::new(&["cluster-1"]);
    fleet.ready("cluster-1").await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let api = fleet.api("cluster-1").clone();
    let before = cacerts(&api).unwrap()["data"].clone();
    api.remove(&secrets(), ISTIO, "cacerts");
    api.compact();
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(cacerts(&api).unwrap()["data"], before);
    fleet.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_mesh_that_left_while_its_cluster_hung_is_not_reported() {
    let other = Wanted {
        mesh: "another".to_owned(),
        ..wanted("cluster-1")
    };
    let fleet = Fleet::with(&["cluster-1"], &api(), &Clock::new(), |managed| {
        managed["cluster-1"].fail(Fault::Hang, |_| true);
    });
    fleet.want([other.clone(), wanted("cluster-1")]);
    tokio::time::sleep(Duration::from_mins(1)).await;
    // The look at the first one still waits for an answer.
    fleet.want([wanted("cluster-1")]);
    tokio::time::sleep(LONG).await;
    let meshes: Vec<String> = fleet
        .reports
        .borrow()
        .keys()
        .map(|key| key.mesh.clone())
        .collect();
    assert_eq!(meshes, [mesh("cluster-1")]);
    fleet.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_intermediate_is_renewed_before_it_ends_and_the_mesh_stays_ready() {
    let mut fleet = Fleet::new(&["cluster-1"]);
    let first = fleet.ready("cluster-1").await;
    let root = fleet.root("cluster-1");
    let later = start() + SignedDuration::from_hours(61 * 24);
    fleet.clock.set(later);
    let renewed = fleet
        .until("cluster-1", |report| report.not_after > first.not_after)
        .await;
    assert_eq!(renewed.state, Status::True);
    let Some(Found::Valid { signer, .. }) = found(fleet.api("cluster-1"), later) else {
        panic!("it is valid");
    };
    assert_eq!(signer.root_id(), root);
    fleet.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_nobody_wants_is_refused_and_signed_by_nobody() {
    let mut fleet = Fleet::new(&["cluster-1"]);
    fleet.ready("cluster-1").await;
    // The name of a mesh of another cluster.
    let key = new_key();
    put_request(fleet.api("cluster-1"), &mesh("cluster-2"), &csr(&key, &[]));
    let api = fleet.api("cluster-1").clone();
    let answered = async {
        loop {
            let request = api.get(&requests(), NAMESPACE, &mesh("cluster-2")).unwrap();
            if request["status"]["state"] == "FAILED" {
                return request;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    let request = tokio::time::timeout(LONG, answered).await.unwrap();
    assert!(request["status"]["signedCertificate"].is_null());
    fleet.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_certificate_that_is_not_there_yet_is_waited_for() {
    let mut fleet = Fleet::with(&["cluster-1"], &api(), &Clock::new(), |managed| {
        managed["cluster-1"].remove(&certificates(), NAMESPACE, &mesh("cluster-1"));
    });
    let waiting = fleet
        .until("cluster-1", |report| report.reason == Reason::Issuing)
        .await;
    assert_eq!(waiting.state, Status::False);
    put_certificate(fleet.api("cluster-1"), &wanted("cluster-1"));
    let began = Instant::now();
    fleet.ready("cluster-1").await;
    assert!(began.elapsed() < Duration::from_secs(10));
    fleet.stop().await;
}

/// A management cluster that loses every other answer, and a managed one that loses every third.
#[tokio::test(start_paused = true)]
async fn lost_answers_lead_to_the_same_end() {
    let management = api();
    let mut count = 0;
    management.fail(Fault::LoseAnswer, move |request| {
        count += usize::from(request.verb.is_write());
        request.verb.is_write() && count % 2 == 1
    });
    let mut fleet = Fleet::with(
        &["cluster-1", "cluster-2"],
        &management,
        &Clock::new(),
        |managed| {
            for api in managed.values() {
                let mut count = 0;
                api.fail(Fault::LoseAnswer, move |request| {
                    count += usize::from(request.verb.is_write());
                    request.verb.is_write() && count % 3 == 0
                });
            }
        },
    );
    fleet.ready("cluster-1").await;
    fleet.ready("cluster-2").await;
    assert_eq!(fleet.root("cluster-1"), fleet.root("cluster-2"));
    assert_eq!(fleet.management.list(&secrets()).len(), 1);
    fleet.stop().await;
}
