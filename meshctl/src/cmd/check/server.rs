//! Checks of the management cluster itself, and of the clusters registered there.

use std::time::Instant;

use ferromesh_crds as crds;
use ferromesh_crds::meta::RELEASE_MASS_DELETE_ANNOTATION;
use ferromesh_crds::selector::DestinationSelector;
use ferromesh_crds::{TrafficPolicy, TrafficPolicySpec};
use ferromesh_registration::list::{RegisteredCluster, Stored};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{ListParams, PostParams};
use kube::core::Status;

use super::{Finding, Seen};
use crate::error::Error;
use crate::management::Management;
use crate::render::counted;

/// The oldest minor release of Kubernetes 1 that is supported.
const OLDEST: u32 = 30;

/// K1.
pub(super) async fn version(management: &Management) -> Result<Seen, Error> {
    let asked = Instant::now();
    let version = management.client.apiserver_version().await;
    let took = asked.elapsed();
    let version = version.map_err(|source| management.failed("asking for the version", source))?;
    // Some providers write `30+`.
    let minor = version
        .minor
        .trim_end_matches(|c: char| !c.is_ascii_digit());
    let is_old = version.major == "1" && minor.parse::<u32>().is_ok_and(|minor| minor < OLDEST);
    let told = format!("{} in {} ms", version.git_version, took.as_millis());
    let old = is_old.then(|| {
        Finding::new(
            &*management.server,
            format!("is {}, older than 1.{OLDEST}", version.git_version),
            "update the cluster",
        )
    });
    Ok(Seen::of(Vec::from_iter(old), told))
}

/// K3.
pub(super) async fn definitions(management: &Management) -> Result<Seen, Error> {
    let api: Api<CustomResourceDefinition> = Api::all(management.client.clone());
    let found = api
        .list(&ListParams::default().labels("app=gloo-mesh"))
        .await
        .map_err(|source| management.failed("listing customresourcedefinitions", source))?;
    let wanted = crds::all();
    let findings = wanted
        .iter()
        .filter_map(|wanted| {
            let name = wanted.metadata.name.as_deref().unwrap_or_default();
            let found = found
                .items
                .iter()
                .find(|found| found.metadata.name.as_deref() == Some(name));
            let problem = definition(wanted, found)?;
            let remedy = "apply the CRDs of this release";
            Some(Finding::new(name, problem, remedy))
        })
        .collect();
    Ok(Seen::of(findings, counted(wanted.len(), "kind")))
}

/// What is wrong with a definition.
fn definition(
    wanted: &CustomResourceDefinition,
    found: Option<&CustomResourceDefinition>,
) -> Option<String> {
    let Some(found) = found else {
        return Some("is missing, or has not the label app=gloo-mesh".to_owned());
    };
    let missing = wanted.spec.versions.iter().find(|wanted| {
        let mut served = found.spec.versions.iter().filter(|version| version.served);
        served.all(|version| version.name != wanted.name)
    });
    if let Some(missing) = missing {
        return Some(format!("does not serve version {}", missing.name));
    }
    let conditions = found.status.iter().flat_map(|status| &status.conditions);
    let established = conditions
        .flatten()
        .find(|condition| condition.type_ == "Established");
    match established {
        Some(condition) if condition.status == "True" => None,
        Some(condition) => Some(format!(
            "is not established: {}",
            condition.message.as_deref().unwrap_or_default()
        )),
        None => Some("is not established yet".to_owned()),
    }
}

/// D3.
pub(super) async fn webhook(management: &Management) -> Result<Seen, Error> {
    let seen = registration_of_webhook(management).await?;
    match seen {
        Seen::Fine(told) => trial(management, told).await,
        seen => Ok(seen),
    }
}

/// Gives the API server a policy that selects nothing, without storing it, to see whether the
/// webhook answers.
async fn trial(management: &Management, told: String) -> Result<Seen, Error> {
    let spec = TrafficPolicySpec {
        destination_selector: vec![DestinationSelector::default()],
        ..TrafficPolicySpec::default()
    };
    let policy = TrafficPolicy::new("meshctl-check", spec);
    let parameters = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let api = Api::namespaced(management.client.clone(), management.namespace.as_str());
    match api.create(&parameters, &policy).await {
        Ok(_) => Ok(Seen::Fine(format!("{told}, answering"))),
        Err(kube::Error::Api(status)) if is_no_answer(&status) => {
            Ok(Seen::Wrong(vec![Finding::new(
                "the webhook",
                format!(
                    "the API server got no answer: {}; until it does, no policy can be written",
                    status.message
                ),
                "see whether the server runs, and whether API servers reach it",
            )]))
        }
        // Whatever else is said about the trial, by whoever has the right to.
        Err(kube::Error::Api(_)) => Ok(Seen::Fine(format!("{told}, not tried"))),
        Err(source) => Err(management.failed("trying the webhook", source)),
    }
}

/// Whether an API server says that it could not ask a webhook (Kubernetes: "failed calling
/// webhook", an internal error).
fn is_no_answer(status: &Status) -> bool {
    status.code == 500 && status.message.contains("failed calling webhook")
}

async fn registration_of_webhook(management: &Management) -> Result<Seen, Error> {
    let api: Api<ValidatingWebhookConfiguration> = Api::all(management.client.clone());
    let found = api
        .list(&ListParams::default())
        .await
        .map_err(|source| management.failed("listing validatingwebhookconfigurations", source))?;
    Ok(registered(&found.items))
}

fn registered(found: &[ValidatingWebhookConfiguration]) -> Seen {
    let ours: Vec<_> = found
        .iter()
        .flat_map(|configuration| {
            let name = configuration.metadata.name.as_deref().unwrap_or_default();
            let webhooks = configuration.webhooks.iter().flatten();
            webhooks.map(move |webhook| (name, webhook))
        })
        .filter(|(_, webhook)| {
            let rules = webhook.rules.iter().flatten();
            let mut groups = rules.flat_map(|rule| rule.api_groups.iter().flatten());
            groups.any(|group| group == crds::NETWORKING_GROUP)
        })
        .collect();
    if ours.is_empty() {
        return Seen::Wrong(vec![Finding::new(
            "the management cluster",
            format!(
                "no ValidatingWebhookConfiguration has rules for {}: policies are stored without being judged",
                crds::NETWORKING_GROUP
            ),
            "see whether the server runs and holds its lease, and whether somebody has switched the webhook off",
        )]);
    }
    let findings = ours
        .iter()
        .filter(|(_, webhook)| {
            let bundle = webhook.client_config.ca_bundle.as_ref();
            bundle.is_none_or(|bundle| bundle.0.is_empty())
        })
        .map(|(configuration, webhook)| {
            Finding::new(
                format!("{configuration}, webhook {}", webhook.name),
                "has no caBundle: the API server cannot call it",
                "the server writes it within seconds; see its log if it does not",
            )
        })
        .collect();
    Seen::of(findings, counted(ours.len(), "webhook"))
}

/// R1.
pub(super) async fn clusters(management: &Management) -> Result<Seen, Error> {
    let clusters = ferromesh_registration::list(&management.client, &management.namespace).await?;
    if clusters.is_empty() {
        return Ok(Seen::Nothing("no cluster is registered"));
    }
    let now = Timestamp::now();
    let findings = clusters
        .iter()
        .flat_map(|cluster| registration(cluster, now))
        .collect();
    Ok(Seen::of(findings, counted(clusters.len(), "cluster")))
}

/// What is wrong with a registered cluster.
fn registration(cluster: &RegisteredCluster, now: Timestamp) -> Vec<Finding> {
    let again = || {
        format!(
            "register it again: meshctl cluster register {} --remote-context CONTEXT",
            cluster.name
        )
    };
    let wrong = |problem: String, remedy: String| Finding::new(&*cluster.name, problem, remedy);
    let mut findings = Vec::new();
    match &cluster.registered {
        None => findings.push(wrong(
            "has a kubeconfig Secret, but no KubernetesCluster".to_owned(),
            format!(
                "{}, or take the rest away: meshctl cluster deregister {} --remote-context CONTEXT",
                again(),
                cluster.name
            ),
        )),
        Some(registered) => match &registered.reached {
            None => findings.push(wrong(
                "nobody has said whether it is reached".to_owned(),
                "see whether the server runs and holds its lease".to_owned(),
            )),
            Some(reached) if reached.status != "True" => findings.push(wrong(
                format!(
                    "is not reached since {}: {} ({})",
                    reached.since, reached.message, reached.reason
                ),
                "see whether its API server is up and its credential valid".to_owned(),
            )),
            Some(_) => {}
        },
    }
    let held = cluster.registered.as_ref().and_then(|it| it.held.as_ref());
    findings.extend(held.map(|message| {
        wrong(
            format!("a deletion of unusual size waits: {message}"),
            format!(
                "if it is meant, release it by the annotation {RELEASE_MASS_DELETE_ANNOTATION} on the KubernetesCluster"
            ),
        )
    }));
    match &cluster.credential {
        Stored::Missing => findings.push(wrong("has no kubeconfig Secret".to_owned(), again())),
        Stored::Unusable { problem } => findings.push(wrong(
            format!("has a kubeconfig that cannot be used: {problem}"),
            again(),
        )),
        Stored::Kubeconfig {
            validity: Some(validity),
            ..
        } if validity.expires <= now => findings.push(wrong(
            format!("has a credential that expired at {}", validity.expires),
            again(),
        )),
        Stored::Kubeconfig { .. } | Stored::Hidden => {}
    }
    findings
}

#[cfg(test)]
mod tests {
    use ferromesh_registration::credential::Validity;
    use ferromesh_registration::list::{Reached, Registered};
    use serde_json::json;

    use super::*;

    fn problems(seen: &Seen) -> Vec<&str> {
        match seen {
            Seen::Wrong(findings) => findings.iter().map(|it| it.problem.as_str()).collect(),
            Seen::Fine(_) | Seen::Nothing(_) => Vec::new(),
        }
    }

    fn configuration(group: &str, bundle: &str) -> ValidatingWebhookConfiguration {
        serde_json::from_value(json!({
            "metadata": {"name": "c"},
            "webhooks": [{
                "name": "w",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "clientConfig": {"url": "https://127.0.0.1", "caBundle": bundle},
                "rules": [{"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*"]}],
            }],
        }))
        .unwrap()
    }

    #[test]
    fn a_webhook_for_other_kinds_is_not_ours() {
        let seen = registered(&[configuration("apps", "YQ==")]);
        assert!(problems(&seen)[0].starts_with("no ValidatingWebhookConfiguration"));
    }

    #[test]
    fn a_webhook_without_a_bundle_cannot_be_called() {
        let ours = |bundle| registered(&[configuration(crds::NETWORKING_GROUP, bundle)]);
        assert_eq!(problems(&ours("YQ==")), [""; 0]);
        assert_eq!(
            problems(&ours("")),
            ["has no caBundle: the API server cannot call it"]
        );
    }

    #[test]
    fn a_definition_must_be_there_served_and_established() {
        let wanted = &crds::all()[0];
        let mut found = wanted.clone();
        assert!(definition(wanted, None).unwrap().starts_with("is missing"));
        assert_eq!(
            definition(wanted, Some(&found)).unwrap(),
            "is not established yet"
        );
        found.status = serde_json::from_value(json!({
            "conditions": [{"type": "Established", "status": "True"}],
        }))
        .unwrap();
        assert_eq!(definition(wanted, Some(&found)), None);
        found.spec.versions[0].served = false;
        assert!(
            definition(wanted, Some(&found))
                .unwrap()
                .starts_with("does not serve version")
        );
    }

    #[test]
    fn a_cluster_needs_both_halves_a_valid_credential_and_a_way() {
        let now: Timestamp = "2026-01-02T00:00:00Z".parse().unwrap();
        let reached = |status: &str| Registered {
            domain: String::new(),
            namespace: String::new(),
            reached: Some(Reached {
                status: status.to_owned(),
                reason: "ClusterUnreachable".to_owned(),
                message: "connection refused".to_owned(),
                since: now,
            }),
            held: None,
        };
        let held = || Registered {
            held: Some("800 of 900 objects".to_owned()),
            ..reached("True")
        };
        let until = |expires: &str| Stored::Kubeconfig {
            server: String::new(),
            validity: Some(Validity {
                issued: "2026-01-01T00:00:00Z".parse().unwrap(),
                expires: expires.parse().unwrap(),
            }),
        };
        let valid = || until("2026-01-03T00:00:00Z");
        for (registered, credential, expected) in [
            (Some(reached("True")), valid(), &[][..]),
            (Some(reached("True")), Stored::Hidden, &[]),
            (Some(reached("False")), valid(), &["is not reached since"]),
            (
                Some(held()),
                valid(),
                &["a deletion of unusual size waits: 800"],
            ),
            (
                Some(reached("True")),
                until("2026-01-01T12:00:00Z"),
                &["has a credential that expired"],
            ),
            (
                Some(reached("True")),
                Stored::Missing,
                &["has no kubeconfig Secret"],
            ),
            (None, valid(), &["has a kubeconfig Secret, but no"]),
        ] {
            let cluster = RegisteredCluster {
                name: "east".to_owned(),
                registered,
                credential,
            };
            let findings = registration(&cluster, now);
            assert_eq!(findings.len(), expected.len(), "{findings:?}");
            for (finding, expected) in findings.iter().zip(expected) {
                assert!(finding.problem.starts_with(expected), "{finding:?}");
            }
        }
    }
}
