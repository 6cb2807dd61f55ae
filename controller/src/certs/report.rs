//! What the certificate of one mesh means for its virtual mesh.

use std::collections::BTreeMap;

use ferromesh_ca::bundle::RootId;
use ferromesh_crds::condition::{Reason, Status};
use ferromesh_hands::perform::{Progress, Repair, Restart};
use ferromesh_hands::state::{LiveCa, Obstacle, Standing};
use jiff::Timestamp;

use super::root::RootFault;
use super::wanted::{MeshKey, Wanted};

/// The most bytes of a message.
const MAX_MESSAGE: usize = 1024;

/// Whether a mesh has the certificate that it is to have: its part of the condition `TrustReady` of its
/// virtual mesh.
#[derive(Clone, Debug, PartialEq)]
pub struct TrustReport {
    /// What was wanted when the cluster was looked at: of anything else it says nothing.
    pub wanted: Wanted,
    /// Whether the certificate is in place and verified.
    pub state: Status,
    /// Why.
    pub reason: Reason,
    /// Why, for a person, with what to do.
    pub message: String,
    /// Until when leaves verify, as far as is known.
    pub not_after: Option<Timestamp>,
}

/// The reports of all meshes that a certificate is wanted for.
pub type TrustReports = BTreeMap<MeshKey, TrustReport>;

/// What a look at a cluster has shown.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    /// The certificate has not been written to the cluster yet.
    Nothing,
    /// How far it has come.
    Progress(Box<Progress>),
    /// The cluster cannot be asked, for this reason.
    Unreachable(String),
    /// The cluster refuses, for this reason.
    Refused(String),
}

/// Makes the report of one mesh. `root` is what the management cluster has to say of the root, which it must
/// have been asked. `last` is the end of what was in place when the cluster was seen last.
pub fn report(
    wanted: &Wanted,
    root: &Result<RootId, RootFault>,
    seen: &Seen,
    last: Option<Timestamp>,
) -> TrustReport {
    let cluster = &wanted.cluster;
    let (state, reason, mut message) = match seen {
        Seen::Unreachable(why) => {
            let kept = match last {
                Some(not_after) => format!("; the certificate in place is valid until {not_after}"),
                None => String::new(),
            };
            (
                Status::Unknown,
                Reason::ClusterUnreachable,
                format!("cluster {cluster} cannot be asked: {why}{kept}"),
            )
        }
        Seen::Refused(why) => (
            Status::False,
            Reason::IssuanceFailed,
            format!(
                "cluster {cluster} refuses (if a right is missing, register the cluster again to renew its rights): {why}"
            ),
        ),
        Seen::Nothing => (
            Status::False,
            Reason::Issuing,
            format!(
                "waiting for IssuedCertificate {}/{} in cluster {cluster}",
                wanted.agent_namespace, wanted.mesh
            ),
        ),
        Seen::Progress(progress) => match &progress.live {
            Some(live) => in_place(wanted, root, progress, live),
            None => not_in_place(cluster, root, &progress.standing),
        },
    };
    message.truncate(message.floor_char_boundary(MAX_MESSAGE));
    TrustReport {
        wanted: wanted.clone(),
        state,
        reason,
        message,
        not_after: match seen {
            Seen::Progress(progress) => progress.live.as_ref().map(|live| live.not_after),
            _ => last,
        },
    }
}

/// What is said of a mesh, and why.
type Said = (Status, Reason, String);

fn in_place(
    wanted: &Wanted,
    root: &Result<RootId, RootFault>,
    progress: &Progress,
    live: &LiveCa,
) -> Said {
    let cluster = &wanted.cluster;
    if let Ok(root) = root
        && *root != live.root
    {
        let obstacle = match &progress.standing {
            Standing::Blocked(obstacle) => format!(": {obstacle}"),
            _ => String::new(),
        };
        return (
            Status::False,
            Reason::IssuanceFailed,
            format!(
                "cluster {cluster} signs under root {} and the virtual mesh has root {root}{obstacle}",
                live.root
            ),
        );
    }
    let mut message = format!(
        "cluster {cluster} signs under the root of the virtual mesh until {}",
        live.not_after
    );
    let mut add = |text: String| {
        message.push_str("; ");
        message.push_str(&text);
    };
    match (&progress.standing, &progress.restart) {
        (Standing::Blocked(obstacle), _) => add(format!("there is no newer one: {obstacle}")),
        (Standing::Stored, Restart::Waiting(waiting) | Restart::Finished(Some(waiting))) => {
            add(waiting.to_string());
        }
        (Standing::Asked | Standing::WithoutKey, _) => add("a newer one is being issued".into()),
        (Standing::Stored | Standing::Shared | Standing::Ignored, _) => {}
    }
    if let Err(fault) = root {
        add(format!("nothing new is signed: {}", fault.text()));
    }
    if let Some(Repair { by }) = &progress.repaired {
        let by = by.as_deref().unwrap_or("somebody");
        add(format!("cacerts was edited by {by} and has been put right"));
    }
    (Status::True, Reason::Verified, message)
}

fn not_in_place(cluster: &str, root: &Result<RootId, RootFault>, standing: &Standing) -> Said {
    match (standing, root) {
        (Standing::Blocked(obstacle @ Obstacle::ForeignCa(_)), _) => (
            Status::False,
            Reason::ForeignSigner,
            format!("cluster {cluster}: {obstacle}"),
        ),
        (_, Err(fault)) => {
            let reason = if fault.is_expired() {
                Reason::CaExpired
            } else {
                Reason::IssuanceFailed
            };
            (Status::False, reason, fault.text())
        }
        (Standing::Blocked(obstacle), _) => (
            Status::False,
            Reason::IssuanceFailed,
            format!("cluster {cluster}: {obstacle}"),
        ),
        (Standing::Ignored, _) => (
            Status::False,
            Reason::Issuing,
            format!("the IssuedCertificate in cluster {cluster} is being deleted or replaced"),
        ),
        (_, _) => (
            Status::False,
            Reason::Issuing,
            format!("the certificate of cluster {cluster} is being issued"),
        ),
    }
}
