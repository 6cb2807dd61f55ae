//! How a verb ends.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use ferromesh_registration::error::Failure;
use ferromesh_registration::kubeconfig;
use ferromesh_runtime::client;

/// How a verb ended that did what it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing is wrong.
    Clean,
    /// Something is wrong with what was looked at, and has been said.
    Findings,
    /// A cluster could not be asked about something; what it is has been said.
    Unanswered,
    /// It was waited for something that has not come; what it is has been said.
    TimedOut,
}

/// Why a verb could not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Arguments that make no sense together.
    #[error("`{argument}`: {problem}")]
    Usage {
        /// The arguments, as they were given.
        argument: String,
        /// What to write instead.
        problem: &'static str,
    },
    /// A path that leads nowhere.
    #[error("reading {}", .path.display())]
    Path {
        /// The path, as it was given.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What was asked for could not be shown, or not be asked.
    #[error("{doing}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// There is no client.
    #[error("connecting to {cluster}")]
    Connect {
        /// Which cluster.
        cluster: &'static str,
        /// Why.
        source: client::Error,
    },
    /// An API server did not answer, or refused.
    #[error("{action}")]
    Request {
        /// What was being done, and where.
        action: String,
        /// What the client said.
        source: Box<kube::Error>,
    },
    /// The cluster does not know one of our kinds.
    #[error(
        "the cluster serves no {kind} ({api_version}): apply the CRDs first, or choose another context"
    )]
    NotServed {
        /// The kind.
        kind: String,
        /// Its group and version.
        api_version: String,
    },
    /// An object that was asked for by name does not exist.
    #[error("{kind} {namespace}/{name} does not exist; `meshctl get {} -A` lists those that do", .kind.to_lowercase())]
    Missing {
        /// Its kind.
        kind: String,
        /// Where it was looked for.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// A cluster that is to be registered cannot be named by the kubeconfig.
    #[error("finding the API server of the remote cluster")]
    Kubeconfig(#[source] kubeconfig::Error),
    /// A registration was not made, removed or listed.
    #[error(transparent)]
    Registration(#[from] ferromesh_registration::Error),
}

/// What the caller of the process gets to know. Scripts rely on these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 0: all is well.
    Clean,
    /// 1: what was looked at is not.
    Findings,
    /// 2: the arguments make no sense.
    Usage,
    /// 3: there is no way to the cluster, or no right to ask.
    Cluster,
    /// 4: what was waited for has not come.
    TimedOut,
    /// 5: we are wrong, or this machine is.
    Internal,
}

impl Error {
    /// That the output could not be written.
    pub(crate) fn write(source: io::Error) -> Self {
        let doing = "writing the output";
        Self::System { doing, source }
    }

    /// The exit code that belongs to it.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            // There is no client without a kubeconfig that makes sense; nobody was asked yet.
            Self::Usage { .. } | Self::Path { .. } | Self::Kubeconfig(_) | Self::Connect { .. } => {
                Exit::Usage
            }
            Self::Request { .. }
            | Self::NotServed { .. }
            | Self::Registration(ferromesh_registration::Error::NoDefinitions) => Exit::Cluster,
            Self::Missing { .. } => Exit::Findings,
            Self::System { .. } => Exit::Internal,
            Self::Registration(error) => match error.failure() {
                Some(Failure::Unreachable | Failure::Unauthorized | Failure::Forbidden) => {
                    Exit::Cluster
                }
                Some(Failure::Conflict | Failure::NotFound | Failure::Refused) | None => {
                    Exit::Findings
                }
            },
        }
    }
}

impl From<Outcome> for Exit {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Clean => Self::Clean,
            Outcome::Findings => Self::Findings,
            Outcome::Unanswered => Self::Cluster,
            Outcome::TimedOut => Self::TimedOut,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Clean => 0,
            Exit::Findings => 1,
            Exit::Usage => 2,
            Exit::Cluster => 3,
            Exit::TimedOut => 4,
            Exit::Internal => 5,
        })
    }
}
