//! Labels, annotations, field managers and names that every room and every user must spell alike.
//!
//! All but those marked "ours" are part of the compatible API: users and other controllers look
//! objects up by them.

/// Label on what the translation writes: the namespace that the management plane runs in.
pub const NETWORKING_OWNER_LABEL: &str = "owner.networking.mesh.gloo.solo.io";
/// Label on what discovery writes: the namespace that the management plane runs in.
pub const DISCOVERY_OWNER_LABEL: &str = "owner.discovery.mesh.gloo.solo.io";
/// Label on discovered objects: the registered cluster in which they were found.
pub const DISCOVERED_CLUSTER_LABEL: &str = "cluster.discovery.mesh.gloo.solo.io";
/// Label on everything written: the cluster it is written to, empty for the management cluster.
pub const CLUSTER_LABEL: &str = "cluster.multicluster.solo.io";
/// Label on keys, requests and CA Secrets: the namespace of the agent that they belong to.
pub const CERTIFICATES_AGENT_LABEL: &str = "agent.certificates.mesh.gloo.solo.io";
/// Label on what an agent writes: the cluster of the agent.
pub const NETWORKING_AGENT_LABEL: &str = "agent.networking.mesh.gloo.solo.io";
/// Label on a namespace, ours: how policies in it are judged that refer to what does not exist.
pub const UNRESOLVED_REFERENCES_LABEL: &str = "admission.mesh.gloo.solo.io/unresolved-references";
/// Value of [`UNRESOLVED_REFERENCES_LABEL`] with which such policies are stored with a warning.
pub const UNRESOLVED_REFERENCES_WARN: &str = "warn";

/// Annotation on what the translation writes: the objects that it was made from, as JSON.
pub const PARENTS_ANNOTATION: &str = "parents.networking.mesh.gloo.solo.io";
/// Annotation on what federation writes: the Service that it makes known, `name.namespace.cluster`.
pub const FEDERATION_ANNOTATION: &str = "federation.networking.mesh.gloo.solo.io";
/// Annotation on a Service: `true` makes it a destination even if no workload of a mesh backs it.
pub const DISCOVERY_ENABLED_ANNOTATION: &str = "discovery.mesh.gloo.solo.io/enabled";
/// Annotation on a `KubernetesCluster`, ours: releases a mass delete that is held there.
pub const RELEASE_MASS_DELETE_ANNOTATION: &str = "apply.mesh.gloo.solo.io/release-mass-delete";
/// Annotation on networking objects, ours: the user who wrote them last, where Settings ask for it.
pub const LAST_AUTHOR_ANNOTATION: &str = "networking.mesh.gloo.solo.io/last-author";
/// Annotation in which `kubectl apply` keeps what it applied.
pub const LAST_APPLIED_ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Field manager of everything that the server writes by server-side apply, in every cluster.
pub const FIELD_MANAGER: &str = "ferromesh";
/// Field manager of what an agent writes in its own cluster.
pub const AGENT_FIELD_MANAGER: &str = "ferromesh-agent";
/// Field manager of what the command line writes.
pub const CLI_FIELD_MANAGER: &str = "meshctl";

/// Type of the Secret that holds the kubeconfig of a registered cluster.
pub const KUBECONFIG_SECRET_TYPE: &str = "solo.io/kubeconfig";
/// Key of the kubeconfig in such a Secret.
pub const KUBECONFIG_KEY: &str = "kubeconfig";

/// Type of the Secret of a root that was generated.
pub const GENERATED_ROOT_SECRET_TYPE: &str =
    "certificates.mesh.gloo.solo.io/generated_signing_cert";
/// Key of the root's private key, in the Secret of a generated or provided root.
pub const ROOT_KEY_KEY: &str = "key.pem";
/// Key of the root certificate, in the Secret of a root and in [`CACERTS_SECRET`].
pub const ROOT_CERT_KEY: &str = "root-cert.pem";

/// Type of the Secret of an intermediate's private key while its certificate is being asked for.
pub const GENERATED_KEY_SECRET_TYPE: &str = "certificates.mesh.gloo.solo.io/generated_private_key";
/// Key of the private key in such a Secret.
pub const PRIVATE_KEY_KEY: &str = "private-key";

/// Type of the Secret from which istiod takes its certificate authority, when we made it.
pub const ISSUED_CERTIFICATE_SECRET_TYPE: &str =
    "certificates.mesh.gloo.solo.io/issued_certificate";
/// Name of the Secret from which istiod takes its certificate authority.
pub const CACERTS_SECRET: &str = "cacerts";
/// Key of the intermediate in [`CACERTS_SECRET`].
pub const CA_CERT_KEY: &str = "ca-cert.pem";
/// Key of the intermediate's private key in [`CACERTS_SECRET`].
pub const CA_KEY_KEY: &str = "ca-key.pem";
/// Key of the chain from the intermediate to the root in [`CACERTS_SECRET`].
pub const CERT_CHAIN_KEY: &str = "cert-chain.pem";
/// Name of the `ConfigMap` in which istiod publishes its root, in every namespace.
pub const ISTIO_ROOT_CERT_CONFIG_MAP: &str = "istio-ca-root-cert";

/// Namespace of the management plane, unless told otherwise.
pub const DEFAULT_NAMESPACE: &str = "gloo-mesh";
/// Name of the Settings object, unless told otherwise.
pub const DEFAULT_SETTINGS_NAME: &str = "settings";
/// DNS domain of a cluster that names none.
pub const DEFAULT_CLUSTER_DOMAIN: &str = "cluster.local";
/// Trust domain of a mesh that names none.
pub const DEFAULT_TRUST_DOMAIN: &str = "cluster.local";
/// Last part of federated host names, unless the virtual mesh says otherwise.
pub const DEFAULT_HOSTNAME_SUFFIX: &str = "global";
/// Namespace of Istio where an object names none.
pub const DEFAULT_ISTIO_NAMESPACE: &str = "istio-system";
/// `ServiceAccount` of istiod where a mesh names none.
pub const DEFAULT_ISTIOD_SERVICE_ACCOUNT: &str = "istio-citadel";
/// Name of a gateway's port for mutual TLS, unless told otherwise.
pub const DEFAULT_GATEWAY_PORT_NAME: &str = "tls";
/// Label, key and value, of a gateway's pods, unless told otherwise.
pub const DEFAULT_GATEWAY_LABEL: (&str, &str) = ("istio", "ingressgateway");
/// Label, key and value, of the pods of an agent.
pub const AGENT_LABEL: (&str, &str) = ("app", "cert-agent");
