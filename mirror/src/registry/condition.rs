//! How clusters fare, as others see it.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use ferromesh_core::{Key, Kind};
use ferromesh_runtime::{client::ClientWarning, pump::Class};
use kube::Client;
use tokio::time::Instant;

/// The clusters as they were last.
#[derive(Clone, Debug, Default)]
pub struct Clusters {
    pub(super) management: Arc<ClusterView>,
    pub(super) registered: BTreeMap<Arc<str>, Arc<ClusterView>>,
}

/// One cluster.
#[derive(Clone)]
pub struct ClusterView {
    /// By which it is reached; none without a credential that can be used.
    pub client: Option<Client>,
    /// The address of its API server, where it is known.
    pub server: Option<String>,
    /// What an operator should know of its kubeconfig and may have wanted.
    pub warnings: Vec<ClientWarning>,
    /// Whether there is a `KubernetesCluster` of its name.
    pub is_declared: bool,
    /// How it fares.
    pub condition: Condition,
    /// Since when.
    pub since: Instant,
    /// When each kind was listed last; what has changed since then, watches have told.
    pub listed: BTreeMap<Kind, Instant>,
    /// The kinds that cannot be followed now.
    pub failing: BTreeMap<Kind, Failing>,
    /// Kinds that have objects which cannot be read, or not in full.
    pub unreadable: BTreeMap<Kind, Unreadable>,
    /// How often its client has changed.
    pub(super) connection: u64,
}

/// How a cluster fares. What was read of it stands, whatever its condition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// Its API server has not answered yet.
    #[default]
    Pending,
    /// It is followed.
    Connected,
    /// There is no Secret with a kubeconfig, or one that cannot be used, for this reason. The reason holds
    /// nothing of the credential.
    CredentialInvalid(String),
    /// Its API server does not accept the credential.
    CredentialRejected(String),
    /// Its API server does not answer.
    Unreachable(String),
    /// Its API server answers, but not for every kind: a right is missing, or a kind is not served.
    Refusing(String),
}

/// Why a kind cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    /// Who must act.
    pub class: Class,
    /// When it failed first, without a success since then.
    pub since: Instant,
    /// The error, at most 512 bytes.
    pub reason: String,
}

/// Objects of one kind that cannot be read, or not in full.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unreadable {
    /// How many there are.
    pub count: usize,
    /// The first of them, each with the reason.
    pub first: Vec<(Key, String)>,
}

/// How one watch fares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    Good,
    Failing(Failing),
}

// === impl Clusters ===

impl Clusters {
    /// The management cluster.
    pub fn management(&self) -> &ClusterView {
        &self.management
    }

    /// The registered cluster of this name.
    pub fn get(&self, name: &str) -> Option<&ClusterView> {
        self.registered.get(name).map(AsRef::as_ref)
    }

    /// The registered clusters in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ClusterView)> {
        self.registered
            .iter()
            .map(|(name, view)| (&**name, &**view))
    }
}

// === impl ClusterView ===

impl Default for ClusterView {
    fn default() -> Self {
        Self {
            client: None,
            server: None,
            warnings: Vec::new(),
            is_declared: false,
            condition: Condition::default(),
            since: Instant::now(),
            listed: BTreeMap::new(),
            failing: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            connection: 0,
        }
    }
}

impl fmt::Debug for ClusterView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterView")
            .field("server", &self.server)
            .field("condition", &self.condition)
            .field("since", &self.since)
            .field("failing", &self.failing)
            .field("unreadable", &self.unreadable)
            .finish_non_exhaustive()
    }
}

impl ClusterView {
    /// Whether this shows the same as another.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let Self {
            client: _,
            server,
            warnings,
            is_declared,
            condition,
            since,
            listed,
            failing,
            unreadable,
            connection,
        } = self;
        *connection == other.connection
            && *server == other.server
            && *warnings == other.warnings
            && *is_declared == other.is_declared
            && *condition == other.condition
            && *since == other.since
            && *listed == other.listed
            && *failing == other.failing
            && *unreadable == other.unreadable
    }

    /// How often its client has changed: whoever keeps the client sees here that there is another.
    pub fn connection(&self) -> u64 {
        self.connection
    }

    /// How long ago it was last followed in full.
    pub fn stale(&self) -> Duration {
        match self.condition {
            Condition::Connected => Duration::ZERO,
            _ => self.since.elapsed(),
        }
    }
}

// === impl Condition ===

impl Condition {
    /// What watches of one connection come to. One that fails tells of the others: when a cluster goes,
    /// its watches notice at different times.
    pub(super) fn of<'a>(health: impl Iterator<Item = &'a Health> + Clone) -> Self {
        let failing = health.clone().filter_map(Health::failing);
        let worst = failing.min_by_key(|failing| rank(failing.class));
        match worst {
            Some(failing) => {
                let reason = failing.reason.clone();
                match failing.class {
                    Class::Unauthorized => Self::CredentialRejected(reason),
                    Class::Unreachable => Self::Unreachable(reason),
                    Class::Forbidden | Class::NotServed | Class::Other => Self::Refusing(reason),
                }
            }
            None if health.count() > 0 => Self::Connected,
            None => Self::Pending,
        }
    }

    /// Whether something is wrong.
    pub fn is_failing(&self) -> bool {
        !matches!(self, Self::Pending | Self::Connected)
    }

    /// What is wrong.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Pending | Self::Connected => None,
            Self::CredentialInvalid(reason)
            | Self::CredentialRejected(reason)
            | Self::Unreachable(reason)
            | Self::Refusing(reason) => Some(reason),
        }
    }

    /// A word for it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Connected => "connected",
            Self::CredentialInvalid(_) => "credential_invalid",
            Self::CredentialRejected(_) => "credential_rejected",
            Self::Unreachable(_) => "unreachable",
            Self::Refusing(_) => "refusing",
        }
    }
}

/// What tells most comes first.
fn rank(class: Class) -> u8 {
    match class {
        Class::Unauthorized => 0,
        Class::Unreachable => 1,
        Class::Forbidden => 2,
        Class::NotServed => 3,
        Class::Other => 4,
    }
}

// === impl Health ===

impl Health {
    pub(super) fn failing(&self) -> Option<&Failing> {
        match self {
            Self::Good => None,
            Self::Failing(failing) => Some(failing),
        }
    }
}
