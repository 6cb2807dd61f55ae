//! Writes one status, so that it says what it is to say and nothing else.

use ferromesh_apply::Error;
use ferromesh_apply::ssa::{OtherManagers, Writer};
use ferromesh_crds::meta;
use ferromesh_runtime::telemetry::Chain;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Map, Value, json};

use super::REQUEST_TIMEOUT;
use super::stored::{self, Subject};

/// Writes one status.
pub(super) struct StatusWriter {
    pub(super) writer: Writer,
    pub(super) client: Client,
}

impl StatusWriter {
    pub(super) async fn write(
        self,
        subject: &Subject,
        status: Value,
    ) -> Result<DynamicObject, Error> {
        let address = subject.address();
        let body = json!({
            "apiVersion": format!("{}/{}", address.group, address.version),
            "kind": subject.kind().name(),
            "metadata": { "name": address.name, "namespace": address.namespace },
            "status": status,
        });
        let applied = self
            .writer
            .apply_status(&address, &body, OtherManagers::Override)
            .await?;
        let found = stored::ours(subject.kind(), &applied.data["status"]);
        let Some(surplus) = surplus(&found, &stored::ours(subject.kind(), &status)) else {
            return Ok(applied);
        };
        Ok(self.take_away(subject, &surplus).await.unwrap_or(applied))
    }

    /// Server-side apply leaves alone what others have added; here it would be taken for our words.
    async fn take_away(&self, subject: &Subject, surplus: &Value) -> Option<DynamicObject> {
        let (kind, key) = (subject.kind(), subject.key());
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), key.namespace(), &kind.resource());
        let params = PatchParams {
            field_manager: Some(meta::FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let patch = Patch::Merge(json!({ "status": surplus }));
        let patched = api.patch_status(key.name(), &params, &patch);
        match tokio::time::timeout(REQUEST_TIMEOUT, patched).await {
            Ok(Ok(object)) => Some(object),
            Ok(Err(error)) => {
                let (kind, error) = (kind.name(), Chain(&error));
                tracing::warn!(kind, %key, %error, "what others wrote into a status stays there");
                None
            }
            Err(_) => None,
        }
    }
}

/// A merge patch that takes away what is found and not wanted; none if there is nothing.
fn surplus(found: &Value, wanted: &Value) -> Option<Value> {
    let found = found.as_object()?;
    let patch: Map<String, Value> = found
        .iter()
        .filter_map(|(name, value)| match wanted.get(name) {
            None => Some((name.clone(), Value::Null)),
            Some(wanted) => Some((name.clone(), surplus(value, wanted)?)),
        })
        .collect();
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_added_is_taken_away_and_nothing_else() {
        let wanted = json!({ "state": "ACCEPTED", "meshes": { "a": {} }, "errors": ["x"] });
        assert_eq!(surplus(&wanted, &wanted), None);
        let found = json!({
            "state": "ACCEPTED", "meshes": { "a": { "state": "FAILED" }, "b": {} }, "errors": ["x"],
            "workloads": [],
        });
        assert_eq!(
            surplus(&found, &wanted),
            Some(json!({ "meshes": { "a": { "state": null }, "b": null }, "workloads": null }))
        );
    }
}
