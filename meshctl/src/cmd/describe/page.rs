//! One object on a page.

use std::fmt::Write as _;

use ferromesh_crds::approval::{ApprovalState, ApprovalStatus};
use serde_json::Value;

use super::effect::Effect;
use crate::render::{table, yaml_of};

/// The page of an object.
pub(super) fn of(object: &Value, effects: &[Effect]) -> String {
    let mut page = Page::default();
    page.head(object);
    page.block("Spec", &object["spec"]);
    page.status(&object["status"]);
    page.conditions(&object["status"]["conditions"]);
    let is_ranked = object["kind"] != "VirtualMesh";
    page.approvals("Meshes", &object["status"]["meshes"], is_ranked);
    page.approvals("Destinations", &object["status"]["destinations"], is_ranked);
    page.keys("Workloads", &object["status"]["workloads"]);
    page.effects(effects);
    page.text.truncate(page.text.trim_end().len());
    page.text
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn line(&mut self, label: &str, value: &str) {
        if !value.is_empty() {
            writeln!(self.text, "{:<14}{value}", format!("{label}:")).ok();
        }
    }

    fn section(&mut self, title: &str, body: &str) {
        let body = body.replace('\n', "\n  ");
        writeln!(self.text, "\n{title}:\n  {body}").ok();
    }

    fn block(&mut self, title: &str, value: &Value) {
        if value.as_object().is_some_and(|map| !map.is_empty()) {
            self.section(title, &yaml_of(value));
        }
    }

    fn head(&mut self, object: &Value) {
        let metadata = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        self.line("Name", &text(&metadata["name"]));
        self.line("Namespace", &text(&metadata["namespace"]));
        self.line("Kind", &text(&object["kind"]));
        self.line("Created", &text(&metadata["creationTimestamp"]));
        let number = |value: &Value| value.as_i64().map(|number| number.to_string());
        let generation = number(&metadata["generation"]).unwrap_or_default();
        let observed = number(&object["status"]["observedGeneration"]);
        // Before anybody has looked, an API server says a number that is none.
        let observed = match observed.filter(|observed| !observed.starts_with('-')) {
            Some(observed) if observed == generation => String::new(),
            Some(observed) => format!(" (the status speaks of {observed})"),
            // Its status speaks of the cluster, not of what is written here.
            None if object["kind"] == "KubernetesCluster" => String::new(),
            None => " (not judged yet)".to_owned(),
        };
        self.line("Generation", &format!("{generation}{observed}"));
        let labels = metadata["labels"].as_object().into_iter().flatten();
        for (at, (key, value)) in labels.enumerate() {
            let label = if at == 0 { "Labels" } else { "" };
            let value = format!("{key}={}", value.as_str().unwrap_or_default());
            match label {
                "" => writeln!(self.text, "{:<14}{value}", "").ok(),
                label => {
                    self.line(label, &value);
                    Some(())
                }
            };
        }
    }

    /// What of the status has no section of its own.
    fn status(&mut self, status: &Value) {
        let Some(fields) = status.as_object() else {
            return;
        };
        let mut rest = fields.clone();
        rest.retain(|field, _| {
            ![
                "conditions",
                "destinations",
                "meshes",
                "observedGeneration",
                "workloads",
            ]
            .contains(&field.as_str())
        });
        self.block("Status", &Value::Object(rest));
    }

    fn conditions(&mut self, conditions: &Value) {
        let conditions = conditions.as_array().into_iter().flatten();
        let rows: Vec<Vec<String>> = conditions
            .map(|condition| {
                ["type", "status", "reason", "lastTransitionTime", "message"]
                    .map(|field| condition[field].as_str().unwrap_or_default().to_owned())
                    .to_vec()
            })
            .collect();
        if !rows.is_empty() {
            let titles = ["TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"];
            self.section("Conditions", &table::columns(Some(&titles), rows));
        }
    }

    /// A map from keys to verdicts. Only policies are ranked.
    fn approvals(&mut self, title: &str, entries: &Value, is_ranked: bool) {
        let entries = entries.as_object().into_iter().flatten();
        let rows: Vec<Vec<String>> = entries
            .map(|(key, entry)| {
                let entry: ApprovalStatus =
                    serde_json::from_value(entry.clone()).unwrap_or_default();
                let order = match entry.state {
                    ApprovalState::Accepted => entry.acceptance_order.to_string(),
                    _ => String::new(),
                };
                let said = [entry.errors, entry.warnings].concat().join("; ");
                let mut row = vec![key.clone(), word(entry.state), said];
                if is_ranked {
                    row.insert(2, order);
                }
                row
            })
            .collect();
        if !rows.is_empty() {
            let titles: &[_] = if is_ranked {
                &["NAME", "STATE", "ORDER", "MESSAGES"]
            } else {
                &["NAME", "STATE", "MESSAGES"]
            };
            self.section(title, &table::columns(Some(titles), rows));
        }
    }

    fn keys(&mut self, title: &str, keys: &Value) {
        let keys = keys.as_array().into_iter().flatten();
        let keys: Vec<_> = keys.filter_map(Value::as_str).collect();
        if !keys.is_empty() {
            self.section(title, &keys.join("\n"));
        }
    }

    fn effects(&mut self, effects: &[Effect]) {
        let of = |is_accepted: bool| {
            let wanted = effects
                .iter()
                .filter(move |effect| (effect.state == ApprovalState::Accepted) == is_accepted);
            wanted.map(|effect| {
                let order = effect.order.map(|order| order.to_string());
                let said = [effect.errors.clone(), effect.warnings.clone()].concat();
                vec![
                    effect.kind.clone(),
                    format!("{}/{}", effect.namespace, effect.name),
                    word(effect.state),
                    order.unwrap_or_default(),
                    effect.asks.join(","),
                    said.join("; "),
                ]
            })
        };
        let titles = ["KIND", "NAME", "STATE", "ORDER", "SETS", "MESSAGES"];
        let (applied, others): (Vec<_>, Vec<_>) = (of(true).collect(), of(false).collect());
        if !applied.is_empty() {
            self.section("Applied", &table::columns(Some(&titles), applied));
        }
        if !others.is_empty() {
            self.section("Not applied", &table::columns(Some(&titles), others));
        }
    }
}

/// A state as the API writes it.
fn word(state: ApprovalState) -> String {
    let state = serde_json::to_value(state).ok();
    let word = state.as_ref().and_then(Value::as_str);
    word.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_page_tells_what_applies_and_what_loses_and_why() {
        let object = json!({
            "kind": "Destination",
            "metadata": {"name": "reviews", "namespace": "gloo-mesh", "generation": 2, "labels": {"b": "2", "a": "1"}},
            "spec": {"mesh": {"name": "m", "namespace": "gloo-mesh"}},
            "status": {"observedGeneration": 1, "localFqdn": "reviews.shop.svc.cluster.local"},
        });
        let effect = |name: &str, state, order, error: &str| Effect {
            kind: "TrafficPolicy".to_owned(),
            namespace: "gloo-mesh".to_owned(),
            name: name.to_owned(),
            state,
            order,
            asks: vec!["retries".to_owned()],
            errors: Vec::from_iter((!error.is_empty()).then(|| error.to_owned())),
            warnings: Vec::new(),
        };
        let effects = [
            effect("a", ApprovalState::Accepted, Some(0), ""),
            effect("b", ApprovalState::Invalid, None, "a sets retries"),
        ];
        assert_eq!(
            of(&object, &effects),
            "\
Name:         reviews
Namespace:    gloo-mesh
Kind:         Destination
Generation:   2 (the status speaks of 1)
Labels:       a=1
              b=2

Spec:
  mesh:
    name: m
    namespace: gloo-mesh

Status:
  localFqdn: reviews.shop.svc.cluster.local

Applied:
  KIND            NAME          STATE      ORDER   SETS      MESSAGES
  TrafficPolicy   gloo-mesh/a   ACCEPTED   0       retries   -

Not applied:
  KIND            NAME          STATE     ORDER   SETS      MESSAGES
  TrafficPolicy   gloo-mesh/b   INVALID   -       retries   a sets retries"
        );
    }

    #[test]
    fn a_page_of_a_policy_lists_where_it_applies() {
        let object = json!({
            "kind": "TrafficPolicy",
            "metadata": {"name": "p", "namespace": "n", "generation": 1},
            "spec": {},
            "status": {
                "observedGeneration": 1,
                "state": "INVALID",
                "destinations": {"a.n.": {"state": "ACCEPTED", "acceptanceOrder": 1}, "b.n.": {"state": "INVALID", "errors": ["no"]}},
                "workloads": ["w.n."],
                "conditions": [{"type": "Accepted", "status": "False", "reason": "Conflicted", "message": "no", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
            },
        });
        assert_eq!(
            of(&object, &[]),
            "\
Name:         p
Namespace:    n
Kind:         TrafficPolicy
Generation:   1

Status:
  state: INVALID

Conditions:
  TYPE       STATUS   REASON       SINCE                  MESSAGE
  Accepted   False    Conflicted   2026-01-01T00:00:00Z   no

Destinations:
  NAME   STATE      ORDER   MESSAGES
  a.n.   ACCEPTED   1       -
  b.n.   INVALID    -       no

Workloads:
  w.n."
        );
    }
}
