//! One of the two configurations that the registration consists of.

use std::fmt::Debug;

use ferromesh_crds::meta::FIELD_MANAGER;
use ferromesh_runtime::backoff::ExponentialBackoff;
use ferromesh_runtime::pump::{self, Closed, Observed, Sink};
use k8s_openapi::ClusterResourceScope;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::api::{Patch, PatchParams};
use kube::core::PartialObjectMeta;
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Error, Options, wanted};

/// A kind of configuration.
pub(super) trait Configuration:
    Resource<DynamicType = (), Scope = ClusterResourceScope>
    + Clone
    + Debug
    + DeserializeOwned
    + Serialize
    + Send
    + Sync
    + 'static
{
    /// Its name in the API.
    const KIND: &'static str;

    /// Whether API servers are told to ask anything.
    fn is_loud(&self) -> bool;
}

impl Configuration for ValidatingWebhookConfiguration {
    const KIND: &'static str = "ValidatingWebhookConfiguration";

    fn is_loud(&self) -> bool {
        self.webhooks.iter().flatten().next().is_some()
    }
}

impl Configuration for MutatingWebhookConfiguration {
    const KIND: &'static str = "MutatingWebhookConfiguration";

    fn is_loud(&self) -> bool {
        self.webhooks.iter().flatten().next().is_some()
    }
}

/// One of the two configurations.
pub(super) struct Half<'a, K> {
    api: Api<K>,
    options: &'a Options,
}

impl<'a, K: Configuration> Half<'a, K> {
    pub(super) fn new(client: &Client, options: &'a Options) -> Self {
        Self {
            api: Api::all(client.clone()),
            options,
        }
    }

    /// What is stored, if anything. What is not ours is an error.
    pub(super) async fn read(&self) -> Result<Option<K>, Error> {
        let name = &self.options.name;
        let stored = self.api.get_opt(name).await.map_err(|source| Error::Read {
            kind: K::KIND,
            name: name.clone(),
            source: Box::new(source),
        })?;
        match stored {
            Some(stored) if !wanted::is_ours(stored.meta(), self.options) => Err(Error::Foreign {
                kind: K::KIND,
                name: name.clone(),
            }),
            stored => Ok(stored),
        }
    }

    /// Makes it say what it is to say. Nothing is written where it does already.
    pub(super) async fn write(&self, wanted: &K) -> Result<(), Error> {
        let params = PatchParams::apply(FIELD_MANAGER).force();
        self.patch(&params, &Patch::Apply(wanted)).await
    }

    /// Makes it ask for nothing.
    pub(super) async fn silence(&self) -> Result<(), Error> {
        let params = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let nothing = Patch::Merge(json!({"webhooks": []}));
        self.patch(&params, &nothing).await
    }

    async fn patch<P: Serialize + Debug>(
        &self,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<(), Error> {
        let name = &self.options.name;
        match self.api.patch(name, params, patch).await {
            Ok(_) => Ok(()),
            Err(source) => Err(Error::Write {
                kind: K::KIND,
                name: name.clone(),
                source: Box::new(source),
            }),
        }
    }
}

/// Watches the configuration of this name and ticks whenever it may look different.
pub(super) async fn observe<K: Configuration>(
    client: Client,
    name: &str,
    tick: mpsc::Sender<()>,
    backoff: ExponentialBackoff,
    cancel: CancellationToken,
) {
    let api: Api<PartialObjectMeta<K>> = Api::all(client);
    let config = pump::Config {
        fields: Some(format!("metadata.name={name}")),
        ..pump::Config::default()
    };
    pump::pump(api, config, Ticks(tick), backoff, cancel).await;
}

/// Turns what is seen into ticks, of which one at most waits.
struct Ticks(mpsc::Sender<()>);

impl<K: Send> Sink<K> for Ticks {
    async fn send(&mut self, observed: Observed<K>) -> Result<(), Closed> {
        match observed {
            Observed::Synced
            | Observed::Applied(_)
            | Observed::Deleted(_)
            | Observed::Invalid(_) => match self.0.try_send(()) {
                Ok(()) | Err(mpsc::error::TrySendError::Full(())) => Ok(()),
                Err(mpsc::error::TrySendError::Closed(())) => Err(Closed),
            },
            Observed::Started
            | Observed::Present(_)
            | Observed::Failed(_)
            | Observed::Recovered => Ok(()),
        }
    }
}
