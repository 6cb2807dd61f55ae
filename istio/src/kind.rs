//! Which kinds there are, and how a cluster names them.

use serde::Serialize;

/// A kind of Istio object that Ferromesh writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Kind {
    /// Who may call a workload.
    AuthorizationPolicy,
    /// How to talk to a host: TLS, subsets, connection pool.
    DestinationRule,
    /// What a gateway workload listens on.
    Gateway,
    /// A host that the registry of a cluster does not know by itself.
    ServiceEntry,
    /// How requests to a host are routed.
    VirtualService,
}

impl Kind {
    /// Every kind, in the order of its name.
    pub const ALL: [Self; 5] = [
        Self::AuthorizationPolicy,
        Self::DestinationRule,
        Self::Gateway,
        Self::ServiceEntry,
        Self::VirtualService,
    ];

    /// The kind's name in the API, for example `VirtualService`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AuthorizationPolicy => "AuthorizationPolicy",
            Self::DestinationRule => "DestinationRule",
            Self::Gateway => "Gateway",
            Self::ServiceEntry => "ServiceEntry",
            Self::VirtualService => "VirtualService",
        }
    }

    /// The resource name in a URL, for example `virtualservices`.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::AuthorizationPolicy => "authorizationpolicies",
            Self::DestinationRule => "destinationrules",
            Self::Gateway => "gateways",
            Self::ServiceEntry => "serviceentries",
            Self::VirtualService => "virtualservices",
        }
    }

    /// The API group.
    pub const fn group(self) -> &'static str {
        match self {
            Self::AuthorizationPolicy => "security.istio.io",
            Self::DestinationRule | Self::Gateway | Self::ServiceEntry | Self::VirtualService => {
                "networking.istio.io"
            }
        }
    }

    /// The versions that our specs are valid for, best first.
    ///
    /// Istio 1.22 and newer serve `v1`; older ones (we support 1.20) serve the others with the
    /// same schema for every field that we write.
    pub const fn versions(self) -> &'static [&'static str] {
        match self {
            Self::AuthorizationPolicy => &["v1", "v1beta1"],
            Self::DestinationRule | Self::Gateway | Self::ServiceEntry | Self::VirtualService => {
                &["v1", "v1beta1", "v1alpha3"]
            }
        }
    }
}
