//! The `CertificateRequest`: the public half of the key, for whoever signs, and the answer.

use std::collections::BTreeMap;

use ferromesh_ca::bundle::TrustBundle;
use ferromesh_ca::certificate::Certificate;
use ferromesh_ca::key::PublicKey;
use ferromesh_ca::request::{CertificateRequest as Pkcs10, VerifiedRequest};
use ferromesh_ca::{Error, pem};
use ferromesh_crds::certificate_request::CertificateRequestState;
use ferromesh_crds::{CertificateRequest, CertificateRequestSpec, IssuedCertificate};
use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::key::HeldKey;
use crate::mark::{self, Generation, Version};
use crate::terms::Terms;

/// How far the request for the certificate of one key has come.
pub enum Asked {
    /// No request.
    Absent,
    /// A request of that name that belongs to somebody else.
    Foreign,
    /// A request for another key, or none that can be read.
    Stale(Version),
    /// Nobody has answered yet.
    Waiting,
    /// The answer is no.
    Refused(String),
    /// The answer is a certificate for this key. Nothing else of it is verified yet.
    Answered(Box<Answer>),
    /// The answer is of no use.
    Unusable(Unusable),
}

/// A certificate and the roots that are said to believe it.
pub struct Answer {
    /// The certificate.
    pub certificate: Certificate,
    /// The roots.
    pub roots: TrustBundle,
}

/// Why an answer is of no use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// It is for another key.
    #[error("status.signedCertificate is not for the key that was asked for")]
    OtherKey,
    /// It was asked for a moment ago and would have to be renewed at once.
    #[error(
        "the certificate is at the end of its life although it was asked for less than an hour ago: compare the \
         clocks of the management cluster and this one"
    )]
    BornOld,
    /// It cannot be read, or would not be believed.
    #[error(transparent)]
    Unsound(#[from] Error),
}

impl Asked {
    /// Reads how far the request in `namespace` for the certificate of `public_key` has come.
    pub fn read(
        request: Option<&CertificateRequest>,
        public_key: &PublicKey,
        generation: Generation,
        namespace: &str,
    ) -> Self {
        let Some(request) = request else {
            return Self::Absent;
        };
        let meta = &request.metadata;
        if !mark::is_ours(meta, namespace) {
            return Self::Foreign;
        }
        let asked = VerifiedRequest::from_pem(&request.spec.certificate_signing_request.0);
        let same_key = asked.is_ok_and(|asked| asked.public_key() == public_key);
        if !same_key || Generation::of(meta) != Some(generation) {
            return Self::Stale(Version::of(meta));
        }
        let Some(status) = &request.status else {
            return Self::Waiting;
        };
        if Some(status.observed_generation) != meta.generation {
            return Self::Waiting;
        }
        match status.state {
            CertificateRequestState::Pending => Self::Waiting,
            CertificateRequestState::Failed => Self::Refused(status.error.clone()),
            CertificateRequestState::Finished => {
                let certificate = &status.signed_certificate.0;
                match answer(certificate, &status.signing_root_ca.0, public_key) {
                    Ok(answer) => Self::Answered(Box::new(answer)),
                    Err(unusable) => Self::Unusable(unusable),
                }
            }
        }
    }
}

fn answer(certificate: &[u8], roots: &[u8], key: &PublicKey) -> Result<Answer, Unusable> {
    let certificate = pem::read_certificate("status.signedCertificate", certificate)?;
    if certificate.public_key() != key {
        return Err(Unusable::OtherKey);
    }
    let roots = TrustBundle::from_pem("status.signingRootCa", roots)?;
    Ok(Answer { certificate, roots })
}

/// The request for the certificate of `key`.
///
/// # Errors
/// [`Error::Signing`].
pub fn object(
    certificate: &IssuedCertificate,
    terms: &Terms,
    key: &HeldKey,
    generation: Generation,
) -> Result<CertificateRequest, Error> {
    let request = Pkcs10::new(&key.key, &terms.organization, &terms.names)?;
    let meta = &certificate.metadata;
    let namespace = meta.namespace.clone().unwrap_or_default();
    Ok(CertificateRequest {
        metadata: ObjectMeta {
            name: meta.name.clone(),
            labels: Some(mark::labels(&namespace)),
            annotations: Some(BTreeMap::from([(
                mark::GENERATION.to_owned(),
                generation.to_string(),
            )])),
            namespace: Some(namespace),
            ..ObjectMeta::default()
        },
        spec: CertificateRequestSpec {
            certificate_signing_request: ByteString(request.to_pem().into_bytes()),
        },
        status: None,
    })
}
