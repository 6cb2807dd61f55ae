//! The Secret `cacerts` as it stands in the cluster: whose it is, and whether it is what we wrote.

use std::collections::BTreeMap;
use std::fmt;

use ferromesh_ca::bundle::RootId;
use ferromesh_ca::cacerts::{CaCerts, Found};
use ferromesh_ca::key::PublicKey;
use ferromesh_ca::verify::VerifiedSigner;
use ferromesh_crds::{IssuedCertificate, meta};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::mark::{self, Generation, Version};
use crate::sealed::Sealed;
use crate::terms::Terms;

/// Entries that make istiod read something else than the entries that we write.
const STRAYS: [&str; 4] = ["tls.crt", "tls.key", "ca.crt", "istio-generated"];

/// What stands in the place of `cacerts`.
pub enum Live {
    /// Nothing.
    Absent,
    /// A Secret that is not ours.
    Foreign(Box<ForeignCa>),
    /// A Secret of ours, whatever has become of it.
    Ours(Box<Ours>),
}

/// A `cacerts` that is not ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignCa {
    /// Its namespace.
    pub namespace: String,
    /// What it holds.
    pub found: Found,
    /// The label that would make it ours.
    pub label: String,
}

/// A `cacerts` of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ours {
    /// What it holds.
    pub found: Found,
    /// What was written about it when it was written.
    pub marks: Marks,
    /// Entries that must go, for istiod would read them.
    pub strays: Vec<&'static str>,
    /// Which Secret.
    pub version: Version,
    /// Its type, which cannot change.
    pub secret_type: Option<String>,
    /// When it was created, by the clock of its API server.
    pub created: Option<Timestamp>,
    has_label: bool,
}

/// What is written on `cacerts` about its content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Name of the certificate that it was written for.
    pub owner: Option<String>,
    /// The generation of its key.
    pub generation: Option<Generation>,
    /// The digest of its terms.
    pub terms: Option<String>,
    /// The digest of its certificates.
    pub content: Option<String>,
    /// The root that its signer chains to.
    pub root: Option<RootId>,
    /// Since when it chains to that root; none: since it was created.
    pub root_since: Option<Timestamp>,
}

impl Live {
    /// Reads the Secret. It is ours if it has our label, or if its signer has the key that we hold.
    pub fn read(
        secret: Option<&Sealed>,
        namespace: &str,
        held: Option<&PublicKey>,
        now: Timestamp,
    ) -> Self {
        let Some(sealed) = secret else {
            return Self::Absent;
        };
        let secret = sealed.open();
        let found = Found::read(sealed.entries(), now);
        let has_label = mark::is_ours(&secret.metadata, namespace);
        let has_our_key = match &found {
            Found::Valid { signer, .. } => Some(signer.certificate().public_key()) == held,
            _ => false,
        };
        if !has_label && !has_our_key {
            return Self::Foreign(Box::new(ForeignCa {
                namespace: secret.metadata.namespace.clone().unwrap_or_default(),
                found,
                label: format!("{}={namespace}", meta::CERTIFICATES_AGENT_LABEL),
            }));
        }
        let created = secret.metadata.creation_timestamp.as_ref();
        Self::Ours(Box::new(Ours {
            found,
            marks: Marks::of(&secret.metadata),
            strays: STRAYS
                .into_iter()
                .filter(|name| sealed.entry(name).is_some())
                .collect(),
            version: Version::of(&secret.metadata),
            secret_type: secret.type_.clone(),
            created: created.map(|time| time.0),
            has_label,
        }))
    }
}

impl Marks {
    fn of(meta: &ObjectMeta) -> Self {
        let text = |name| mark::annotation(meta, name);
        Self {
            owner: text(mark::OWNER).map(str::to_owned),
            generation: Generation::of(meta),
            terms: text(mark::TERMS).map(str::to_owned),
            content: text(mark::CONTENT).map(str::to_owned),
            root: text(mark::ROOT).and_then(|root| root.parse().ok()),
            root_since: text(mark::ROOT_SINCE).and_then(|since| since.parse().ok()),
        }
    }
}

impl Ours {
    /// The signing CA, if it works.
    pub fn signer(&self) -> Option<&VerifiedSigner> {
        match &self.found {
            Found::Valid { signer, .. } if self.strays.is_empty() => Some(signer),
            _ => None,
        }
    }

    /// The signing CA, if it is the one that was written here and nothing was changed since.
    pub fn intact(&self) -> Option<&VerifiedSigner> {
        let signer = self.signer()?;
        let as_written = self.marks.content == Some(signer.content_fingerprint().to_string())
            && self.marks.root == Some(signer.root_id());
        (as_written && self.has_label).then_some(signer)
    }

    /// The root that is relied on: the one that works and that we wrote, or found when we took over.
    pub fn relied_root(&self) -> Option<RootId> {
        let root = self.signer()?.root_id();
        self.marks
            .root
            .is_none_or(|written| written == root)
            .then_some(root)
    }

    /// Pods that were created until then may never have seen the root.
    pub fn root_since(&self) -> Option<Timestamp> {
        self.marks.root_since.or(self.created)
    }
}

/// The certificate that `cacerts` was written for, if it says so.
pub fn owner(secret: &Sealed) -> Option<String> {
    Marks::of(&secret.open().metadata).owner
}

/// The Secret `cacerts` of `certificate` with `content`, complete, in the place of `existing`.
pub fn object(
    certificate: &IssuedCertificate,
    terms: &Terms,
    generation: Generation,
    content: &CaCerts,
    existing: Option<&Ours>,
    now: Timestamp,
) -> Sealed {
    let signer = content.signer();
    let root = signer.root_id();
    let owner = certificate.metadata.name.clone().unwrap_or_default();
    let namespace = certificate.metadata.namespace.as_deref();
    let mut annotations = BTreeMap::from([
        (mark::OWNER.to_owned(), owner),
        (mark::GENERATION.to_owned(), generation.to_string()),
        (mark::TERMS.to_owned(), terms.digest.to_string()),
        (
            mark::CONTENT.to_owned(),
            signer.content_fingerprint().to_string(),
        ),
        (mark::ROOT.to_owned(), root.to_string()),
    ]);
    let since = existing.and_then(|existing| {
        let known = existing.marks.root.or_else(|| existing.relied_root());
        if known == Some(root) {
            existing.marks.root_since
        } else {
            Some(now)
        }
    });
    if let Some(since) = since {
        annotations.insert(mark::ROOT_SINCE.to_owned(), since.to_string());
    }
    let mut metadata = ObjectMeta {
        name: Some(meta::CACERTS_SECRET.to_owned()),
        namespace: Some(terms.namespace.clone()),
        labels: Some(mark::labels(namespace.unwrap_or_default())),
        annotations: Some(annotations),
        ..ObjectMeta::default()
    };
    let mut secret_type = Some(meta::ISSUED_CERTIFICATE_SECRET_TYPE.to_owned());
    if let Some(existing) = existing {
        existing.version.require(&mut metadata);
        secret_type.clone_from(&existing.secret_type);
    }
    let data = content.entries();
    let data = data.map(|(name, content)| (name.to_owned(), ByteString(content.to_vec())));
    Sealed::from(Secret {
        metadata,
        type_: secret_type,
        data: Some(BTreeMap::from(data)),
        ..Secret::default()
    })
}

impl fmt::Display for ForeignCa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = meta::CACERTS_SECRET;
        let Self {
            namespace,
            found,
            label,
        } = self;
        write!(f, "Secret {namespace}/{name} is not ours, ")?;
        match found {
            Found::Nothing => f.write_str("and holds no certificate authority")?,
            Found::IstioGenerated { .. } => f.write_str("it holds the one that istiod made")?,
            Found::Incomplete { missing, .. } => write!(f, "and lacks {}", missing.join(", "))?,
            Found::Invalid { reason, .. } => write!(f, "and does not verify ({reason})")?,
            Found::Valid { signer, .. } => {
                let subject = signer.certificate().subject();
                write!(f, "it holds {subject}, valid until {}", signer.not_after())?;
            }
        }
        write!(
            f,
            "; it is left as it is. If its root is that of the virtual mesh, label it {label} to have \
             it taken over; otherwise keep a copy and delete it: workloads then stop trusting each \
             other until they are restarted"
        )
    }
}
