//! Answers the requests of managed clusters.
//!
//! What a certificate says is decided by what the engine wants for that mesh of that cluster, never by
//! what stands in the cluster: whoever rules there rules his own copy of the `IssuedCertificate`, too. A
//! request contributes its public key and the proof that its sender has the private one.
//!
//! A key is certified once. The answer stands in the status of the request, and is given again from there.

use std::collections::BTreeMap;

use ferromesh_ca::bundle::RootId;
use ferromesh_ca::certificate::Certificate;
use ferromesh_ca::issue::{self, SigningCa};
use ferromesh_ca::key::PublicKey;
use ferromesh_ca::name::SubjectAltName;
use ferromesh_ca::pem;
use ferromesh_ca::policy::{IntermediateProfile, Violation};
use ferromesh_ca::request::VerifiedRequest;
use ferromesh_crds::certificate_request::CertificateRequestState;
use ferromesh_crds::{CertificateRequest, CertificateRequestStatus, meta};
use ferromesh_hands::mark::Generation;
use ferromesh_hands::terms::{self, Fault};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt as _};

use super::error::ApiError;
use super::root::{RootFault, Roots};
use super::sources::Sources;
use super::wanted::{MeshKey, Wanted};

/// The most certificates that one mesh is given within [`WINDOW`]: whoever rules its cluster can ask for
/// one with every new key.
const MAX_WITHIN_WINDOW: usize = 20;
/// See [`MAX_WITHIN_WINDOW`].
const WINDOW: SignedDuration = SignedDuration::from_hours(1);
/// The most bytes of an error in a status.
const MAX_ERROR: usize = 1024;

/// What a request is to be answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Examined {
    /// Nothing: it has its answer.
    Keep,
    /// This status, which takes no signature.
    Answer(Box<CertificateRequestStatus>),
    /// A certificate for this key.
    Sign(PublicKey),
}

/// Why a request is refused. The text names the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The engine wants no certificate here.
    #[error(
        "no virtual mesh with shared trust has this mesh: add the mesh to one, or delete the CertificateRequest"
    )]
    NotWanted,
    /// The request is not one, or proves nothing; or policy does not allow it.
    #[error(transparent)]
    Request(#[from] ferromesh_ca::Error),
    /// What the user asks of the certificate.
    #[error("intermediateCertOptions: {0}")]
    Options(#[from] Fault),
    /// There is no root.
    #[error("{0}")]
    Root(String),
    /// The key belongs to another mesh.
    #[error("the key of the request is that of mesh {} of cluster {}: make a new key", .0.mesh, .0.cluster)]
    SharedKey(MeshKey),
    /// More than anybody needs.
    #[error(
        "{MAX_WITHIN_WINDOW} certificates were signed for this mesh within an hour: find out what asks for new ones; \
         signing goes on later"
    )]
    TooMany,
}

impl From<Violation> for Refusal {
    fn from(violation: Violation) -> Self {
        Self::Request(violation.into())
    }
}

/// Looks at a request. `wanted` is what the engine wants for the mesh of its name in its cluster.
pub fn examine(request: &CertificateRequest, wanted: Option<&Wanted>) -> Examined {
    let status = request.status.clone().unwrap_or_default();
    let is_current = Some(status.observed_generation) == request.metadata.generation;
    let is_finished = status.state == CertificateRequestState::Finished;
    if wanted.is_none() {
        // What was answered once stays: the cluster may need it to repair what it has.
        return if is_finished && is_current {
            Examined::Keep
        } else {
            refused(request, &Refusal::NotWanted)
        };
    }
    let asked = &request.spec.certificate_signing_request.0;
    let key = match VerifiedRequest::from_pem(asked) {
        Ok(verified) => verified.public_key().clone(),
        Err(error) => return refused(request, &error.into()),
    };
    let answered = pem::read_certificate("status.signedCertificate", &status.signed_certificate.0);
    if is_finished && answered.is_ok_and(|answered| *answered.public_key() == key) {
        if is_current {
            return Examined::Keep;
        }
        return Examined::Answer(Box::new(CertificateRequestStatus {
            observed_generation: request.metadata.generation.unwrap_or_default(),
            ..status
        }));
    }
    Examined::Sign(key)
}

/// The status that refuses a request, unless it stands there already.
pub fn refused(request: &CertificateRequest, refusal: &Refusal) -> Examined {
    let mut error = refusal.to_string();
    error.truncate(error.floor_char_boundary(MAX_ERROR));
    let status = CertificateRequestStatus {
        observed_generation: request.metadata.generation.unwrap_or_default(),
        error,
        state: CertificateRequestState::Failed,
        ..CertificateRequestStatus::default()
    };
    if request.status.as_ref() == Some(&status) {
        Examined::Keep
    } else {
        Examined::Answer(Box::new(status))
    }
}

/// Signs the certificate of `key` as policy says, or gives it again.
///
/// # Errors
/// [`Refusal`].
pub fn sign(
    key: &PublicKey,
    generation: Generation,
    wanted: &Wanted,
    root: &SigningCa,
    ledger: &mut Ledger,
    sources: &Sources,
) -> Result<Certificate, Refusal> {
    let now = (sources.now)();
    let root_id = RootId::of(root.certificate());
    if let Some(signed) = ledger.find(&wanted.key(), key, root_id)? {
        return Ok(signed);
    }
    ledger.make_room(&wanted.key(), now)?;
    let options = terms::cert_options(&wanted.options)?;
    let names: Result<Vec<SubjectAltName>, Violation> =
        wanted.hosts.iter().map(|host| host.parse()).collect();
    let profile = IntermediateProfile::new(
        &options,
        &wanted.cluster,
        &wanted.mesh,
        generation.get(),
        names?,
    )?;
    let certificate = issue::intermediate(key, &profile, root, now, (sources.serial)()?)?;
    tracing::info!(
        cluster = wanted.cluster,
        mesh = wanted.mesh,
        virtual_mesh = wanted.virtual_mesh.name,
        %generation,
        key = %key.fingerprint(),
        certificate = %certificate.fingerprint(),
        root = %root_id,
        not_after = %certificate.not_after(),
        "intermediate signed"
    );
    ledger.note(wanted.key(), key, root_id, &certificate, now);
    Ok(certificate)
}

/// What this process has signed for the meshes of one cluster: a lost answer is given again and not
/// signed again. Nothing else depends on it.
#[derive(Debug, Default)]
pub struct Ledger(BTreeMap<MeshKey, Signed>);

#[derive(Debug)]
struct Signed {
    key: PublicKey,
    root: RootId,
    certificate: Certificate,
    /// When certificates were signed for the mesh, within the last [`WINDOW`].
    times: Vec<Timestamp>,
}

impl Ledger {
    fn find(
        &self,
        mesh: &MeshKey,
        key: &PublicKey,
        root: RootId,
    ) -> Result<Option<Certificate>, Refusal> {
        let with_key = self.0.iter().filter(|(_, signed)| signed.key == *key);
        let mut found = None;
        for (other, signed) in with_key {
            if other != mesh {
                return Err(Refusal::SharedKey(other.clone()));
            }
            if signed.root == root {
                found = Some(signed.certificate.clone());
            }
        }
        Ok(found)
    }

    fn make_room(&mut self, mesh: &MeshKey, now: Timestamp) -> Result<(), Refusal> {
        let Some(signed) = self.0.get_mut(mesh) else {
            return Ok(());
        };
        signed
            .times
            .retain(|time| now.duration_since(*time) < WINDOW);
        if signed.times.len() < MAX_WITHIN_WINDOW {
            Ok(())
        } else {
            Err(Refusal::TooMany)
        }
    }

    fn note(
        &mut self,
        mesh: MeshKey,
        key: &PublicKey,
        root: RootId,
        certificate: &Certificate,
        now: Timestamp,
    ) {
        let known = self.0.remove(&mesh);
        let mut times = known.map(|signed| signed.times).unwrap_or_default();
        times.push(now);
        let signed = Signed {
            key: key.clone(),
            root,
            certificate: certificate.clone(),
            times,
        };
        self.0.insert(mesh, signed);
    }

    /// Forgets meshes that no certificate is wanted for.
    pub fn keep(&mut self, is_wanted: impl Fn(&MeshKey) -> bool) {
        self.0.retain(|mesh, _| is_wanted(mesh));
    }
}

/// Answers the requests of one cluster.
#[derive(Clone)]
pub struct Issuer {
    client: Client,
    roots: Roots,
    sources: Sources,
}

/// Why a request has no answer yet.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The cluster refused, or could not be asked.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The management cluster refused, or could not be asked.
    #[error(transparent)]
    Root(#[from] RootFault),
}

impl Issuer {
    /// Answers with the roots of the management cluster in the cluster of `client`.
    pub fn new(client: Client, roots: Roots, sources: Sources) -> Self {
        Self {
            client,
            roots,
            sources,
        }
    }

    /// Answers the request of this name, if there is one and it needs an answer. Says whether it wrote
    /// one.
    ///
    /// # Errors
    /// [`Error`], when another attempt is needed.
    pub async fn serve(
        &self,
        namespace: &str,
        name: &str,
        wanted: Option<&Wanted>,
        ledger: &mut Ledger,
    ) -> Result<bool, Error> {
        let requests: Api<CertificateRequest> = Api::namespaced(self.client.clone(), namespace);
        let object = || format!("CertificateRequest {namespace}/{name}");
        let request = requests
            .get_opt(name)
            .await
            .map_err(|error| ApiError::new("reading", object(), error))?;
        let Some(mut request) = request else {
            return Ok(false);
        };
        let examined = match (examine(&request, wanted), wanted) {
            (Examined::Sign(key), Some(wanted)) => {
                self.sign(&request, &key, wanted, ledger).await?
            }
            (examined, _) => examined,
        };
        let Examined::Answer(status) = examined else {
            return Ok(false);
        };
        if let CertificateRequestState::Failed = status.state {
            tracing::warn!(namespace, name, error = status.error, "request refused");
        }
        request.status = Some(*status);
        let post = PostParams {
            field_manager: Some(meta::FIELD_MANAGER.to_owned()),
            ..PostParams::default()
        };
        // It carries the version that was read: an answer never lands on another request.
        match requests.replace_status(name, &post, &request).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(true),
            Err(error) => Err(ApiError::new("answering", object(), error).into()),
        }
    }

    async fn sign(
        &self,
        request: &CertificateRequest,
        key: &PublicKey,
        wanted: &Wanted,
        ledger: &mut Ledger,
    ) -> Result<Examined, Error> {
        let root = match self.roots.root(wanted).await {
            Ok(root) => root.ca,
            Err(RootFault::Api(error)) if error.is_transient() => return Err(error.into()),
            Err(fault) => return Ok(refused(request, &Refusal::Root(fault.text()))),
        };
        // Who asks may count as he likes: it is a part of a name and no more.
        let generation = Generation::of(&request.metadata).unwrap_or(Generation::FIRST);
        Ok(
            match sign(key, generation, wanted, &root, ledger, &self.sources) {
                Ok(certificate) => Examined::Answer(Box::new(CertificateRequestStatus {
                    observed_generation: request.metadata.generation.unwrap_or_default(),
                    error: String::new(),
                    state: CertificateRequestState::Finished,
                    signed_certificate: ByteString(certificate.to_pem().into_bytes()),
                    signing_root_ca: ByteString(root.certificate().to_pem().into_bytes()),
                })),
                Err(refusal) => {
                    tracing::debug!(name = request.name_any(), %refusal, "nothing signed");
                    refused(request, &refusal)
                }
            },
        )
    }
}
