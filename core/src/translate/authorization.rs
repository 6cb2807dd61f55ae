//! Access policies of a destination, as one `AuthorizationPolicy`.

use std::collections::BTreeSet;
use std::sync::Arc;

use ferromesh_istio::AuthorizationPolicy;
use ferromesh_istio::authorization_policy::{Action, From, Rule, Source, To, WorkloadSelector};

use super::traffic::Refused;
use crate::diagnose::{Code, Finding};
use crate::estate::Estate;
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
) -> (Option<AuthorizationPolicy>, Vec<Refused>) {
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
    let mut rules = Vec::new();
    for (position, policy) in policies.iter().enumerate() {
        if !policy.rejections.is_empty() {
            continue;
        }
        match rule(estate, policy) {
            Ok(rule) => rules.push(rule),
            Err(unknown) => refused.extend(unknown.findings().map(|finding| Refused {
                policy: position,
                finding,
            })),
        }
    }
    let spec = AuthorizationPolicy {
        selector: Some(WorkloadSelector {
            match_labels: service.selector.to_map(),
        }),
        action: Some(Action::Allow),
        rules,
    };
    (Some(spec), refused)
}

fn rule(estate: &Estate, policy: &AccessPolicy) -> Result<Rule, Unknown> {
    let mut from = Vec::new();
    let mut unknown = Unknown::default();
    for (at, identities) in policy.sources.iter().enumerate() {
        sources(estate, identities, &mut from, |cluster, part| {
            unknown.note(policy, at, cluster, part);
        });
    }
    if !unknown.named.is_empty() {
        return Err(unknown);
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
    Ok(Rule { from, to })
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

/// The sources that one alternative stands for; clusters without a trust domain are `unknown`.
///
/// Its two halves are alternatives of each other, so each gets a source of its own: within one
/// source, Istio wants every field to match.
fn sources(
    estate: &Estate,
    identities: &Identities,
    from: &mut Vec<From>,
    mut unknown: impl FnMut(&str, Part),
) {
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
            let mut principals = Principals::default();
            for domain in clusters
                .iter()
                .flat_map(|name| domains(estate, name, || unknown(name, Part::Matcher)))
            {
                if namespaces.is_empty() {
                    principals.push(format!("{domain}/ns/*"));
                }
                for namespace in names() {
                    principals.push(format!("{domain}/ns/{namespace}/sa/*"));
                }
            }
            push(Source {
                principals: principals.0,
                ..Source::default()
            });
        }
    }
    let mut principals = Principals::default();
    for (at, account) in identities.accounts.iter().enumerate() {
        let ServiceAccount {
            name,
            namespace,
            cluster,
        } = account;
        for domain in domains(estate, cluster, || unknown(cluster, Part::Account(at))) {
            principals.push(if namespace.is_empty() {
                // Istio's wildcard stands at an end only: the name cannot be asked for here.
                format!("{domain}/ns/*")
            } else if name.is_empty() {
                format!("{domain}/ns/{namespace}/sa/*")
            } else {
                format!("{domain}/ns/{namespace}/sa/{name}")
            });
        }
    }
    if !principals.0.is_empty() {
        push(Source {
            principals: principals.0,
            ..Source::default()
        });
    } else if identities.matcher.is_none() && identities.accounts.is_empty() {
        push(any());
    }
}

/// Trust domains of a cluster; of every cluster, where none is named. A source that comes to no
/// principal would let everybody in, so to know of no trust domain is an error either way.
fn domains<'a>(
    estate: &'a Estate,
    cluster: &str,
    unknown: impl FnOnce(),
) -> BTreeSet<&'a Arc<str>> {
    let found: BTreeSet<_> = if cluster.is_empty() {
        estate.trust_domains.values().flatten().collect()
    } else {
        let found = estate.trust_domains.get(cluster);
        found.into_iter().flatten().collect()
    };
    if found.is_empty() {
        unknown();
    }
    found
}

/// Principals in the order in which they come up, each once.
#[derive(Default)]
struct Principals(Vec<String>);

impl Principals {
    fn push(&mut self, principal: String) {
        if !self.0.contains(&principal) {
            self.0.push(principal);
        }
    }
}
