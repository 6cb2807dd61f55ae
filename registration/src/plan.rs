//! From a registration to all its objects.
//!
//! A plan is what a dry run shows and what is carried out: the same objects, in the same order.

mod management;
mod remote;

use std::collections::{BTreeMap, BTreeSet};

use ferromesh_crds::{
    meta,
    name::{ClusterName, Hostname, Namespace},
};
use k8s_openapi::api::rbac::v1::PolicyRule;

use crate::{
    credential::{Credential, CredentialKind, Token},
    kubeconfig::ApiServer,
    object::Object,
    right::{Right, Scope},
};

/// Annotation on a `KubernetesCluster`: the uid of the remote cluster's `kube-system`, by which the same
/// cluster is known again at whatever address.
pub(crate) const CLUSTER_UID_ANNOTATION: &str = "registration.mesh.gloo.solo.io/cluster-uid";

/// A cluster that is to be registered.
#[derive(Clone, Debug)]
pub struct Registration {
    /// The name of the cluster from now on.
    pub name: ClusterName,
    /// The namespace of the management plane.
    pub management_namespace: Namespace,
    /// The namespace of the registration in the remote cluster.
    pub remote_namespace: Namespace,
    /// The DNS domain of the remote cluster.
    pub cluster_domain: Hostname,
    /// The API server of the remote cluster, as the management plane reaches it.
    pub api_server: ApiServer,
    /// Labels on the kubeconfig Secret and on the `KubernetesCluster`.
    pub labels: BTreeMap<String, String>,
    /// The namespaces of the remote cluster in which istiod runs, or is going to.
    pub istio_namespaces: BTreeSet<Namespace>,
    /// How the management plane shows who it is.
    pub credential: CredentialKind,
}

/// What only the remote cluster can tell.
#[derive(Clone, Debug)]
pub(crate) struct Answers {
    pub(crate) credential: Credential,
    /// The uid of `kube-system`; empty if it may not be read.
    pub(crate) cluster_uid: String,
}

/// All objects of a registration, in the order in which they are written.
///
/// That order lets a run that broke off be repeated: the remote side comes first, so that no kubeconfig is
/// stored before its account has its rights.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is written to the remote cluster.
    pub remote: Vec<Object>,
    /// What is written to the management cluster.
    pub management: Vec<Object>,
}

// === impl Registration ===

impl Registration {
    /// A registration as it is unless told otherwise: namespace `gloo-mesh` on both sides, istiod in
    /// `istio-system`, domain `cluster.local`, a credential that expires and is renewed.
    pub fn new(name: ClusterName, api_server: ApiServer) -> Self {
        let namespace = |name: &str| -> Namespace { name.parse().expect("a valid namespace") };
        Self {
            name,
            management_namespace: namespace(meta::DEFAULT_NAMESPACE),
            remote_namespace: namespace(meta::DEFAULT_NAMESPACE),
            cluster_domain: meta::DEFAULT_CLUSTER_DOMAIN
                .parse()
                .expect("a valid domain"),
            api_server,
            labels: BTreeMap::new(),
            istio_namespaces: [namespace(meta::DEFAULT_ISTIO_NAMESPACE)].into(),
            credential: CredentialKind::default(),
        }
    }
}

// === impl Answers ===

impl Answers {
    /// What stands where only the remote cluster could tell.
    pub(crate) fn unknown(registration: &Registration) -> Self {
        let Registration {
            name,
            remote_namespace,
            ..
        } = registration;
        let token = format!("<token of ServiceAccount {remote_namespace}/{name}>");
        Self {
            credential: Credential {
                token: Token::new(token),
                validity: None,
            },
            cluster_uid: String::from("<uid of Namespace kube-system>"),
        }
    }
}

// === impl Plan ===

impl Plan {
    /// The plan as far as it can be known without asking any cluster: token and uid are placeholders.
    pub fn new(registration: &Registration) -> Self {
        Self::with(registration, &Answers::unknown(registration))
    }

    pub(crate) fn with(registration: &Registration, answers: &Answers) -> Self {
        Self {
            remote: remote::objects(registration),
            management: management::objects(registration, answers),
        }
    }

    /// All objects, the remote side first.
    pub fn objects(&self) -> impl Iterator<Item = &Object> {
        self.remote.iter().chain(&self.management)
    }

    /// All objects as YAML, each under a comment that tells its side.
    pub fn to_yaml(&self) -> String {
        let documents: Vec<_> = self
            .objects()
            .map(|object| {
                let yaml = serde_saphyr::to_string(object.body()).expect("an object is YAML");
                format!("---\n# In {}.\n{yaml}", object.side())
            })
            .collect();
        documents.concat()
    }
}

/// The name of the Secret of a token that never expires.
pub(crate) fn token_secret(cluster: &ClusterName) -> String {
    format!("{cluster}-token")
}

fn rules(rights: &[Right], scope: &Scope) -> Vec<PolicyRule> {
    rights
        .iter()
        .filter(|right| right.scope == *scope)
        .map(Right::rule)
        .collect()
}
