//! Roots of trust: made here once, or given by the user.
//!
//! A generated root is created, never updated, never deleted and never made a second time: beside its
//! Secret a ConfigMap without the key records which root it is. A Secret that is gone while its record
//! is there is a loss for a person to repair, not a reason for a new root, which no running workload
//! would believe.

use std::collections::BTreeMap;

use ferromesh_ca::bundle::RootId;
use ferromesh_ca::issue::{self, SigningCa};
use ferromesh_ca::lint::{self, Finding, Findings, ImportedRoot, Rule};
use ferromesh_ca::pem;
use ferromesh_ca::policy::{RootProfile, Violation};
use ferromesh_crds::cert_options::CommonCertOptions;
use ferromesh_crds::{ObjectRef, meta};
use ferromesh_hands::sealed::Sealed;
use ferromesh_hands::terms::{self, Fault};
use ferromesh_runtime::beside;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::api::{Api, PostParams};

use super::error::ApiError;
use super::sources::Sources;
use super::wanted::{RootSource, Wanted};

/// Label on the Secret of a generated root: which one of its virtual mesh it is, from 1.
pub const EPOCH_LABEL: &str = "certificates.mesh.gloo.solo.io/epoch";
/// The only epoch there is until roots are rotated.
const EPOCH: u64 = 1;
/// How often a Secret that appears and vanishes is looked at again.
const ATTEMPTS: usize = 3;

/// A root, ready to sign.
pub struct Root {
    /// Its certificate and key.
    pub ca: SigningCa,
    /// What could be better about it.
    pub warnings: Vec<Finding>,
}

impl Root {
    /// Which root.
    pub fn id(&self) -> RootId {
        RootId::of(self.ca.certificate())
    }
}

/// Why there is no root. The text names the object and the remedy, and nothing secret.
#[derive(Debug, thiserror::Error)]
pub enum RootFault {
    /// The management cluster refused, or could not be asked.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The user's Secret is not there.
    #[error(
        "Secret {0}, the root of trust, is not there: create it with the entries {cert} and {key}",
        cert = lint::ROOT_CERTIFICATE, key = lint::ROOT_KEY
    )]
    Missing(String),
    /// A generated root that was there is gone.
    #[error(
        "Secret {secret}, the generated root of trust, is gone. What it has signed stays valid and nothing new is \
         signed: restore it from a backup; or delete ConfigMap {record} to have another root made, which no \
         running workload will believe"
    )]
    Lost {
        /// The Secret.
        secret: String,
        /// The record.
        record: String,
    },
    /// A generated root that is not the one that was generated.
    #[error(
        "Secret {secret} holds another root than ConfigMap {record} records: restore the Secret from a backup, or \
         delete the ConfigMap if the new root is meant"
    )]
    Replaced {
        /// The Secret.
        secret: String,
        /// The record.
        record: String,
    },
    /// The name of a generated root belongs to somebody else.
    #[error(
        "Secret {0} stands where the generated root of trust belongs and is not one: delete it, or name it under \
         rootCertificateAuthority.secret to use it"
    )]
    Foreign(String),
    /// The Secret does not hold a root that can be used.
    #[error("Secret {secret}, the root of trust: {reason}")]
    Unsound {
        /// The Secret.
        secret: String,
        /// Why not.
        reason: ferromesh_ca::Error,
    },
    /// What the user asks of a generated root.
    #[error("rootCertificateAuthority.generated: {0}")]
    Options(#[from] Fault),
}

impl RootFault {
    /// The fault and its causes, for a status.
    pub fn text(&self) -> String {
        match self {
            Self::Api(error) => error.text(),
            fault => fault.to_string(),
        }
    }

    /// Whether the root is past its time, or nearly.
    pub fn is_expired(&self) -> bool {
        let too_late = |findings: &Findings| {
            let mut rules = findings.iter().map(|finding| &finding.rule);
            rules.any(|rule| matches!(rule, Rule::Expired { .. } | Rule::EndsTooSoon { .. }))
        };
        match self {
            Self::Unsound {
                reason: ferromesh_ca::Error::Refused(findings),
                ..
            } => too_late(findings),
            _ => false,
        }
    }
}

/// The Secret that holds the root of a certificate; `namespace` is ours.
pub fn secret(wanted: &Wanted, namespace: &str) -> ObjectRef {
    match &wanted.root {
        RootSource::Provided(secret) => secret.clone(),
        RootSource::Generated(_) => ObjectRef {
            name: format!(
                "{}.{}",
                wanted.virtual_mesh.name, wanted.virtual_mesh.namespace
            ),
            namespace: namespace.to_owned(),
        },
    }
}

/// Gets roots out of the management cluster.
#[derive(Clone)]
pub struct Roots {
    client: Client,
    namespace: String,
    sources: Sources,
}

impl Roots {
    /// Roots of the management cluster; generated ones are in `namespace`.
    pub fn new(client: Client, namespace: String, sources: Sources) -> Self {
        Self {
            client,
            namespace,
            sources,
        }
    }

    /// The namespace of generated roots.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The root that is to sign `wanted`. A generated one is made if it never was.
    ///
    /// # Errors
    /// [`RootFault`].
    pub async fn root(&self, wanted: &Wanted) -> Result<Root, RootFault> {
        let at = secret(wanted, &self.namespace);
        match &wanted.root {
            RootSource::Provided(_) => match self.read(&at).await? {
                Some(secret) => self.import(&at, &secret),
                None => Err(RootFault::Missing(place(&at))),
            },
            RootSource::Generated(options) => self.generated(wanted, &at, options).await,
        }
    }

    async fn generated(
        &self,
        wanted: &Wanted,
        at: &ObjectRef,
        options: &CommonCertOptions,
    ) -> Result<Root, RootFault> {
        let record_at = ObjectRef {
            name: format!("{}.root", at.name),
            namespace: at.namespace.clone(),
        };
        for _ in 0..ATTEMPTS {
            let record = self.record(&record_at).await?;
            if let Some(secret) = self.read(at).await? {
                let secret_type = secret.open().type_.as_deref();
                if secret_type != Some(meta::GENERATED_ROOT_SECRET_TYPE) {
                    return Err(RootFault::Foreign(place(at)));
                }
                let root = self.import(at, &secret)?;
                match record {
                    None => self.write_record(&record_at, &root).await?,
                    Some(recorded) if recorded == root.id() => {}
                    Some(_) => {
                        return Err(RootFault::Replaced {
                            secret: place(at),
                            record: place(&record_at),
                        });
                    }
                }
                return Ok(root);
            }
            if record.is_some() {
                return Err(RootFault::Lost {
                    secret: place(at),
                    record: place(&record_at),
                });
            }
            let root = self.generate(wanted, at, options).await?;
            self.create(at, &root).await?;
        }
        // Somebody deletes it as soon as it is there.
        Err(RootFault::Missing(place(at)))
    }

    async fn generate(
        &self,
        wanted: &Wanted,
        at: &ObjectRef,
        options: &CommonCertOptions,
    ) -> Result<SigningCa, RootFault> {
        let unsound = |reason| RootFault::Unsound {
            secret: place(at),
            reason,
        };
        let policy = |violation: Violation| RootFault::Options(violation.into());
        let options = terms::cert_options(options)?;
        let vm = &wanted.virtual_mesh;
        let profile = RootProfile::for_virtual_mesh(&options, &vm.namespace, &vm.name, EPOCH)
            .map_err(policy)?;
        let algorithm = profile.key_algorithm();
        let new_key = self.sources.key.clone();
        let key = beside::run(move || new_key(algorithm)).await;
        let key = key
            .unwrap_or(Err(ferromesh_ca::Error::KeyGeneration(algorithm)))
            .map_err(unsound)?;
        let serial = (self.sources.serial)().map_err(unsound)?;
        let now = (self.sources.now)();
        let root = issue::self_signed_root(key, &profile, now, serial).map_err(unsound)?;
        // What could not be used is not stored: it would be immutable.
        let pem = root.certificate().to_pem();
        let key = root.key().to_pkcs8_pem();
        lint::lint_pair(pem.as_bytes(), key.as_bytes(), now).map_err(unsound)?;
        Ok(root)
    }

    /// Stores a new root, unless another one was faster.
    async fn create(&self, at: &ObjectRef, root: &SigningCa) -> Result<(), RootFault> {
        let key = root.key().to_pkcs8_pem();
        let pem = root.certificate().to_pem();
        let entries = [
            (meta::ROOT_KEY_KEY, key.as_bytes()),
            (meta::ROOT_CERT_KEY, pem.as_bytes()),
        ];
        let secret = Sealed::from(Secret {
            metadata: self.metadata(at),
            type_: Some(meta::GENERATED_ROOT_SECRET_TYPE.to_owned()),
            immutable: Some(true),
            data: Some(
                entries
                    .map(|(name, content)| (name.to_owned(), ByteString(content.to_vec())))
                    .into(),
            ),
            ..Secret::default()
        });
        let secrets: Api<Secret> = self.api(&at.namespace);
        match secrets.create(&post(), secret.open()).await {
            Ok(created) => {
                drop(Sealed::from(created));
                let id = RootId::of(root.certificate());
                tracing::info!(secret = place(at), root = %id, "root of trust created");
                Ok(())
            }
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            Err(error) => {
                Err(ApiError::new("creating", format!("Secret {}", place(at)), error).into())
            }
        }
    }

    async fn record(&self, at: &ObjectRef) -> Result<Option<RootId>, RootFault> {
        let records: Api<ConfigMap> = self.api(&at.namespace);
        let record = records
            .get_opt(&at.name)
            .await
            .map_err(|error| ApiError::new("reading", format!("ConfigMap {}", place(at)), error))?;
        let Some(record) = record else {
            return Ok(None);
        };
        let data = record.data.unwrap_or_default();
        let text = data.get(meta::ROOT_CERT_KEY).map(String::as_str);
        let root = pem::read_certificate("the record", text.unwrap_or_default().as_bytes());
        match root {
            Ok(root) => Ok(Some(RootId::of(&root))),
            Err(reason) => Err(RootFault::Unsound {
                secret: format!("(its record, ConfigMap {})", place(at)),
                reason,
            }),
        }
    }

    async fn write_record(&self, at: &ObjectRef, root: &Root) -> Result<(), RootFault> {
        let record = ConfigMap {
            metadata: self.metadata(at),
            immutable: Some(true),
            data: Some(BTreeMap::from([(
                meta::ROOT_CERT_KEY.to_owned(),
                root.ca.certificate().to_pem(),
            )])),
            ..ConfigMap::default()
        };
        let records: Api<ConfigMap> = self.api(&at.namespace);
        match records.create(&post(), &record).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            Err(error) => {
                Err(ApiError::new("creating", format!("ConfigMap {}", place(at)), error).into())
            }
        }
    }

    fn metadata(&self, at: &ObjectRef) -> ObjectMeta {
        ObjectMeta {
            name: Some(at.name.clone()),
            namespace: Some(at.namespace.clone()),
            labels: Some(BTreeMap::from([
                (
                    meta::NETWORKING_OWNER_LABEL.to_owned(),
                    self.namespace.clone(),
                ),
                (meta::CLUSTER_LABEL.to_owned(), String::new()),
                (EPOCH_LABEL.to_owned(), EPOCH.to_string()),
            ])),
            ..ObjectMeta::default()
        }
    }

    fn import(&self, at: &ObjectRef, secret: &Sealed) -> Result<Root, RootFault> {
        let entry = |name| secret.entry(name).unwrap_or_default();
        let certificate = entry(lint::ROOT_CERTIFICATE);
        let key = entry(lint::ROOT_KEY);
        match lint::lint_pair(certificate, key, (self.sources.now)()) {
            Ok(ImportedRoot { ca, warnings }) => Ok(Root { ca, warnings }),
            Err(reason) => Err(RootFault::Unsound {
                secret: place(at),
                reason,
            }),
        }
    }

    async fn read(&self, at: &ObjectRef) -> Result<Option<Sealed>, RootFault> {
        let secrets: Api<Secret> = self.api(&at.namespace);
        let secret = secrets
            .get_opt(&at.name)
            .await
            .map_err(|error| ApiError::new("reading", format!("Secret {}", place(at)), error))?;
        Ok(secret.map(Sealed::from))
    }

    fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }
}

fn place(at: &ObjectRef) -> String {
    format!("{}/{}", at.namespace, at.name)
}

fn post() -> PostParams {
    PostParams {
        field_manager: Some(meta::FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    }
}
