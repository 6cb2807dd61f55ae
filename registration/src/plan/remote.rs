//! The objects of the remote side: an account, and what it may do.

use std::collections::BTreeSet;

use ferromesh_crds::{
    definition,
    name::{ClusterName, Namespace},
};
use k8s_openapi::api::{
    core::v1 as core,
    rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject},
};
use kube::core::ObjectMeta;

use super::{Registration, rules, token_secret};
use crate::{
    credential::CredentialKind,
    object::{Claim, Object, REGISTRATION_LABEL, Side},
    right::{Scope, rights},
};

/// Keeps sidecars out of the namespace of the registration (Istio: automatic sidecar injection).
const INJECTION: (&str, &str) = ("istio-injection", "disabled");

/// Annotation that names the account of a token Secret (Kubernetes: service account tokens).
const ACCOUNT_ANNOTATION: &str = "kubernetes.io/service-account.name";
const ACCOUNT_TOKEN_TYPE: &str = "kubernetes.io/service-account-token";

const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// In the order in which they are written.
pub(super) fn objects(registration: &Registration) -> Vec<Object> {
    let Registration {
        name,
        remote_namespace,
        ..
    } = registration;
    let object = Remote {
        registration,
        names: Names::of(name),
    };
    let rights = rights(registration);

    let mut objects = vec![object.namespace()];
    objects.extend(
        definition::managed()
            .iter()
            .map(|crd| Object::new(Side::Remote, Claim::Definition, crd)),
    );
    objects.push(object.account());
    if registration.credential == CredentialKind::LongLived {
        objects.push(object.token_secret());
    }
    objects.extend(object.cluster_role(rules(&rights, &Scope::Cluster)));
    let namespaces: BTreeSet<&Namespace> = registration
        .istio_namespaces
        .iter()
        .chain([remote_namespace])
        .collect();
    for namespace in namespaces {
        let rules = rules(&rights, &Scope::Namespace(namespace.clone()));
        objects.extend(object.role(namespace, rules));
    }
    objects
}

/// Names of what has no name that other tools rely on.
struct Names {
    role: String,
    cluster_role_binding: String,
    role_binding: String,
}

impl Names {
    fn of(cluster: &ClusterName) -> Self {
        Self {
            // Not one role for all names of a cluster: where one cluster is registered twice, taking away
            // one registration must leave the other its rights.
            role: format!("gloomesh-remote-access-{cluster}"),
            cluster_role_binding: format!("{cluster}-gloomesh-remote-access-clusterrole-binding"),
            role_binding: format!("{cluster}-gloomesh-remote-access-role-binding"),
        }
    }
}

/// Makes the objects of the remote side.
struct Remote<'a> {
    registration: &'a Registration,
    names: Names,
}

impl Remote<'_> {
    fn meta(&self, namespace: Option<&Namespace>, name: &str) -> ObjectMeta {
        let label = (
            REGISTRATION_LABEL.to_owned(),
            self.registration.name.to_string(),
        );
        ObjectMeta {
            name: Some(name.to_owned()),
            namespace: namespace.map(Namespace::to_string),
            labels: Some([label].into()),
            ..ObjectMeta::default()
        }
    }

    fn namespace(&self) -> Object {
        let (key, value) = INJECTION;
        let namespace = core::Namespace {
            metadata: ObjectMeta {
                name: Some(self.registration.remote_namespace.to_string()),
                labels: Some([(key.to_owned(), value.to_owned())].into()),
                ..ObjectMeta::default()
            },
            ..core::Namespace::default()
        };
        Object::new(Side::Remote, Claim::Shared, &namespace)
    }

    fn account(&self) -> Object {
        let namespace = &self.registration.remote_namespace;
        let account = core::ServiceAccount {
            metadata: self.meta(Some(namespace), self.registration.name.as_str()),
            ..core::ServiceAccount::default()
        };
        Object::new(Side::Remote, Claim::Labelled, &account)
    }

    fn token_secret(&self) -> Object {
        let name = &self.registration.name;
        let namespace = &self.registration.remote_namespace;
        let secret = core::Secret {
            metadata: ObjectMeta {
                annotations: Some([(ACCOUNT_ANNOTATION.to_owned(), name.to_string())].into()),
                ..self.meta(Some(namespace), &token_secret(name))
            },
            type_: Some(ACCOUNT_TOKEN_TYPE.to_owned()),
            ..core::Secret::default()
        };
        Object::new(Side::Remote, Claim::Labelled, &secret)
    }

    fn cluster_role(&self, rules: Vec<PolicyRule>) -> [Object; 2] {
        let role = ClusterRole {
            metadata: self.meta(None, &self.names.role),
            rules: Some(rules),
            ..ClusterRole::default()
        };
        let binding = ClusterRoleBinding {
            metadata: self.meta(None, &self.names.cluster_role_binding),
            role_ref: self.role_ref("ClusterRole"),
            subjects: Some(vec![self.subject()]),
        };
        [
            Object::new(Side::Remote, Claim::Labelled, &role),
            Object::new(Side::Remote, Claim::Labelled, &binding),
        ]
    }

    fn role(&self, namespace: &Namespace, rules: Vec<PolicyRule>) -> [Object; 2] {
        let role = Role {
            metadata: self.meta(Some(namespace), &self.names.role),
            rules: Some(rules),
        };
        let binding = RoleBinding {
            metadata: self.meta(Some(namespace), &self.names.role_binding),
            role_ref: self.role_ref("Role"),
            subjects: Some(vec![self.subject()]),
        };
        [
            Object::new(Side::Remote, Claim::Labelled, &role),
            Object::new(Side::Remote, Claim::Labelled, &binding),
        ]
    }

    fn role_ref(&self, kind: &str) -> RoleRef {
        RoleRef {
            api_group: RBAC_GROUP.to_owned(),
            kind: kind.to_owned(),
            name: self.names.role.clone(),
        }
    }

    fn subject(&self) -> Subject {
        Subject {
            kind: String::from("ServiceAccount"),
            namespace: Some(self.registration.remote_namespace.to_string()),
            name: self.registration.name.to_string(),
            ..Subject::default()
        }
    }
}
