//! Certificates that a mesh of a virtual mesh with shared trust is to have.

use std::collections::BTreeSet;
use std::sync::Arc;

use ferromesh_crds::cert_options::CommonCertOptions;
use ferromesh_crds::issued_certificate::{GlooMeshCa, IssuedCertificateSpec};
use ferromesh_crds::pod_bounce_directive::{PodBounceDirectiveSpec, PodSelector, RootCertSync};
use ferromesh_crds::{ObjectRef, meta};

use crate::estate::{Membership, Site};
use crate::key::Key;
use crate::model::Workload;
use crate::model::destination::object_ref;
use crate::model::virtual_mesh::{CertificateOptions, Root, SharedTrust};

/// Days that a mesh's own authority lives unless the user says otherwise.
const INTERMEDIATE_TTL_DAYS: u32 = 90;
/// Organisation of a mesh's own authority unless the user says otherwise.
const INTERMEDIATE_ORGANIZATION: &str = "Istio";

/// What a mesh is to have.
#[derive(Clone, Debug, PartialEq)]
pub struct Certificates {
    /// The authority that its control plane signs with.
    pub issued: IssuedCertificateSpec,
    /// Which pods to restart afterwards, if any.
    pub bounce: Option<PodBounceDirectiveSpec>,
}

/// Works out what a mesh is to have; none where the virtual mesh leaves certificates alone.
pub(crate) fn render(
    namespace: &str,
    site: &Site,
    membership: &Membership,
    workloads: &[Arc<Workload>],
) -> Option<Certificates> {
    let istio = site.mesh.istio()?;
    let trust = membership.virtual_mesh.trust.as_ref()?;
    let bounce = trust.restart_pods.then(|| bounce(site, workloads));
    let signer = object_ref(&root_secret(&membership.virtual_mesh.key, trust, namespace));
    let or = |value: &str, default: &str| {
        if value.is_empty() {
            default.to_owned()
        } else {
            value.to_owned()
        }
    };
    let issued = IssuedCertificateSpec {
        hosts: vec![format!(
            "spiffe://{}/ns/{}/sa/{}",
            or(&istio.trust_domain, meta::DEFAULT_TRUST_DOMAIN),
            or(&istio.installation.namespace, meta::DEFAULT_ISTIO_NAMESPACE),
            or(&istio.service_account, meta::DEFAULT_ISTIOD_SERVICE_ACCOUNT),
        )],
        org: INTERMEDIATE_ORGANIZATION.to_owned(),
        signing_certificate_secret: Some(signer.clone()),
        gloo_mesh_ca: Some(GlooMeshCa {
            signing_certificate_secret: Some(signer),
        }),
        issued_certificate_secret: Some(ObjectRef {
            name: meta::CACERTS_SECRET.to_owned(),
            namespace: or(&istio.installation.namespace, meta::DEFAULT_ISTIO_NAMESPACE),
        }),
        pod_bounce_directive: bounce.is_some().then(|| ObjectRef {
            name: site.mesh.key.name().to_owned(),
            namespace: site.agent_namespace.to_string(),
        }),
        cert_options: Some(options(&trust.intermediate)),
        agent_ca: None,
    };
    Some(Certificates { issued, bounce })
}

/// The Secret of the management cluster that holds the root of a virtual mesh.
pub fn root_secret(virtual_mesh: &Key, trust: &SharedTrust, namespace: &str) -> Key {
    match &trust.root {
        Root::Secret(secret) => secret.clone(),
        Root::Generated(_) => Key::local(
            &format!("{}.{}", virtual_mesh.name(), virtual_mesh.namespace()),
            namespace,
        ),
    }
}

fn options(options: &CertificateOptions) -> CommonCertOptions {
    CommonCertOptions {
        ttl_days: i64::from(options.ttl_days.unwrap_or(INTERMEDIATE_TTL_DAYS)),
        rsa_key_size_bytes: i64::from(options.rsa_bits.unwrap_or_default()),
        org_name: options
            .organization
            .clone()
            .unwrap_or_else(|| INTERMEDIATE_ORGANIZATION.to_owned()),
        secret_rotation_grace_period_ratio: options.renewal_ratio.unwrap_or_default(),
    }
}

/// The control plane first, and ready again before anything else; then gateways, which the mesh
/// may list apart from its workloads; then every workload. Pods of the data plane wait until
/// their namespace shows the new root.
fn bounce(site: &Site, workloads: &[Arc<Workload>]) -> PodBounceDirectiveSpec {
    let mut pods = Vec::new();
    let mut seen = BTreeSet::new();
    let mut push = |namespace: &str, labels: &crate::model::Labels, is_control_plane: bool| {
        if labels.is_empty() || !seen.insert((namespace.to_owned(), labels.clone())) {
            return;
        }
        pods.push(PodSelector {
            namespace: namespace.to_owned(),
            labels: labels.to_map(),
            wait_for_replicas: i64::from(is_control_plane),
            root_cert_sync: (!is_control_plane).then(|| root_sync(&site.namespace, namespace)),
        });
    };
    if let Some(istio) = site.mesh.istio() {
        push(&site.namespace, &istio.installation.pod_labels, true);
        for gateway in &istio.ingress_gateways {
            push(&gateway.namespace, &gateway.workload_labels, false);
        }
    }
    for workload in workloads
        .iter()
        .filter_map(|workload| workload.controller.as_ref())
    {
        push(workload.reference.namespace(), &workload.pod_labels, false);
    }
    PodBounceDirectiveSpec {
        pods_to_bounce: pods,
    }
}

fn root_sync(control_plane: &str, namespace: &str) -> RootCertSync {
    RootCertSync {
        secret_ref: Some(ObjectRef {
            name: meta::CACERTS_SECRET.to_owned(),
            namespace: control_plane.to_owned(),
        }),
        secret_key: meta::ROOT_CERT_KEY.to_owned(),
        config_map_ref: Some(ObjectRef {
            name: meta::ISTIO_ROOT_CERT_CONFIG_MAP.to_owned(),
            namespace: namespace.to_owned(),
        }),
        config_map_key: meta::ROOT_CERT_KEY.to_owned(),
    }
}
