//! The objects of the management side: how the cluster is reached, and what is known of it.

use std::collections::BTreeMap;

use ferromesh_crds::{
    KubernetesCluster, KubernetesClusterSpec, KubernetesClusterStatus, kubernetes_cluster, meta,
};
use k8s_openapi::{
    ByteString,
    api::{core::v1 as core, rbac::v1::PolicyRule},
};
use kube::core::ObjectMeta;

use super::{Answers, CLUSTER_UID_ANNOTATION, Registration, rules};
use crate::{
    object::{Claim, Object, REGISTRATION_LABEL, Side},
    right::{Scope, rights},
};

/// In the order in which they are written.
pub(super) fn objects(registration: &Registration, answers: &Answers) -> Vec<Object> {
    let Registration {
        name,
        management_namespace,
        ..
    } = registration;
    let namespace = core::Namespace {
        metadata: ObjectMeta {
            name: Some(management_namespace.to_string()),
            ..ObjectMeta::default()
        },
        ..core::Namespace::default()
    };
    let mut labels = registration.labels.clone();
    labels.insert(REGISTRATION_LABEL.to_owned(), name.to_string());
    let meta = |annotations: BTreeMap<String, String>| ObjectMeta {
        name: Some(name.to_string()),
        namespace: Some(management_namespace.to_string()),
        labels: Some(labels.clone()),
        annotations: (!annotations.is_empty()).then_some(annotations),
        ..ObjectMeta::default()
    };
    let credential = &answers.credential;
    let kubeconfig = registration.api_server.kubeconfig(name, &credential.token);
    let secret = core::Secret {
        metadata: meta(credential.annotations()),
        type_: Some(meta::KUBECONFIG_SECRET_TYPE.to_owned()),
        data: Some(
            [(
                meta::KUBECONFIG_KEY.to_owned(),
                ByteString(kubeconfig.into_bytes()),
            )]
            .into(),
        ),
        ..core::Secret::default()
    };
    let uid = (
        CLUSTER_UID_ANNOTATION.to_owned(),
        answers.cluster_uid.clone(),
    );
    let annotations = if uid.1.is_empty() {
        BTreeMap::new()
    } else {
        [uid].into()
    };
    let cluster = KubernetesCluster {
        metadata: meta(annotations),
        spec: KubernetesClusterSpec {
            secret_name: name.to_string(),
            cluster_domain: registration.cluster_domain.to_string(),
            provider_info: None,
        },
        status: Some(KubernetesClusterStatus {
            namespace: registration.remote_namespace.to_string(),
            // Compatible: the rights in the whole cluster alone are told.
            policy_rules: rules(&rights(registration), &Scope::Cluster)
                .into_iter()
                .map(told)
                .collect(),
            ..KubernetesClusterStatus::default()
        }),
    };
    vec![
        Object::new(Side::Management, Claim::Everybodys, &namespace),
        Object::new(Side::Management, Claim::Named, &secret),
        Object::new(Side::Management, Claim::Named, &cluster),
    ]
}

fn told(rule: PolicyRule) -> kubernetes_cluster::PolicyRule {
    kubernetes_cluster::PolicyRule {
        verbs: rule.verbs,
        api_groups: rule.api_groups.unwrap_or_default(),
        resources: rule.resources.unwrap_or_default(),
        resource_names: rule.resource_names.unwrap_or_default(),
        non_resource_urls: rule.non_resource_urls.unwrap_or_default(),
    }
}
