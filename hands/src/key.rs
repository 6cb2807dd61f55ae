//! The private key of a certificate, while its certificate is asked for and after.
//!
//! Its Secret is created once and immutable. The next generation has a key of its own: the Secret of
//! the one before is then deleted by its uid, never because something is absent. `cacerts` holds its
//! own copy, so nothing that signs ever depends on this Secret.

use std::collections::BTreeMap;

use ferromesh_ca::digest::Fingerprint;
use ferromesh_ca::key::PrivateKey;
use ferromesh_crds::{IssuedCertificate, meta};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::mark::{self, Generation, Version};
use crate::sealed::Sealed;

/// The key that is stored, if one is.
pub enum StoredKey {
    /// No Secret of that name.
    Absent,
    /// A Secret of that name that belongs to somebody else.
    Foreign,
    /// Ours, and of no use.
    Broken {
        /// Which Secret.
        version: Version,
        /// Its generation, if it says one.
        generation: Option<Generation>,
    },
    /// Ours.
    Held(Box<HeldKey>),
}

/// A key of ours.
pub struct HeldKey {
    /// The key.
    pub key: PrivateKey,
    /// Its generation; none if somebody made it who did not count.
    pub generation: Option<Generation>,
    /// The digest of the terms that it was made for, as it stands there.
    pub terms: Option<String>,
    /// When it was made, by the clock of the API server.
    pub created: Option<Timestamp>,
    /// Which Secret.
    pub version: Version,
}

impl StoredKey {
    /// Reads the Secret that should hold the key of a certificate in `namespace`.
    pub fn read(secret: Option<&Sealed>, namespace: &str) -> Self {
        let Some(sealed) = secret else {
            return Self::Absent;
        };
        let secret = sealed.open();
        let of_our_type = secret.type_.as_deref() == Some(meta::GENERATED_KEY_SECRET_TYPE);
        if !of_our_type || !mark::is_ours(&secret.metadata, namespace) {
            return Self::Foreign;
        }
        let version = Version::of(&secret.metadata);
        let generation = Generation::of(&secret.metadata);
        let created = secret.metadata.creation_timestamp.as_ref();
        let text = sealed.entry(meta::PRIVATE_KEY_KEY).unwrap_or_default();
        match PrivateKey::from_pem(meta::PRIVATE_KEY_KEY, text) {
            Ok(key) => Self::Held(Box::new(HeldKey {
                key,
                generation,
                terms: mark::annotation(&secret.metadata, mark::TERMS).map(str::to_owned),
                created: created.map(|time| time.0),
                version,
            })),
            Err(_) => Self::Broken {
                version,
                generation,
            },
        }
    }

    /// The generation that is stored.
    pub fn generation(&self) -> Option<Generation> {
        match self {
            Self::Absent | Self::Foreign => None,
            Self::Broken { generation, .. } => *generation,
            Self::Held(held) => held.generation,
        }
    }

    /// Which Secret is in the way of a new key.
    pub fn version(&self) -> Option<Version> {
        match self {
            Self::Absent | Self::Foreign => None,
            Self::Broken { version, .. } => Some(version.clone()),
            Self::Held(held) => Some(held.version.clone()),
        }
    }
}

/// The Secret for a new key of `certificate`.
pub fn object(
    certificate: &IssuedCertificate,
    generation: Generation,
    terms: Fingerprint,
    key: &PrivateKey,
) -> Sealed {
    let meta = &certificate.metadata;
    let namespace = meta.namespace.clone().unwrap_or_default();
    let pem = key.to_pkcs8_pem();
    let secret = Secret {
        metadata: ObjectMeta {
            name: meta.name.clone(),
            labels: Some(mark::labels(&namespace)),
            annotations: Some(BTreeMap::from([
                (mark::GENERATION.to_owned(), generation.to_string()),
                (mark::TERMS.to_owned(), terms.to_string()),
            ])),
            namespace: Some(namespace),
            ..ObjectMeta::default()
        },
        type_: Some(meta::GENERATED_KEY_SECRET_TYPE.to_owned()),
        immutable: Some(true),
        data: Some(BTreeMap::from([(
            meta::PRIVATE_KEY_KEY.to_owned(),
            ByteString(pem.as_bytes().to_vec()),
        )])),
        ..Secret::default()
    };
    Sealed::from(secret)
}
