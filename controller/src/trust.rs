//! From the engine to the certificate controller, and from its reports to the condition of a virtual mesh.

use std::fmt::Write as _;

use ferromesh_core::State;
use ferromesh_core::model::virtual_mesh::{CertificateOptions, Root};
use ferromesh_core::output::mesh::MeshOutputs;
use ferromesh_crds::ObjectRef;
use ferromesh_crds::cert_options::CommonCertOptions;
use ferromesh_crds::condition::{Finding, Reason, Status, Type};

use crate::certs::{RootSource, TrustReport, TrustReports, Wanted, WantedSet};
use crate::message::bounded;

/// The most bytes of a message.
const MAX_MESSAGE: usize = 600;
/// Of them, what is kept to say how many meshes more there are.
const MORE: usize = 40;

/// All certificates that are wanted; none until every input has been listed, for what is not wanted any
/// more is dropped.
pub(crate) fn wanted(state: &State) -> Option<WantedSet> {
    let is_known = state.is_complete("");
    is_known.then(|| {
        state
            .mesh_outputs()
            .filter_map(|mesh| of_mesh(mesh))
            .collect()
    })
}

fn of_mesh(mesh: &MeshOutputs) -> Option<Wanted> {
    let issued = mesh.certificate()?;
    let site = mesh.site();
    let virtual_mesh = &site.membership.as_ref()?.virtual_mesh;
    let trust = virtual_mesh.trust.as_ref()?;
    Some(Wanted {
        cluster: site.cluster.to_string(),
        mesh: site.mesh.key.name().to_owned(),
        agent_namespace: site.agent_namespace.to_string(),
        control_plane_namespace: issued.issued_certificate_secret.as_ref()?.namespace.clone(),
        virtual_mesh: ObjectRef {
            name: virtual_mesh.key.name().to_owned(),
            namespace: virtual_mesh.key.namespace().to_owned(),
        },
        root: match &trust.root {
            Root::Generated(options) => RootSource::Generated(of_root(options)),
            Root::Secret(secret) => RootSource::Provided(ObjectRef {
                name: secret.name().to_owned(),
                namespace: secret.namespace().to_owned(),
            }),
        },
        options: issued.cert_options.clone().unwrap_or_default(),
        hosts: issued.hosts.clone(),
    })
}

/// What the user asks of the root; what is left out stays so.
fn of_root(options: &CertificateOptions) -> CommonCertOptions {
    CommonCertOptions {
        ttl_days: options.ttl_days.map_or(0, i64::from),
        rsa_key_size_bytes: options.rsa_bits.map_or(0, i64::from),
        org_name: options.organization.clone().unwrap_or_default(),
        secret_rotation_grace_period_ratio: options.renewal_ratio.unwrap_or_default(),
    }
}

/// The condition `TrustReady` of a virtual mesh; none where it leaves certificates alone.
pub(crate) fn finding(
    virtual_mesh: &ObjectRef,
    wanted: &WantedSet,
    reports: &TrustReports,
    generation: Option<i64>,
) -> Option<Finding> {
    let mut count = 0_usize;
    let mut worst: Vec<(Status, Reason, &str)> = Vec::new();
    for (mesh, wanted) in wanted
        .iter()
        .filter(|(_, wanted)| wanted.virtual_mesh == *virtual_mesh)
    {
        count += 1;
        // What was seen before something else was wanted says nothing of that.
        let report = reports.get(mesh).filter(|it| it.wanted == *wanted);
        match report {
            Some(TrustReport {
                state: Status::True,
                ..
            }) => {}
            Some(report) => worst.push((report.state, report.reason, &report.message)),
            None => worst.push((Status::Unknown, Reason::Pending, "not looked at yet")),
        }
    }
    if count == 0 {
        return None;
    }
    worst.sort_by_key(|(status, ..)| *status != Status::False);
    let (status, reason, mut message) = match worst.first() {
        None => (
            Status::True,
            Reason::Verified,
            format!("{count} of {count} meshes verified against the root of the virtual mesh"),
        ),
        Some((status, reason, message)) => (*status, *reason, (*message).to_owned()),
    };
    if worst.len() > 1 {
        let more = worst.len() - 1;
        message = bounded(message, MAX_MESSAGE - MORE);
        write!(message, "; and {more} of {count} meshes more")
            .expect("writing to a String does not fail");
    }
    Some(Finding {
        kind: Type::TrustReady,
        status,
        reason,
        message: bounded(message, MAX_MESSAGE),
        observed_generation: generation,
    })
}
