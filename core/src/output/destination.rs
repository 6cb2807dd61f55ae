//! Outputs of a destination.

use std::collections::BTreeMap;

use ferromesh_crds::meta;
use ferromesh_istio::Kind;
use ferromesh_istio::destination_rule::ClientTlsMode;

use super::{DESTINATION, Output, OutputKey, OutputKind, Spec, VIRTUAL_MESH, owned, parents};
use crate::estate::{Client, Membership, Site};
use crate::federate::Federation;
use crate::model::destination::KubeService;
use crate::naming;
use crate::record::{Record, Subsets};
use crate::translate::{destination_rule, service_entry, virtual_service};

/// A destination's record with the subsets that others take of it.
#[derive(Clone, Copy)]
pub(crate) struct Translated<'a> {
    pub(crate) record: &'a Record,
    pub(crate) subsets: &'a Subsets,
}

/// One of the objects that a destination can have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot<'a> {
    /// For callers in its own cluster, by its own name.
    Local(LocalKind),
    /// For the gateway of its own mesh, by its federated name.
    Own(OwnKind),
    /// For callers of another mesh.
    Remote(RemoteKind, &'a Client),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LocalKind {
    AuthorizationPolicy,
    DestinationRule,
    VirtualService,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnKind {
    DestinationRule,
    ServiceEntry,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RemoteKind {
    DestinationRule,
    ServiceEntry,
    VirtualService,
}

impl Slot<'_> {
    /// Whether it is an object that routes callers.
    pub(super) fn has_routes(self) -> bool {
        matches!(
            self,
            Slot::Local(LocalKind::VirtualService) | Slot::Remote(RemoteKind::VirtualService, _)
        )
    }

    /// Whether slots of two destinations that are placed alike are the same object.
    pub(crate) fn is_same_object(self, other: Slot<'_>) -> bool {
        match (self, other) {
            (Slot::Remote(kind, client), Slot::Remote(other_kind, other)) => {
                kind == other_kind
                    && client.cluster == other.cluster
                    && client.namespace == other.namespace
            }
            _ => self == other,
        }
    }
}

/// What a destination with outputs always has.
pub(super) struct Parts<'a> {
    pub(super) service: &'a KubeService,
    pub(super) site: &'a Site,
}

impl<'a> Translated<'a> {
    pub(super) fn parts(self) -> Option<Parts<'a>> {
        Some(Parts {
            service: self.record.service()?,
            site: self.record.site.as_deref()?,
        })
    }

    pub(super) fn federation(self) -> Option<(&'a Federation, &'a Membership)> {
        let federation = self.record.federation.as_deref()?;
        Some((federation, self.record.site.as_ref()?.membership.as_ref()?))
    }

    /// The objects that the destination has.
    pub(crate) fn slots(self) -> impl Iterator<Item = Slot<'a>> {
        self.places().filter(move |slot| self.has(*slot))
    }

    /// The objects that it may have, in the order of [`slots`](Self::slots).
    pub(super) fn places(self) -> impl Iterator<Item = Slot<'a>> {
        let local = self.parts().map(|_| {
            [
                LocalKind::DestinationRule,
                LocalKind::VirtualService,
                LocalKind::AuthorizationPolicy,
            ]
        });
        let federation = self.federation().filter(|_| local.is_some());
        let clients = federation.map(|(federation, _)| &*federation.clients);
        let clients = clients.filter(|clients| !clients.is_empty());
        let own = clients.map(|_| [OwnKind::ServiceEntry, OwnKind::DestinationRule]);
        let remote = clients.unwrap_or_default().iter().flat_map(|client| {
            [
                RemoteKind::ServiceEntry,
                RemoteKind::DestinationRule,
                RemoteKind::VirtualService,
            ]
            .map(|kind| Slot::Remote(kind, client))
        });
        let local = local.into_iter().flatten().map(Slot::Local);
        let own = own.into_iter().flatten().map(Slot::Own);
        local.chain(own).chain(remote)
    }

    /// Whether it has one of them.
    pub(super) fn has(self, place: Slot<'_>) -> bool {
        let Some(Parts { service, .. }) = self.parts() else {
            return false;
        };
        match place {
            Slot::Local(LocalKind::VirtualService) => self.is_routed(service.reference.cluster()),
            Slot::Local(LocalKind::AuthorizationPolicy) => self.record.authorization.is_some(),
            Slot::Remote(RemoteKind::VirtualService, client) => self.is_routed(&client.cluster),
            Slot::Local(LocalKind::DestinationRule)
            | Slot::Own(OwnKind::ServiceEntry | OwnKind::DestinationRule)
            | Slot::Remote(RemoteKind::ServiceEntry | RemoteKind::DestinationRule, _) => true,
        }
    }

    /// Whether there is anything to say about requests of callers in `origin`.
    pub(super) fn is_routed(self, origin: &str) -> bool {
        let Some(Parts { service, .. }) = self.parts() else {
            return false;
        };
        !service.ports.is_empty() && !self.record.routes.from(origin).groups.is_empty()
    }

    /// Where an object stands.
    pub(crate) fn key(self, slot: Slot<'_>) -> Option<OutputKey> {
        let Parts { service, site } = self.parts()?;
        let reference = &service.reference;
        let key = |cluster: &str, kind, namespace: &str, name: &str| OutputKey {
            cluster: cluster.into(),
            kind: OutputKind::Istio(kind),
            namespace: namespace.into(),
            name: name.into(),
        };
        Some(match slot {
            Slot::Local(local) => {
                let kind = match local {
                    LocalKind::AuthorizationPolicy => Kind::AuthorizationPolicy,
                    LocalKind::DestinationRule => Kind::DestinationRule,
                    LocalKind::VirtualService => Kind::VirtualService,
                };
                key(
                    reference.cluster(),
                    kind,
                    reference.namespace(),
                    reference.name(),
                )
            }
            Slot::Own(own) => {
                let kind = match own {
                    OwnKind::DestinationRule => Kind::DestinationRule,
                    OwnKind::ServiceEntry => Kind::ServiceEntry,
                };
                let (federation, _) = self.federation()?;
                key(&site.cluster, kind, &site.namespace, &federation.hostname)
            }
            Slot::Remote(remote, client) => {
                let joined = || {
                    naming::federated_object(
                        reference.name(),
                        reference.namespace(),
                        reference.cluster(),
                    )
                };
                let (kind, name) = match remote {
                    RemoteKind::DestinationRule => (Kind::DestinationRule, joined()),
                    RemoteKind::VirtualService => (Kind::VirtualService, joined()),
                    RemoteKind::ServiceEntry => (
                        Kind::ServiceEntry,
                        self.federation()?.0.hostname.to_string(),
                    ),
                };
                key(&client.cluster, kind, &client.namespace, &name)
            }
        })
    }

    /// The TLS mode within the cluster; none where the mesh's own is to be used and nobody there
    /// could answer it.
    pub(super) fn local_tls(self) -> Option<ClientTlsMode> {
        let mode = self.parts()?.site.tls_mode;
        let is_answered =
            mode != ClientTlsMode::IstioMutual || !self.record.destination.is_outside_meshes();
        is_answered.then_some(mode)
    }

    /// Renders an object; `owner` is our namespace.
    pub(crate) fn render(self, slot: Slot<'_>, owner: &str) -> Option<Output> {
        let key = self.key(slot)?;
        let Parts { service, site } = self.parts()?;
        let destination = &self.record.destination;
        let reference = &service.reference;
        let local_host =
            || naming::local_fqdn(reference.name(), reference.namespace(), &site.domain);
        let mut annotations = BTreeMap::new();
        let spec = match slot {
            Slot::Local(kind) => {
                annotations = destination.annotations.to_map();
                parents(&mut annotations, DESTINATION, &destination.key);
                match kind {
                    LocalKind::VirtualService => {
                        let origin = reference.cluster();
                        Spec::VirtualService(virtual_service::render(
                            self.record.routes.from(origin),
                            service,
                            &local_host(),
                            origin,
                        )?)
                    }
                    LocalKind::DestinationRule => Spec::DestinationRule(destination_rule::render(
                        &local_host(),
                        self.local_tls(),
                        None,
                        self.subsets,
                    )),
                    LocalKind::AuthorizationPolicy => Spec::AuthorizationPolicy(
                        self.record.authorization.as_ref()?.render(service),
                    ),
                }
            }
            Slot::Own(kind) => {
                let (federation, membership) = self.federation()?;
                parents(&mut annotations, VIRTUAL_MESH, &membership.virtual_mesh.key);
                match kind {
                    OwnKind::ServiceEntry => {
                        Spec::ServiceEntry(service_entry::own(service, federation))
                    }
                    OwnKind::DestinationRule => Spec::DestinationRule(destination_rule::render(
                        &federation.hostname,
                        Some(site.tls_mode),
                        None,
                        self.subsets,
                    )),
                }
            }
            Slot::Remote(kind, client) => {
                let (federation, membership) = self.federation()?;
                let host: &str = if *client.cluster == *reference.cluster() {
                    &local_host()
                } else {
                    &federation.hostname
                };
                match kind {
                    RemoteKind::ServiceEntry => {}
                    RemoteKind::DestinationRule | RemoteKind::VirtualService => {
                        annotations = destination.annotations.to_map();
                        annotations.insert(
                            meta::FEDERATION_ANNOTATION.to_owned(),
                            reference.as_str().to_owned(),
                        );
                    }
                }
                parents(&mut annotations, VIRTUAL_MESH, &membership.virtual_mesh.key);
                match kind {
                    RemoteKind::ServiceEntry => Spec::ServiceEntry(service_entry::remote(
                        service,
                        federation,
                        &membership.gateways,
                    )),
                    RemoteKind::DestinationRule => {
                        let keepalive = membership
                            .virtual_mesh
                            .federation
                            .keepalive
                            .as_ref()
                            .filter(|_| *client.cluster != *reference.cluster());
                        Spec::DestinationRule(destination_rule::render(
                            host,
                            Some(site.tls_mode),
                            keepalive,
                            self.subsets,
                        ))
                    }
                    RemoteKind::VirtualService => Spec::VirtualService(virtual_service::render(
                        self.record.routes.from(&client.cluster),
                        service,
                        host,
                        &client.cluster,
                    )?),
                }
            }
        };
        Some(Output {
            labels: owned(owner, &key.cluster),
            key,
            annotations,
            spec,
        })
    }
}
