//! Profiles: what a root, the intermediate of a mesh and a serving certificate say.

use jiff::{SignedDuration, Timestamp};

use super::{
    CertOptions, INTERMEDIATE_LIFE, INTERMEDIATE_ORGANIZATION, MAX_ATTRIBUTE, Organization,
    ROOT_LIFE, ROOT_ORGANIZATION, SERVING_LIFE, Validity, Violation, is_text,
};
use crate::certificate::Certificate;
use crate::digest::Fingerprint;
use crate::key::{KeyAlgorithm, KeyKind, PublicKey};
use crate::name::SubjectAltName;

/// The most subject alternative names of a certificate.
const MAX_NAMES: usize = 64;

/// A subject: organization and common name, in this order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Subject {
    pub(crate) organization: Organization,
    pub(crate) common_name: String,
}

/// What a self-signed root says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RootProfile {
    organization: Organization,
    name: String,
    epoch: u64,
    life: SignedDuration,
    key_algorithm: KeyAlgorithm,
    path_length: Option<u8>,
}

impl RootProfile {
    /// The root of trust of a VirtualMesh. `epoch` counts its roots from 1.
    ///
    /// # Errors
    /// Those of the options, and [`Violation::Name`].
    pub fn for_virtual_mesh(
        options: &CertOptions,
        namespace: &str,
        name: &str,
        epoch: u64,
    ) -> Result<Self, Violation> {
        check_name("VirtualMesh", name)?;
        check_name("namespace", namespace)?;
        Ok(Self {
            organization: options.organization(ROOT_ORGANIZATION)?,
            name: format!("{name}.{namespace} root"),
            epoch,
            life: options.life(ROOT_LIFE)?,
            key_algorithm: options.key_algorithm(KeyAlgorithm::EcdsaP384)?,
            path_length: None,
        })
    }

    /// A CA that issues serving certificates only, such as that of the webhook: nothing but
    /// leaves may stand below it. `epoch` counts its roots from 1.
    ///
    /// # Errors
    /// [`Violation::Name`].
    pub fn for_serving(name: &str, epoch: u64) -> Result<Self, Violation> {
        check_name("serving CA", name)?;
        Ok(Self {
            organization: ROOT_ORGANIZATION.parse()?,
            name: format!("{name} CA"),
            epoch,
            life: ROOT_LIFE,
            key_algorithm: KeyAlgorithm::EcdsaP256,
            path_length: Some(0),
        })
    }

    /// The kind of key to generate for it.
    pub fn key_algorithm(&self) -> KeyAlgorithm {
        self.key_algorithm
    }

    pub(crate) fn path_length(&self) -> Option<u8> {
        self.path_length
    }

    pub(crate) fn validity(&self, now: Timestamp) -> Result<Validity, Violation> {
        Validity::new(self.life, now)
    }

    /// Unique for each root: the key is in it.
    pub(crate) fn subject(&self, key: &PublicKey) -> Subject {
        let mark = key.fingerprint().short();
        Subject {
            organization: self.organization.clone(),
            common_name: fit(&self.name, &format!(" e{} {mark}", self.epoch)),
        }
    }
}

/// What the intermediate of one mesh says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct IntermediateProfile {
    subject: Subject,
    life: SignedDuration,
    key_algorithm: KeyAlgorithm,
    names: Vec<SubjectAltName>,
}

impl IntermediateProfile {
    /// The intermediate of a mesh. `generation` counts its intermediates from 1; `names` are the
    /// hosts of the IssuedCertificate, as the management cluster computed them.
    ///
    /// # Errors
    /// Those of the options, [`Violation::Name`] and [`Violation::Hosts`].
    pub fn new(
        options: &CertOptions,
        cluster: &str,
        mesh: &str,
        generation: u64,
        names: Vec<SubjectAltName>,
    ) -> Result<Self, Violation> {
        check_name("cluster", cluster)?;
        check_name("Mesh", mesh)?;
        if names.len() > MAX_NAMES {
            return Err(Violation::Hosts(names.len()));
        }
        Ok(Self {
            subject: Subject {
                organization: options.organization(INTERMEDIATE_ORGANIZATION)?,
                common_name: fit(&format!("{cluster}/{mesh}"), &format!(" g{generation}")),
            },
            life: options.life(INTERMEDIATE_LIFE)?,
            key_algorithm: options.key_algorithm(KeyAlgorithm::EcdsaP256)?,
            names,
        })
    }

    /// The kind of key to generate for it.
    pub fn key_algorithm(&self) -> KeyAlgorithm {
        self.key_algorithm
    }

    pub(crate) fn subject(&self) -> &Subject {
        &self.subject
    }

    pub(crate) fn names(&self) -> &[SubjectAltName] {
        &self.names
    }

    pub(crate) fn validity(
        &self,
        issuer: &Certificate,
        now: Timestamp,
    ) -> Result<Validity, Violation> {
        Validity::nested(self.life, issuer, now)
    }

    pub(crate) fn check_key(&self, key: &PublicKey) -> Result<(), Violation> {
        let wanted = KeyKind::from(self.key_algorithm);
        let found = key.kind();
        if wanted == found {
            Ok(())
        } else {
            Err(Violation::KeyKind { wanted, found })
        }
    }
}

/// What the serving certificate of one of our own servers says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ServingProfile {
    subject: Subject,
    names: Vec<SubjectAltName>,
    life: SignedDuration,
}

impl ServingProfile {
    /// The certificate of a server that is called by `names`, DNS names and IP addresses; it
    /// lives for [`SERVING_LIFE`].
    ///
    /// # Errors
    /// [`Violation::Name`] and [`Violation::ServingNames`].
    pub fn new(server: &str, names: Vec<SubjectAltName>) -> Result<Self, Violation> {
        check_name("server", server)?;
        let callable = names.iter().all(|name| name.as_uri().is_none());
        if !callable || !(1..=MAX_NAMES).contains(&names.len()) {
            return Err(Violation::ServingNames);
        }
        Ok(Self {
            subject: Subject {
                organization: ROOT_ORGANIZATION.parse()?,
                common_name: fit(server, ""),
            },
            names,
            life: SERVING_LIFE,
        })
    }

    /// The kind of key to generate for it.
    pub fn key_algorithm(&self) -> KeyAlgorithm {
        KeyAlgorithm::EcdsaP256
    }

    /// The names that it is for.
    pub fn names(&self) -> &[SubjectAltName] {
        &self.names
    }

    pub(crate) fn subject(&self) -> &Subject {
        &self.subject
    }

    pub(crate) fn validity(
        &self,
        issuer: &Certificate,
        now: Timestamp,
    ) -> Result<Validity, Violation> {
        Validity::nested(self.life, issuer, now)
    }
}

fn check_name(what: &'static str, name: &str) -> Result<(), Violation> {
    if is_text(name) {
        Ok(())
    } else {
        Err(Violation::Name(what))
    }
}

/// A common name that keeps its end. One that is too long gives up part of its beginning for a
/// digest of it, so that different names stay different.
fn fit(beginning: &str, end: &str) -> String {
    let length = beginning.chars().count() + end.chars().count();
    if length <= MAX_ATTRIBUTE {
        return format!("{beginning}{end}");
    }
    let mark = format!("~{}", Fingerprint::of([beginning.as_bytes()]).short());
    let room = MAX_ATTRIBUTE.saturating_sub(mark.len() + end.chars().count());
    let kept: String = beginning.chars().take(room).collect();
    format!("{kept}{mark}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_but_stay_different_and_keep_their_generation() {
        let name = |end: &str| fit(&format!("{}{end}", "a".repeat(100)), " g12");
        assert_ne!(name("x"), name("y"));
        assert_eq!(name("x").chars().count(), MAX_ATTRIBUTE);
        assert!(name("x").ends_with(" g12"));
        assert_eq!(fit("cluster-1/istiod", " g1"), "cluster-1/istiod g1");
    }

    #[test]
    fn empty_names_are_refused() {
        let refused = IntermediateProfile::new(&CertOptions::default(), "", "m", 1, Vec::new());
        assert_eq!(refused, Err(Violation::Name("cluster")));
    }

    #[test]
    fn an_intermediate_has_a_bounded_number_of_hosts() {
        let hosts = vec![SubjectAltName::ip([10, 0, 0, 1].into()); 65];
        let refused = IntermediateProfile::new(&CertOptions::default(), "c", "m", 1, hosts);
        assert_eq!(refused, Err(Violation::Hosts(65)));
    }

    #[test]
    fn a_server_has_names_and_no_uris() {
        let uri = vec!["spiffe://a/b".parse().unwrap()];
        assert_eq!(
            ServingProfile::new("webhook", uri),
            Err(Violation::ServingNames)
        );
        assert_eq!(
            ServingProfile::new("webhook", Vec::new()),
            Err(Violation::ServingNames)
        );
    }
}
