//! What the management plane may do in a remote cluster, and why.
//!
//! This is the one list: roles are made from it, and it is what documentation shows. A right without a
//! reason has no place in it.
//!
//! Two rights are wider than they look, and cannot be narrowed. Who may create Secrets in a namespace can
//! make one that holds a token of any `ServiceAccount` there. So the rights in a namespace of istiod are
//! worth those of istiod, whose certificate authority is written there; and the agent's namespace should
//! hold nothing that belongs to others.

use ferromesh_crds::{CERTIFICATES_GROUP, meta, name::Namespace};
use k8s_openapi::api::rbac::v1::PolicyRule;

use crate::plan::Registration;

/// The kinds of Istio that are written, with their plural, by API group.
///
/// In the order in which they are taken away: what opens access comes last.
pub(crate) const ISTIO: [(&str, &[(&str, &str)]); 2] = [
    (
        "networking.istio.io",
        &[
            ("VirtualService", "virtualservices"),
            ("DestinationRule", "destinationrules"),
            ("ServiceEntry", "serviceentries"),
            ("Gateway", "gateways"),
        ],
    ),
    (
        "security.istio.io",
        &[("AuthorizationPolicy", "authorizationpolicies")],
    ),
];

/// The ConfigMap of Istio's mesh configuration.
const MESH_CONFIG: &str = "istio";

const GET: &[&str] = &["get"];
const FOLLOW: &[&str] = &["list", "watch"];
/// Objects are written by server-side apply, which is a patch; one that is not there is created by it.
const WRITE: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];
/// Writing what is not taken away: a request, with its answer.
const MAKE: &[&str] = &["get", "list", "watch", "create", "patch"];
/// Writing what must never be taken away.
const KEEP: &[&str] = &["get", "list", "watch", "patch"];
/// Writing what is never changed, and nobody waits for.
const HOLD: &[&str] = &["get", "create", "delete"];
const CREATE: &[&str] = &["create"];
const REPLACE: &[&str] = &["update"];

/// Where a right holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// In the whole cluster.
    Cluster,
    /// In one namespace.
    Namespace(Namespace),
}

/// Something that the management plane may do in a remote cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Right {
    /// Where.
    pub scope: Scope,
    /// The API group, empty for the core group.
    pub group: &'static str,
    /// The resources, as RBAC names them.
    pub resources: Vec<&'static str>,
    /// The objects by name; none means all.
    ///
    /// Lists and watches of such objects must carry the field selector `metadata.name=<name>`, each for one
    /// name (Kubernetes: "Using RBAC Authorization", referring to resources).
    pub names: Vec<String>,
    /// The verbs.
    pub verbs: &'static [&'static str],
    /// Why it is needed.
    pub reason: &'static str,
}

// === impl Right ===

impl Right {
    fn new(
        scope: Scope,
        group: &'static str,
        resources: &[&'static str],
        verbs: &'static [&'static str],
        reason: &'static str,
    ) -> Self {
        Self {
            scope,
            group,
            resources: resources.to_vec(),
            names: Vec::new(),
            verbs,
            reason,
        }
    }

    fn named(mut self, names: &[&str]) -> Self {
        self.names = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// The right in the words of RBAC.
    pub fn rule(&self) -> PolicyRule {
        let texts =
            |texts: &[&str]| -> Vec<String> { texts.iter().map(|text| (*text).into()).collect() };
        PolicyRule {
            api_groups: Some(vec![self.group.to_owned()]),
            resources: Some(texts(&self.resources)),
            resource_names: (!self.names.is_empty()).then(|| self.names.clone()),
            verbs: texts(self.verbs),
            non_resource_urls: None,
        }
    }
}

/// All rights of a registration: those in the whole cluster, then those by namespace.
pub fn rights(registration: &Registration) -> Vec<Right> {
    let mut rights = in_cluster();
    rights.extend(in_agent_namespace(registration));
    for namespace in &registration.istio_namespaces {
        rights.extend(in_istio_namespace(namespace));
    }
    rights
}

fn in_cluster() -> Vec<Right> {
    let right = |group, resources: &[&'static str], verbs, reason| {
        Right::new(Scope::Cluster, group, resources, verbs, reason)
    };
    let mut rights = vec![
        right(
            "",
            &["pods", "services", "nodes", "namespaces"],
            FOLLOW,
            "discovery finds workloads, destinations, their addresses and their locality in them",
        ),
        right(
            "apps",
            &["deployments", "replicasets", "daemonsets", "statefulsets"],
            FOLLOW,
            "discovery finds control planes and workloads in them",
        ),
        right(
            "discovery.k8s.io",
            &["endpointslices"],
            FOLLOW,
            "discovery finds the endpoints of destinations in them",
        ),
        right(
            "",
            &["configmaps"],
            FOLLOW,
            "the configuration of a mesh, in whatever namespace istiod runs",
        )
        .named(&[MESH_CONFIG]),
        right(
            "",
            &["configmaps"],
            GET,
            "pods are not restarted before istiod hands out the new root in their namespace",
        )
        .named(&[meta::ISTIO_ROOT_CERT_CONFIG_MAP]),
    ];
    for (group, kinds) in ISTIO {
        let plurals: Vec<&str> = kinds.iter().map(|(_, plural)| *plural).collect();
        rights.push(right(
            group,
            &plurals,
            WRITE,
            "policies and federation become these objects, next to the services that they speak of",
        ));
    }
    rights.extend([
        right(
            CERTIFICATES_GROUP,
            &["issuedcertificates", "podbouncedirectives"],
            WRITE,
            "the life of a mesh's certificate authority is kept in these objects, where the agent runs",
        ),
        right(
            CERTIFICATES_GROUP,
            &["certificaterequests"],
            MAKE,
            "a certificate is asked for by such an object, and again when it is renewed",
        ),
        right(
            CERTIFICATES_GROUP,
            &[
                "issuedcertificates/status",
                "certificaterequests/status",
                "podbouncedirectives/status",
            ],
            REPLACE,
            "a certificate is signed, and its progress told, in their status",
        ),
        right(
            "",
            &["pods/eviction"],
            CREATE,
            "workloads get a new root by a restart that respects disruption budgets, where a virtual \
             mesh asks for it",
        ),
    ]);
    rights
}

fn in_agent_namespace(registration: &Registration) -> Vec<Right> {
    let right = |resources, verbs, reason| {
        let scope = Scope::Namespace(registration.remote_namespace.clone());
        Right::new(scope, "", resources, verbs, reason)
    };
    let mut rights = vec![right(
        &["secrets"],
        HOLD,
        "keys of certificate authorities wait here for their certificate; they are named after meshes, \
         which nobody knows beforehand",
    )];
    if registration.credential.expires() {
        rights.push(
            right(
                &["serviceaccounts/token"],
                CREATE,
                "the credential is renewed before it expires",
            )
            .named(&[registration.name.as_str()]),
        );
    }
    rights
}

fn in_istio_namespace(namespace: &Namespace) -> Vec<Right> {
    let right = |resources, verbs, reason| {
        Right::new(
            Scope::Namespace(namespace.clone()),
            "",
            resources,
            verbs,
            reason,
        )
    };
    vec![
        right(
            &["secrets"],
            KEEP,
            "istiod takes its certificate authority from this Secret, which is never deleted",
        )
        .named(&[meta::CACERTS_SECRET]),
        right(
            &["secrets"],
            CREATE,
            "the Secret of the certificate authority is created; RBAC cannot limit that to a name",
        ),
        right(
            &["configmaps"],
            FOLLOW,
            "the configuration of a revision is in istio-<revision>, and revisions come and go",
        ),
    ]
}
