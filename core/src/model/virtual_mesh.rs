//! Virtual meshes: which meshes share trust and services.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ferromesh_crds::meta::{DEFAULT_GATEWAY_PORT_NAME, DEFAULT_HOSTNAME_SUFFIX};
use ferromesh_crds::{self as crds, virtual_mesh as wire};

use super::destination::KubeService;
use super::duration;
use super::kubernetes::key;
use super::reference::Reference;
use super::reject::{Code, Door, Rejection};
use super::selector::Destinations;
use crate::key::Key;

/// A virtual mesh.
#[derive(Clone, Debug, PartialEq)]
pub struct VirtualMesh {
    /// Name and namespace.
    pub key: Key,
    /// Generation of the stored object.
    pub generation: i64,
    /// The spec as written, for the statuses that repeat it.
    pub spec: Arc<crds::VirtualMeshSpec>,
    /// Its meshes, in the order written.
    pub meshes: Box<[Reference]>,
    /// How trust is shared; none leaves certificates alone.
    pub trust: Option<SharedTrust>,
    /// Which services other meshes see.
    pub federation: Federation,
    /// What happens to calls that no access policy speaks of.
    pub global_access: GlobalAccess,
    /// What is wrong with it.
    pub rejections: Arc<[Rejection]>,
}

/// One root of trust for all meshes.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedTrust {
    /// Where the root comes from.
    pub root: Root,
    /// Parameters of each mesh's own authority.
    pub intermediate: CertificateOptions,
    /// Whether pods may be restarted so that they take up new certificates.
    pub restart_pods: bool,
}

/// Where a root of trust comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Root {
    /// Made by the management plane.
    Generated(CertificateOptions),
    /// A Secret of the management cluster.
    Secret(Key),
}

/// What users can ask of a certificate; absent parts take the defaults of the certificate's role.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CertificateOptions {
    /// Life in days.
    pub ttl_days: Option<u32>,
    /// Size of an RSA key in bits, whatever the field's name says; absent asks for ECDSA.
    pub rsa_bits: Option<u32>,
    /// Organisation in the subject.
    pub organization: Option<String>,
    /// Share of its life left at which a certificate is renewed.
    pub renewal_ratio: Option<f64>,
}

/// Which services other meshes see, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Federation {
    /// Which services go to which meshes; none at all federates nothing.
    pub selectors: Arc<[FederationSelector]>,
    /// Last labels of federated host names.
    pub hostname_suffix: Arc<str>,
    /// TCP keepalive of cross-cluster connections.
    pub keepalive: Option<Keepalive>,
    /// Which services are the gateways that other clusters come in through.
    pub gateways: Arc<[GatewaySelector]>,
}

/// Services and the meshes that see them.
#[derive(Clone, Debug, PartialEq)]
pub struct FederationSelector {
    /// Which services.
    pub destinations: Destinations,
    /// Which meshes; none means every mesh of the virtual mesh.
    pub meshes: Box<[Reference]>,
}

/// Services that are gateways.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewaySelector {
    /// Which services; `All` stands for the mesh's default gateway.
    pub destinations: Destinations,
    /// The name of the port that carries other clusters' TLS.
    pub port_name: Arc<str>,
}

/// TCP keepalive probes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keepalive {
    /// Unanswered probes before the connection is given up.
    pub probes: Option<u32>,
    /// Idle time before the first probe.
    pub time: Option<Duration>,
    /// Time between probes.
    pub interval: Option<Duration>,
}

/// What happens to calls that no access policy speaks of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GlobalAccess {
    /// What the mesh does by itself.
    #[default]
    MeshDefault,
    /// They are denied.
    Enabled,
    /// They are let through; Istio does so by itself.
    Disabled,
}

const MAX_MESHES: usize = 5_000;
const MAX_SELECTORS: usize = 1_000;

impl VirtualMesh {
    /// Reads a virtual mesh; what is wrong with it is kept beside it.
    pub fn parse(object: &crds::VirtualMesh) -> Self {
        let mut door = Door::default();
        let spec = &object.spec;
        Self {
            key: key(&object.metadata, ""),
            generation: object.metadata.generation.unwrap_or_default(),
            spec: Arc::new(spec.clone()),
            meshes: references(&mut door, "spec.meshes", &spec.meshes),
            trust: spec
                .mtls_config
                .as_ref()
                .and_then(|mtls| SharedTrust::parse(&mut door, "spec.mtlsConfig", mtls)),
            federation: Federation::parse(
                &mut door,
                "spec.federation",
                &spec.federation.clone().unwrap_or_default(),
            ),
            global_access: match spec.global_access_policy {
                wire::GlobalAccessPolicy::MeshDefault => GlobalAccess::MeshDefault,
                wire::GlobalAccessPolicy::Enabled => GlobalAccess::Enabled,
                wire::GlobalAccessPolicy::Disabled => GlobalAccess::Disabled,
            },
            rejections: door.close().into(),
        }
    }

    /// What federates a service: the field that selects it.
    pub fn path_to(&self, service: &KubeService) -> String {
        let written = self.spec.federation.as_ref();
        if written.is_some_and(|federation| federation.selectors.is_empty()) {
            return "spec.federation.permissive".to_owned();
        }
        let path = "spec.federation.selectors";
        let mut selectors = self.federation.selectors.iter().enumerate();
        let selecting = selectors.find(|(_, it)| it.destinations.select(Some(service)));
        match selecting {
            Some((at, selector)) => {
                let path = format!("{path}[{at}].destinationSelectors");
                selector.destinations.path_to(&path, service)
            }
            None => path.to_owned(),
        }
    }
}

impl SharedTrust {
    fn parse(door: &mut Door, path: &str, mtls: &wire::MtlsConfig) -> Option<Self> {
        door.not_supported(format_args!("{path}.limited"), mtls.limited.is_some());
        let Some(shared) = &mtls.shared else {
            if mtls.limited.is_none() {
                door.refuse(
                    path,
                    Code::Required,
                    "must specify trust model to use for issuing certificates: set shared, or remove mtlsConfig to leave certificates alone",
                );
            }
            return None;
        };
        let path = format_args!("{path}.shared");
        door.not_supported(
            format_args!("{path}.intermediateCertificateAuthority"),
            shared.intermediate_certificate_authority.is_some(),
        );
        let Some(root) = &shared.root_certificate_authority else {
            if shared.intermediate_certificate_authority.is_none() {
                door.refuse(
                    path,
                    Code::Required,
                    "no ca source specified: set rootCertificateAuthority, for example to {generated: {}}",
                );
            }
            return None;
        };
        let root_path = format_args!("{path}.rootCertificateAuthority");
        let root = match (&root.generated, &root.secret) {
            (Some(_), Some(_)) => {
                door.refuse(
                    root_path,
                    Code::Invalid,
                    "generated and secret exclude each other; keep one",
                );
                return None;
            }
            (None, None) => {
                door.refuse(
                    root_path,
                    Code::Required,
                    "no root ca source specified: set generated or secret",
                );
                return None;
            }
            (Some(options), None) => Root::Generated(CertificateOptions::parse(
                door,
                format_args!("{root_path}.generated"),
                options,
            )),
            (None, Some(secret)) => {
                Root::Secret(reference(door, format_args!("{root_path}.secret"), secret)?)
            }
        };
        let intermediate = shared
            .intermediate_cert_options
            .as_ref()
            .map(|options| {
                CertificateOptions::parse(
                    door,
                    format_args!("{path}.intermediateCertOptions"),
                    options,
                )
            })
            .unwrap_or_default();
        Some(Self {
            root,
            intermediate,
            restart_pods: mtls.auto_restart_pods,
        })
    }
}

impl CertificateOptions {
    fn parse(
        door: &mut Door,
        path: fmt::Arguments<'_>,
        options: &crds::cert_options::CommonCertOptions,
    ) -> Self {
        let mut number = |field: &str, value: i64, range: std::ops::RangeInclusive<u32>| {
            if value == 0 {
                return None;
            }
            let read = u32::try_from(value)
                .ok()
                .filter(|value| range.contains(value));
            if read.is_none() {
                door.refuse(
                    format_args!("{path}.{field}"),
                    Code::Invalid,
                    format!(
                        "{value} is out of range; use {} to {}",
                        range.start(),
                        range.end()
                    ),
                );
            }
            read
        };
        let ttl_days = number("ttlDays", options.ttl_days, 1..=36_500);
        let rsa_bits = number("rsaKeySizeBytes", options.rsa_key_size_bytes, 2_048..=8_192);
        let ratio = options.secret_rotation_grace_period_ratio;
        if !(0.0..=1.0).contains(&ratio) {
            door.refuse(
                format_args!("{path}.secretRotationGracePeriodRatio"),
                Code::Invalid,
                format!("{ratio} is not a share of a life; use a number above 0 and up to 1"),
            );
        }
        Self {
            ttl_days,
            rsa_bits,
            organization: (!options.org_name.is_empty()).then(|| options.org_name.clone()),
            renewal_ratio: (ratio > 0.0).then_some(ratio),
        }
    }
}

impl Federation {
    fn parse(door: &mut Door, path: &str, federation: &wire::Federation) -> Self {
        door.limit(
            format_args!("{path}.selectors"),
            federation.selectors.len(),
            MAX_SELECTORS,
        );
        door.not_supported(format_args!("{path}.flatNetwork"), federation.flat_network);
        let mut selectors: Vec<_> = federation
            .selectors
            .iter()
            .take(MAX_SELECTORS)
            .enumerate()
            .map(|(i, selector)| {
                let path = format_args!("{path}.selectors[{i}]");
                FederationSelector {
                    destinations: Destinations::parse(
                        door,
                        format_args!("{path}.destinationSelectors"),
                        &selector.destination_selectors,
                    ),
                    meshes: references(door, format_args!("{path}.meshes"), &selector.meshes),
                }
            })
            .collect();
        if selectors.is_empty() && federation.permissive.is_some() {
            // The older way to say "everything to every mesh".
            selectors.push(FederationSelector {
                destinations: Destinations::All,
                meshes: Box::default(),
            });
        }
        let suffix = federation.hostname_suffix.as_str();
        if !suffix.is_empty() && !is_dns_name(suffix) {
            door.refuse(
                format_args!("{path}.hostnameSuffix"),
                Code::Invalid,
                format!("`{suffix}` is not a DNS name; use lower-case labels of letters, digits and hyphens, separated by dots"),
            );
        }
        let gateways = &federation.east_west_ingress_gateway_selectors;
        let gateway_path = format_args!("{path}.eastWestIngressGatewaySelectors");
        door.limit(gateway_path, gateways.len(), MAX_SELECTORS);
        Self {
            selectors: selectors.into(),
            hostname_suffix: if suffix.is_empty() {
                DEFAULT_HOSTNAME_SUFFIX.into()
            } else {
                suffix.into()
            },
            keepalive: federation.tcp_keepalive.as_ref().map(|keepalive| {
                Keepalive::parse(door, format_args!("{path}.tcpKeepalive"), keepalive)
            }),
            gateways: gateways
                .iter()
                .take(MAX_SELECTORS)
                .enumerate()
                .map(|(i, selector)| GatewaySelector {
                    destinations: Destinations::parse(
                        door,
                        format_args!("{gateway_path}[{i}].destinationSelectors"),
                        &selector.destination_selectors,
                    ),
                    port_name: if selector.port_name.is_empty() {
                        DEFAULT_GATEWAY_PORT_NAME.into()
                    } else {
                        selector.port_name.as_str().into()
                    },
                })
                .collect(),
        }
    }
}

impl Keepalive {
    fn parse(
        door: &mut Door,
        path: fmt::Arguments<'_>,
        keepalive: &crds::tcp_keepalive::TcpKeepalive,
    ) -> Self {
        let probes = u32::try_from(keepalive.probes);
        if probes.is_err() {
            door.refuse(
                format_args!("{path}.probes"),
                Code::Invalid,
                format!(
                    "{} is not a count of probes; use 0 to {}",
                    keepalive.probes,
                    u32::MAX
                ),
            );
        }
        let mut time = |field: &str, text: &Option<String>| {
            let text = text.as_ref()?;
            duration::parse(text)
                .map_err(|message| {
                    door.refuse(format_args!("{path}.{field}"), Code::Invalid, message);
                })
                .ok()
        };
        Self {
            time: time("time", &keepalive.time),
            interval: time("interval", &keepalive.interval),
            probes: probes.ok().filter(|probes| *probes > 0),
        }
    }
}

/// Reads references to objects of the management cluster; incomplete ones are refused.
fn references(
    door: &mut Door,
    path: impl fmt::Display,
    references: &[crds::reference::ObjectRef],
) -> Box<[Reference]> {
    door.limit(&path, references.len(), MAX_MESHES);
    references
        .iter()
        .take(MAX_MESHES)
        .enumerate()
        .filter_map(|(position, object)| {
            let key = reference(door, format_args!("{path}[{position}]"), object)?;
            Some(Reference { key, position })
        })
        .collect()
}

fn reference(
    door: &mut Door,
    path: fmt::Arguments<'_>,
    object: &crds::reference::ObjectRef,
) -> Option<Key> {
    let missing: Vec<_> = [("name", &object.name), ("namespace", &object.namespace)]
        .into_iter()
        .filter_map(|(field, value)| value.is_empty().then_some(field))
        .collect();
    if missing.is_empty() {
        return Some(Key::local(&object.name, &object.namespace));
    }
    door.refuse(
        path,
        Code::Required,
        format!(
            "malformed reference: {} must be specified",
            missing.join(", ")
        ),
    );
    None
}

/// Lower-case DNS labels separated by dots (RFC 1123).
fn is_dns_name(name: &str) -> bool {
    name.len() <= 190
        && name.split('.').all(|label| {
            !label.is_empty()
                && label.len() <= 63
                && label
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
                && !label.starts_with('-')
                && !label.ends_with('-')
        })
}
