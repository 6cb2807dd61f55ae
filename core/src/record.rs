//! What one destination becomes: everything about its outputs that is worth holding.
//!
//! The objects of a destination are nearly the same on every cluster that sees it. What they share
//! is held here once; what differs (names, host names, namespaces) is put in when an object is
//! rendered. Memory and time follow destinations, not destinations times clusters.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use crate::diagnose::Finding;
use crate::estate::Site;
use crate::federate::{Federation, federate};
use crate::graph::Reader;
use crate::key::Key;
use crate::model::destination::KubeService;
use crate::model::mesh::MeshKind;
use crate::model::selector::Destinations;
use crate::model::{AccessPolicy, Destination, Labels, TrafficPolicy};
use crate::translate::authorization::{Authorization, authorization};
use crate::translate::traffic::{Refused, Traffic, traffic, unsupported_mesh};

/// Where policies select destinations.
pub(crate) const SELECTORS: &str = "spec.destinationSelector";

/// A destination, translated.
#[derive(Clone, Debug)]
pub struct Record {
    /// The destination.
    pub destination: Arc<Destination>,
    /// Its mesh, where that is one that we translate for.
    pub site: Option<Arc<Site>>,
    /// Traffic policies that select it, in key order.
    pub traffic_policies: Arc<[Bound<TrafficPolicy>]>,
    /// Access policies that select it, in key order.
    pub access_policies: Arc<[Bound<AccessPolicy>]>,
    /// Routes for callers.
    pub routes: Routes,
    /// Who may call it.
    pub authorization: Option<Authorization>,
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
#[derive(Clone, Debug, PartialEq)]
pub struct Routes {
    /// For callers in every cluster that no source selector names.
    common: Arc<Traffic>,
    /// For callers in clusters that one does name.
    special: Arc<[(Arc<str>, Arc<Traffic>)]>,
}

/// Which part of a record is worked out again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of it.
    Whole,
    /// What traffic policies make.
    Traffic,
    /// What access policies make.
    Access,
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

impl PartialEq for Record {
    /// What is held once is compared by where it is, before it is compared by what it says.
    fn eq(&self, other: &Self) -> bool {
        fn same<T: PartialEq>(mine: Option<&Arc<T>>, theirs: Option<&Arc<T>>) -> bool {
            match (mine, theirs) {
                (Some(mine), Some(theirs)) => Arc::ptr_eq(mine, theirs) || mine == theirs,
                (None, None) => true,
                _ => false,
            }
        }
        let Self {
            destination,
            site,
            traffic_policies,
            access_policies,
            routes,
            authorization,
            federation,
        } = self;
        *destination == other.destination
            && *traffic_policies == other.traffic_policies
            && *access_policies == other.access_policies
            && *routes == other.routes
            && *authorization == other.authorization
            && same(site.as_ref(), other.site.as_ref())
            && same(federation.as_ref(), other.federation.as_ref())
    }
}

impl Record {
    /// Translates a destination.
    pub(crate) fn new(reader: &Reader<'_>, destination: &Arc<Destination>) -> Self {
        let mesh = destination.mesh.as_ref();
        let site = mesh.and_then(|mesh| reader.estate().site(mesh));
        let service = destination.service.as_ref();
        // A Service that is there twice has its outputs once.
        let is_duplicate = service.is_some_and(|it| reader.is_duplicate(destination, it));
        let mut record = Self {
            destination: Arc::clone(destination),
            site: site.filter(|_| !is_duplicate).cloned(),
            traffic_policies: Arc::default(),
            access_policies: Arc::default(),
            routes: Routes::default(),
            authorization: None,
            federation: None,
        };
        if record.service().is_some() {
            let federation = site.and_then(|site| federate(destination, site, reader.index()));
            record.federation = federation.map(Arc::new);
        }
        record.with_traffic(reader).with_access(reader)
    }

    /// This with what the traffic policies of now make.
    #[must_use]
    pub(crate) fn with_traffic(mut self, reader: &Reader<'_>) -> Self {
        let policies = reader.traffic_policies(self.destination.service.as_ref());
        (self.routes, self.traffic_policies) = if let Some(service) = self.service() {
            Routes::new(reader, &self, service, policies)
        } else {
            let bound = without_output(policies, |it| self.unsupported(reader, &it.destinations));
            (Routes::default(), bound)
        };
        self
    }

    /// This with what the access policies of now make.
    #[must_use]
    pub(crate) fn with_access(mut self, reader: &Reader<'_>) -> Self {
        let policies = reader.access_policies(self.destination.service.as_ref());
        (self.authorization, self.access_policies) = if let Some(service) = self.service() {
            let (authorization, refused) = authorization(reader.estate(), service, &policies);
            let out: BTreeSet<usize> = refused.iter().map(|refused| refused.policy).collect();
            let applied = (0..policies.len()).filter(|position| !out.contains(position));
            let applied = applied.collect();
            (authorization, bind(policies, refused, applied))
        } else {
            let bound = without_output(policies, |it| self.unsupported(reader, &it.destinations));
            (None, bound)
        };
        self
    }

    /// What keeps a policy off a destination for whose mesh nothing is made.
    fn unsupported(&self, reader: &Reader<'_>, selected: &Destinations) -> Option<Finding> {
        let service = self.destination.service.as_ref()?;
        let sort = match reader.mesh(&self.destination)?.kind {
            MeshKind::Osm(_) => "osm",
            MeshKind::Other(name) => name,
            MeshKind::Istio(_) => return None,
        };
        Some(unsupported_mesh(service, sort).at(selecting(selected, service)))
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
) -> Arc<[Bound<P>]> {
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
    mut applied: Vec<usize>,
) -> Arc<[Bound<P>]> {
    if policies.is_empty() {
        return Arc::default();
    }
    applied.sort_unstable();
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
            is_applied: applied.binary_search(&position).is_ok(),
        })
        .collect()
}

impl Default for Routes {
    /// No routes. Nearly all destinations have none, and these are one.
    fn default() -> Self {
        static NONE: LazyLock<Arc<Traffic>> = LazyLock::new(Arc::default);
        Self {
            common: Arc::clone(&NONE),
            special: Arc::default(),
        }
    }
}

impl Routes {
    /// Routes for callers in `origin`.
    pub fn from(&self, origin: &str) -> &Arc<Traffic> {
        let mut special = self.special.iter();
        let named = special.find(|(cluster, _)| **cluster == *origin);
        named.map_or(&self.common, |(_, traffic)| traffic)
    }

    /// Whether callers in every cluster have the same.
    pub(crate) fn are_uniform(&self) -> bool {
        self.special.is_empty()
    }

    fn new(
        reader: &Reader<'_>,
        record: &Record,
        service: &KubeService,
        policies: Vec<Arc<TrafficPolicy>>,
    ) -> (Self, Arc<[Bound<TrafficPolicy>]>) {
        if policies.is_empty() {
            return (Self::default(), Arc::default());
        }
        let mut named: BTreeSet<&Arc<str>> = policies
            .iter()
            .flat_map(|policy| policy.sources.clusters())
            .collect();
        let mut origins = BTreeSet::from([service.reference.cluster()]);
        if !named.is_empty() {
            let clients = record.federation.iter().flat_map(|it| it.clients.iter());
            origins.extend(clients.map(|client| &*client.cluster));
            named.retain(|cluster| origins.contains(&***cluster));
        }
        let (common, mut refused, mut applied) = if named.len() == origins.len() {
            <_>::default()
        } else {
            traffic(reader, service, &policies, None)
        };
        let mut special = Vec::with_capacity(named.len());
        let mut places: Vec<(Option<&str>, Vec<Refused>)> = Vec::new();
        for origin in &named {
            let (routes, refused, part) = traffic(reader, service, &policies, Some(origin));
            applied.extend(part);
            special.push((Arc::clone(origin), Arc::new(routes)));
            places.push((Some(&***origin), refused));
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
            bind(policies, refused, applied),
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
