//! A cluster at the wire, and the one who signs for it.

use std::sync::Arc;

use ferromesh_ca::cacerts::Found;
use ferromesh_ca::issue::{self, Serial};
use ferromesh_ca::key::PrivateKey;
use ferromesh_ca::policy::{CertOptions, IntermediateProfile};
use ferromesh_ca::request::VerifiedRequest;
use ferromesh_crds::certificate_request::CertificateRequestState;
use ferromesh_crds::{CertificateRequest, CertificateRequestStatus, IssuedCertificate};
use ferromesh_hands::sealed::Sealed;
use ferromesh_hands::{Error, Hands, Memory, Progress, Sources};
use ferromesh_runtime::backoff::Jitter;
use ferromesh_testkit::fakeapi::{FakeApi, Kind};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};

use super::world::{ISTIO, MESH, NAMESPACE, ROOTS, certificate, start};

const MANAGER: &str = "ferromesh";

pub(super) fn certificates() -> Kind {
    Kind::new(
        "certificates.mesh.gloo.solo.io",
        "IssuedCertificate",
        "issuedcertificates",
    )
}

pub(super) fn requests() -> Kind {
    Kind::new(
        "certificates.mesh.gloo.solo.io",
        "CertificateRequest",
        "certificaterequests",
    )
}

pub(super) fn directives() -> Kind {
    Kind::new(
        "certificates.mesh.gloo.solo.io",
        "PodBounceDirective",
        "podbouncedirectives",
    )
}

pub(super) fn secrets() -> Kind {
    Kind::new("", "Secret", "secrets")
}

pub(super) fn pods() -> Kind {
    Kind::new("", "Pod", "pods")
}

pub(super) fn config_maps() -> Kind {
    Kind::new("", "ConfigMap", "configmaps")
}

pub(super) struct Cluster {
    pub(super) api: FakeApi,
    pub(super) memory: Memory,
    hands: Hands,
}

impl Cluster {
    /// A cluster in which a certificate is wanted.
    pub(super) fn new() -> Self {
        let api = FakeApi::new();
        let kinds = [
            certificates(),
            requests(),
            directives(),
            secrets(),
            pods(),
            config_maps(),
        ];
        for kind in kinds {
            api.serve(&kind);
        }
        let wanted = serde_json::to_value(certificate(MESH)).unwrap();
        api.put("apply", &certificates(), &wanted);
        api.forget_requests();
        let sources = Sources {
            now: Arc::new(start),
            key: Arc::new(PrivateKey::generate),
        };
        Self {
            hands: Hands::new(api.client(), MANAGER, sources),
            memory: Memory::new(Jitter::seeded(1)),
            api,
        }
    }

    pub(super) async fn try_pass(&mut self) -> Result<Option<Progress>, Error> {
        self.hands
            .reconcile(NAMESPACE, MESH, &mut self.memory)
            .await
    }

    pub(super) async fn pass(&mut self) -> Progress {
        self.try_pass().await.unwrap().expect("it is wanted")
    }

    /// Issued and stored, with nothing left to do.
    pub(super) async fn issue(&mut self) -> Progress {
        self.pass().await;
        self.sign().await;
        self.pass().await
    }

    /// Answers the request, if it has no answer.
    pub(super) async fn sign(&self) {
        let requests: Api<CertificateRequest> = Api::namespaced(self.api.client(), NAMESPACE);
        let Ok(Some(mut request)) = requests.get_opt(MESH).await else {
            return;
        };
        if request.status.is_some() {
            return;
        }
        let asked = VerifiedRequest::from_pem(&request.spec.certificate_signing_request.0).unwrap();
        let root = &ROOTS[0];
        let options = CertOptions::default();
        let profile = IntermediateProfile::new(&options, "cluster-1", MESH, 1, Vec::new()).unwrap();
        let serial = Serial::from_random([9; 16]);
        let signed = issue::intermediate(asked.public_key(), &profile, root, start(), serial);
        request.status = Some(CertificateRequestStatus {
            observed_generation: request.metadata.generation.unwrap(),
            state: CertificateRequestState::Finished,
            signed_certificate: ByteString(signed.unwrap().to_pem().into_bytes()),
            signing_root_ca: ByteString(root.certificate().to_pem().into_bytes()),
            ..CertificateRequestStatus::default()
        });
        let post = PostParams::default();
        requests
            .replace_status(MESH, &post, &request)
            .await
            .unwrap();
    }

    pub(super) fn certificate(&self) -> IssuedCertificate {
        let object = self.api.get(&certificates(), NAMESPACE, MESH).unwrap();
        serde_json::from_value(object).unwrap()
    }

    /// State and error, as the compatible API has them.
    pub(super) fn status(&self) -> (String, String) {
        let object = self.api.get(&certificates(), NAMESPACE, MESH).unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (
            text(&object["status"]["state"]),
            text(&object["status"]["error"]),
        )
    }

    pub(super) fn cacerts(&self) -> Option<Value> {
        self.api.get(&secrets(), ISTIO, "cacerts")
    }

    pub(super) fn found(&self) -> Option<Found> {
        let secret: Secret = serde_json::from_value(self.cacerts()?).unwrap();
        let secret = Sealed::from(secret);
        Some(Found::read(secret.entries(), start()))
    }

    pub(super) fn edit_cacerts(&self, by: &str, edit: impl FnOnce(&mut Value)) {
        self.api.edit(by, &secrets(), ISTIO, "cacerts", edit);
    }

    /// How many times `cacerts` was written by us.
    pub(super) fn stores(&self) -> usize {
        let writes = self.api.writes().into_iter();
        writes
            .filter(|write| write.plural == "secrets" && write.namespace == ISTIO)
            .count()
    }
}

pub(super) fn foreign_secret() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": { "name": "cacerts", "namespace": ISTIO },
        "data": super::world::entries(&ROOTS[2], start()),
    })
}
