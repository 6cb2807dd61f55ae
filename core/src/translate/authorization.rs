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
        refused.extend((0..policies.len()).map(|policy| Refused {
            policy,
            finding: Finding::new(
                Code::Unsupported,
                format!(
                    "Service {} has no selector, so access cannot be limited to its workloads",
                    service.reference
                ),
            ),
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
            Err(finding) => refused.push(Refused {
                policy: position,
                finding,
            }),
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

fn rule(estate: &Estate, policy: &AccessPolicy) -> Result<Rule, Finding> {
    let mut from = Vec::new();
    let mut unknown = BTreeSet::new();
    for identities in policy.sources.iter() {
        sources(estate, identities, &mut from, &mut unknown);
    }
    if !unknown.is_empty() {
        let named: Vec<_> = unknown.iter().filter(|name| !name.is_empty()).collect();
        let clusters = match &*named {
            [] => "any cluster".to_owned(),
            named => format!(
                "cluster {}",
                named
                    .iter()
                    .map(|name| name.as_str())
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        };
        return Err(Finding::new(
            Code::NotFound,
            format!(
                "authorization-policy-translator: Trust domain not found for {clusters}; register the cluster, and see that Istio's mesh config there sets trustDomain"
            ),
        ));
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

/// The sources that one alternative stands for; clusters without a trust domain are `unknown`.
///
/// Its two halves are alternatives of each other, so each gets a source of its own: within one
/// source, Istio wants every field to match.
fn sources(
    estate: &Estate,
    identities: &Identities,
    from: &mut Vec<From>,
    unknown: &mut BTreeSet<String>,
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
                .flat_map(|name| domains(estate, name, unknown))
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
    for ServiceAccount {
        name,
        namespace,
        cluster,
    } in &identities.accounts
    {
        for domain in domains(estate, cluster, unknown) {
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
    unknown: &mut BTreeSet<String>,
) -> BTreeSet<&'a Arc<str>> {
    let found: BTreeSet<_> = if cluster.is_empty() {
        estate.trust_domains.values().flatten().collect()
    } else {
        let found = estate.trust_domains.get(cluster);
        found.into_iter().flatten().collect()
    };
    if found.is_empty() {
        unknown.insert(cluster.to_owned());
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
