//! The serving certificate and the CA that signs it, kept in a Secret of our namespace.
//!
//! All replicas serve what the Secret holds and may write it; who is late finds that its
//! resource version has moved on, and reads again. So the CA is made once, and everybody shows a
//! certificate that everybody's registration believes.
//!
//! A CA is replaced in this order: the next one is added to what API servers are to believe
//! (`Task::StageCa`); it is written into the registration, and an API server is seen to ask by
//! that very registration (`Task::NoteBelief`); a little later, when others have heard of it too, it
//! signs (`Task::SwitchCa`); and after an overlap, in which slower replicas show the certificate before,
//! the old one is believed no longer (`Task::DropOldCa`). The annotation [`ROTATE_CA_ANNOTATION`]
//! on the Secret begins this at once.

mod material;

use std::time::Duration;

use ferromesh_ca::digest::Fingerprint;
use ferromesh_ca::name::SubjectAltName;
use ferromesh_crds::meta::{FIELD_MANAGER, NETWORKING_OWNER_LABEL};
use ferromesh_runtime::telemetry::Chain;
use ferromesh_runtime::tls::{self, Credential, ServedCredential};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::material::{Material, Surroundings, Task};
use crate::metrics::Metrics;

/// Annotation on the Secret, whatever its value: replace the CA.
pub const ROTATE_CA_ANNOTATION: &str = "admission.mesh.gloo.solo.io/rotate-ca";
/// Annotation on the Secret: how many CAs there have been.
const EPOCH_ANNOTATION: &str = "admission.mesh.gloo.solo.io/ca-epoch";
/// Annotation on the Secret: by which bundle an API server was first seen to ask, and when. Kept here, so
/// that it counts for a replica that takes over.
const BELIEVED_ANNOTATION: &str = "admission.mesh.gloo.solo.io/ca-believed";
/// Annotation on the Secret: when the CA began to sign.
const SWITCHED_ANNOTATION: &str = "admission.mesh.gloo.solo.io/ca-switched";

/// How often a write may find that somebody else was faster before this round is given up.
const ATTEMPTS: usize = 5;

/// Where the certificate is kept, and what it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Our namespace.
    pub namespace: String,
    /// The name of the Secret.
    pub secret: String,
    /// The names and addresses by which API servers call.
    pub names: Vec<SubjectAltName>,
    /// How often the Secret is looked at.
    pub period: Duration,
    /// How long after one API server has been seen to believe the next CA it begins to sign: a
    /// control plane may have several, and a self-test reaches one of them.
    pub settling: Duration,
    /// How long a CA is believed after another has taken its place. Longer than `period`, by a
    /// margin for replicas that cannot reach the API server for a while.
    pub overlap: Duration,
}

impl Options {
    /// The usual Secret, looked at every 10 s, with 30 s for API servers to settle and an overlap
    /// of one hour.
    pub fn new(namespace: impl Into<String>, names: Vec<SubjectAltName>) -> Self {
        Self {
            namespace: namespace.into(),
            secret: "ferromesh-webhook".to_owned(),
            names,
            period: Duration::from_secs(10),
            settling: Duration::from_secs(30),
            overlap: Duration::from_hours(1),
        }
    }
}

/// What API servers are to believe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// The CAs, as PEM.
    pub pem: String,
    /// A mark that changes with them; it is part of the path that API servers are told.
    pub mark: String,
}

impl Bundle {
    /// These CAs.
    pub fn new(pem: String) -> Self {
        let digest = Fingerprint::of([pem.as_bytes()]);
        Self {
            mark: digest.short(),
            pem,
        }
    }
}

/// Why there is no certificate, or no newer one.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The Secret cannot be read.
    #[error("reading the Secret {secret}")]
    Read {
        /// `namespace/name`.
        secret: String,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// The Secret cannot be written.
    #[error("writing the Secret {secret}")]
    Write {
        /// `namespace/name`.
        secret: String,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// Others write the Secret all the time.
    #[error("writing the Secret {secret}: others were faster {ATTEMPTS} times in a row")]
    Contended {
        /// `namespace/name`.
        secret: String,
    },
    /// There is a Secret of that name which is not ours.
    #[error(
        "the Secret {secret} is not ours (no label {NETWORKING_OWNER_LABEL}): delete it, or give the webhook's another name"
    )]
    Foreign {
        /// `namespace/name`.
        secret: String,
    },
    /// No certificate can be made.
    #[error("making a certificate for the webhook")]
    Issue(#[from] ferromesh_ca::Error),
    /// The certificate cannot be served.
    #[error("serving the webhook's certificate")]
    Serve(#[source] tls::Error),
}

/// Keeps the certificate, and shows it.
pub struct Keeper<N> {
    api: Api<Secret>,
    options: Options,
    served: ServedCredential,
    bundle: watch::Sender<Option<Bundle>>,
    /// The mark of the bundle that an API server was seen to use.
    in_use: watch::Receiver<Option<String>>,
    metrics: Metrics,
    now: N,
}

impl<N: Fn() -> Timestamp> Keeper<N> {
    /// Keeps what `options` say and shows it in `served`. `in_use` tells which bundle an API
    /// server was seen to use (see [`register`](crate::register)); `now` is the clock.
    pub fn new(
        client: Client,
        options: Options,
        served: ServedCredential,
        in_use: watch::Receiver<Option<String>>,
        metrics: Metrics,
        now: N,
    ) -> Self {
        Self {
            api: Api::namespaced(client, &options.namespace),
            options,
            served,
            bundle: watch::Sender::default(),
            in_use,
            metrics,
            now,
        }
    }

    /// What API servers are to believe, as it changes; none until the Secret has been read.
    pub fn bundle(&self) -> watch::Receiver<Option<Bundle>> {
        self.bundle.subscribe()
    }

    /// Looks at the Secret at short intervals until `cancel`. What is served stays while the
    /// Secret cannot be read.
    pub async fn run(mut self, cancel: CancellationToken) {
        let mut complaint = String::new();
        loop {
            let round = tokio::select! {
                biased;
                () = cancel.cancelled() => return,
                round = self.round() => round,
            };
            match round {
                Ok(()) => complaint.clear(),
                Err(error) => {
                    let text = Chain(&error).to_string();
                    if text != complaint {
                        let error = &error as &dyn std::error::Error;
                        tracing::warn!(error, "the webhook's certificate is not kept");
                        complaint = text;
                    }
                }
            }
            tokio::select! {
                biased;
                () = cancel.cancelled() => return,
                Ok(()) = self.in_use.changed() => {}
                () = tokio::time::sleep(self.options.period) => {}
            }
        }
    }

    /// Looks at the Secret once, does what is due, and shows what it holds.
    pub async fn round(&mut self) -> Result<(), Error> {
        let in_use = self.in_use.borrow_and_update().clone();
        for _ in 0..ATTEMPTS {
            let stored = self.api.get_opt(&self.options.secret).await;
            let stored = stored.map_err(|source| Error::Read {
                secret: self.name(),
                source: Box::new(source),
            })?;
            let (material, wanted) = self.next(stored, in_use.as_deref())?;
            match wanted {
                None => return self.show(&material),
                Some(mut secret) => {
                    let written = self.write(&secret).await;
                    material::wipe(secret.data.get_or_insert_default());
                    if written? {
                        return self.show(&material);
                    }
                }
            }
        }
        Err(Error::Contended {
            secret: self.name(),
        })
    }

    /// What is to be served, and the Secret to write for it.
    fn next(
        &self,
        stored: Option<Secret>,
        in_use: Option<&str>,
    ) -> Result<(Material, Option<Secret>), Error> {
        let now = (self.now)();
        let names = &self.options.names;
        let Some(stored) = stored else {
            let material = Material::generate(1, names, now)?;
            let secret = self.secret(&material, ObjectMeta::default(), 1)?;
            return Ok((material, Some(secret)));
        };
        let meta = &stored.metadata;
        let is_ours = meta
            .labels
            .as_ref()
            .is_some_and(|labels| labels.contains_key(NETWORKING_OWNER_LABEL));
        if !is_ours {
            return Err(Error::Foreign {
                secret: self.name(),
            });
        }
        let annotation = |name: &str| meta.annotations.as_ref().and_then(|all| all.get(name));
        let epoch: u64 = annotation(EPOCH_ANNOTATION)
            .and_then(|text| text.parse().ok())
            .unwrap_or(1);
        let mut data = stored.data.unwrap_or_default();
        let read = Material::read(&data);
        material::wipe(&mut data);
        let material = match read {
            Ok(material) => material,
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(
                    error,
                    secret = self.name(),
                    "the webhook's Secret is damaged: beginning with a new CA"
                );
                let epoch = epoch.saturating_add(1);
                let material = Material::generate(epoch, names, now)?;
                let secret = self.secret(&material, stored.metadata, epoch)?;
                return Ok((material, Some(secret)));
            }
        };
        let mark = Bundle::new(material.bundle.to_pem()?).mark;
        let believed = annotation(BELIEVED_ANNOTATION).and_then(|text| {
            let (believed, since) = text.split_once(' ')?;
            (believed == mark).then(|| since.parse().ok()).flatten()
        });
        let task = material.due(&Surroundings {
            names,
            now,
            is_bundle_in_use: in_use == Some(&*mark),
            believed,
            settling: signed(self.options.settling),
            is_ca_unwanted: annotation(ROTATE_CA_ANNOTATION).is_some(),
            switched: annotation(SWITCHED_ANNOTATION).and_then(|text| text.parse().ok()),
            overlap: signed(self.options.overlap),
        });
        let Some(task) = task else {
            return Ok((material, None));
        };
        tracing::info!(
            ?task,
            secret = self.name(),
            "renewing the webhook's certificates"
        );
        let mut meta = stored.metadata.clone();
        let annotations = meta.annotations.get_or_insert_default();
        let mut epoch = epoch;
        match task {
            Task::StageCa => {
                epoch = epoch.saturating_add(1);
                annotations.remove(ROTATE_CA_ANNOTATION);
            }
            Task::NoteBelief => {
                annotations.insert(BELIEVED_ANNOTATION.to_owned(), format!("{mark} {now}"));
            }
            Task::SwitchCa => {
                annotations.remove(BELIEVED_ANNOTATION);
                annotations.insert(SWITCHED_ANNOTATION.to_owned(), now.to_string());
            }
            Task::RenewLeaf | Task::DropOldCa => {}
        }
        let material = material.perform(task, epoch, names, now)?;
        let secret = self.secret(&material, meta, epoch)?;
        Ok((material, Some(secret)))
    }

    /// The Secret for this material; `meta` is what is there already.
    fn secret(
        &self,
        material: &Material,
        mut meta: ObjectMeta,
        epoch: u64,
    ) -> Result<Secret, Error> {
        meta.name = Some(self.options.secret.clone());
        meta.namespace = Some(self.options.namespace.clone());
        meta.managed_fields = None;
        meta.labels.get_or_insert_default().insert(
            NETWORKING_OWNER_LABEL.to_owned(),
            self.options.namespace.clone(),
        );
        meta.annotations
            .get_or_insert_default()
            .insert(EPOCH_ANNOTATION.to_owned(), epoch.to_string());
        Ok(Secret {
            metadata: meta,
            type_: Some("kubernetes.io/tls".to_owned()),
            data: Some(material.write()?),
            ..Secret::default()
        })
    }

    /// Writes the Secret; says whether nobody was faster.
    async fn write(&self, secret: &Secret) -> Result<bool, Error> {
        let params = PostParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PostParams::default()
        };
        let written = if secret.metadata.resource_version.is_some() {
            self.api
                .replace(&self.options.secret, &params, secret)
                .await
        } else {
            self.api.create(&params, secret).await
        };
        match written {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(false),
            Err(source) => Err(Error::Write {
                secret: self.name(),
                source: Box::new(source),
            }),
        }
    }

    fn show(&self, material: &Material) -> Result<(), Error> {
        let (chain, key) = material.credential();
        let credential =
            Credential::from_pem(chain.as_bytes(), key.as_bytes()).map_err(Error::Serve)?;
        let not_after = credential.not_after();
        self.metrics.certificate_expiry.set(not_after.as_second());
        if self.served.replace(credential) {
            tracing::info!(%not_after, "the webhook serves with a new certificate");
        }
        let bundle = Some(Bundle::new(material.bundle.to_pem()?));
        self.bundle.send_if_modified(|current| {
            let is_new = *current != bundle;
            *current = bundle;
            is_new
        });
        Ok(())
    }

    fn name(&self) -> String {
        format!("{}/{}", self.options.namespace, self.options.secret)
    }
}

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}
