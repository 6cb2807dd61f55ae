//! Names in certificates: subjects and issuers as they stand, and subject alternative names.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use x509_parser::der_parser::asn1_rs::{Any, Tag};
use x509_parser::x509::X509Name;

use crate::policy::Violation;

/// The most characters of a name that are shown.
const SHOWN: usize = 256;
/// The most characters of a URI in a certificate.
const MAX_URI: usize = 2048;
/// The most characters of a DNS name (RFC 1035, 2.3.4).
const MAX_DNS: usize = 253;

/// A distinguished name: its DER for comparing, its text for people.
#[derive(Clone, Eq, PartialEq)]
pub struct Name {
    der: Vec<u8>,
    text: String,
    fault: Option<&'static str>,
}

impl Name {
    pub(crate) fn new(der: &[u8], parsed: &X509Name<'_>) -> Self {
        let text: String = parsed
            .to_string()
            .chars()
            .map(|char| if char.is_control() { '\u{fffd}' } else { char })
            .take(SHOWN)
            .collect();
        Self {
            der: der.to_vec(),
            text,
            fault: parsed
                .iter_attributes()
                .find_map(|attribute| string_fault(attribute.attr_value())),
        }
    }

    /// The DER, tag and length included. Names are the same if and only if these bytes are.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// Whether it has no attribute at all.
    pub fn is_empty(&self) -> bool {
        // An empty SEQUENCE is its tag and a zero length.
        self.der.len() <= 2
    }

    /// Why some verifier could not read it.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        self.fault
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            f.write_str("(empty name)")
        } else {
            f.write_str(&self.text)
        }
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text)
    }
}

/// Go, and with it istiod, reads only these string types, and checks their characters.
fn string_fault(value: &Any<'_>) -> Option<&'static str> {
    let bytes = value.data;
    let all = |allowed: &dyn Fn(u8) -> bool| bytes.iter().all(|byte| allowed(*byte));
    match value.tag() {
        Tag::Utf8String => std::str::from_utf8(bytes)
            .is_err()
            .then_some("a UTF8String that is not UTF-8"),
        Tag::PrintableString => {
            let printable =
                |byte: u8| byte.is_ascii_alphanumeric() || b" '()+,-./:=?*&".contains(&byte);
            (!all(&printable)).then_some("a PrintableString with a character it may not have")
        }
        Tag::NumericString => {
            let numeric = |byte: u8| byte.is_ascii_digit() || byte == b' ';
            (!all(&numeric)).then_some("a NumericString with a character it may not have")
        }
        Tag::Ia5String => (!bytes.is_ascii()).then_some("an IA5String that is not ASCII"),
        Tag::BmpString => {
            let (pairs, odd) = bytes.as_chunks::<2>();
            let surrogate = |pair: &[u8; 2]| (0xd800..0xe000).contains(&u16::from_be_bytes(*pair));
            (!odd.is_empty() || pairs.iter().any(surrogate))
                .then_some("a BMPString that is not UCS-2")
        }
        Tag::T61String => None,
        _ => Some("an attribute that is not a usual string"),
    }
}

/// A name under which the subject of a certificate is known (RFC 5280, 4.2.1.6).
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SubjectAltName(Kind);

#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
enum Kind {
    Uri(String),
    Dns(String),
    Ip(IpAddr),
}

impl SubjectAltName {
    /// An IP address.
    pub fn ip(address: IpAddr) -> Self {
        Self(Kind::Ip(address))
    }

    /// The text, if this is a URI.
    pub fn as_uri(&self) -> Option<&str> {
        match &self.0 {
            Kind::Uri(uri) => Some(uri),
            Kind::Dns(_) | Kind::Ip(_) => None,
        }
    }

    pub(crate) fn to_rcgen(&self) -> rcgen::SanType {
        const ASCII: &str = "names are checked to be ASCII when they are read";
        match &self.0 {
            Kind::Uri(uri) => rcgen::SanType::URI(uri.as_str().try_into().expect(ASCII)),
            Kind::Dns(name) => rcgen::SanType::DnsName(name.as_str().try_into().expect(ASCII)),
            Kind::Ip(address) => rcgen::SanType::IpAddress(*address),
        }
    }
}

impl FromStr for SubjectAltName {
    type Err = Violation;

    /// Reads an IP address, a URI (which holds `://`) or else a DNS name.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(address) = text.parse() {
            return Ok(Self(Kind::Ip(address)));
        }
        let kind = match text.split_once("://") {
            Some((scheme, rest)) if is_uri(scheme, rest) => Kind::Uri(text.to_owned()),
            None if is_dns(text) => Kind::Dns(text.to_owned()),
            _ => {
                return Err(Violation::SubjectAltName(
                    text.chars().take(SHOWN).collect(),
                ));
            }
        };
        Ok(Self(kind))
    }
}

impl fmt::Display for SubjectAltName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Uri(text) | Kind::Dns(text) => f.write_str(text),
            Kind::Ip(address) => address.fmt(f),
        }
    }
}

/// RFC 3986, 3.1 for the scheme; of the rest, that it has a host and visible ASCII only.
fn is_uri(scheme: &str, rest: &str) -> bool {
    let scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let host = rest.split('/').next().is_some_and(|host| !host.is_empty());
    scheme && host && rest.len() <= MAX_URI && rest.bytes().all(|byte| byte.is_ascii_graphic())
}

/// RFC 1035, 2.3.1, with a wildcard as the first label.
fn is_dns(name: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let name = name.strip_prefix("*.").unwrap_or(name);
    name.len() <= MAX_DNS && name.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_told_apart_by_their_form() {
        let uri = "spiffe://cluster.local/ns/istio-system/sa/istiod";
        for (text, kind) in [
            (uri, Kind::Uri(uri.into())),
            (
                "istiod.istio-system.svc",
                Kind::Dns("istiod.istio-system.svc".into()),
            ),
            ("*.example.com", Kind::Dns("*.example.com".into())),
            ("10.0.0.1", Kind::Ip("10.0.0.1".parse().unwrap())),
            ("fd00::1", Kind::Ip("fd00::1".parse().unwrap())),
        ] {
            let name: SubjectAltName = text.parse().unwrap();
            assert_eq!(name.0, kind);
            assert_eq!(name.to_string(), text);
        }
    }

    #[test]
    fn hosts_that_a_verifier_could_not_read_are_refused() {
        for text in [
            "",
            "spiffe://",
            "spiffe:///ns/a",
            "://a/b",
            "1a://b",
            "spiffe://a b",
            "spiffe://é/a",
            "a..b",
            "-a",
            "a_b",
            "*.*.b",
            &"a".repeat(64),
            &"a.".repeat(200),
        ] {
            assert!(text.parse::<SubjectAltName>().is_err(), "{text}");
        }
    }
}
