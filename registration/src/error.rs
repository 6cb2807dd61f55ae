//! Why a registration is not made, renewed, removed or listed.

use ferromesh_crds::name::ClusterName;
use ferromesh_runtime::client;

use crate::{
    door::Action,
    kubeconfig,
    object::{REGISTRATION_LABEL, Reference, Side},
};

/// Why something was not done. What was done before stands, and all of it can be done again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A request to one of the two API servers failed.
    #[error("{action} {object} in {side}{}", failure.remedy(*side))]
    Request {
        /// What was being done.
        action: Action,
        /// To which object.
        object: Reference,
        /// Where.
        side: Side,
        /// Of which sort the failure is.
        failure: Failure,
        /// What the client said.
        #[source]
        source: Box<kube::Error>,
    },
    /// The management cluster does not know the kinds of the management plane.
    #[error(
        "the management cluster serves no KubernetesCluster (multicluster.solo.io/v1alpha1): apply the CRDs first: kubectl apply --server-side -f crds/crds/, or choose another management cluster"
    )]
    NoDefinitions,
    /// An object of ours would replace one that belongs to somebody else.
    #[error(
        "{object} exists in {side} and is not part of this registration: {}",
        handing_over(object, cluster)
    )]
    Foreign {
        /// The object.
        object: Reference,
        /// Where it is.
        side: Side,
        /// The cluster that is being registered.
        cluster: ClusterName,
    },
    /// The name belongs to another cluster than the one that was given.
    #[error(
        "{cluster} is registered and is another cluster than the one given (kube-system has uid {given}, registered is {registered}): choose the right context or another name, or deregister it with --unreachable first"
    )]
    OtherCluster {
        /// The name.
        cluster: ClusterName,
        /// The uid that was registered.
        registered: String,
        /// The uid of the cluster that was given.
        given: String,
    },
    /// The management plane would refuse the kubeconfig that would be stored.
    #[error("{cluster} cannot be registered with this kubeconfig")]
    Unusable {
        /// The cluster that is being registered.
        cluster: ClusterName,
        /// Why it would be refused.
        #[source]
        source: Box<client::Error>,
    },
    /// What is stored is no kubeconfig whose token can be replaced.
    #[error("renewing the token in {object} in the management cluster")]
    Stored {
        /// The Secret.
        object: Reference,
        /// What is wrong with its content.
        #[source]
        source: Box<kubeconfig::Error>,
    },
    /// The remote cluster gave no token.
    #[error(
        "{object} in the remote cluster got no token: see whether kube-controller-manager runs there, and ask for a token that expires instead of one that does not"
    )]
    NoToken {
        /// The Secret or the account.
        object: Reference,
    },
}

/// Of which sort a failed request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// There was no answer.
    Unreachable,
    /// The credential was refused.
    Unauthorized,
    /// The credential does not allow it.
    Forbidden,
    /// Somebody else holds a field, or has changed the object meanwhile.
    Conflict,
    /// The namespace or the kind does not exist.
    NotFound,
    /// Anything else that the API server refused.
    Refused,
}

// === impl Error ===

impl Error {
    /// Of which sort the failed request is, if it was one.
    pub fn failure(&self) -> Option<Failure> {
        match self {
            Self::Request { failure, .. } => Some(*failure),
            Self::NoDefinitions
            | Self::Foreign { .. }
            | Self::OtherCluster { .. }
            | Self::Unusable { .. }
            | Self::Stored { .. }
            | Self::NoToken { .. } => None,
        }
    }
}

/// How somebody gives an object to the registration.
fn handing_over(object: &Reference, cluster: &ClusterName) -> String {
    let Reference {
        kind,
        namespace,
        name,
    } = object;
    let flag = namespace
        .as_ref()
        .map(|namespace| format!(" -n {namespace}"))
        .unwrap_or_default();
    let kind = kind.to_ascii_lowercase();
    let delete =
        format!("choose another name for the cluster, or kubectl delete{flag} {kind} {name}");
    // What a binding refers to never changes, and the type of a Secret neither: these cannot be taken over.
    if kind.ends_with("binding") || kind == "secret" {
        delete
    } else {
        format!(
            "{delete}, or hand it over: kubectl label{flag} {kind} {name} {REGISTRATION_LABEL}={cluster}"
        )
    }
}

// === impl Failure ===

impl Failure {
    pub(crate) fn of(error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => match status.code {
                401 => Self::Unauthorized,
                403 => Self::Forbidden,
                404 => Self::NotFound,
                409 => Self::Conflict,
                _ => Self::Refused,
            },
            kube::Error::Auth(_) => Self::Unauthorized,
            kube::Error::HyperError(_) | kube::Error::Service(_) => Self::Unreachable,
            _ => Self::Refused,
        }
    }

    fn remedy(self, side: Side) -> String {
        let remedy = match self {
            Self::Unreachable => match side {
                Side::Management => "is the API server up, and is this the right context?",
                Side::Remote => {
                    "is the API server up, and is this the right context? A cluster that is gone for \
                     good is deregistered with --unreachable"
                }
            },
            Self::Unauthorized => "the kubeconfig's credential is not accepted; has it expired?",
            Self::Forbidden => {
                "that takes the rights of a cluster administrator there: who grants rights must have them"
            }
            Self::Conflict => {
                "somebody else holds that field, or changed the object meanwhile: let them give it up, \
                 or try again"
            }
            Self::NotFound => "its namespace or its kind does not exist",
            Self::Refused => return String::new(),
        };
        format!(" ({remedy})")
    }
}
