//! What policies and virtual meshes do to an object, as their statuses tell it.

use ferromesh_core::Key;
use ferromesh_crds::approval::{ApprovalState, ApprovalStatus};
use serde::Serialize;
use serde_json::Value;

use crate::cmd::get::value;
use crate::error::Error;
use crate::kind::Shown;
use crate::management::{Management, Scope};

/// What one policy or virtual mesh does to an object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Effect {
    /// The kind of the policy.
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
    /// What became of it there.
    pub(super) state: ApprovalState,
    /// Rank among those that are accepted there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) order: Option<i64>,
    /// What it asks for.
    pub(super) asks: Vec<String>,
    /// Why it has no effect there.
    pub(super) errors: Vec<String>,
    /// What is accepted but probably not meant.
    pub(super) warnings: Vec<String>,
}

/// The policies that may say something about an object of a kind.
pub(super) struct Policies {
    /// Where their statuses speak of it: a member that is a map by key, or a list of keys.
    member: &'static str,
    policies: Vec<Value>,
}

impl Policies {
    /// Reads those that may say something about objects of a kind.
    pub(super) async fn about(kind: Shown, management: &Management) -> Result<Self, Error> {
        let (member, kinds): (_, &[Shown]) = match kind {
            Shown::Destination => (
                "destinations",
                &[
                    Shown::TrafficPolicy,
                    Shown::AccessPolicy,
                    Shown::VirtualMesh,
                ],
            ),
            Shown::Workload => ("workloads", &[Shown::TrafficPolicy, Shown::AccessPolicy]),
            Shown::Mesh => ("meshes", &[Shown::VirtualMesh]),
            Shown::TrafficPolicy
            | Shown::AccessPolicy
            | Shown::VirtualMesh
            | Shown::KubernetesCluster => ("", &[]),
        };
        let mut policies = Vec::new();
        for kind in kinds {
            let found = management.list(*kind, Scope::All).await?;
            policies.extend(found.iter().map(value));
        }
        Ok(Self { member, policies })
    }

    /// What they do to an object: those that apply come first, in the order in which they do.
    pub(super) fn on(&self, object: &Value) -> Vec<Effect> {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
        let name = text("/metadata/name").unwrap_or_default();
        let namespace = text("/metadata/namespace").unwrap_or_default();
        let key = Key::local(name, namespace);
        let mut effects: Vec<_> = self
            .policies
            .iter()
            .filter_map(|policy| Effect::of(policy, self.member, key.as_str()))
            .collect();
        effects.sort_by_key(|effect| {
            (
                effect.kind.clone(),
                effect.state != ApprovalState::Accepted,
                effect.order,
            )
        });
        effects
    }
}

impl Effect {
    fn of(policy: &Value, member: &str, key: &str) -> Option<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let entry = match policy["status"].get(member)? {
            Value::Object(entries) => serde_json::from_value(entries.get(key)?.clone()).ok()?,
            // A list names those that it concerns, and says no more about them than about all.
            Value::Array(keys) if keys.iter().any(|it| it == key) => ApprovalStatus {
                state: serde_json::from_value(policy["status"]["state"].clone()).ok()?,
                ..ApprovalStatus::default()
            },
            _ => return None,
        };
        let has_order = policy["status"][member].is_object()
            && policy["kind"] != "VirtualMesh"
            && entry.state == ApprovalState::Accepted;
        let spec = policy["spec"].as_object();
        let asks = match policy["spec"]["policy"].as_object().or(spec) {
            Some(fields) => fields.keys().cloned().collect(),
            None => Vec::new(),
        };
        Some(Self {
            kind: text(&policy["kind"]),
            namespace: text(&policy["metadata"]["namespace"]),
            name: text(&policy["metadata"]["name"]),
            state: entry.state,
            order: has_order.then_some(entry.acceptance_order),
            asks,
            errors: entry.errors,
            warnings: entry.warnings,
        })
    }
}

#[cfg(test)]
#[allow(
    clippy::needless_pass_by_value,
    reason = "an object is written where it is used"
)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policy(name: &str, entry: Value) -> Value {
        json!({
            "kind": "TrafficPolicy",
            "metadata": {"name": name, "namespace": "gloo-mesh"},
            "spec": {"policy": {"retries": {}, "requestTimeout": "1s"}},
            "status": {"state": "ACCEPTED", "destinations": {"reviews.gloo-mesh.": entry}, "workloads": ["w.gloo-mesh."]},
        })
    }

    #[test]
    fn winners_come_before_losers_in_their_order() {
        let policies = vec![
            policy(
                "loser",
                json!({"state": "INVALID", "errors": ["retries are set by second"]}),
            ),
            policy("second", json!({"state": "ACCEPTED", "acceptanceOrder": 1})),
            policy("first", json!({"state": "ACCEPTED"})),
        ];
        let object = json!({"metadata": {"name": "reviews", "namespace": "gloo-mesh"}});
        let member = "destinations";
        let on = Policies { member, policies }.on(&object);
        let told: Vec<_> = on
            .iter()
            .map(|effect| (effect.name.as_str(), effect.order, effect.errors.len()))
            .collect();
        assert_eq!(
            told,
            [
                ("first", Some(0), 0),
                ("second", Some(1), 0),
                ("loser", None, 1)
            ]
        );
        assert_eq!(on[0].asks, ["requestTimeout", "retries"]);
    }

    #[test]
    fn a_policy_that_does_not_speak_of_an_object_does_nothing_to_it() {
        let policies = vec![policy("p", json!({"state": "ACCEPTED"}))];
        let workloads = Policies {
            member: "workloads",
            policies,
        };
        let named = |name| json!({"metadata": {"name": name, "namespace": "gloo-mesh"}});
        assert_eq!(workloads.on(&named("other")), []);
        assert_eq!(workloads.on(&named("w"))[0].state, ApprovalState::Accepted);
    }
}
