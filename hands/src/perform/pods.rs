//! Restarts: lists pods, evicts those that a directive names, and records their names.

use std::collections::BTreeMap;
use std::time::Duration;

use ferromesh_crds::issued_certificate::IssuedCertificateState;
use ferromesh_crds::pod_bounce_directive::{BouncedPods, PodSelector};
use ferromesh_crds::{PodBounceDirective, PodBounceDirectiveStatus, meta};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ObjectMeta, Preconditions};
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::Value;

use super::{Hands, Memory, Progress, Restart};
use crate::error::{Class, Error};
use crate::restart::{self, RootSync, Step, Victim, Waiting};
use crate::state::Observed;

/// Pods of one page of a list.
const PAGE: u32 = 500;
/// The most pages of one entry: more pods than an API server can hold of one workload.
const MAX_PAGES: usize = 40;
/// How long an eviction may take. The client repeats what a `PodDisruptionBudget` refuses (429) until
/// its own timeout.
const EVICTION_TIMEOUT: Duration = Duration::from_secs(3);
/// The most bytes of pod names in a status: with the rest it stays below 8 KB.
const MAX_NAMES: usize = 6 * 1024;
/// How soon pods that are being replaced are looked at again.
const SOON: Duration = Duration::from_secs(5);
/// How soon everything else that is waited for is looked at again.
const LATER: Duration = Duration::from_secs(15);
/// The label of istiod's pods (Istio's charts).
const ISTIOD: &str = "app=istiod";

/// The directive that was followed to its end, and since when the root is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Restarted {
    since: Timestamp,
    uid: Option<String>,
    generation: Option<i64>,
}

/// When to look again.
pub(super) fn look_again(restart: &Restart) -> Option<Duration> {
    match restart {
        Restart::Finished(_) => None,
        Restart::Waiting(
            Waiting::Eviction { .. } | Waiting::Replicas { .. } | Waiting::Rollout { .. },
        ) => Some(SOON),
        Restart::Waiting(_) => Some(LATER),
    }
}

impl Hands {
    /// Follows the directive of a certificate that is stored, one step.
    pub(super) async fn restart(
        &self,
        observed: &mut Observed,
        progress: &Progress,
        memory: &mut Memory,
    ) -> Result<Restart, Error> {
        let Some(since) = progress.live.as_ref().map(|live| live.root_since) else {
            return Ok(Restart::Finished(None));
        };
        let Some(reference) = &observed.certificate.spec.pod_bounce_directive else {
            return self.without_directive(observed, since).await;
        };
        let Some(directive) = observed.directive.take() else {
            let name = format!("{}/{}", reference.namespace, reference.name);
            return Ok(Restart::Waiting(Waiting::Directive { name }));
        };
        let restarted = Restarted {
            since,
            uid: directive.metadata.uid.clone(),
            generation: directive.metadata.generation,
        };
        if memory.restarted.as_ref() == Some(&restarted) {
            return Ok(Restart::Finished(None));
        }
        let restart = self.follow(observed, &directive, since).await?;
        if matches!(restart, Restart::Finished(_)) {
            memory.restarted = Some(restarted);
        }
        Ok(restart)
    }

    async fn follow(
        &self,
        observed: &Observed,
        directive: &PodBounceDirective,
        since: Timestamp,
    ) -> Result<Restart, Error> {
        let certificate = &observed.certificate;
        // What was finished once does not become unfinished because pods are not ready today.
        let was_finished = certificate.status.as_ref().is_some_and(|status| {
            status.state == IssuedCertificateState::Finished
                && Some(status.observed_generation) == certificate.metadata.generation
        });
        let mut bounced = directive
            .status
            .as_ref()
            .map(|status| status.pods_bounced.clone())
            .unwrap_or_default();
        let mut person = None;
        for (index, entry) in directive.spec.pods_to_bounce.iter().enumerate() {
            if entry.namespace.is_empty() || entry.labels.is_empty() {
                continue;
            }
            let mut entry = entry.clone();
            if was_finished {
                entry.wait_for_replicas = 0;
            }
            let pods = self
                .pods(&entry.namespace, &selector(&entry.labels))
                .await?;
            let root = self.root_sync(&entry, &pods, observed, since).await?;
            match restart::step(&entry, &pods, &root, since) {
                Step::Done { left } if left.is_empty() => {}
                Step::Done { left } => {
                    person = Some(Waiting::Person {
                        namespace: entry.namespace,
                        pods: left,
                    });
                }
                Step::Wait(waiting) => return Ok(Restart::Waiting(waiting)),
                Step::Evict(victims) => {
                    let (evicted, refused) = self.evict(&entry.namespace, victims).await?;
                    let count = evicted.len();
                    note(&mut bounced, index, evicted);
                    self.record(directive, bounced).await?;
                    return Ok(Restart::Waiting(match refused {
                        Some(pod) if count == 0 => Waiting::Budget { pod },
                        _ => Waiting::Eviction {
                            namespace: entry.namespace,
                            evicted: count,
                        },
                    }));
                }
            }
        }
        bounced.resize_with(directive.spec.pods_to_bounce.len(), BouncedPods::default);
        self.record(directive, bounced).await?;
        Ok(Restart::Finished(person))
    }

    /// Nobody allows restarts. istiod that has signed with a CA of its own takes up its first `cacerts`
    /// only when it starts: then somebody must be told.
    async fn without_directive(
        &self,
        observed: &Observed,
        since: Timestamp,
    ) -> Result<Restart, Error> {
        let target = observed.certificate.spec.issued_certificate_secret.as_ref();
        let namespace = target.map(|target| target.namespace.clone());
        let namespace = namespace.unwrap_or_default();
        let pods = match self.pods(&namespace, ISTIOD).await {
            Ok(pods) => pods,
            // It is good to know and not necessary.
            Err(error) if error.class() == Class::Refused => {
                tracing::debug!(error = error.text(), "pods of istiod cannot be listed");
                Vec::new()
            }
            Err(error) => return Err(error),
        };
        let pods: Vec<String> = restart::older(&pods, since)
            .map(ResourceExt::name_any)
            .collect();
        let person = (!pods.is_empty()).then_some(Waiting::Person { namespace, pods });
        Ok(Restart::Finished(person))
    }

    async fn pods(&self, namespace: &str, labels: &str) -> Result<Vec<Pod>, Error> {
        let api: Api<Pod> = self.api(namespace);
        let mut params = ListParams::default().labels(labels).limit(PAGE);
        let mut pods = Vec::new();
        for _ in 0..MAX_PAGES {
            let page = api
                .list(&params)
                .await
                .map_err(|error| Error::api("listing", api.resource_url(), error))?;
            let next = page.metadata.continue_.clone();
            pods.extend(page.items);
            match next.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => break,
            }
        }
        Ok(pods)
    }

    /// Whether the root of `cacerts` has reached the pods' namespace, if the entry asks for it and a
    /// pod needs it.
    async fn root_sync(
        &self,
        entry: &PodSelector,
        pods: &[Pod],
        observed: &Observed,
        since: Timestamp,
    ) -> Result<RootSync, Error> {
        let sync = entry.root_cert_sync.as_ref();
        let config_map = sync.and_then(|sync| sync.config_map_ref.as_ref());
        let (Some(sync), Some(reference)) = (sync, config_map) else {
            return Ok(RootSync::Reached);
        };
        if restart::older(pods, since).next().is_none() {
            return Ok(RootSync::Reached);
        }
        let or_root = |key: &str| {
            if key.is_empty() {
                meta::ROOT_CERT_KEY.to_owned()
            } else {
                key.to_owned()
            }
        };
        let api: Api<ConfigMap> = self.api(&reference.namespace);
        let config_map = api
            .get_opt(&reference.name)
            .await
            .map_err(|error| Error::api("reading", api.resource_url(), error))?;
        let published = config_map
            .as_ref()
            .and_then(|map| map.data.as_ref()?.get(&or_root(&sync.config_map_key)));
        // Whatever Secret the entry names, this certificate is about this one.
        let wanted = observed
            .cacerts
            .as_ref()
            .and_then(|secret| secret.entry(&or_root(&sync.secret_key)));
        let reached =
            restart::is_root_reached(wanted.unwrap_or_default(), published.map(String::as_str));
        Ok(if reached {
            RootSync::Reached
        } else {
            RootSync::Missing {
                config_map: format!("{}/{}", reference.namespace, reference.name),
            }
        })
    }

    /// Evicts what may be evicted. Returns the names, and the first pod that may not.
    async fn evict(
        &self,
        namespace: &str,
        victims: Vec<Victim>,
    ) -> Result<(Vec<String>, Option<String>), Error> {
        let mut evicted = Vec::new();
        for Victim { name, uid } in victims {
            match self.evict_one(namespace, &name, uid).await? {
                Evicted::Yes => evicted.push(name),
                Evicted::Gone => {}
                // Others of the same workload have the same budget.
                Evicted::Refused => return Ok((evicted, Some(format!("{namespace}/{name}")))),
            }
        }
        Ok((evicted, None))
    }

    async fn evict_one(
        &self,
        namespace: &str,
        name: &str,
        uid: Option<String>,
    ) -> Result<Evicted, Error> {
        // Not `Api::evict`: it writes `delete_options`, which API servers ignore.
        let eviction = Eviction {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            delete_options: Some(DeleteOptions {
                preconditions: Some(Preconditions {
                    uid,
                    resource_version: None,
                }),
                ..DeleteOptions::default()
            }),
        };
        let api: Api<Pod> = self.api(namespace);
        let post = self.post();
        let request = api.create_subresource::<_, Value>("eviction", name, &post, &eviction);
        match tokio::time::timeout(EVICTION_TIMEOUT, request).await {
            Ok(Ok(_)) => {
                tracing::info!(namespace, name, "pod evicted");
                Ok(Evicted::Yes)
            }
            Err(_) => Ok(Evicted::Refused),
            Ok(Err(kube::Error::Api(status))) if status.code == 429 => Ok(Evicted::Refused),
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 409) => {
                Ok(Evicted::Gone)
            }
            Ok(Err(error)) => {
                let pod = format!("{}/{name}", api.resource_url());
                Err(Error::api("evicting", pod, error))
            }
        }
    }

    /// Records which pods were restarted. A record that somebody else was faster with is left out:
    /// nothing depends on it.
    pub(super) async fn record(
        &self,
        directive: &PodBounceDirective,
        pods_bounced: Vec<BouncedPods>,
    ) -> Result<(), Error> {
        let status = PodBounceDirectiveStatus { pods_bounced };
        if directive.status.clone().unwrap_or_default() == status {
            return Ok(());
        }
        let mut next = directive.clone();
        next.status = Some(status);
        let api: Api<PodBounceDirective> = self.api(&directive.namespace().unwrap_or_default());
        let name = directive.name_any();
        match api.replace_status(&name, &self.post(), &next).await {
            Ok(_) => Ok(()),
            Err(error) => {
                let object = format!("{}/{name}", api.resource_url());
                let error = Error::api("writing the status of", object, error);
                if error.is_late() { Ok(()) } else { Err(error) }
            }
        }
    }
}

/// What became of an eviction.
enum Evicted {
    Yes,
    /// It is gone, or another pod has its name.
    Gone,
    /// Not now.
    Refused,
}

fn selector(labels: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = labels
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pairs.join(",")
}

/// Notes the names at `index`, as long as there is room for them.
fn note(bounced: &mut Vec<BouncedPods>, index: usize, names: Vec<String>) {
    if bounced.len() <= index {
        bounced.resize_with(index + 1, BouncedPods::default);
    }
    let known = bounced.iter().flat_map(|entry| &entry.bounced_pods);
    let mut room = MAX_NAMES.saturating_sub(known.map(|name| name.len() + 4).sum());
    let Some(entry) = bounced.get_mut(index) else {
        return;
    };
    for name in names {
        let Some(left) = room.checked_sub(name.len() + 4) else {
            return;
        };
        room = left;
        entry.bounced_pods.push(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_restarted_pods_stay_within_a_status() {
        let mut bounced = Vec::new();
        for index in 0..40 {
            let names = (0..50).map(|pod| format!("workload-{index}-{pod}"));
            note(&mut bounced, index, names.collect());
        }
        assert_eq!(bounced.len(), 40);
        let status = PodBounceDirectiveStatus {
            pods_bounced: bounced,
        };
        assert!(serde_json::to_vec(&status).unwrap().len() < 8 * 1024);
        assert_eq!(status.pods_bounced[0].bounced_pods.len(), 50);
    }
}
