//! Outputs of a mesh.

use std::collections::BTreeMap;
use std::sync::Arc;

use ferromesh_crds::issued_certificate::IssuedCertificateSpec;
use ferromesh_istio::{AuthorizationPolicy, Kind};

use super::{Output, OutputKey, OutputKind, Spec, VIRTUAL_MESH, owned, parents};
use crate::estate::Site;
use crate::key::Key;
use crate::model::Workload;
use crate::naming;
use crate::translate::certificate::{self, Certificates};
use crate::translate::{gateway, global_access};

/// Everything that is made for a mesh as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct MeshOutputs {
    site: Arc<Site>,
    virtual_mesh: Key,
    access: BTreeMap<String, AuthorizationPolicy>,
    certificates: Option<Certificates>,
}

impl MeshOutputs {
    /// Works out a mesh's outputs; none where it is in no virtual mesh.
    pub(crate) fn new(
        owner: &str,
        site: &Arc<Site>,
        workloads: impl FnOnce() -> Vec<Arc<Workload>>,
    ) -> Option<Self> {
        let membership = site.membership.as_ref()?;
        let restarts = membership
            .virtual_mesh
            .trust
            .as_ref()
            .is_some_and(|trust| trust.restart_pods);
        let workloads = if restarts { workloads() } else { Vec::new() };
        Some(Self {
            virtual_mesh: membership.virtual_mesh.key.clone(),
            access: global_access::render(site, membership),
            certificates: certificate::render(owner, site, membership, &workloads),
            site: Arc::clone(site),
        })
    }

    /// The mesh's site.
    pub fn site(&self) -> &Arc<Site> {
        &self.site
    }

    /// The virtual mesh that it is in.
    pub fn virtual_mesh(&self) -> &Key {
        &self.virtual_mesh
    }

    /// The authority that the mesh is to have, where its virtual mesh shares trust.
    pub fn certificate(&self) -> Option<&IssuedCertificateSpec> {
        Some(&self.certificates.as_ref()?.issued)
    }

    /// Renders every object of the mesh; `owner` is our namespace.
    pub(crate) fn render(&self, owner: &str) -> Vec<Output> {
        let mut outputs = Vec::new();
        let site = &self.site;
        let mut push = |kind, namespace: &Arc<str>, name: &str, spec| {
            let mut annotations = BTreeMap::new();
            parents(&mut annotations, VIRTUAL_MESH, &self.virtual_mesh);
            outputs.push(Output {
                key: OutputKey {
                    cluster: site.cluster.clone(),
                    kind,
                    namespace: namespace.clone(),
                    name: name.into(),
                },
                labels: owned(owner, &site.cluster),
                annotations,
                spec,
            });
        };
        if let Some(membership) = site
            .membership
            .as_ref()
            .filter(|membership| membership.size > 1)
        {
            let suffix = &membership.virtual_mesh.federation.hostname_suffix;
            for applied in membership.gateways.iter() {
                let destination = &applied.destination;
                let name = naming::sanitize(&format!(
                    "{}-{}",
                    destination.name(),
                    destination.namespace()
                ));
                push(
                    OutputKind::Istio(Kind::Gateway),
                    &site.namespace,
                    &name,
                    Spec::Gateway(gateway::render(applied, suffix)),
                );
            }
        }
        for (name, policy) in &self.access {
            push(
                OutputKind::Istio(Kind::AuthorizationPolicy),
                &site.namespace,
                name,
                Spec::AuthorizationPolicy(policy.clone()),
            );
        }
        if let Some(Certificates { issued, bounce }) = &self.certificates {
            let name = site.mesh.key.name();
            push(
                OutputKind::IssuedCertificate,
                &site.agent_namespace,
                name,
                Spec::IssuedCertificate(Box::new(issued.clone())),
            );
            if let Some(bounce) = bounce {
                push(
                    OutputKind::PodBounceDirective,
                    &site.agent_namespace,
                    name,
                    Spec::PodBounceDirective(bounce.clone()),
                );
            }
        }
        outputs
    }
}
