//! What an `IssuedCertificate` asks for.

use ferromesh_ca::digest::Fingerprint;
use ferromesh_ca::key::KeyAlgorithm;
use ferromesh_ca::name::SubjectAltName;
use ferromesh_ca::policy::{CertOptions, INTERMEDIATE_ORGANIZATION, Organization, Violation};
use ferromesh_crds::cert_options::CommonCertOptions;
use ferromesh_crds::{IssuedCertificateSpec, ObjectRef, meta};
use serde_json::json;

use crate::renewal::Share;

/// The most names that are asked for, as many as a certificate is given.
const MAX_HOSTS: usize = 64;

/// What is asked for, read once. Other terms take another key.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// Namespace of the Secret `cacerts`.
    pub namespace: String,
    /// Names, for issuers other than ours.
    pub names: Vec<SubjectAltName>,
    /// Organisation, for issuers other than ours.
    pub organization: Organization,
    /// The kind of key.
    pub algorithm: KeyAlgorithm,
    /// How much of its life is left when the certificate is renewed.
    pub renewal: Share,
    /// A digest of all that the certificate depends on. Whether and how pods are restarted and when
    /// it is renewed does not belong to it.
    pub digest: Fingerprint,
}

/// What is wrong with the terms. The text names the field and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Somebody else's job.
    #[error("spec.agentCa is not supported yet: use spec.glooMeshCa")]
    AgentCa,
    /// A Secret that no istiod reads.
    #[error(
        "spec.issuedCertificateSecret must name the Secret {} and its namespace: istiod reads no other",
        meta::CACERTS_SECRET
    )]
    Target,
    /// A number below zero or too large.
    #[error("{0} is not a whole number from 0 to 4294967295")]
    Number(&'static str),
    /// What policy says.
    #[error(transparent)]
    Policy(#[from] Violation),
}

impl Terms {
    /// Reads them; none if nothing is to be stored, or nobody is named to sign.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn read(spec: &IssuedCertificateSpec) -> Result<Option<Self>, Fault> {
        let Some(target) = &spec.issued_certificate_secret else {
            return Ok(None);
        };
        if spec.agent_ca.is_some() {
            return Err(Fault::AgentCa);
        }
        let Some(signer) = signer(spec) else {
            return Ok(None);
        };
        if target.name != meta::CACERTS_SECRET || target.namespace.is_empty() {
            return Err(Fault::Target);
        }
        if spec.hosts.len() > MAX_HOSTS {
            return Err(Violation::Hosts(spec.hosts.len()).into());
        }
        let common = spec.cert_options.clone().unwrap_or_default();
        let mut options = cert_options(&common)?;
        if options.organization.is_none() && !spec.org.is_empty() {
            options.organization = Some(spec.org.clone());
        }
        let organization = options.organization(INTERMEDIATE_ORGANIZATION)?;
        let algorithm = options.key_algorithm(KeyAlgorithm::EcdsaP256)?;
        let names: Result<Vec<SubjectAltName>, Violation> =
            spec.hosts.iter().map(|host| host.parse()).collect();
        let asked = json!([
            spec.hosts,
            common.ttl_days,
            common.rsa_key_size_bytes,
            organization.as_str(),
            signer.namespace,
            signer.name,
        ]);
        Ok(Some(Self {
            namespace: target.namespace.clone(),
            names: names?,
            organization,
            algorithm,
            renewal: Share::new(common.secret_rotation_grace_period_ratio),
            digest: Fingerprint::of([asked.to_string().as_bytes()]),
        }))
    }
}

/// The Secret of the management cluster that is to sign: the new field before the deprecated one.
fn signer(spec: &IssuedCertificateSpec) -> Option<&ObjectRef> {
    let authority = spec.gloo_mesh_ca.as_ref();
    authority
        .and_then(|authority| authority.signing_certificate_secret.as_ref())
        .or(spec.signing_certificate_secret.as_ref())
}

/// The options of a certificate as policy takes them: what is zero or empty is left out.
///
/// # Errors
/// [`Fault::Number`].
pub fn cert_options(common: &CommonCertOptions) -> Result<CertOptions, Fault> {
    let number = |field, number: i64| match u32::try_from(number) {
        Ok(0) => Ok(None),
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(Fault::Number(field)),
    };
    Ok(CertOptions {
        ttl_days: number("ttlDays", common.ttl_days)?,
        rsa_key_size_bits: number("rsaKeySizeBytes", common.rsa_key_size_bytes)?,
        organization: Some(common.org_name.clone()).filter(|name| !name.is_empty()),
    })
}

#[cfg(test)]
mod tests {
    use ferromesh_crds::issued_certificate::{AgentCa, GlooMeshCa};

    use super::*;

    fn reference(name: &str) -> ObjectRef {
        ObjectRef {
            name: name.to_owned(),
            namespace: "istio-system".to_owned(),
        }
    }

    fn spec() -> IssuedCertificateSpec {
        IssuedCertificateSpec {
            hosts: vec!["spiffe://cluster.local/ns/istio-system/sa/istiod".to_owned()],
            issued_certificate_secret: Some(reference("cacerts")),
            gloo_mesh_ca: Some(GlooMeshCa {
                signing_certificate_secret: Some(reference("root")),
            }),
            ..IssuedCertificateSpec::default()
        }
    }

    fn changed(change: impl FnOnce(&mut IssuedCertificateSpec)) -> Result<Option<Terms>, Fault> {
        let mut spec = spec();
        change(&mut spec);
        Terms::read(&spec)
    }

    fn digest(change: impl FnOnce(&mut IssuedCertificateSpec)) -> Fingerprint {
        changed(change).unwrap().unwrap().digest
    }

    #[test]
    fn hosts_options_and_issuer_are_terms_and_restarts_are_not() {
        let plain = digest(|_| {});
        assert_eq!(plain, digest(|_| {}));
        assert_eq!(
            plain,
            digest(|spec| spec.pod_bounce_directive = Some(reference("bounce")))
        );
        assert_eq!(
            plain,
            digest(|spec| spec.issued_certificate_secret = Some(ObjectRef {
                name: "cacerts".to_owned(),
                namespace: "istio-2".to_owned(),
            }))
        );
        let option = |change: fn(&mut CommonCertOptions)| {
            let mut options = CommonCertOptions::default();
            change(&mut options);
            digest(|spec| spec.cert_options = Some(options))
        };
        assert_eq!(
            plain,
            option(|options| options.secret_rotation_grace_period_ratio = 0.2)
        );
        assert_ne!(plain, option(|options| options.ttl_days = 3));
        assert_ne!(plain, option(|options| options.rsa_key_size_bytes = 2048));
        assert_ne!(plain, option(|options| options.org_name = "acme".into()));
        assert_ne!(plain, digest(|spec| spec.hosts.clear()));
        let other = |spec: &mut IssuedCertificateSpec| {
            spec.gloo_mesh_ca = Some(GlooMeshCa {
                signing_certificate_secret: Some(reference("other")),
            });
        };
        assert_ne!(plain, digest(other));
    }

    #[test]
    fn what_names_no_secret_or_no_signer_is_left_alone() {
        assert_eq!(
            changed(|spec| spec.issued_certificate_secret = None),
            Ok(None)
        );
        assert_eq!(changed(|spec| spec.gloo_mesh_ca = None), Ok(None));
        let deprecated = changed(|spec| {
            spec.gloo_mesh_ca = None;
            spec.signing_certificate_secret = Some(reference("root"));
        });
        assert_eq!(deprecated, changed(|_| {}));
    }

    #[test]
    fn only_the_secret_that_istiod_reads_is_written() {
        let other = changed(|spec| spec.issued_certificate_secret = Some(reference("other")));
        assert_eq!(other, Err(Fault::Target));
        let nowhere = changed(|spec| {
            spec.issued_certificate_secret = Some(ObjectRef {
                name: "cacerts".to_owned(),
                namespace: String::new(),
            });
        });
        assert_eq!(nowhere, Err(Fault::Target));
    }

    #[test]
    fn what_cannot_be_asked_for_is_refused_by_name() {
        let agent = changed(|spec| spec.agent_ca = Some(AgentCa::default()));
        assert_eq!(agent, Err(Fault::AgentCa));
        let host = changed(|spec| spec.hosts.push("a b".to_owned()));
        assert!(matches!(host, Err(Fault::Policy(_))));
        let many = changed(|spec| spec.hosts = vec!["a.b".to_owned(); 65]);
        assert_eq!(many, Err(Fault::Policy(Violation::Hosts(65))));
        let options = CommonCertOptions {
            ttl_days: -1,
            ..CommonCertOptions::default()
        };
        assert_eq!(cert_options(&options), Err(Fault::Number("ttlDays")));
    }
}
