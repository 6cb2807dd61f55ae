//! Names as types: what has one of these types is a name that the other side will take.
//!
//! Each is made by `FromStr` or `TryFrom<String>` and never changes afterwards. Reading one from
//! JSON applies the same rule.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Longest DNS label (RFC 1035, 2.3.4); Kubernetes has the same bound for label values.
const MAX_LABEL: usize = 63;
/// Longest DNS name (RFC 1035, 2.3.4, in text form); Kubernetes has the same bound for names.
const MAX_NAME: usize = 253;
/// Longest trust domain (SPIFFE ID, 2.1).
const MAX_TRUST_DOMAIN: usize = 255;

/// Why a text is not a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is not {what}: {fault}", shown(.text))]
pub struct NameError {
    text: String,
    what: &'static str,
    fault: Fault,
}

/// What is wrong with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Fault {
    #[error("it is empty")]
    Empty,
    #[error("it has {length} characters, more than {max}")]
    TooLong { length: usize, max: usize },
    #[error("it may contain only {allowed}, and has `{found}`")]
    Character { allowed: &'static str, found: char },
    #[error("a part between dots is empty")]
    EmptyLabel,
    #[error("each part between dots may have {MAX_LABEL} characters, and one has {length}")]
    LongLabel { length: usize },
    #[error("it must begin and end with a letter or a digit, and so must each part between dots")]
    Edge,
}

/// The text of a refused name, short enough for a message.
fn shown(text: &str) -> String {
    const SHOWN: usize = 80;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("`{}…`", text[..end].escape_debug()),
        None => format!("`{}`", text.escape_debug()),
    }
}

/// Makes the type of a name: parsing, printing and reading it all apply `$check`.
macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(text: String) -> Result<Self, NameError> {
                match $check(&text) {
                    Ok(()) => Ok(Self(text)),
                    Err(fault) => Err(NameError { text, what: $what, fault }),
                }
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                text.to_owned().try_into()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

name! {
    /// The name under which a cluster is registered.
    ///
    /// It becomes the name of objects, the value of labels and a part of host names, so it is a
    /// DNS label: at most 63 lower-case letters, digits and `-` (Kubernetes: RFC 1123 label).
    ClusterName, "a cluster name", dns_label
}

name! {
    /// The name of a namespace (Kubernetes: RFC 1123 label, at most 63 characters).
    Namespace, "a namespace", dns_label
}

name! {
    /// The name of an object (Kubernetes: RFC 1123 subdomain, at most 253 characters).
    ///
    /// Some kinds allow less; what they allow is always a part of this.
    ObjectName, "an object name", object_name
}

name! {
    /// A DNS host name in lower case, without a dot at the end and without a wildcard (RFC 1123,
    /// at most 253 characters in labels of at most 63).
    Hostname, "a host name", dns_name
}

name! {
    /// The trust domain of a SPIFFE ID (SPIFFE ID, 2.1: lower-case letters, digits, `.`, `-` and
    /// `_`, at most 255 characters).
    TrustDomain, "a trust domain", trust_domain
}

/// Letters and digits as names have them.
fn is_alphanumeric(char: char) -> bool {
    char.is_ascii_lowercase() || char.is_ascii_digit()
}

/// Checks the length, and that all characters are letters, digits or one of `others`.
fn characters(text: &str, max: usize, others: &[char], allowed: &'static str) -> Result<(), Fault> {
    if text.is_empty() {
        return Err(Fault::Empty);
    }
    match text
        .chars()
        .find(|&char| !is_alphanumeric(char) && !others.contains(&char))
    {
        Some(found) => Err(Fault::Character { allowed, found }),
        // All characters are ASCII, so bytes are characters.
        None if text.len() > max => Err(Fault::TooLong {
            length: text.len(),
            max,
        }),
        None => Ok(()),
    }
}

/// Checks that `text` begins and ends with a letter or a digit.
fn edges(text: &str) -> Result<(), Fault> {
    if text.starts_with(is_alphanumeric) && text.ends_with(is_alphanumeric) {
        Ok(())
    } else {
        Err(Fault::Edge)
    }
}

/// Whether a text is a DNS label, as names of Services, namespaces and registered clusters are (RFC 1123:
/// at most 63 lower-case letters, digits and `-`).
pub fn is_dns_label(text: &str) -> bool {
    dns_label(text).is_ok()
}

fn dns_label(text: &str) -> Result<(), Fault> {
    characters(
        text,
        MAX_LABEL,
        &['-'],
        "lower-case letters, digits and `-`",
    )?;
    edges(text)
}

fn object_name(text: &str) -> Result<(), Fault> {
    characters(
        text,
        MAX_NAME,
        &['-', '.'],
        "lower-case letters, digits, `-` and `.`",
    )?;
    text.split('.').try_for_each(|part| match part {
        "" => Err(Fault::EmptyLabel),
        part => edges(part),
    })
}

fn dns_name(text: &str) -> Result<(), Fault> {
    object_name(text)?;
    match text.split('.').find(|label| label.len() > MAX_LABEL) {
        Some(label) => Err(Fault::LongLabel {
            length: label.len(),
        }),
        None => Ok(()),
    }
}

fn trust_domain(text: &str) -> Result<(), Fault> {
    characters(
        text,
        MAX_TRUST_DOMAIN,
        &['.', '-', '_'],
        "lower-case letters, digits, `.`, `-` and `_`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault<N: FromStr<Err = NameError> + fmt::Debug>(text: &str) -> String {
        text.parse::<N>().unwrap_err().to_string()
    }

    #[test]
    fn a_cluster_name_is_a_dns_label() {
        assert_eq!(
            "cluster-1".parse::<ClusterName>().unwrap().as_str(),
            "cluster-1"
        );
        assert!("9".repeat(63).parse::<ClusterName>().is_ok());
        assert_eq!(
            fault::<ClusterName>("prod.eu"),
            "`prod.eu` is not a cluster name: it may contain only lower-case letters, digits and \
             `-`, and has `.`"
        );
        assert_eq!(
            fault::<ClusterName>(&"9".repeat(64)),
            format!(
                "`{}` is not a cluster name: it has 64 characters, more than 63",
                "9".repeat(64)
            )
        );
        assert_eq!(
            fault::<ClusterName>(""),
            "`` is not a cluster name: it is empty"
        );
        for text in ["-a", "a-"] {
            assert!(
                fault::<ClusterName>(text).contains("begin and end"),
                "{text}"
            );
        }
    }

    #[test]
    fn an_object_name_may_have_dots_and_long_parts() {
        assert!("virtual-mesh.gloo-mesh".parse::<ObjectName>().is_ok());
        assert!("a".repeat(253).parse::<ObjectName>().is_ok());
        assert!(fault::<ObjectName>(&"a".repeat(254)).contains("254 characters"));
        assert!(fault::<ObjectName>("a..b").contains("is empty"));
        assert!(fault::<ObjectName>("a.-b").contains("begin and end"));
        assert!(fault::<ObjectName>("Reviews").contains("has `R`"));
    }

    #[test]
    fn a_host_name_has_labels_of_63_characters() {
        assert!(
            "reviews.bookinfo.svc.cluster-1.global"
                .parse::<Hostname>()
                .is_ok()
        );
        assert!(
            format!("{}.global", "a".repeat(63))
                .parse::<Hostname>()
                .is_ok()
        );
        assert!(fault::<Hostname>(&format!("{}.global", "a".repeat(64))).contains("one has 64"));
        assert!(fault::<Hostname>("*.global").contains("has `*`"));
        assert!(fault::<Hostname>("example.com.").contains("is empty"));
    }

    #[test]
    fn a_trust_domain_follows_spiffe() {
        assert!("cluster.local".parse::<TrustDomain>().is_ok());
        assert!("prod_eu-1".parse::<TrustDomain>().is_ok());
        assert!(fault::<TrustDomain>("cluster.local/ns").contains("has `/`"));
        assert!(fault::<TrustDomain>(&"a".repeat(256)).contains("256 characters"));
    }

    #[test]
    fn a_refused_name_is_shown_short_and_without_control_characters() {
        let message = fault::<Namespace>(&format!("a\nb{}", "c".repeat(100)));
        assert!(message.starts_with("`a\\nb"), "{message}");
        assert!(message.contains('…'), "{message}");
    }

    #[test]
    fn json_applies_the_rule() {
        assert_eq!(
            serde_json::from_str::<Namespace>("\"bookinfo\"").unwrap(),
            "bookinfo".parse().unwrap()
        );
        let error = serde_json::from_str::<Namespace>("\"Book Info\"")
            .unwrap_err()
            .to_string();
        assert!(error.contains("`Book Info` is not a namespace"), "{error}");
        let name: Namespace = "bookinfo".parse().unwrap();
        assert_eq!(serde_json::to_string(&name).unwrap(), "\"bookinfo\"");
    }
}
