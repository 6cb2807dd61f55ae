//! What one destination becomes: everything about its outputs that is worth holding.
//!
//! The objects of a destination are nearly the same on every cluster that sees it. What they share
//! is held here once; what differs (names, host names, namespaces) is put in when an object is
//! rendered. Memory and time follow destinations, not destinations times clusters.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ferromesh_istio::AuthorizationPolicy;

use crate::diagnose::Finding;
use crate::estate::Site;
use crate::federate::{Federation, federate};
use crate::graph::Reader;
use crate::key::Key;
use crate::model::destination::KubeService;
use crate::model::mesh::MeshKind;
use crate::model::selector::Destinations;
use crate::model::{AccessPolicy, Destination, Labels, TrafficPolicy};
use crate::translate::authorization::authorization;
use crate::translate::traffic::{Refused, Traffic, traffic, unsupported_mesh};

/// Where policies select destinations.
pub(crate) const SELECTORS: &str = "spec.destinationSelector";

/// A destination, translated.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The destination.
    pub destination: Arc<Destination>,
    /// Its mesh, where that is one that we translate for.
    pub site: Option<Arc<Site>>,
    /// Traffic policies that select it, in key order.
    pub traffic_policies: Box<[Bound<TrafficPolicy>]>,
    /// Access policies that select it, in key order.
    pub access_policies: Box<[Bound<AccessPolicy>]>,
    /// Routes for callers.
    pub routes: Routes,
    /// Who may call it.
    pub authorization: Option<Arc<AuthorizationPolicy>>,
    /// How other meshes see it.
    pub federation: Option<Arc<Federation>>,
}

/// A policy that selects a destination, and what becomes of it there.
#[derive(Clone, Debug)]
pub struct Bound<P> {
    /// The policy.
    pub policy: Arc<P>,
    /// What is wrong with it there, each once, with the place where that is not everywhere.
    pub errors: Box<[Finding]>,
    /// Whether it has a part in the outputs, maybe elsewhere than where the errors are.
    pub is_applied: bool,
}

/// Routes by the cluster of the caller.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Routes {
    /// For callers in every cluster that no source selector names.
    common: Arc<Traffic>,
    /// For callers in clusters that one does name.
    special: Box<[(Arc<str>, Arc<Traffic>)]>,
}

/// Subsets of a destination's endpoints that policies send requests to.
#[derive(Clone, Debug, Default)]
pub struct Subsets(pub Vec<Arc<TrafficPolicy>>);

impl<P> PartialEq for Bound<P> {
    /// A stored policy never changes in place, so the same one is the same pointer.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.policy, &other.policy)
            && self.is_applied == other.is_applied
            && self.errors == other.errors
    }
}

impl PartialEq for Subsets {
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len()
            && self
                .0
                .iter()
                .zip(&other.0)
                .all(|(left, right)| Arc::ptr_eq(left, right))
    }
}

impl Record {
    /// Translates a destination.
    pub(crate) fn new(reader: &Reader<'_>, destination: &Arc<Destination>) -> Self {
        let service = destination.service.as_ref();
        let estate = reader.estate();
        let site = destination.mesh.as_ref().and_then(|mesh| estate.site(mesh));
        let traffic_policies = reader.traffic_policies(service);
        let access_policies = reader.access_policies(service);
        let mut record = Self {
            destination: Arc::clone(destination),
            site: site.cloned(),
            traffic_policies: Box::default(),
            access_policies: Box::default(),
            routes: Routes::default(),
            authorization: None,
            federation: None,
        };
        let (Some(service), Some(site)) = (service, site) else {
            let sort = reader.mesh(destination).and_then(|mesh| match mesh.kind {
                MeshKind::Osm(_) => Some("osm"),
                MeshKind::Other(name) => Some(name),
                MeshKind::Istio(_) => None,
            });
            let finding = |destinations: &Destinations| {
                let (service, sort) = service.zip(sort)?;
                Some(unsupported_mesh(service, sort).at(selecting(destinations, service)))
            };
            record.traffic_policies =
                without_output(traffic_policies, |it| finding(&it.destinations));
            record.access_policies =
                without_output(access_policies, |it| finding(&it.destinations));
            return record;
        };
        if reader.is_duplicate(destination, service) {
            record.site = None;
            record.traffic_policies = without_output(traffic_policies, |_| None);
            record.access_policies = without_output(access_policies, |_| None);
            return record;
        }
        record.federation = federate(destination, site, reader.index()).map(Arc::new);
        let (routes, bound) = Routes::new(reader, &record, service, traffic_policies);
        record.routes = routes;
        record.traffic_policies = bound;
        let (authorization, refused) = authorization(estate, service, &access_policies);
        record.authorization = authorization.map(Arc::new);
        let mut applied: BTreeSet<_> = (0..access_policies.len()).collect();
        for refused in &refused {
            applied.remove(&refused.policy);
        }
        record.access_policies = bind(access_policies, refused, &applied);
        record
    }

    /// The Service, for a destination that has outputs.
    pub fn service(&self) -> Option<&KubeService> {
        self.site.as_ref().and(self.destination.service.as_ref())
    }
}

/// What of a policy selects a destination.
pub(crate) fn selecting(destinations: &Destinations, service: &KubeService) -> String {
    destinations.path_to(SELECTORS, service)
}

/// Policies on a destination for which nothing is made.
fn without_output<P>(
    policies: Vec<Arc<P>>,
    finding: impl Fn(&P) -> Option<Finding>,
) -> Box<[Bound<P>]> {
    policies
        .into_iter()
        .map(|policy| {
            let finding = finding(&policy);
            Bound {
                policy,
                is_applied: finding.is_none(),
                errors: finding.into_iter().collect(),
            }
        })
        .collect()
}

fn bind<P>(
    policies: Vec<Arc<P>>,
    refused: Vec<Refused>,
    applied: &BTreeSet<usize>,
) -> Box<[Bound<P>]> {
    let mut errors: BTreeMap<usize, Vec<Finding>> = BTreeMap::new();
    for Refused { policy, finding } in refused {
        let errors = errors.entry(policy).or_default();
        if !errors.contains(&finding) {
            errors.push(finding);
        }
    }
    policies
        .into_iter()
        .enumerate()
        .map(|(position, policy)| Bound {
            policy,
            errors: errors.remove(&position).unwrap_or_default().into(),
            is_applied: applied.contains(&position),
        })
        .collect()
}

impl Routes {
    /// Routes for callers in `origin`.
    pub fn from(&self, origin: &str) -> &Arc<Traffic> {
        self.special
            .iter()
            .find(|(cluster, _)| **cluster == *origin)
            .map_or(&self.common, |(_, traffic)| traffic)
    }

    fn new(
        reader: &Reader<'_>,
        record: &Record,
        service: &KubeService,
        policies: Vec<Arc<TrafficPolicy>>,
    ) -> (Self, Box<[Bound<TrafficPolicy>]>) {
        if policies.is_empty() {
            return (Self::default(), Box::default());
        }
        let clients = record
            .federation
            .iter()
            .flat_map(|federation| federation.clients.iter());
        let origins: BTreeSet<&str> = std::iter::once(service.reference.cluster())
            .chain(clients.map(|client| &*client.cluster))
            .collect();
        let named: BTreeSet<&str> = policies
            .iter()
            .flat_map(|policy| policy.sources.clusters())
            .map(AsRef::as_ref)
            .filter(|cluster| origins.contains(cluster))
            .collect();
        let (common, mut refused, applied) = if named.len() == origins.len() {
            <_>::default()
        } else {
            traffic(reader, &policies, None)
        };
        let mut applied: BTreeSet<usize> = applied.into_iter().collect();
        let mut special = Vec::with_capacity(named.len());
        let mut places: Vec<(Option<&str>, Vec<Refused>)> = Vec::new();
        for origin in &named {
            let (routes, refused, part) = traffic(reader, &policies, Some(origin));
            applied.extend(part);
            special.push((Arc::from(*origin), Arc::new(routes)));
            places.push((Some(origin), refused));
        }
        if !named.is_empty() {
            if named.len() < origins.len() {
                places.push((None, std::mem::take(&mut refused)));
            }
            refused = located(&places);
        }
        (
            Self {
                common: Arc::new(common),
                special: special.into(),
            },
            bind(policies, refused, &applied),
        )
    }
}

/// Errors with the clusters of the callers they concern, where that is not all of them.
fn located(places: &[(Option<&str>, Vec<Refused>)]) -> Vec<Refused> {
    let mut where_met: Vec<(&Refused, Vec<Option<&str>>)> = Vec::new();
    for (place, refused) in places {
        for error in refused {
            match where_met.iter_mut().find(|(known, _)| *known == error) {
                Some((_, places)) => places.push(*place),
                None => where_met.push((error, vec![*place])),
            }
        }
    }
    where_met
        .into_iter()
        .map(|(error, met)| {
            let mut error = error.clone();
            if met.len() < places.len() {
                let met: Vec<_> = met
                    .into_iter()
                    .map(|place| place.unwrap_or("other clusters"))
                    .collect();
                error.finding.message = format!(
                    "{} (for callers in {})",
                    error.finding.message,
                    met.join(", ")
                );
            }
            error
        })
        .collect()
}

impl Subsets {
    /// No subset.
    pub(crate) const fn none() -> Self {
        Self(Vec::new())
    }

    /// Subsets by name, in the order in which policies ask for them.
    ///
    /// A policy's other subsets come along: a shift's targets often differ in nothing but the
    /// subset, and one that no endpoint fits does no harm.
    pub fn by_name(&self) -> impl Iterator<Item = (&str, &Labels)> {
        let mut seen = BTreeSet::new();
        self.0
            .iter()
            .flat_map(|policy| policy.targets())
            .filter(|target| !target.subset.is_empty())
            .filter(move |target| seen.insert(Arc::clone(&target.subset_name)))
            .map(|target| (target.subset_name.as_ref(), &target.subset))
    }

    /// The policies that ask for a subset of the destination.
    pub fn policies(&self) -> impl Iterator<Item = &Arc<TrafficPolicy>> {
        self.0.iter()
    }
}

/// Keys of the destinations of Services that a policy takes a subset of.
pub(crate) fn subset_targets(policy: &TrafficPolicy) -> BTreeSet<&Key> {
    policy
        .targets()
        .filter(|target| !target.subset.is_empty())
        .map(|target| &target.service)
        .collect()
}
