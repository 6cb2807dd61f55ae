//! The registration as it is to be.

use ferromesh_core::Kind;
use ferromesh_crds::meta::NETWORKING_OWNER_LABEL;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ValidatingWebhook,
    ValidatingWebhookConfiguration,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{BREAK_GLASS_ANNOTATION, Options};
use crate::certificate::Bundle;
use crate::router::{MUTATE, VALIDATE};

/// The webhook that judges what is created and changed. It fails closed: nobody but us writes
/// these kinds in earnest, and a policy that nobody has judged may open what it was to close.
const CHANGES: &str = "changes.admission.mesh.gloo.solo.io";
/// The webhook that says what a deletion does. It never stands in the way of one.
const DELETIONS: &str = "deletions.admission.mesh.gloo.solo.io";
/// The webhook that writes canonical forms. What it cannot do the schema refuses.
const FORMS: &str = "forms.admission.mesh.gloo.solo.io";

/// How long an API server waits, in seconds: well above the webhook's own limits.
const TIMEOUT: i32 = 5;
/// How long an API server waits for what it can do without.
const SHORT_TIMEOUT: i32 = 3;

/// The kinds that are judged, and only they: group, version and plural.
const KINDS: [(Kind, &[&str]); 2] = [
    (
        Kind::TrafficPolicy,
        &["accesspolicies", "trafficpolicies", "virtualmeshes"],
    ),
    (Kind::Settings, &["settings"]),
];

/// The validating half.
pub(super) fn validating(options: &Options, bundle: &Bundle) -> ValidatingWebhookConfiguration {
    let webhook = |name: &str, operations: &[&str], policy: &str, timeout| ValidatingWebhook {
        name: name.to_owned(),
        admission_review_versions: vec!["v1".to_owned()],
        client_config: options
            .endpoint
            .client_config(&format!("{VALIDATE}/{}", bundle.mark), bundle),
        failure_policy: Some(policy.to_owned()),
        match_policy: Some("Equivalent".to_owned()),
        rules: Some(rules(operations)),
        side_effects: "None".to_owned(),
        timeout_seconds: Some(timeout),
        ..ValidatingWebhook::default()
    };
    ValidatingWebhookConfiguration {
        metadata: metadata(options),
        webhooks: Some(vec![
            webhook(CHANGES, &["CREATE", "UPDATE"], "Fail", TIMEOUT),
            webhook(DELETIONS, &["DELETE"], "Ignore", SHORT_TIMEOUT),
        ]),
    }
}

/// The mutating half.
pub(super) fn mutating(options: &Options, bundle: &Bundle) -> MutatingWebhookConfiguration {
    MutatingWebhookConfiguration {
        metadata: metadata(options),
        webhooks: Some(vec![MutatingWebhook {
            name: FORMS.to_owned(),
            admission_review_versions: vec!["v1".to_owned()],
            client_config: options.endpoint.client_config(MUTATE, bundle),
            failure_policy: Some("Ignore".to_owned()),
            match_policy: Some("Equivalent".to_owned()),
            reinvocation_policy: Some("Never".to_owned()),
            rules: Some(rules(&["CREATE", "UPDATE"])),
            side_effects: "None".to_owned(),
            timeout_seconds: Some(SHORT_TIMEOUT),
            ..MutatingWebhook::default()
        }]),
    }
}

fn metadata(options: &Options) -> ObjectMeta {
    ObjectMeta {
        name: Some(options.name.clone()),
        labels: Some([(NETWORKING_OWNER_LABEL.to_owned(), options.namespace.clone())].into()),
        ..ObjectMeta::default()
    }
}

fn rules(operations: &[&str]) -> Vec<RuleWithOperations> {
    KINDS
        .iter()
        .map(|(kind, plurals)| RuleWithOperations {
            api_groups: Some(vec![kind.group().into_owned()]),
            api_versions: Some(vec!["v1".to_owned()]),
            operations: Some(operations.iter().map(ToString::to_string).collect()),
            resources: Some(plurals.iter().map(ToString::to_string).collect()),
            scope: Some("Namespaced".to_owned()),
        })
        .collect()
}

/// Why the registration was switched off, if it was.
pub(super) fn break_glass(meta: &ObjectMeta) -> Option<&str> {
    let annotations = meta.annotations.as_ref()?;
    annotations.get(BREAK_GLASS_ANNOTATION).map(String::as_str)
}

/// Whether an object of the registration's name is that of this management plane.
pub(super) fn is_ours(meta: &ObjectMeta, options: &Options) -> bool {
    meta.labels
        .as_ref()
        .and_then(|labels| labels.get(NETWORKING_OWNER_LABEL))
        == Some(&options.namespace)
}

#[cfg(test)]
mod tests {
    use super::super::Endpoint;
    use super::*;
    use ferromesh_core::review::judged;

    fn options() -> Options {
        Options::new("gloo-mesh", Endpoint::Url("https://a:1".parse().unwrap()))
    }

    #[test]
    fn only_our_kinds_are_asked_about_and_changes_fail_closed() {
        let bundle = Bundle::new("pem".into());
        let webhooks = validating(&options(), &bundle).webhooks.unwrap();
        let told: Vec<_> = webhooks
            .iter()
            .map(|webhook| {
                let operations = webhook.rules.iter().flatten().next().unwrap();
                let operations = operations.operations.clone().unwrap();
                (operations, webhook.failure_policy.clone().unwrap())
            })
            .collect();
        assert_eq!(
            told,
            [
                (vec!["CREATE".into(), "UPDATE".into()], "Fail".to_owned()),
                (vec!["DELETE".into()], "Ignore".to_owned()),
            ]
        );
        for webhook in &webhooks {
            assert_eq!(webhook.side_effects, "None");
            assert_eq!(webhook.match_policy.as_deref(), Some("Equivalent"));
            assert!(webhook.timeout_seconds.unwrap() <= 5);
            assert_eq!(webhook.namespace_selector, None, "no namespace is exempt");
            for rule in webhook.rules.iter().flatten() {
                assert_eq!(rule.scope.as_deref(), Some("Namespaced"));
                let names = rule.resources.iter().chain(&rule.api_groups).flatten();
                assert!(names.into_iter().all(|name| !name.contains(['*', '/'])));
            }
        }
    }

    #[test]
    fn every_kind_that_is_asked_about_is_judged_and_every_other_is_not() {
        let asked: Vec<(String, String)> = rules(&["CREATE"])
            .into_iter()
            .flat_map(|rule| {
                let group = rule.api_groups.unwrap().remove(0);
                rule.resources
                    .unwrap()
                    .into_iter()
                    .map(move |plural| (group.clone(), plural))
            })
            .collect();
        for definition in ferromesh_crds::all() {
            let names = definition.spec.names;
            let group = definition.spec.group;
            let is_judged = judged(&group, &names.kind).is_some();
            let is_asked = asked.contains(&(group, names.plural));
            assert_eq!(is_judged, is_asked, "{}", names.kind);
        }
    }

    #[test]
    fn another_bundle_is_another_path() {
        let path = |pem: &str| {
            let webhooks = validating(&options(), &Bundle::new(pem.into())).webhooks;
            webhooks.unwrap()[0].client_config.url.clone().unwrap()
        };
        assert!(path("one").starts_with("https://a:1/validate/"));
        assert_ne!(path("one"), path("two"));
    }
}
