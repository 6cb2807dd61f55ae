//! One certificate, the objects that it has in its cluster, and everybody who changes them.
//!
//! Writes follow the rules of an API server: preconditions, resource versions, generations, and of
//! server-side apply that what others set stays.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use ferromesh_ca::bundle::{RootId, TrustBundle};
use ferromesh_ca::cacerts::{self as ca_cacerts, CaCerts, Found};
use ferromesh_ca::issue::{self, Serial, SigningCa};
use ferromesh_ca::key::{KeyAlgorithm, PrivateKey};
use ferromesh_ca::policy::{CertOptions, IntermediateProfile, RootProfile};
use ferromesh_ca::request::VerifiedRequest;
use ferromesh_crds::certificate_request::CertificateRequestState;
use ferromesh_crds::issued_certificate::GlooMeshCa;
use ferromesh_crds::pod_bounce_directive::BouncedPods;
use ferromesh_crds::{
    CertificateRequest, CertificateRequestStatus, IssuedCertificate, IssuedCertificateSpec,
    ObjectRef, PodBounceDirective, PodBounceDirectiveStatus,
};
use ferromesh_hands::mark::{self, Version};
use ferromesh_hands::sealed::Sealed;
use ferromesh_hands::state::{Action, Decision, Observed, Standing, decide};
use ferromesh_hands::terms::Terms;
use ferromesh_hands::{cacerts, key};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

pub(super) const NAMESPACE: &str = "gloo-mesh";
pub(super) const MESH: &str = "istiod-istio-system-cluster-1";
pub(super) const ISTIO: &str = "istio-system";
const HOST: &str = "spiffe://cluster.local/ns/istio-system/sa/istiod";

pub(super) fn start() -> Timestamp {
    "2026-11-21T10:00:00Z".parse().unwrap()
}

pub(super) fn days(days: i64) -> SignedDuration {
    SignedDuration::from_hours(days * 24)
}

/// The roots of two virtual meshes, `root-0` and `root-1`, and one of somebody else.
pub(super) static ROOTS: LazyLock<[SigningCa; 3]> =
    LazyLock::new(|| [root("one"), root("two"), root("stranger")]);

fn root(name: &str) -> SigningCa {
    let profile =
        RootProfile::for_virtual_mesh(&CertOptions::default(), NAMESPACE, name, 1).unwrap();
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    issue::self_signed_root(key, &profile, start(), Serial::from_random([7; 16])).unwrap()
}

pub(super) fn bundle(root: &SigningCa) -> TrustBundle {
    TrustBundle::of(root.certificate().clone()).unwrap()
}

/// The entries of a signing CA below `root`.
pub(super) fn entries(root: &SigningCa, now: Timestamp) -> BTreeMap<String, ByteString> {
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    let certificate = sign(root, key.public_key(), now, None);
    let content = CaCerts::assemble(&key, &certificate, &[], &bundle(root), now).unwrap();
    let entries = content.entries();
    entries
        .map(|(name, content)| (name.to_owned(), ByteString(content.to_vec())))
        .into()
}

fn sign(
    root: &SigningCa,
    key: &ferromesh_ca::key::PublicKey,
    now: Timestamp,
    ttl_days: Option<u32>,
) -> ferromesh_ca::certificate::Certificate {
    let options = CertOptions {
        ttl_days,
        ..CertOptions::default()
    };
    let names = vec![HOST.parse().unwrap()];
    let profile = IntermediateProfile::new(&options, "cluster-1", MESH, 1, names).unwrap();
    issue::intermediate(key, &profile, root, now, Serial::from_random([9; 16])).unwrap()
}

#[derive(Clone)]
pub(super) struct World {
    pub(super) now: Timestamp,
    pub(super) certificate: IssuedCertificate,
    pub(super) key: Option<Secret>,
    pub(super) request: Option<CertificateRequest>,
    pub(super) cacerts: Option<Secret>,
    pub(super) owner: Option<IssuedCertificate>,
    pub(super) directive: Option<PodBounceDirective>,
    /// How often `cacerts` was written.
    pub(super) stores: usize,
    versions: u64,
}

impl World {
    pub(super) fn new() -> Self {
        let mut world = Self {
            now: start(),
            certificate: certificate(MESH),
            key: None,
            request: None,
            cacerts: None,
            owner: None,
            directive: None,
            stores: 0,
            versions: 0,
        };
        world.certificate.metadata.generation = Some(1);
        world
    }

    /// Issued, stored and nothing left to do.
    pub(super) fn settled() -> Self {
        let mut world = Self::new();
        assert_eq!(world.settle().standing, Standing::Stored);
        world
    }

    pub(super) fn observed(&self) -> Observed {
        Observed {
            certificate: self.certificate.clone(),
            key: self.key.clone().map(Sealed::from),
            request: self.request.clone(),
            cacerts: self.cacerts.clone().map(Sealed::from),
            owner: self.owner.clone(),
            directive: self.directive.clone(),
        }
    }

    pub(super) fn decide(&self) -> Decision {
        let decision = decide(&self.observed(), self.now);
        self.check(&decision);
        decision
    }

    /// Looks once, does the first `actions` of what is to be done, and dies. Says how much there was.
    pub(super) fn step(&mut self, actions: usize) -> usize {
        let decision = self.decide();
        let all = decision.actions.len();
        for action in decision.actions.into_iter().take(actions) {
            if !self.act(action) {
                break;
            }
        }
        all
    }

    /// Everybody does his job until nobody has one.
    pub(super) fn settle(&mut self) -> Decision {
        for _ in 0..30 {
            let was_idle = self.step(usize::MAX) == 0;
            let was_answered = self.answer();
            if was_idle && !was_answered {
                return self.decide();
            }
        }
        panic!("no end: {:?}", self.decide());
    }

    pub(super) fn found(&self) -> Option<Found> {
        let secret = self.cacerts.as_ref()?;
        let entries = secret.data.iter().flatten();
        let entries = entries.map(|(name, content)| (name.as_str(), content.0.as_slice()));
        Some(Found::read(entries, self.now))
    }

    /// The root that what is in place chains to, if it verifies.
    pub(super) fn live_root(&self) -> Option<RootId> {
        match self.found()? {
            Found::Valid { signer, .. } => Some(signer.root_id()),
            _ => None,
        }
    }

    pub(super) fn annotation(&self, name: &str) -> Option<String> {
        let meta = &self.cacerts.as_ref()?.metadata;
        meta.annotations.as_ref()?.get(name).cloned()
    }

    pub(super) fn issuer(&self) -> &'static SigningCa {
        let signer = self.certificate.spec.gloo_mesh_ca.as_ref().unwrap();
        let name = &signer.signing_certificate_secret.as_ref().unwrap().name;
        let index: usize = name.strip_prefix("root-").unwrap().parse().unwrap();
        &ROOTS[index]
    }

    /// What must hold at any time.
    fn check(&self, decision: &Decision) {
        if decision.standing == Standing::Stored {
            assert!(decision.actions.is_empty(), "{decision:?}");
            let found = self.found().expect("what is stored is there");
            assert!(matches!(found, Found::Valid { .. }), "{found:?}");
            let terms = Terms::read(&self.certificate.spec).unwrap().unwrap();
            assert_eq!(
                self.annotation(mark::TERMS),
                Some(terms.digest.to_string()),
                "finished with what is not asked for"
            );
        }
        for action in &decision.actions {
            if let Action::Store { secret, .. } = action {
                let found = Found::read(secret.entries(), self.now);
                assert!(matches!(found, Found::Valid { .. }), "{found:?}");
                assert_eq!(secret.entries().count(), 5);
            }
        }
    }

    // === the API server ===

    fn stamp(&mut self, meta: &mut ObjectMeta) {
        self.versions += 1;
        meta.resource_version = Some(self.versions.to_string());
        if meta.uid.is_none() {
            meta.uid = Some(format!("uid-{}", self.versions));
            meta.creation_timestamp = Some(Time(self.now));
        }
    }

    /// Carries out an action; false if the API server refuses.
    pub(super) fn act(&mut self, action: Action) -> bool {
        match action {
            Action::DropKey(version) => {
                let fits = self
                    .key
                    .as_ref()
                    .is_none_or(|key| Version::of(&key.metadata) == version);
                if fits {
                    self.key = None;
                }
                fits
            }
            Action::CreateKey {
                generation,
                algorithm,
                terms,
            } => {
                let new = PrivateKey::generate(algorithm).unwrap();
                let secret = key::object(&self.certificate, generation, terms, &new);
                let mut secret = secret.open().clone();
                if self.key.is_some() {
                    return false;
                }
                self.stamp(&mut secret.metadata);
                self.key = Some(secret);
                true
            }
            Action::Ask { request, replaces } => self.ask(*request, replaces),
            Action::ResetDirective => {
                if let Some(directive) = &mut self.directive {
                    directive.status = None;
                }
                true
            }
            Action::Strip {
                entries, version, ..
            } => {
                let Some(secret) = &mut self.cacerts else {
                    return false;
                };
                if Version::of(&secret.metadata) != version {
                    return false;
                }
                let data = secret.data.as_mut().unwrap();
                data.retain(|name, _| !entries.contains(&name.as_str()));
                let mut meta = secret.metadata.clone();
                self.stamp(&mut meta);
                self.cacerts.as_mut().unwrap().metadata = meta;
                true
            }
            Action::Store { secret, .. } => self.store(secret.open()),
        }
    }

    fn ask(&mut self, mut request: CertificateRequest, replaces: Option<Version>) -> bool {
        let (status, generation) = match (&self.request, replaces) {
            (None, None) => (None, 1),
            (Some(live), Some(version)) if Version::of(&live.metadata) == version => {
                request.metadata.uid.clone_from(&live.metadata.uid);
                (live.status.clone(), live.metadata.generation.unwrap() + 1)
            }
            _ => return false,
        };
        request.metadata.generation = Some(generation);
        request.status = status;
        self.stamp(&mut request.metadata);
        self.request = Some(request);
        true
    }

    fn store(&mut self, secret: &Secret) -> bool {
        let mut next = secret.clone();
        let wanted = Version::of(&secret.metadata);
        match &self.cacerts {
            None if wanted == Version::default() => {}
            Some(live) if Version::of(&live.metadata) == wanted => {
                let has_label = mark::is_ours(&live.metadata, NAMESPACE);
                let has_our_key = live.data.as_ref().and_then(|data| data.get("ca-key.pem"))
                    == self
                        .key
                        .as_ref()
                        .and_then(|key| key.data.as_ref()?.get("private-key"));
                assert!(
                    has_label || has_our_key,
                    "a Secret of somebody else was overwritten"
                );
                assert_eq!(next.type_, live.type_, "the type of a Secret cannot change");
                let mut data = live.data.clone().unwrap_or_default();
                data.extend(next.data.take().unwrap());
                next.data = Some(data);
                next.metadata
                    .creation_timestamp
                    .clone_from(&live.metadata.creation_timestamp);
            }
            _ => return false,
        }
        self.stores += 1;
        self.stamp(&mut next.metadata);
        self.cacerts = Some(next);
        true
    }

    // === the one who signs ===

    /// Answers the request if it needs an answer.
    pub(super) fn answer(&mut self) -> bool {
        let ttl = self.certificate.spec.cert_options.as_ref();
        let ttl = ttl.and_then(|options| u32::try_from(options.ttl_days).ok());
        let root = self.issuer();
        let now = self.now;
        let Some(request) = &mut self.request else {
            return false;
        };
        let asked = VerifiedRequest::from_pem(&request.spec.certificate_signing_request.0);
        let asked = asked.unwrap();
        let answered = request.status.as_ref().is_some_and(|status| {
            Some(status.observed_generation) == request.metadata.generation
                && status.state == CertificateRequestState::Finished
        });
        if answered {
            return false;
        }
        let certificate = sign(root, asked.public_key(), now, ttl.filter(|days| *days > 0));
        request.status = Some(CertificateRequestStatus {
            observed_generation: request.metadata.generation.unwrap(),
            state: CertificateRequestState::Finished,
            signed_certificate: ByteString(certificate.to_pem().into_bytes()),
            signing_root_ca: ByteString(root.certificate().to_pem().into_bytes()),
            ..CertificateRequestStatus::default()
        });
        true
    }

    pub(super) fn refuse(&mut self, reason: &str) {
        if let Some(request) = &mut self.request {
            request.status = Some(CertificateRequestStatus {
                observed_generation: request.metadata.generation.unwrap(),
                state: CertificateRequestState::Failed,
                error: reason.to_owned(),
                ..CertificateRequestStatus::default()
            });
        }
    }

    // === users and others ===

    /// Edits `cacerts`, if it is there.
    pub(super) fn edit(&mut self, edit: impl FnOnce(&mut Secret)) {
        if let Some(mut secret) = self.cacerts.take() {
            edit(&mut secret);
            self.stamp(&mut secret.metadata);
            self.cacerts = Some(secret);
        }
    }

    pub(super) fn put_cacerts(
        &mut self,
        data: BTreeMap<String, ByteString>,
        labels: BTreeMap<String, String>,
    ) {
        let mut secret = Secret {
            metadata: ObjectMeta {
                name: Some("cacerts".to_owned()),
                namespace: Some(ISTIO.to_owned()),
                labels: Some(labels),
                ..ObjectMeta::default()
            },
            type_: Some("Opaque".to_owned()),
            data: Some(data),
            ..Secret::default()
        };
        self.stamp(&mut secret.metadata);
        self.cacerts = Some(secret);
    }

    pub(super) fn change(&mut self, change: impl FnOnce(&mut IssuedCertificateSpec)) {
        let before = self.certificate.spec.clone();
        change(&mut self.certificate.spec);
        if before != self.certificate.spec {
            let generation = self.certificate.metadata.generation.as_mut().unwrap();
            *generation += 1;
        }
    }

    pub(super) fn use_root(&mut self, index: usize) {
        self.change(|spec| spec.gloo_mesh_ca = Some(signer(index)));
    }

    pub(super) fn put_directive(&mut self) {
        self.directive = Some(PodBounceDirective {
            status: Some(PodBounceDirectiveStatus {
                pods_bounced: vec![BouncedPods {
                    bounced_pods: vec!["istiod-1".to_owned()],
                }],
            }),
            ..PodBounceDirective::default()
        });
    }
}

fn signer(index: usize) -> GlooMeshCa {
    GlooMeshCa {
        signing_certificate_secret: Some(ObjectRef {
            name: format!("root-{index}"),
            namespace: NAMESPACE.to_owned(),
        }),
    }
}

pub(super) fn certificate(name: &str) -> IssuedCertificate {
    IssuedCertificate {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(NAMESPACE.to_owned()),
            generation: Some(1),
            ..ObjectMeta::default()
        },
        spec: IssuedCertificateSpec {
            hosts: vec![HOST.to_owned()],
            gloo_mesh_ca: Some(signer(0)),
            issued_certificate_secret: Some(ObjectRef {
                name: "cacerts".to_owned(),
                namespace: ISTIO.to_owned(),
            }),
            ..IssuedCertificateSpec::default()
        },
        status: None,
    }
}

/// What stands in `cacerts`, apart from its resource version.
pub(super) fn content(secret: &Secret) -> impl PartialEq + std::fmt::Debug + use<> {
    let entries: Vec<(String, usize, String)> = secret
        .data
        .iter()
        .flatten()
        .map(|(name, content)| {
            let digest = ferromesh_ca::digest::Fingerprint::of([content.0.as_slice()]);
            (name.clone(), content.0.len(), digest.to_string())
        })
        .collect();
    (
        entries,
        secret.metadata.labels.clone(),
        secret.metadata.annotations.clone(),
        secret.type_.clone(),
    )
}

/// Whether `cacerts` says of itself for which certificate it was written.
pub(super) fn owner(secret: &Secret) -> Option<String> {
    cacerts::owner(&Sealed::from(secret.clone()))
}

/// The names of the entries that istiod needs.
pub(super) const ENTRIES: [&str; 5] = [
    ca_cacerts::CA_CERT,
    ca_cacerts::CA_KEY,
    ca_cacerts::CERT_CHAIN,
    ca_cacerts::ROOT_CERT,
    ca_cacerts::EMPTY_KEY,
];
