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
        let surplus = surplus(&found, &stored::ours(subject.kind(), &status));
        let kept = kept(&applied.data["status"], &status);
        if surplus.is_none() && kept.is_none() {
            return Ok(applied);
        }
        let mut patch = json!({ "status": surplus.unwrap_or_else(|| json!({})) });
        if let Some(kept) = kept {
            patch["status"]["conditions"] = kept;
            // The list is replaced: what others have added since then must not go.
            patch["metadata"] = json!({ "resourceVersion": applied.metadata.resource_version });
        }
        Ok(self.take_away(subject, patch).await.unwrap_or(applied))
    }

    /// Server-side apply leaves alone what others have added; here it would be taken for our words.
    async fn take_away(&self, subject: &Subject, patch: Value) -> Option<DynamicObject> {
        let (kind, key) = (subject.kind(), subject.key());
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), key.namespace(), &kind.resource());
        let params = PatchParams {
            field_manager: Some(meta::FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let patch = Patch::Merge(patch);
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

/// The conditions without those of ours that are not wanted; none if there are none of these. Others hold on
/// to a condition of ours whenever they have written the whole status, as backup tools do.
fn kept(found: &Value, wanted: &Value) -> Option<Value> {
    let (found, wanted) = (found["conditions"].as_array()?, &wanted["conditions"]);
    let is_wanted = |condition: &&Value| {
        let mut wanted = wanted.as_array().into_iter().flatten();
        !stored::is_own(&condition["type"]) || wanted.any(|it| it["type"] == condition["type"])
    };
    let kept: Vec<_> = found.iter().filter(is_wanted).cloned().collect();
    (kept.len() < found.len()).then_some(Value::Array(kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_of_ours_that_is_not_wanted_any_more_is_taken_away_and_none_of_others() {
        let condition = |kind: &str| json!({ "type": kind, "status": "True" });
        let wanted = json!({ "conditions": [condition("Accepted")] });
        let found = json!({ "conditions": [condition("Accepted"), condition("Theirs")] });
        assert_eq!(kept(&found, &wanted), None);
        assert_eq!(kept(&json!({}), &wanted), None);
        let stale = json!({
            "conditions": [condition("Accepted"), condition("TrustReady"), condition("Theirs")],
        });
        assert_eq!(kept(&stale, &wanted), Some(found["conditions"].clone()));
    }

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
