//! Selectors: which destinations, workloads and identities a policy means.

use std::fmt;
use std::sync::Arc;

use ferromesh_crds as crds;

use super::destination::KubeService;
use super::labels::Labels;
use super::reference::Reference;
use super::reject::{Code, Door};
use crate::key::Key;

/// Most selectors, and most entries of one selector's lists, that one object may have.
const MAX_ENTRIES: usize = 1_000;

/// Which destinations are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destinations {
    /// Every one, services outside the meshes included: the list was left out or empty.
    All,
    /// Those that one of the selectors matches.
    Selected(Arc<[DestinationSelector]>),
}

/// One alternative: matched by attributes, or listed. With neither it selects nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DestinationSelector {
    /// Attributes of the Kubernetes Service.
    pub matcher: Option<ServiceMatcher>,
    /// Services by name; only complete references are here.
    pub services: Box<[Reference]>,
}

/// A Service that is listed by name, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed<'a> {
    /// The Service.
    pub service: &'a Key,
    selector: usize,
    position: usize,
}

/// Attributes that must all hold; an empty one holds always.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceMatcher {
    /// Labels of the Service.
    pub labels: Labels,
    /// Its namespace is one of these.
    pub namespaces: Names,
    /// Its cluster is one of these.
    pub clusters: Names,
}

/// Which workloads are meant; no selector means all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workloads(pub Arc<[WorkloadMatcher]>);

/// Attributes of a workload that must all hold; an empty one holds always.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkloadMatcher {
    /// Labels of its pods.
    pub labels: Labels,
    /// Its namespace is one of these.
    pub namespaces: Names,
    /// Its cluster is one of these.
    pub clusters: Names,
}

/// A short list of names, sorted and without duplicates; empty means any.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Names(Box<[Arc<str>]>);

// === impl Destinations ===

impl Destinations {
    /// Whether a destination is meant; `service` is absent for one that is no Kubernetes Service.
    pub fn select(&self, service: Option<&KubeService>) -> bool {
        match (self, service) {
            (Self::All, _) => true,
            (Self::Selected(_), None) => false,
            (Self::Selected(selectors), Some(service)) => {
                selectors.iter().any(|selector| selector.selects(service))
            }
        }
    }

    /// Every service that is listed by name, in the order written.
    pub fn services(&self) -> impl Iterator<Item = Listed<'_>> {
        let selectors = self.selectors().iter().enumerate();
        selectors.flat_map(|(at, selector)| {
            selector.services.iter().map(move |service| Listed {
                service: &service.key,
                selector: at,
                position: service.position,
            })
        })
    }

    /// The part of the field at `path` that selects a service: a reference to it where there is
    /// one, else the first matcher that it fits.
    pub fn path_to(&self, path: &str, service: &KubeService) -> String {
        if let Some(listed) = self
            .services()
            .find(|listed| *listed.service == service.reference)
        {
            return listed.path(path);
        }
        let mut selectors = self.selectors().iter();
        match selectors.position(|it| it.selects(service)) {
            Some(at) => format!("{path}[{at}].kubeServiceMatcher"),
            None => path.to_owned(),
        }
    }

    fn selectors(&self) -> &[DestinationSelector] {
        match self {
            Self::All => &[],
            Self::Selected(selectors) => selectors,
        }
    }

    /// Reads a list of selectors whose empty form means all.
    pub(super) fn parse(
        door: &mut Door,
        path: impl fmt::Display,
        selectors: &[crds::selector::DestinationSelector],
    ) -> Self {
        if selectors.is_empty() {
            return Self::All;
        }
        door.limit(&path, selectors.len(), MAX_ENTRIES);
        Self::Selected(
            selectors
                .iter()
                .take(MAX_ENTRIES)
                .enumerate()
                .map(|(i, selector)| {
                    DestinationSelector::parse(door, format_args!("{path}[{i}]"), selector)
                })
                .collect(),
        )
    }
}

// === impl Listed ===

impl Listed<'_> {
    /// Where it is written, if the selectors are in the field at `path`.
    pub fn path(&self, path: &str) -> String {
        let Self {
            service: _,
            selector,
            position,
        } = self;
        format!("{path}[{selector}].kubeServiceRefs.services[{position}]")
    }
}

// === impl DestinationSelector ===

impl DestinationSelector {
    /// Whether the service is meant.
    pub fn selects(&self, service: &KubeService) -> bool {
        self.matcher
            .as_ref()
            .is_some_and(|matcher| matcher.matches(service))
            || self
                .services
                .iter()
                .any(|listed| listed.key == service.reference)
    }

    fn parse(
        door: &mut Door,
        path: fmt::Arguments<'_>,
        selector: &crds::selector::DestinationSelector,
    ) -> Self {
        let matcher = selector
            .kube_service_matcher
            .as_ref()
            .map(|matcher| ServiceMatcher {
                labels: Labels::from(&matcher.labels),
                namespaces: Names::from(&matcher.namespaces),
                clusters: Names::from(&matcher.clusters),
            });
        let mut services = Vec::new();
        if let Some(refs) = &selector.kube_service_refs {
            let path = format_args!("{path}.kubeServiceRefs.services");
            door.limit(path, refs.services.len(), MAX_ENTRIES);
            for (position, service) in refs.services.iter().take(MAX_ENTRIES).enumerate() {
                let key = complete_reference(door, format_args!("{path}[{position}]"), service);
                services.extend(key.map(|key| Reference { key, position }));
            }
        }
        Self {
            matcher,
            services: services.into(),
        }
    }
}

/// A reference with all three parts, or a refusal that lists what is missing.
fn complete_reference(
    door: &mut Door,
    path: fmt::Arguments<'_>,
    reference: &crds::reference::ClusterObjectRef,
) -> Option<Key> {
    let missing: Vec<_> = [
        ("name", &reference.name),
        ("namespace", &reference.namespace),
        ("clusterName", &reference.cluster_name),
    ]
    .into_iter()
    .filter_map(|(field, value)| value.is_empty().then_some(field))
    .collect();
    if missing.is_empty() {
        return Some(Key::new(
            &reference.name,
            &reference.namespace,
            &reference.cluster_name,
        ));
    }
    door.refuse(
        path,
        Code::Required,
        format!(
            "malformed kubeServiceRef: {} must be specified",
            missing.join(", ")
        ),
    );
    None
}

// === impl ServiceMatcher ===

impl ServiceMatcher {
    /// Whether every attribute holds for the service.
    pub fn matches(&self, service: &KubeService) -> bool {
        self.namespaces.admit(service.reference.namespace())
            && self.clusters.admit(service.reference.cluster())
            && service.labels.contain(&self.labels)
    }
}

// === impl Workloads ===

impl Workloads {
    /// The matchers that can match anything in `cluster`, or `None` where none can.
    ///
    /// An empty answer means that every workload of the cluster is meant: there was no matcher,
    /// or one of those that are left asks for neither labels nor a namespace.
    pub fn within(&self, cluster: &str) -> Option<Vec<&WorkloadMatcher>> {
        if self.0.is_empty() {
            return Some(Vec::new());
        }
        let here: Vec<_> = self
            .0
            .iter()
            .filter(|matcher| matcher.clusters.admit(cluster))
            .collect();
        if here.is_empty() {
            None
        } else if here.iter().any(|matcher| matcher.is_any()) {
            Some(Vec::new())
        } else {
            Some(here)
        }
    }

    /// Clusters that some matcher names.
    pub fn clusters(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.iter().flat_map(|matcher| matcher.clusters.iter())
    }

    pub(super) fn parse(
        door: &mut Door,
        path: &str,
        selectors: &[crds::selector::WorkloadSelector],
    ) -> Self {
        door.limit(path, selectors.len(), MAX_ENTRIES);
        Self(
            selectors
                .iter()
                .take(MAX_ENTRIES)
                .enumerate()
                .map(|(i, selector)| {
                    let Some(matcher) = &selector.kube_workload_matcher else {
                        return WorkloadMatcher::default();
                    };
                    let path = format_args!("{path}[{i}].kubeWorkloadMatcher.labels");
                    door.labels(path, &matcher.labels);
                    WorkloadMatcher {
                        labels: Labels::from(&matcher.labels),
                        namespaces: Names::from(&matcher.namespaces),
                        clusters: Names::from(&matcher.clusters),
                    }
                })
                .collect(),
        )
    }
}

impl WorkloadMatcher {
    /// Whether it asks for neither labels nor a namespace.
    fn is_any(&self) -> bool {
        self.labels.is_empty() && self.namespaces.is_empty()
    }

    /// How many conditions of Istio it comes to, which know one namespace each.
    pub(crate) fn alternatives(&self) -> usize {
        self.namespaces.iter().count().max(1)
    }

    /// Whether every attribute holds for a workload of `namespace` in `cluster`.
    pub fn matches(&self, pod_labels: &Labels, namespace: &str, cluster: &str) -> bool {
        self.namespaces.admit(namespace)
            && self.clusters.admit(cluster)
            && pod_labels.contain(&self.labels)
    }
}

// === impl Names ===

impl Names {
    /// Whether `name` is listed, or nothing is.
    pub fn admit(&self, name: &str) -> bool {
        self.0.is_empty() || self.contains(name)
    }

    /// Whether `name` is listed.
    pub fn contains(&self, name: &str) -> bool {
        self.0
            .binary_search_by(|listed| listed.as_ref().cmp(name))
            .is_ok()
    }

    /// Whether any name is admitted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.iter()
    }
}

impl From<&Vec<String>> for Names {
    fn from(names: &Vec<String>) -> Self {
        let mut names: Vec<Arc<str>> = names.iter().map(|name| Arc::from(name.as_str())).collect();
        names.sort_unstable();
        names.dedup();
        Self(names.into())
    }
}
