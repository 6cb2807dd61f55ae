//! Addresses of API servers.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use super::Error;

/// Longest DNS name (RFC 1035, 2.3.4, in text form).
const MAX_HOST: usize = 253;

/// An address that people give: `host`, `host:port`, `[v6]:port`, also with `https://` and with a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    scheme: Option<Scheme>,
    host: Host,
    port: Option<u16>,
    /// Empty, or from its first `/` on.
    path: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    Ip(IpAddr),
    Name(String),
}

// === impl Address ===

impl FromStr for Address {
    type Err = Error;

    /// Reads an address at which the management plane is to reach an API server.
    fn from_str(text: &str) -> Result<Self, Error> {
        let address = Self::parse(text)?;
        if address.scheme == Some(Scheme::Http) {
            return Err(Error::Address {
                text: text.to_owned(),
                problem: "the credential would travel unencrypted: give https://host:port, or host:port",
            });
        }
        Ok(address)
    }
}

impl Address {
    /// Reads the `server` of a kubeconfig, which must say a scheme.
    pub(super) fn of_server(text: &str) -> Result<Self, Error> {
        let address = Self::parse(text)?;
        if address.scheme.is_none() {
            return Err(Error::Address {
                text: text.to_owned(),
                problem: "the scheme is missing: expected https://host:port",
            });
        }
        Ok(address)
    }

    fn parse(text: &str) -> Result<Self, Error> {
        Self::parts(text.trim()).map_err(|problem| Error::Address {
            text: text.to_owned(),
            problem,
        })
    }

    fn parts(text: &str) -> Result<Self, &'static str> {
        let (scheme, rest) = match text.split_once("://") {
            None => (None, text),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => {
                (Some(Scheme::Https), rest)
            }
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => {
                (Some(Scheme::Http), rest)
            }
            Some(_) => return Err("API servers speak https: expected https://host:port"),
        };
        let (authority, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, ""),
        };
        if authority.contains('@') {
            return Err("it carries credentials: give host:port alone");
        }
        if path
            .chars()
            .any(|char| !char.is_ascii_graphic() || "?#\"<>\\^`{|}".contains(char))
        {
            return Err("the path has characters that no API server expects");
        }
        let (host, port) = authority_parts(authority)?;
        Ok(Self {
            scheme,
            host,
            port,
            path: path.trim_end_matches('/').to_owned(),
        })
    }

    /// The server, given this address in place of `original`: always https, with the port of the original
    /// where this one names none. The path is this one's alone, for it belongs to who answers there.
    pub(super) fn instead_of(&self, original: &Self) -> String {
        let port = self
            .port
            .or(original.port)
            .map(|port| format!(":{port}"))
            .unwrap_or_default();
        format!("https://{}{port}{}", self.host, self.path)
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.scheme != Some(Scheme::Http)
    }

    /// Whether it means whichever machine asks.
    pub(super) fn is_local(&self) -> bool {
        match &self.host {
            Host::Ip(ip) => {
                let ip = ip.to_canonical();
                ip.is_loopback() || ip.is_unspecified()
            }
            Host::Name(name) => name == "localhost" || name.ends_with(".localhost"),
        }
    }

    /// The name by which a certificate knows the server.
    pub(super) fn server_name(&self) -> String {
        match &self.host {
            Host::Ip(ip) => ip.to_string(),
            Host::Name(name) => name.clone(),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]"),
            Self::Ip(ip) => ip.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

fn authority_parts(text: &str) -> Result<(Host, Option<u16>), &'static str> {
    if let Some(rest) = text.strip_prefix('[') {
        let (ip, rest) = rest.split_once(']').ok_or("the closing ] is missing")?;
        let ip: Ipv6Addr = ip
            .parse()
            .map_err(|_| "what stands between [ and ] is not an IPv6 address")?;
        let port = match rest {
            "" => None,
            _ => Some(port(
                rest.strip_prefix(':')
                    .ok_or("after ] only a port may follow")?,
            )?),
        };
        return Ok((Host::Ip(ip.into()), port));
    }
    // Without brackets all of it is the address: nobody can tell a port from its last part.
    if let Ok(ip) = text.parse::<Ipv6Addr>() {
        return Ok((Host::Ip(ip.into()), None));
    }
    let (name, port) = match text.split_once(':') {
        None => (text, None),
        Some((_, rest)) if rest.contains(':') => {
            return Err("an IPv6 address with a port needs brackets: [address]:port");
        }
        Some((name, rest)) => (name, Some(port(rest)?)),
    };
    Ok((host(name)?, port))
}

fn host(text: &str) -> Result<Host, &'static str> {
    if let Ok(ip) = text.parse::<Ipv4Addr>() {
        return Ok(Host::Ip(ip.into()));
    }
    if text.is_empty() {
        return Err("the host is missing");
    }
    let is_label = |label: &str| {
        let is_allowed = |char: char| char.is_ascii_alphanumeric() || char == '-' || char == '_';
        !label.is_empty() && label.chars().all(is_allowed)
    };
    if text.len() > MAX_HOST || !text.split('.').all(is_label) {
        return Err("the host is neither a DNS name nor an IP address");
    }
    // Such a name would be taken for an IPv4 address elsewhere (WHATWG URL, "ends in a number").
    if text
        .rsplit('.')
        .next()
        .is_some_and(|label| label.chars().all(|char| char.is_ascii_digit()))
    {
        return Err("the host ends in a number and is not an IPv4 address");
    }
    Ok(Host::Name(text.to_ascii_lowercase()))
}

fn port(text: &str) -> Result<u16, &'static str> {
    match text.parse() {
        Ok(port) if port > 0 && text.chars().all(|char| char.is_ascii_digit()) => Ok(port),
        _ => Err("the port is not a number from 1 to 65535"),
    }
}
