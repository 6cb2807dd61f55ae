//! The registered clusters, and how they fare.

use std::collections::BTreeMap;

use ferromesh_crds::{KubernetesCluster, condition, meta, name::Namespace};
use ferromesh_runtime::{
    client::{self, Options},
    telemetry::Chain,
};
use k8s_openapi::{ByteString, api::core::v1::Secret, jiff::Timestamp};
use kube::{Api, Client, api::ListParams};

use crate::{
    credential::Validity,
    door::{Action, Door},
    error::{Error, Failure},
    object::{Reference, Side},
};

/// A cluster that is registered, or half of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisteredCluster {
    /// Its name.
    pub name: String,
    /// What its `KubernetesCluster` tells; none if there is only a kubeconfig Secret.
    pub registered: Option<Registered>,
    /// What its kubeconfig Secret tells.
    pub credential: Stored,
}

/// What a `KubernetesCluster` tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registered {
    /// The DNS domain of the cluster.
    pub domain: String,
    /// The namespace of the registration in it; empty if nobody has said.
    pub namespace: String,
    /// Whether the management plane reaches it; none if no management plane has said.
    pub reached: Option<Reached>,
    /// Which deletion of unusual size waits there for a person, if one does.
    pub held: Option<String>,
}

/// Whether the management plane reaches a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, in one word.
    pub reason: String,
    /// Why, for a person.
    pub message: String,
    /// Since when.
    pub since: Timestamp,
}

/// What a kubeconfig Secret tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    /// There is a kubeconfig.
    Kubeconfig {
        /// The address of the API server.
        server: String,
        /// How long the token is valid; none if it does not say.
        validity: Option<Validity>,
    },
    /// There is one that the management plane refuses.
    Unusable {
        /// Why. It never quotes the kubeconfig.
        problem: String,
    },
    /// There is none.
    Missing,
    /// Whoever asks may not read Secrets.
    Hidden,
}

/// The registered clusters of a management plane, by name.
///
/// Whoever may not read Secrets sees all but addresses and credentials.
pub async fn list(
    management: &Client,
    namespace: &Namespace,
) -> Result<Vec<RegisteredCluster>, Error> {
    let door = Door::new(Side::Management, management);
    let every = |kind| Reference::new(kind, Some(namespace.as_str()), "*");
    let clusters: Api<KubernetesCluster> = Api::namespaced(management.clone(), namespace.as_str());
    let clusters = match clusters.list(&ListParams::default()).await {
        Ok(clusters) => clusters.items,
        Err(kube::Error::Api(status)) if status.code == 404 => return Err(Error::NoDefinitions),
        Err(error) => {
            return Err(door.failed(Action::Read, &every("KubernetesCluster"))(
                error,
            ));
        }
    };
    let secrets: Api<Secret> = Api::namespaced(management.clone(), namespace.as_str());
    let kubeconfigs =
        ListParams::default().fields(&format!("type={}", meta::KUBECONFIG_SECRET_TYPE));
    let secrets = match secrets.list(&kubeconfigs).await {
        Ok(secrets) => Some(secrets.items),
        Err(error) if Failure::of(&error) == Failure::Forbidden => None,
        Err(error) => return Err(door.failed(Action::Read, &every("Secret"))(error)),
    };

    let without = if secrets.is_some() {
        Stored::Missing
    } else {
        Stored::Hidden
    };
    let mut found: BTreeMap<String, RegisteredCluster> = BTreeMap::new();
    for cluster in clusters {
        let name = cluster.metadata.name.clone().unwrap_or_default();
        let registered = Some(Registered::of(cluster));
        let credential = without.clone();
        found.insert(
            name.clone(),
            RegisteredCluster {
                name,
                registered,
                credential,
            },
        );
    }
    let is_kubeconfig =
        |secret: &Secret| secret.type_.as_deref() == Some(meta::KUBECONFIG_SECRET_TYPE);
    for secret in secrets.into_iter().flatten().filter(is_kubeconfig) {
        let name = secret.metadata.name.clone().unwrap_or_default();
        let credential = Stored::of(&secret);
        found
            .entry(name.clone())
            .and_modify(|cluster| cluster.credential = credential.clone())
            .or_insert(RegisteredCluster {
                name,
                registered: None,
                credential,
            });
    }
    Ok(found.into_values().collect())
}

// === impl Registered ===

impl Registered {
    fn of(cluster: KubernetesCluster) -> Self {
        let status = cluster.status.unwrap_or_default();
        let condition = |kind: condition::Type| {
            let mut conditions = status.conditions.iter();
            conditions.find(|condition| condition.type_ == kind.as_str())
        };
        let reached = condition(condition::Type::Ready).map(|condition| Reached {
            status: condition.status.clone(),
            reason: condition.reason.clone(),
            message: condition.message.clone(),
            since: condition.last_transition_time.0,
        });
        let held = condition(condition::Type::MassDeleteHeld)
            .filter(|condition| condition.status == condition::Status::True.as_str())
            .map(|condition| condition.message.clone());
        let domain = match cluster.spec.cluster_domain {
            domain if domain.is_empty() => meta::DEFAULT_CLUSTER_DOMAIN.to_owned(),
            domain => domain,
        };
        Self {
            domain,
            namespace: status.namespace,
            reached,
            held,
        }
    }
}

// === impl Stored ===

impl Stored {
    /// As the management plane itself would take it.
    fn of(secret: &Secret) -> Self {
        let data = secret
            .data
            .as_ref()
            .and_then(|data| data.get(meta::KUBECONFIG_KEY));
        let Some(ByteString(kubeconfig)) = data else {
            let problem = format!("the key {} is missing", meta::KUBECONFIG_KEY);
            return Self::Unusable { problem };
        };
        match client::from_bytes(kubeconfig, &Options::default()) {
            Ok(connection) => Self::Kubeconfig {
                server: connection.server,
                validity: Validity::of(secret),
            },
            Err(error) => Self::Unusable {
                problem: Chain(&error).to_string(),
            },
        }
    }
}
