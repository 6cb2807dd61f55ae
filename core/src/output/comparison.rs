//! What tells two translations of one destination apart, object by object.

use std::sync::Arc;

use super::OutputKey;
use super::destination::{LocalKind, OwnKind, RemoteKind, Slot, Translated};
use crate::estate::Client;
use crate::model::destination::KubeService;

/// How one object of a destination differs.
pub(crate) enum Changed<'a> {
    Added(Translated<'a>, Slot<'a>),
    Differs(Translated<'a>, Slot<'a>),
    Removed(OutputKey),
}

impl Changed<'_> {
    /// Which object it is.
    pub(crate) fn into_key(self) -> Option<OutputKey> {
        match self {
            Self::Added(translated, slot) | Self::Differs(translated, slot) => translated.key(slot),
            Self::Removed(key) => Some(key),
        }
    }
}

/// Compares what a destination had with what it has, object by object.
pub(crate) fn changes<'a, T>(
    before: Option<Translated<'a>>,
    after: Option<Translated<'a>>,
    each: impl FnMut(Changed<'a>) -> Option<T>,
) -> Vec<T> {
    let comparison = before
        .zip(after)
        .map(|(before, after)| Comparison::new(before, after));
    match comparison {
        Some(comparison) if comparison.has_same_places() => comparison.changes(each),
        comparison => matched(before, after, comparison.as_ref(), each),
    }
}

/// As [`changes`], where the objects of one have to be looked for among those of the other.
fn matched<'a, T>(
    before: Option<Translated<'a>>,
    after: Option<Translated<'a>>,
    comparison: Option<&Comparison<'a>>,
    mut each: impl FnMut(Changed<'a>) -> Option<T>,
) -> Vec<T> {
    let mut result = Vec::new();
    let slots = |translated: Option<Translated<'a>>| {
        let slots = translated.map(Translated::slots);
        slots.into_iter().flatten()
    };
    let is_placed_alike = comparison.is_some_and(|it| it.is_placed_alike);
    let mut old: Vec<Option<Slot<'a>>> = slots(before).map(Some).collect();
    for (position, slot) in slots(after).enumerate() {
        let Some(after) = after else { break };
        let is_twin = |old: &Option<Slot<'a>>| match (old, before) {
            (Some(old), _) if is_placed_alike => old.is_same_object(slot),
            (Some(old), Some(before)) => before.key(*old) == after.key(slot),
            _ => false,
        };
        // Both lists have the same order, so the twin is nearly always right here.
        let twin = if old.get(position).is_some_and(is_twin) {
            Some(position)
        } else {
            old.iter().position(is_twin)
        };
        match (twin, comparison) {
            (Some(twin), Some(comparison)) => {
                old[twin] = None;
                if !comparison.standing(slot).alike {
                    result.extend(each(Changed::Differs(after, slot)));
                }
            }
            _ => result.extend(each(Changed::Added(after, slot))),
        }
    }
    if let Some(before) = before {
        for key in old
            .into_iter()
            .flatten()
            .filter_map(|slot| before.key(slot))
        {
            result.extend(each(Changed::Removed(key)));
        }
    }
    result
}

/// Which parts of the objects two translations of one destination render alike.
struct Comparison<'a> {
    before: Translated<'a>,
    after: Translated<'a>,
    /// Whether both have the same names in the same places, so that a slot of one is the object of the same
    /// slot of the other.
    is_placed_alike: bool,
    parts: Option<Alike>,
    /// Routes of callers, where those in every cluster have the same.
    routes: Option<Standing>,
}

/// What has become of an object.
#[derive(Clone, Copy)]
struct Standing {
    /// Whether it was there.
    before: bool,
    /// Whether it is there.
    after: bool,
    /// Whether it looks the same.
    alike: bool,
}

/// What is alike.
#[expect(clippy::struct_excessive_bools, reason = "each is a part of its own")]
struct Alike {
    annotations: bool,
    /// The name within the cluster.
    local_host: bool,
    ports: bool,
    /// What every `DestinationRule` has.
    rule: bool,
    local_tls: bool,
    /// Whose federation it is, and under which name.
    federation: bool,
    /// Ports and endpoints.
    entry: bool,
    local_resolution: bool,
    /// How other clusters reach it.
    reached: bool,
    keepalive: bool,
    /// Who may call it.
    authorization: bool,
}

impl<'a> Comparison<'a> {
    fn new(before: Translated<'a>, after: Translated<'a>) -> Self {
        let is_uniform = [before, after]
            .iter()
            .all(|it| it.record.routes.are_uniform());
        Self {
            before,
            after,
            is_placed_alike: is_placed_alike(before, after),
            parts: Alike::new(before, after),
            // No cluster has an empty name, so any that nobody names stands in by that.
            routes: is_uniform.then(|| routes(before, after, "")),
        }
    }

    /// Whether both have the same places for objects: then nothing has to be looked for.
    fn has_same_places(&self) -> bool {
        let [old, new] = [self.before, self.after].map(|it| it.federation().map(|(it, _)| it));
        self.is_placed_alike
            && match (old, new) {
                (Some(old), Some(new)) => {
                    Arc::ptr_eq(&old.clients, &new.clients) || old.clients == new.clients
                }
                (None, None) => true,
                _ => false,
            }
    }

    /// What differs, place by place; what is gone comes last.
    fn changes<T>(self, mut each: impl FnMut(Changed<'a>) -> Option<T>) -> Vec<T> {
        let (mut result, mut gone) = (Vec::new(), Vec::new());
        // Nearly every change is one of policies, and what differs is routes.
        let is_routes_alone = self.parts.as_ref().is_some_and(Alike::is_everything);
        let places = self.after.places();
        let places = places.filter(|place| !is_routes_alone || place.has_routes());
        places.for_each(|place| {
            let standing = self.standing(place);
            match (standing.before, standing.after) {
                (true, true) if standing.alike => {}
                (true, true) => result.extend(each(Changed::Differs(self.after, place))),
                (false, true) => result.extend(each(Changed::Added(self.after, place))),
                (true, false) => gone.extend(self.before.key(place)),
                (false, false) => {}
            }
        });
        for key in gone {
            result.extend(each(Changed::Removed(key)));
        }
        result
    }

    /// What has become of the object in a place.
    fn standing(&self, place: Slot<'_>) -> Standing {
        let (Some(alike), Some(service)) = (&self.parts, self.after.record.service()) else {
            return Standing {
                before: self.before.has(place),
                after: self.after.has(place),
                alike: false,
            };
        };
        // Another mesh of the same cluster calls the service by its own name.
        let host =
            |client: &Client| alike.local_host || *client.cluster != *service.reference.cluster();
        // What every destination has that has anything.
        let always = |alike| Standing {
            before: true,
            after: true,
            alike,
        };
        match place {
            Slot::Local(LocalKind::VirtualService) => self
                .routes(service.reference.cluster())
                .and(alike.ports && alike.annotations && alike.local_host),
            Slot::Local(LocalKind::DestinationRule) => {
                always(alike.annotations && alike.local_host && alike.rule && alike.local_tls)
            }
            Slot::Local(LocalKind::AuthorizationPolicy) => {
                let [before, after] =
                    [self.before, self.after].map(|it| it.record.authorization.is_some());
                Standing {
                    before,
                    after,
                    alike: alike.annotations && alike.authorization,
                }
            }
            Slot::Own(OwnKind::DestinationRule) => always(alike.federation && alike.rule),
            Slot::Own(OwnKind::ServiceEntry) => {
                always(alike.federation && alike.entry && alike.local_resolution)
            }
            Slot::Remote(RemoteKind::VirtualService, client) => self
                .routes(&client.cluster)
                .and(alike.ports && alike.annotations && alike.federation && host(client)),
            Slot::Remote(RemoteKind::DestinationRule, client) => always(
                alike.annotations
                    && alike.federation
                    && alike.rule
                    && alike.keepalive
                    && host(client),
            ),
            Slot::Remote(RemoteKind::ServiceEntry, _) => {
                always(alike.federation && alike.entry && alike.reached)
            }
        }
    }

    /// What has become of the routes of callers in `origin`.
    fn routes(&self, origin: &str) -> Standing {
        self.routes
            .unwrap_or_else(|| routes(self.before, self.after, origin))
    }
}

impl Standing {
    /// Of an object that looks the same only if something else does too.
    fn and(self, alike: bool) -> Self {
        Self {
            alike: self.alike && alike,
            ..self
        }
    }
}

/// What has become of the routes of callers in `origin`.
fn routes(before: Translated<'_>, after: Translated<'_>, origin: &str) -> Standing {
    let [was, is] = [before, after].map(|it| it.record.routes.from(origin));
    Standing {
        before: before.is_routed(origin),
        after: after.is_routed(origin),
        alike: Arc::ptr_eq(was, is) || was.renders_like(is),
    }
}

impl Alike {
    /// Whether nothing that is compared here differs: then no object does but those with routes.
    fn is_everything(&self) -> bool {
        let Self {
            annotations,
            local_host,
            ports,
            rule,
            local_tls,
            federation,
            entry,
            local_resolution,
            reached,
            keepalive,
            authorization,
        } = *self;
        let local = annotations && local_host && ports && rule && local_tls && authorization;
        let federated = federation && entry && local_resolution && reached && keepalive;
        local && federated
    }

    fn new(before: Translated<'_>, after: Translated<'_>) -> Option<Self> {
        let (was, is) = (before.parts()?, after.parts()?);
        let [old, new] = [before, after].map(|it| &it.record.destination);
        let is_same_destination = Arc::ptr_eq(old, new);
        let is_same_mode = was.site.tls_mode == is.site.tls_mode;
        let ports = is_same_destination || was.service.ports == is.service.ports;
        let [old_rules, new_rules] = [before, after].map(|it| it.record.authorization.as_ref());
        let federations = before.federation().zip(after.federation());
        let federated =
            |alike: fn(_, _) -> bool| federations.is_some_and(|(was, is)| alike(was, is));
        Some(Self {
            annotations: is_same_destination || old.annotations == new.annotations,
            local_host: was.site.domain == is.site.domain,
            ports,
            rule: is_same_mode && before.subsets == after.subsets,
            local_tls: (is_same_destination && is_same_mode)
                || before.local_tls() == after.local_tls(),
            federation: federated(|(was, _), (is, _)| {
                was.hostname == is.hostname && was.virtual_mesh == is.virtual_mesh
            }),
            entry: ports && (is_same_destination || reached_alike(was.service, is.service)),
            local_resolution: federated(|(was, _), (is, _)| {
                was.local_resolution == is.local_resolution
            }),
            reached: federated(|(was, membership), (is, other)| {
                was.virtual_ip == is.virtual_ip
                    && was.remote_resolution == is.remote_resolution
                    && (std::ptr::eq(membership, other) || membership.gateways == other.gateways)
            }),
            keepalive: federated(|(_, was), (_, is)| {
                was.virtual_mesh.federation.keepalive == is.virtual_mesh.federation.keepalive
            }),
            authorization: old_rules == new_rules
                && (is_same_destination
                    || new_rules.is_none()
                    || was.service.selector == is.service.selector),
        })
    }
}

fn is_placed_alike(before: Translated<'_>, after: Translated<'_>) -> bool {
    let (Some(was), Some(is)) = (before.parts(), after.parts()) else {
        return before.parts().is_none() && after.parts().is_none();
    };
    let [old, new] = [before, after].map(|it| it.federation().map(|(it, _)| &it.hostname));
    was.service.reference == is.service.reference
        && was.site.cluster == is.site.cluster
        && was.site.namespace == is.site.namespace
        && old == new
}

/// Whether endpoints are reached at the same addresses, by the same labels. Where they are does not
/// show in an entry.
fn reached_alike(service: &KubeService, other: &KubeService) -> bool {
    Arc::ptr_eq(&service.endpoints, &other.endpoints)
        || (service.endpoints.len() == other.endpoints.len()
            && service
                .endpoints
                .iter()
                .zip(other.endpoints.iter())
                .all(|(mine, theirs)| {
                    mine.ports == theirs.ports
                        && mine.endpoints.len() == theirs.endpoints.len()
                        && mine
                            .endpoints
                            .iter()
                            .zip(&theirs.endpoints)
                            .all(|(mine, theirs)| {
                                mine.address == theirs.address && mine.labels == theirs.labels
                            })
                }))
}
