//! A management cluster, managed clusters, and what is wanted in them.

use std::sync::{Arc, Mutex};

use ferromesh_ca::cacerts::Found;
use ferromesh_ca::issue::Serial;
use ferromesh_ca::key::{KeyAlgorithm, PrivateKey};
use ferromesh_ca::name::SubjectAltName;
use ferromesh_ca::request::CertificateRequest as Pkcs10;
use ferromesh_controller::certs::root::{Root, Roots};
use ferromesh_controller::certs::{RootSource, Sources, Wanted};
use ferromesh_crds::cert_options::CommonCertOptions;
use ferromesh_crds::issued_certificate::GlooMeshCa;
use ferromesh_crds::{IssuedCertificate, IssuedCertificateSpec, ObjectRef};
use ferromesh_hands::sealed::Sealed;
use ferromesh_testkit::fakeapi::{FakeApi, Kind};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

pub(super) const NAMESPACE: &str = "gloo-mesh";
pub(super) const ISTIO: &str = "istio-system";

pub(super) fn start() -> Timestamp {
    "2026-11-21T10:00:00Z".parse().unwrap()
}

pub(super) fn secrets() -> Kind {
    Kind::new("", "Secret", "secrets")
}

pub(super) fn config_maps() -> Kind {
    Kind::new("", "ConfigMap", "configmaps")
}

pub(super) fn requests() -> Kind {
    certificates_kind("CertificateRequest", "certificaterequests")
}

pub(super) fn certificates() -> Kind {
    certificates_kind("IssuedCertificate", "issuedcertificates")
}

fn certificates_kind(name: &str, plural: &str) -> Kind {
    Kind::new("certificates.mesh.gloo.solo.io", name, plural)
}

pub(super) fn api() -> FakeApi {
    let api = FakeApi::new();
    let directives = certificates_kind("PodBounceDirective", "podbouncedirectives");
    let pods = Kind::new("", "Pod", "pods");
    for kind in [
        secrets(),
        config_maps(),
        requests(),
        certificates(),
        directives,
        pods,
    ] {
        api.serve(&kind);
    }
    api
}

/// A clock that the test sets.
#[derive(Clone)]
pub(super) struct Clock(Arc<Mutex<Timestamp>>);

impl Clock {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(start())))
    }

    pub(super) fn set(&self, now: Timestamp) {
        *self.0.lock().unwrap() = now;
    }

    /// Time from this clock; serial numbers that count; keys as always.
    pub(super) fn sources(&self) -> Sources {
        let clock = self.0.clone();
        let serials = Arc::new(Mutex::new(0_u8));
        Sources {
            now: Arc::new(move || *clock.lock().unwrap()),
            key: Arc::new(PrivateKey::generate),
            serial: Arc::new(move || {
                let mut serial = serials.lock().unwrap();
                *serial = serial.wrapping_add(1);
                Ok(Serial::from_random([*serial; 16]))
            }),
        }
    }
}

pub(super) fn reference(namespace: &str, name: &str) -> ObjectRef {
    ObjectRef {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

pub(super) fn mesh(cluster: &str) -> String {
    format!("istiod-istio-system-{cluster}")
}

/// What the virtual mesh `vm`, with a generated root, wants in a cluster.
pub(super) fn wanted(cluster: &str) -> Wanted {
    Wanted {
        cluster: cluster.to_owned(),
        mesh: mesh(cluster),
        agent_namespace: NAMESPACE.to_owned(),
        control_plane_namespace: ISTIO.to_owned(),
        virtual_mesh: reference(NAMESPACE, "vm"),
        root: RootSource::Generated(CommonCertOptions::default()),
        options: CommonCertOptions::default(),
        hosts: vec![host(cluster)],
    }
}

pub(super) fn host(cluster: &str) -> String {
    format!("spiffe://{cluster}.local/ns/istio-system/sa/istiod")
}

pub(super) fn roots(api: &FakeApi, clock: &Clock) -> Roots {
    Roots::new(api.client(), NAMESPACE.to_owned(), clock.sources())
}

/// The certificate object that the engine writes into a cluster.
pub(super) fn put_certificate(api: &FakeApi, wanted: &Wanted) {
    let mut certificate = IssuedCertificate::new(
        &wanted.mesh,
        IssuedCertificateSpec {
            hosts: wanted.hosts.clone(),
            issued_certificate_secret: Some(reference(ISTIO, "cacerts")),
            gloo_mesh_ca: Some(GlooMeshCa {
                signing_certificate_secret: Some(reference(NAMESPACE, "vm.gloo-mesh")),
            }),
            ..IssuedCertificateSpec::default()
        },
    );
    certificate.metadata.namespace = Some(wanted.agent_namespace.clone());
    let object = serde_json::to_value(certificate).unwrap();
    api.put("apply", &certificates(), &object);
}

pub(super) fn new_key() -> PrivateKey {
    PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap()
}

/// A request for `key` that asks for `names`.
pub(super) fn csr(key: &PrivateKey, names: &[&str]) -> String {
    let names: Vec<SubjectAltName> = names.iter().map(|name| name.parse().unwrap()).collect();
    let request = Pkcs10::new(key, &"acme".parse().unwrap(), &names).unwrap();
    request.to_pem()
}

pub(super) fn put_request(api: &FakeApi, name: &str, csr: &str) {
    let csr = k8s_openapi::ByteString(csr.as_bytes().to_vec());
    let request = json!({
        "apiVersion": "certificates.mesh.gloo.solo.io/v1", "kind": "CertificateRequest",
        "metadata": { "namespace": NAMESPACE, "name": name },
        "spec": { "certificateSigningRequest": csr },
    });
    api.put("agent", &requests(), &request);
}

pub(super) fn cacerts(api: &FakeApi) -> Option<Value> {
    api.get(&secrets(), ISTIO, "cacerts")
}

pub(super) fn found(api: &FakeApi, now: Timestamp) -> Option<Found> {
    let secret: Secret = serde_json::from_value(cacerts(api)?).unwrap();
    let secret = Sealed::from(secret);
    Some(Found::read(secret.entries(), now))
}

/// The Secret of a user with a root in it.
pub(super) fn root_secret(name: &str, root: &Root) -> Value {
    let entry = |text: &str| json!(k8s_openapi::ByteString(text.as_bytes().to_vec()));
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": { "namespace": NAMESPACE, "name": name },
        "data": {
            "root-cert.pem": entry(&root.ca.certificate().to_pem()),
            "key.pem": entry(&root.ca.key().to_pkcs8_pem()),
        },
    })
}

/// A root of somebody else.
pub(super) async fn other_root(clock: &Clock) -> Root {
    roots(&api(), clock)
        .root(&wanted("elsewhere"))
        .await
        .unwrap()
}
