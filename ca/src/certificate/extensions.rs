//! The extensions of a certificate, as far as a verifier in a mesh cares.

use std::net::IpAddr;

use x509_parser::certificate::X509Certificate;
use x509_parser::der_parser::oid::Oid;
use x509_parser::extensions::{GeneralName, NameConstraints, ParsedExtension};

/// The most characters of an object identifier that are shown.
const SHOWN: usize = 64;

/// What the extensions say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extensions {
    pub(crate) is_ca: bool,
    /// How many CA certificates may stand between this one and a leaf.
    pub(crate) path_length: Option<u32>,
    pub(crate) key_usage: Option<KeyUsage>,
    pub(crate) extended_key_usage: Option<ExtendedKeyUsage>,
    pub(crate) subject_key_id: Option<Vec<u8>>,
    pub(crate) authority: Authority,
    pub(crate) uris: Vec<String>,
    pub(crate) dns_names: Vec<String>,
    pub(crate) addresses: Vec<IpAddr>,
    /// A kind of name that a name constraint speaks of and that rustls cannot judge.
    pub(crate) constrained: Option<&'static str>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyUsage {
    pub(crate) digital_signature: bool,
    pub(crate) key_cert_sign: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ExtendedKeyUsage {
    pub(crate) server: bool,
    pub(crate) client: bool,
}

/// The authority key identifier (RFC 5280, 4.2.1.1): what it says of the issuer's certificate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Authority {
    pub(crate) key_id: Option<Vec<u8>>,
    /// DER of the name of the issuer's issuer.
    pub(crate) issuer: Option<Vec<u8>>,
    pub(crate) serial: Option<Vec<u8>>,
}

impl Extensions {
    /// Reads them all. `Err` names the one that stands twice or cannot be read.
    pub(super) fn read(certificate: &X509Certificate<'_>) -> Result<Self, String> {
        let mut read = Self::default();
        let all = certificate.extensions();
        for (index, extension) in all.iter().enumerate() {
            let twice = all
                .iter()
                .skip(index + 1)
                .any(|other| other.oid == extension.oid);
            if twice || read.add(extension.parsed_extension()).is_none() {
                return Err(shown(&extension.oid));
            }
        }
        Ok(read)
    }

    /// Takes in one extension; `None` if its content cannot be read.
    fn add(&mut self, extension: &ParsedExtension<'_>) -> Option<()> {
        match extension {
            ParsedExtension::ParseError { .. } | ParsedExtension::Unparsed => return None,
            ParsedExtension::BasicConstraints(constraints) => {
                self.is_ca = constraints.ca;
                self.path_length = constraints.path_len_constraint;
            }
            ParsedExtension::KeyUsage(usage) => {
                self.key_usage = Some(KeyUsage {
                    digital_signature: usage.digital_signature(),
                    key_cert_sign: usage.key_cert_sign(),
                });
            }
            ParsedExtension::ExtendedKeyUsage(usage) => {
                self.extended_key_usage = Some(ExtendedKeyUsage {
                    server: usage.server_auth,
                    client: usage.client_auth,
                });
            }
            ParsedExtension::SubjectKeyIdentifier(id) => {
                self.subject_key_id = Some(id.0.to_vec());
            }
            ParsedExtension::AuthorityKeyIdentifier(authority) => {
                let mut names = authority.authority_cert_issuer.iter().flatten();
                self.authority = Authority {
                    key_id: authority.key_identifier.as_ref().map(|id| id.0.to_vec()),
                    issuer: names.find_map(|name| match name {
                        GeneralName::DirectoryName(name) => Some(name.as_raw().to_vec()),
                        _ => None,
                    }),
                    serial: authority.authority_cert_serial.map(<[u8]>::to_vec),
                };
            }
            ParsedExtension::SubjectAlternativeName(names) => {
                return names
                    .general_names
                    .iter()
                    .try_for_each(|name| self.add_name(name));
            }
            ParsedExtension::NameConstraints(constraints) => {
                self.constrained = unjudged(constraints);
            }
            _ => {}
        }
        Some(())
    }

    fn add_name(&mut self, name: &GeneralName<'_>) -> Option<()> {
        match name {
            GeneralName::URI(uri) => self.uris.push((*uri).to_owned()),
            GeneralName::DNSName(name) => self.dns_names.push((*name).to_owned()),
            GeneralName::IPAddress(octets) => {
                let v4 = <[u8; 4]>::try_from(*octets).map(IpAddr::from);
                let v6 = <[u8; 16]>::try_from(*octets).map(IpAddr::from);
                self.addresses.push(v4.or(v6).ok()?);
            }
            GeneralName::Invalid(..) => return None,
            _ => {}
        }
        Some(())
    }
}

/// rustls refuses every certificate below a constraint on a kind of name that it cannot match,
/// URIs (and so SPIFFE IDs) among them, even where the name would be inside.
fn unjudged(constraints: &NameConstraints<'_>) -> Option<&'static str> {
    let permitted = constraints.permitted_subtrees.iter().flatten();
    let excluded = constraints.excluded_subtrees.iter().flatten();
    permitted
        .chain(excluded)
        .find_map(|subtree| match subtree.base {
            GeneralName::DNSName(_) | GeneralName::IPAddress(_) => None,
            GeneralName::URI(_) => Some("URIs"),
            GeneralName::RFC822Name(_) => Some("email addresses"),
            GeneralName::DirectoryName(_) => Some("directory names"),
            _ => Some("names of a rare kind"),
        })
}

/// An object identifier as text, bounded.
pub(crate) fn shown(oid: &Oid<'_>) -> String {
    oid.to_id_string().chars().take(SHOWN).collect()
}
