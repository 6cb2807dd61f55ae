//! Which pods to restart next, so that they take up a new root.
//!
//! A pod needs a restart if it was created before `cacerts` had the root that it has now: later pods
//! have it by construction, and a new certificate under the same root is taken up without a restart
//! (Istio from 1.19 on). So the pods themselves say how far a directive has come; the status only
//! records what was done.
//!
//! Pods are evicted, never deleted: a `PodDisruptionBudget` counts. Of one entry at most a quarter is
//! away at a time, at least one, as Deployments do it (Kubernetes: `maxUnavailable`, 25 %).

use std::fmt;

use ferromesh_ca::bundle::TrustBundle;
use ferromesh_crds::pod_bounce_directive::PodSelector;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

/// The most pods that are evicted in one step.
const MAX_VICTIMS: usize = 50;
/// The most names that a message lists.
const SHOWN: usize = 5;

/// What to do for one entry of a directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing: go on with the next entry.
    Done {
        /// Pods that would need a restart and have nobody who would start them again.
        left: Vec<String>,
    },
    /// Evict these pods, then look again.
    Evict(Vec<Victim>),
    /// Look again later.
    Wait(Waiting),
}

/// A pod that is to be evicted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Victim {
    /// Its name.
    pub name: String,
    /// Its uid: a pod of the same name that took its place is not evicted.
    pub uid: Option<String>,
}

/// What is waited for. The text says it for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// The directive itself.
    Directive {
        /// Its name.
        name: String,
    },
    /// Pods that are ready again.
    Replicas {
        /// Namespace of the pods.
        namespace: String,
        /// How many are.
        ready: usize,
        /// How many must be.
        wanted: usize,
    },
    /// Pods of the same entry that are not ready.
    Rollout {
        /// Namespace of the pods.
        namespace: String,
        /// How many are away or not ready.
        unavailable: usize,
        /// How many still need a restart.
        old: usize,
    },
    /// The root in a ConfigMap.
    Root {
        /// Namespace and name of the ConfigMap.
        config_map: String,
    },
    /// A `PodDisruptionBudget`, or an API server that has too much to do.
    Budget {
        /// Namespace and name of the pod.
        pod: String,
    },
    /// A person: the API server refuses what a restart takes.
    Refused {
        /// What it says.
        reason: String,
    },
    /// The next look: pods are being replaced.
    Eviction {
        /// Namespace of the pods.
        namespace: String,
        /// How many were evicted just now.
        evicted: usize,
    },
    /// A person: nobody allows to restart these pods.
    Person {
        /// Namespace of the pods.
        namespace: String,
        /// Their names.
        pods: Vec<String>,
    },
}

/// Whether the root has reached the pods' namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootSync {
    /// It has, or nobody asks.
    Reached,
    /// It has not.
    Missing {
        /// Namespace and name of the ConfigMap that should have it.
        config_map: String,
    },
}

/// Whether the roots in a ConfigMap hold all those of `cacerts`.
pub fn is_root_reached(cacerts: &[u8], config_map: Option<&str>) -> bool {
    let Some(published) = config_map else {
        return false;
    };
    if published.as_bytes() == cacerts {
        return true;
    }
    let bundle = |item, text| TrustBundle::from_pem(item, text).ok();
    match (
        bundle("the ConfigMap", published.as_bytes()),
        bundle("cacerts", cacerts),
    ) {
        (Some(published), Some(wanted)) => published.is_superset(&wanted),
        _ => false,
    }
}

/// The pods among `pods` that were created until `since` and are still there.
pub fn older(pods: &[Pod], since: Timestamp) -> impl Iterator<Item = &Pod> {
    pods.iter()
        .filter(move |pod| is_live(pod) && is_older(pod, since))
}

/// The next step for the entry `selector`, whose pods are `pods`.
pub fn step(selector: &PodSelector, pods: &[Pod], root: &RootSync, since: Timestamp) -> Step {
    let namespace = || selector.namespace.clone();
    let (old, left): (Vec<&Pod>, Vec<&Pod>) =
        older(pods, since).partition(|pod| has_controller(pod));
    let current = || pods.iter().filter(|pod| is_live(pod));
    if old.is_empty() {
        let renewed = current().filter(|pod| !is_older(pod, since) && is_ready(pod));
        let ready = renewed.count();
        let wanted = usize::try_from(selector.wait_for_replicas).unwrap_or_default();
        if ready < wanted {
            let namespace = namespace();
            return Step::Wait(Waiting::Replicas {
                namespace,
                ready,
                wanted,
            });
        }
        return Step::Done {
            left: left.into_iter().map(name).collect(),
        };
    }
    if let RootSync::Missing { config_map } = root {
        let config_map = config_map.clone();
        return Step::Wait(Waiting::Root { config_map });
    }
    let terminating = pods.iter().filter(|pod| is_terminating(pod)).count();
    let unavailable = terminating + current().filter(|pod| !is_ready(pod)).count();
    let allowed = (current().count() / 4).max(1);
    let (ready, idle): (Vec<&Pod>, Vec<&Pod>) = old.iter().copied().partition(|pod| is_ready(pod));
    // Those that serve nobody go at once: nothing gets worse.
    let victims: Vec<Victim> = idle
        .into_iter()
        .chain(ready.into_iter().take(allowed.saturating_sub(unavailable)))
        .take(MAX_VICTIMS)
        .map(|pod| Victim {
            name: name(pod),
            uid: pod.metadata.uid.clone(),
        })
        .collect();
    if victims.is_empty() {
        return Step::Wait(Waiting::Rollout {
            namespace: namespace(),
            unavailable,
            old: old.len(),
        });
    }
    Step::Evict(victims)
}

fn name(pod: &Pod) -> String {
    pod.metadata.name.clone().unwrap_or_default()
}

fn is_terminating(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Neither on its way out nor over.
fn is_live(pod: &Pod) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    !is_terminating(pod) && !matches!(phase, Some("Succeeded" | "Failed"))
}

/// Times of an API server have whole seconds: a pod of the same second counts as older.
fn is_older(pod: &Pod, since: Timestamp) -> bool {
    let created = pod.metadata.creation_timestamp.as_ref();
    created.is_some_and(|created| created.0 <= since)
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref());
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Whether somebody starts it again. The kubelet's own pods belong to their Node, and evicting them does
/// nothing.
fn has_controller(pod: &Pod) -> bool {
    let owners = pod.metadata.owner_references.iter().flatten();
    owners
        .filter(|owner| owner.controller == Some(true))
        .any(|owner| owner.kind != "Node")
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directive { name } => write!(f, "waiting for PodBounceDirective {name}"),
            Self::Replicas {
                namespace,
                ready,
                wanted,
            } => write!(
                f,
                "waiting in namespace {namespace} for {wanted} ready pods, {ready} are"
            ),
            Self::Rollout {
                namespace,
                unavailable,
                old,
            } => write!(
                f,
                "{old} pods in namespace {namespace} still need a restart, which waits for {unavailable} that \
                 are not ready"
            ),
            Self::Root { config_map } => {
                write!(f, "waiting until the new root is in ConfigMap {config_map}")
            }
            Self::Budget { pod } => write!(
                f,
                "pod {pod} needs a restart and is not evicted: a PodDisruptionBudget may forbid it. Add a \
                 replica, or restart its workload yourself"
            ),
            Self::Refused { reason } => write!(
                f,
                "pods are not restarted, the API server refuses ({reason}): allow it, or set autoRestartPods to \
                 false and restart them yourself"
            ),
            Self::Eviction { namespace, evicted } => {
                write!(
                    f,
                    "{evicted} pods in namespace {namespace} are being replaced"
                )
            }
            Self::Person { namespace, pods } => {
                let shown = pods.get(..SHOWN).unwrap_or(pods).join(", ");
                let more = match pods.len().saturating_sub(SHOWN) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                write!(
                    f,
                    "restart in namespace {namespace}: {shown}{more}; they are older than the root in cacerts"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests;
