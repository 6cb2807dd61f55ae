//! Requests, good and hostile.

use ferromesh_ca::bundle::TrustBundle;
use ferromesh_ca::cacerts::CaCerts;
use ferromesh_ca::certificate::Certificate;
use ferromesh_ca::key::PrivateKey;
use ferromesh_ca::pem;
use ferromesh_controller::certs::issuer::{Issuer, Ledger};
use ferromesh_controller::certs::{RootSource, Wanted};
use ferromesh_crds::certificate_request::CertificateRequestState as State;
use ferromesh_crds::{CertificateRequest, CertificateRequestStatus};
use ferromesh_testkit::fakeapi::{FakeApi, Fault, Verb};
use jiff::SignedDuration;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use super::fleet::{
    Clock, NAMESPACE, api, csr, host, mesh, new_key, other_root, put_certificate, put_request,
    reference, requests, root_secret, roots, secrets, start, wanted,
};

struct Side {
    management: FakeApi,
    managed: FakeApi,
    clock: Clock,
    ledger: Ledger,
}

impl Side {
    fn new() -> Self {
        Self {
            management: api(),
            managed: api(),
            clock: Clock::new(),
            ledger: Ledger::default(),
        }
    }

    async fn serve_with(&mut self, wanted: Option<&Wanted>, name: &str) -> bool {
        let issuer = Issuer::new(
            self.managed.client(),
            roots(&self.management, &self.clock),
            self.clock.sources(),
        );
        let served = issuer
            .serve(NAMESPACE, name, wanted, &mut self.ledger)
            .await;
        served.unwrap()
    }

    async fn serve(&mut self) -> bool {
        self.serve_with(Some(&wanted("cluster-1")), &mesh("cluster-1"))
            .await
    }

    fn ask(&self, key: &PrivateKey) {
        put_request(&self.managed, &mesh("cluster-1"), &csr(key, &[]));
    }

    fn status(&self) -> CertificateRequestStatus {
        let object = self.managed.get(&requests(), NAMESPACE, &mesh("cluster-1"));
        let request: CertificateRequest = serde_json::from_value(object.unwrap()).unwrap();
        request.status.unwrap_or_default()
    }

    async fn set_status(&self, change: impl FnOnce(&mut Option<CertificateRequestStatus>)) {
        let requests: Api<CertificateRequest> = Api::namespaced(self.managed.client(), NAMESPACE);
        let mut request = requests.get(&mesh("cluster-1")).await.unwrap();
        change(&mut request.status);
        let post = PostParams::default();
        requests
            .replace_status(&mesh("cluster-1"), &post, &request)
            .await
            .unwrap();
    }

    fn refusal(&self) -> String {
        let status = self.status();
        assert_eq!(status.state, State::Failed);
        assert!(status.signed_certificate.0.is_empty());
        status.error
    }

    fn issued(&self) -> Certificate {
        let status = self.status();
        assert_eq!(status.state, State::Finished, "{}", status.error);
        pem::read_certificate("it", &status.signed_certificate.0).unwrap()
    }
}

#[tokio::test]
async fn the_answer_works_with_the_key_and_chains_to_the_root() {
    let mut side = Side::new();
    let key = new_key();
    side.ask(&key);
    assert!(side.serve().await);
    let certificate = side.issued();
    let roots = TrustBundle::from_pem("root", &side.status().signing_root_ca.0).unwrap();
    assert!(CaCerts::assemble(&key, &certificate, &[], &roots, start()).is_ok());
    assert_eq!(side.status().observed_generation, 1);
    assert_eq!(certificate.uris(), [host("cluster-1")]);
}

#[tokio::test]
async fn a_request_contributes_its_key_and_nothing_else() {
    let mut side = Side::new();
    let key = new_key();
    // It asks for the name of another cluster, under the name of another organisation.
    let hostile = csr(&key, &[&host("cluster-2"), "istiod.istio-system.svc"]);
    put_request(&side.managed, &mesh("cluster-1"), &hostile);
    // And the cluster's own copy of the certificate says what it likes.
    let mut tampered = wanted("cluster-1");
    tampered.hosts = vec![host("cluster-2")];
    put_certificate(&side.managed, &tampered);
    side.managed.forget_requests();
    assert!(side.serve().await);
    let certificate = side.issued();
    assert_eq!(certificate.uris(), [host("cluster-1")]);
    let subject = certificate.subject().to_string();
    assert!(
        subject.contains("cluster-1/istiod-istio-system-cluster-1"),
        "{subject}"
    );
    assert!(!subject.contains("acme"), "{subject}");
    let read = side.managed.requests();
    assert!(read.iter().all(|it| it.plural == "certificaterequests"));
}

#[tokio::test]
async fn a_request_that_proves_nothing_is_refused() {
    let mut side = Side::new();
    let good = csr(&new_key(), &[]);
    let cut = good.get(..good.len() / 2).unwrap();
    let large = format!("{good}{}", "#".repeat(100_000));
    let key = new_key().to_pkcs8_pem();
    for bad in ["", "x", cut, &large, &key] {
        put_request(&side.managed, &mesh("cluster-1"), bad);
        side.serve().await;
        let refusal = side.refusal();
        assert!(refusal.contains("certificate request"), "{refusal}");
        assert!(refusal.len() <= 1024);
    }
    assert!(side.management.writes().is_empty(), "no root for nobody");
}

#[tokio::test]
async fn a_key_of_another_kind_than_policy_asks_for_is_refused() {
    let mut side = Side::new();
    side.ask(&new_key());
    let mut wanted = wanted("cluster-1");
    wanted.options.rsa_key_size_bytes = 4096;
    let name = mesh("cluster-1");
    assert!(side.serve_with(Some(&wanted), &name).await);
    assert!(side.refusal().contains("make a new key"));
}

#[tokio::test]
async fn what_nobody_wants_is_refused_and_what_was_answered_stays() {
    let mut side = Side::new();
    side.ask(&new_key());
    let name = mesh("cluster-1");
    assert!(side.serve_with(None, &name).await);
    assert!(side.refusal().contains("no virtual mesh"));
    assert!(!side.serve_with(None, &name).await, "said once");
    // The mesh joins a virtual mesh.
    assert!(side.serve().await);
    let issued = side.issued();
    // And leaves it: what the cluster has, it may need.
    assert!(!side.serve_with(None, &name).await);
    assert_eq!(side.issued(), issued);
}

#[tokio::test]
async fn an_answer_is_given_once_and_again_when_it_is_lost() {
    let mut side = Side::new();
    side.ask(&new_key());
    side.serve().await;
    let issued = side.issued();
    assert!(!side.serve().await);
    // The cluster forgets it.
    side.set_status(|status| *status = None).await;
    assert!(side.serve().await);
    assert_eq!(side.issued(), issued);
    // Another process has nothing but what stands in the cluster.
    side.ledger = Ledger::default();
    assert!(!side.serve().await);
    side.set_status(|status| status.as_mut().unwrap().observed_generation = 0)
        .await;
    assert!(side.serve().await);
    assert_eq!(side.issued(), issued);
    assert_eq!(side.status().observed_generation, 1);
}

#[tokio::test]
async fn a_new_key_gets_a_new_certificate() {
    let mut side = Side::new();
    side.ask(&new_key());
    side.serve().await;
    let first = side.issued();
    side.ask(&new_key());
    assert!(side.serve().await);
    assert_ne!(side.issued().public_key(), first.public_key());
    assert_eq!(side.status().observed_generation, 2);
}

#[tokio::test]
async fn an_answer_never_lands_on_another_request() {
    let mut side = Side::new();
    side.ask(&new_key());
    let other = new_key();
    let (managed, text) = (side.managed.clone(), csr(&other, &[]));
    let mut is_first = true;
    side.managed.fail(Fault::Break, move |request| {
        if request.verb == Verb::Replace && is_first {
            is_first = false;
            put_request(&managed, &mesh("cluster-1"), &text);
        }
        false
    });
    side.serve().await;
    assert_eq!(side.status(), CertificateRequestStatus::default());
    side.serve().await;
    assert_eq!(side.issued().public_key(), other.public_key());
}

#[tokio::test]
async fn a_missing_root_is_told_and_made_up_for() {
    let mut side = Side::new();
    side.ask(&new_key());
    let wanted = Wanted {
        root: RootSource::Provided(reference(NAMESPACE, "corp")),
        ..wanted("cluster-1")
    };
    let name = mesh("cluster-1");
    side.serve_with(Some(&wanted), &name).await;
    assert!(side.refusal().contains("gloo-mesh/corp"));
    let root = other_root(&side.clock).await;
    let secret = root_secret("corp", &root);
    side.management.put("user", &secrets(), &secret);
    side.serve_with(Some(&wanted), &name).await;
    assert_eq!(
        side.issued().issuer().to_string(),
        root.ca.certificate().subject().to_string()
    );
}

#[tokio::test]
async fn the_same_key_is_not_signed_under_another_root() {
    let mut side = Side::new();
    side.ask(&new_key());
    side.serve().await;
    let issued = side.issued();
    let root = other_root(&side.clock).await;
    let secret = root_secret("corp", &root);
    side.management.put("user", &secrets(), &secret);
    let wanted = Wanted {
        root: RootSource::Provided(reference(NAMESPACE, "corp")),
        ..wanted("cluster-1")
    };
    assert!(!side.serve_with(Some(&wanted), &mesh("cluster-1")).await);
    assert_eq!(side.issued(), issued);
}

#[tokio::test]
async fn one_key_does_not_serve_two_meshes() {
    let mut side = Side::new();
    let key = new_key();
    side.ask(&key);
    side.serve().await;
    put_request(&side.managed, "other", &csr(&key, &[]));
    let other = Wanted {
        mesh: "other".to_owned(),
        ..wanted("cluster-1")
    };
    side.serve_with(Some(&other), "other").await;
    let request = side.managed.get(&requests(), NAMESPACE, "other").unwrap();
    assert_eq!(request["status"]["state"], "FAILED");
    let error = request["status"]["error"].as_str().unwrap();
    assert!(error.contains("make a new key"), "{error}");
}

#[tokio::test]
async fn a_cluster_cannot_have_certificates_without_end() {
    let mut side = Side::new();
    for _ in 0..20 {
        side.ask(&new_key());
        side.serve().await;
        side.issued();
    }
    side.ask(&new_key());
    side.serve().await;
    assert!(side.refusal().contains("within an hour"));
    side.clock.set(start() + SignedDuration::from_hours(2));
    side.serve().await;
    side.issued();
}

#[tokio::test]
async fn the_private_key_of_the_root_leaves_its_secret_nowhere() {
    let mut side = Side::new();
    side.ask(&new_key());
    side.serve().await;
    let secret = side.management.get(&secrets(), NAMESPACE, "vm.gloo-mesh");
    let key = secret.unwrap()["data"]["key.pem"].clone();
    let everything = json!([
        side.managed
            .requests()
            .iter()
            .map(|request| request.body.clone())
            .collect::<Vec<_>>(),
        side.managed.list(&secrets()),
    ]);
    assert!(!everything.to_string().contains(key.as_str().unwrap()));
    assert!(side.managed.list(&secrets()).is_empty());
}
