//! Access policies of a destination, as one `AuthorizationPolicy`.

use std::collections::BTreeSet;
use std::sync::Arc;

use ferromesh_istio::AuthorizationPolicy;
use ferromesh_istio::authorization_policy::{Action, From, Rule, Source, To, WorkloadSelector};

use super::traffic::Refused;
use crate::diagnose::{Code, Finding};
use crate::estate::{Estate, TrustDomains};
use crate::model::AccessPolicy;
use crate::model::access_policy::{Identities, IdentityMatcher, ServiceAccount};
use crate::model::destination::KubeService;
use crate::record::selecting;

/// Where a policy says who may call.
const SOURCES: &str = "spec.sourceSelector";

/// What the access policies amount to; none where there is no policy.
///
/// With a policy there is an object, whatever becomes of its rules: ALLOW without rules denies
/// everything, and a policy that cannot be translated must not open what it was to guard.
pub(crate) fn authorization(
    estate: &Estate,
    service: &KubeService,
    policies: &[Arc<AccessPolicy>],
) -> (Option<Authorization>, Vec<Refused>) {
    let mut refused = Vec::new();
    if policies.is_empty() {
        return (None, refused);
    }
    if service.selector.is_empty() {
        // An object without a selector would hold for every workload of the namespace.
        refused.extend(policies.iter().enumerate().map(|(position, policy)| {
            let text = format!(
                "Service {} has no selector, so access cannot be limited to its workloads",
                service.reference
            );
            let finding = Finding::new(Code::Unsupported, text);
            Refused {
                policy: position,
                finding: finding.at(selecting(&policy.destinations, service)),
            }
        }));
        return (None, refused);
    }
    let mut allowing = Vec::new();
    for (position, policy) in policies.iter().enumerate() {
        if !policy.rejections.is_empty() {
            continue;
        }
        let unknown = Unknown::of(policy, &estate.trust_domains);
        if unknown.named.is_empty() {
            allowing.push(Arc::clone(policy));
            continue;
        }
        refused.extend(unknown.findings().map(|finding| Refused {
            policy: position,
            finding,
        }));
    }
    let authorization = Authorization {
        policies: allowing.into(),
        trust_domains: Arc::clone(&estate.trust_domains),
    };
    (Some(authorization), refused)
}

/// Who may call a destination.
///
/// It is written out when it is rendered: a policy may name thousands, and does so on every destination.
#[derive(Clone, Debug)]
pub struct Authorization {
    /// Policies that allow something, in key order.
    policies: Box<[Arc<AccessPolicy>]>,
    trust_domains: Arc<TrustDomains>,
}

impl PartialEq for Authorization {
    /// Whether both are written alike.
    fn eq(&self, other: &Self) -> bool {
        let are_same_domains = Arc::ptr_eq(&self.trust_domains, &other.trust_domains);
        let mut pairs = self.policies.iter().zip(&other.policies);
        self.policies.len() == other.policies.len()
            && pairs.all(|(mine, theirs)| {
                (are_same_domains && Arc::ptr_eq(mine, theirs))
                    || rule(mine, &self.trust_domains) == rule(theirs, &other.trust_domains)
            })
    }
}

impl Authorization {
    /// The object for the workloads of a Service.
    pub(crate) fn render(&self, service: &KubeService) -> AuthorizationPolicy {
        let policies = self.policies.iter();
        AuthorizationPolicy {
            selector: Some(WorkloadSelector {
                match_labels: service.selector.to_map(),
            }),
            action: Some(Action::Allow),
            rules: policies.map(|it| rule(it, &self.trust_domains)).collect(),
        }
    }
}

/// What a policy allows, of which every cluster is known.
fn rule(policy: &AccessPolicy, trust_domains: &TrustDomains) -> Rule {
    let mut from = Vec::new();
    for identities in policy.sources.iter() {
        sources(trust_domains, identities, &mut from);
    }
    let operation = &policy.operation;
    let is_any =
        operation.paths.is_empty() && operation.methods.is_empty() && operation.ports.is_empty();
    let to = if is_any {
        Vec::new()
    } else {
        vec![To {
            operation: operation.clone(),
        }]
    };
    Rule { from, to }
}

/// Clusters that a policy names and whose trust domains are not known.
#[derive(Default)]
struct Unknown {
    /// The first of them, each with the path where it is named.
    named: Vec<(String, String)>,
    /// Whether there are others.
    has_more: bool,
}

/// Half of an alternative: one or the other names clusters.
#[derive(Clone, Copy)]
enum Part {
    /// By where the caller runs.
    Matcher,
    /// By the service account at this position.
    Account(usize),
}

impl Unknown {
    /// As many as are told one by one: a policy may name thousands, on thousands of destinations.
    const MOST: usize = 8;

    /// A source that comes to no principal would let everybody in, so to know of no trust domain is an
    /// error whether a cluster is named or not.
    fn of(policy: &AccessPolicy, trust_domains: &TrustDomains) -> Self {
        let mut unknown = Self::default();
        let mut look_up = |nth, cluster: &str, part| {
            if domains(trust_domains, cluster).next().is_none() {
                unknown.note(policy, nth, cluster, part);
            }
        };
        for (nth, identities) in policy.sources.iter().enumerate() {
            for cluster in identities.matcher.iter().flat_map(|it| it.clusters.iter()) {
                look_up(nth, cluster, Part::Matcher);
            }
            for (at, account) in identities.accounts.iter().enumerate() {
                look_up(nth, &account.cluster, Part::Account(at));
            }
        }
        unknown
    }

    fn note(&mut self, policy: &AccessPolicy, nth: usize, cluster: &str, part: Part) {
        if self.named.iter().any(|(known, _)| known == cluster) {
            return;
        }
        if self.named.len() == Self::MOST {
            self.has_more = true;
            return;
        }
        let path = format!("{SOURCES}[{nth}]");
        let path = match part {
            Part::Account(at) => {
                format!("{path}.kubeServiceAccountRefs.serviceAccounts[{at}].clusterName")
            }
            Part::Matcher => {
                // The names were sorted when they were read.
                let written = policy.spec.source_selector.get(nth);
                let matcher = written.and_then(|it| it.kube_identity_matcher.as_ref());
                let clusters = matcher.map(|it| it.clusters.iter());
                let at = clusters.and_then(|mut it| it.position(|name| name == cluster));
                let at = at.map(|at| format!("[{at}]")).unwrap_or_default();
                format!("{path}.kubeIdentityMatcher.clusters{at}")
            }
        };
        self.named.push((cluster.to_owned(), path));
    }

    fn findings(self) -> impl Iterator<Item = Finding> {
        let named = self.named.into_iter().map(|(cluster, path)| {
            let cluster = if cluster.is_empty() {
                "any cluster".to_owned()
            } else {
                format!("cluster {cluster}")
            };
            (cluster, path)
        });
        let more = self
            .has_more
            .then(|| ("others".to_owned(), SOURCES.to_owned()));
        named.chain(more).map(|(clusters, path)| {
            let text = format!(
                "authorization-policy-translator: Trust domain not found for {clusters}; register the cluster, and see that Istio's mesh config there sets trustDomain"
            );
            Finding::new(Code::NotFound, text).at(path)
        })
    }
}

/// The sources that one alternative stands for.
///
/// Its two halves are alternatives of each other, so each gets a source of its own: within one
/// source, Istio wants every field to match.
fn sources(trust_domains: &TrustDomains, identities: &Identities, from: &mut Vec<From>) {
    let mut push = |source: Source| from.push(From { source });
    let any = || Source {
        principals: vec!["*".to_owned()],
        ..Source::default()
    };
    if let Some(IdentityMatcher {
        namespaces,
        clusters,
    }) = &identities.matcher
    {
        let names = || namespaces.iter().map(ToString::to_string);
        if clusters.is_empty() && namespaces.is_empty() {
            push(any());
        } else if clusters.is_empty() {
            push(Source {
                namespaces: names().collect(),
                ..Source::default()
            });
        } else {
            let domains = clusters.iter().flat_map(|it| sorted(trust_domains, it));
            let principals = domains.flat_map(|domain| {
                let all = namespaces.is_empty().then(|| format!("{domain}/ns/*"));
                let some = names().map(move |namespace| format!("{domain}/ns/{namespace}/sa/*"));
                all.into_iter().chain(some)
            });
            push(Source {
                principals: once_each(principals.collect()),
                ..Source::default()
            });
        }
    }
    let principals = identities.accounts.iter().flat_map(|account| {
        let ServiceAccount {
            name,
            namespace,
            cluster,
        } = account;
        sorted(trust_domains, cluster)
            .into_iter()
            .map(move |domain| {
                if namespace.is_empty() {
                    // Istio's wildcard stands at an end only: the name cannot be asked for here.
                    format!("{domain}/ns/*")
                } else if name.is_empty() {
                    format!("{domain}/ns/{namespace}/sa/*")
                } else {
                    format!("{domain}/ns/{namespace}/sa/{name}")
                }
            })
    });
    let principals = once_each(principals.collect());
    if !principals.is_empty() {
        push(Source {
            principals,
            ..Source::default()
        });
    } else if identities.matcher.is_none() && identities.accounts.is_empty() {
        push(any());
    }
}

/// Trust domains of a cluster; of every cluster, where none is named, and some more than once.
fn domains<'a>(
    trust_domains: &'a TrustDomains,
    cluster: &str,
) -> impl Iterator<Item = &'a Arc<str>> + use<'a> {
    let everywhere = cluster.is_empty().then(|| trust_domains.values());
    let there = trust_domains.get(cluster);
    everywhere.into_iter().flatten().chain(there).flatten()
}

/// Trust domains of a cluster in order, each once.
fn sorted<'a>(trust_domains: &'a TrustDomains, cluster: &str) -> BTreeSet<&'a Arc<str>> {
    domains(trust_domains, cluster).collect()
}

/// Principals in the order in which they come up, each once.
fn once_each(principals: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let is_first: Vec<bool> = principals.iter().map(|it| seen.insert(it)).collect();
    let pairs = principals.into_iter().zip(is_first);
    pairs
        .filter_map(|(it, is_first)| is_first.then_some(it))
        .collect()
}
