//! Checks of what people asked for.

use ferromesh_crds::condition::Type;
use serde_json::Value;

use super::{Finding, Seen};
use crate::cmd::get::value;
use crate::error::Error;
use crate::kind::Shown;
use crate::management::{Management, Scope};
use crate::render::counted;

/// P1.
pub(super) async fn accepted(management: &Management) -> Result<Seen, Error> {
    let mut policies = Vec::new();
    for kind in [
        Shown::TrafficPolicy,
        Shown::AccessPolicy,
        Shown::VirtualMesh,
    ] {
        let found = management.list(kind, Scope::All).await?;
        policies.extend(found.iter().map(value));
    }
    if policies.is_empty() {
        return Ok(Seen::Nothing("there are none"));
    }
    let findings = policies.iter().filter_map(acceptance).collect();
    Ok(Seen::of(findings, counted(policies.len(), "object")))
}

/// What is wrong with a policy.
fn acceptance(policy: &Value) -> Option<Finding> {
    let generation = policy["metadata"]["generation"].as_i64();
    let status = &policy["status"];
    let state = status["state"].as_str().unwrap_or_default();
    let problem = match (status["observedGeneration"].as_i64(), state) {
        (None | Some(..0), _) => "has not been judged yet".to_owned(),
        (observed, _) if observed != generation => {
            "was changed, and the change has not been judged yet".to_owned()
        }
        (_, "ACCEPTED") => {
            let lacking = [Type::ResolvedRefs, Type::Programmed]
                .into_iter()
                .filter_map(|kind| condition(policy, kind))
                .find(|condition| condition["status"] == "False")?;
            let text = |field: &str| lacking[field].as_str().unwrap_or_default();
            format!("is accepted, but: {} ({})", text("message"), text("reason"))
        }
        (_, state) => {
            let said = condition(policy, Type::Accepted)
                .and_then(|condition| condition["message"].as_str())
                .filter(|message| !message.is_empty());
            match said {
                Some(message) => format!("is {state}: {message}"),
                None => format!("is {state}"),
            }
        }
    };
    let is_judged = status["observedGeneration"].as_i64() == generation;
    let remedy = if is_judged {
        format!("see all of it: {}", describe(policy))
    } else {
        "see whether the server runs and holds its lease".to_owned()
    };
    Some(Finding::new(subject(policy), problem, remedy))
}

/// F1.
pub(super) async fn trust(management: &Management) -> Result<Seen, Error> {
    let found = management.list(Shown::VirtualMesh, Scope::All).await?;
    let asking: Vec<_> = found
        .iter()
        .map(value)
        .filter(|it| it["spec"]["mtlsConfig"].is_object())
        .collect();
    if asking.is_empty() {
        return Ok(Seen::Nothing("no VirtualMesh asks for shared trust"));
    }
    let findings = asking.iter().filter_map(distrust).collect();
    Ok(Seen::of(findings, counted(asking.len(), "object")))
}

/// What is wrong with the trust of a virtual mesh.
fn distrust(virtual_mesh: &Value) -> Option<Finding> {
    let condition = condition(virtual_mesh, Type::TrustReady);
    let of = |field: &str| condition.and_then(|it| it[field].as_str());
    if of("status") == Some("True") {
        return None;
    }
    let problem = match (of("reason"), of("message")) {
        (Some(reason), Some(message)) => format!("trust is not ready: {message} ({reason})"),
        _ => "nobody has said whether trust is ready".to_owned(),
    };
    let remedy = format!("see all of it: {}", describe(virtual_mesh));
    Some(Finding::new(subject(virtual_mesh), problem, remedy))
}

/// F2.
pub(super) async fn gateways(management: &Management) -> Result<Seen, Error> {
    let found = management.list(Shown::Mesh, Scope::All).await?;
    let federated: Vec<_> = found.iter().map(value).filter(federates).collect();
    if federated.is_empty() {
        return Ok(Seen::Nothing("no mesh is federated with another"));
    }
    let findings = federated.iter().flat_map(unreachable).collect();
    Ok(Seen::of(findings, counted(federated.len(), "object")))
}

/// Whether a mesh takes traffic of others.
fn federates(mesh: &Value) -> bool {
    let virtual_mesh = &mesh["status"]["appliedVirtualMesh"]["spec"];
    let meshes = virtual_mesh["meshes"].as_array().map_or(0, Vec::len);
    meshes > 1 && virtual_mesh["federation"].is_object()
}

/// Why other meshes do not reach a mesh.
fn unreachable(mesh: &Value) -> Vec<Finding> {
    let gateways = mesh["status"]["appliedEastWestIngressGateways"].as_array();
    let gateways = gateways.map(Vec::as_slice).unwrap_or_default();
    if gateways.is_empty() {
        return vec![Finding::new(
            subject(mesh),
            "has no east-west gateway",
            "label the gateway's pods istio=ingressgateway and name its TLS port `tls`, or set \
             federation.eastWestIngressGatewaySelectors of the VirtualMesh",
        )];
    }
    gateways
        .iter()
        .filter(|gateway| {
            let addresses = gateway["externalAddresses"].as_array();
            addresses.is_none_or(Vec::is_empty)
        })
        .map(|gateway| {
            let name = gateway["destinationRef"]["name"].as_str().unwrap_or_default();
            Finding::new(
                subject(mesh),
                format!("its gateway {name} has no address: other clusters do not reach it"),
                "see whether its Service has a load balancer's address, or node ports and nodes with addresses",
            )
        })
        .collect()
}

fn condition(object: &Value, kind: Type) -> Option<&Value> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions
        .iter()
        .find(|condition| condition["type"] == kind.as_str())
}

fn subject(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    format!(
        "{} {}/{}",
        text(&object["kind"]),
        text(&metadata["namespace"]),
        text(&metadata["name"])
    )
}

/// The command that shows an object in full.
fn describe(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    format!(
        "meshctl describe {} {} -n {}",
        text(&object["kind"]).to_lowercase(),
        text(&metadata["name"]),
        text(&metadata["namespace"])
    )
}

#[cfg(test)]
#[allow(
    clippy::needless_pass_by_value,
    reason = "an object is written where it is used"
)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(kind: &str, spec: Value, status: Value) -> Value {
        let metadata = json!({"name": "x", "namespace": "n", "generation": 2});
        json!({"kind": kind, "metadata": metadata, "spec": spec, "status": status})
    }

    #[test]
    fn a_policy_is_to_be_accepted_as_it_stands() {
        let of = |status| acceptance(&object("TrafficPolicy", json!({}), status));
        assert_eq!(
            of(json!({"observedGeneration": 2, "state": "ACCEPTED"})),
            None
        );
        for (status, problem) in [
            (json!(null), "has not been judged yet"),
            (
                json!({"observedGeneration": 1, "state": "ACCEPTED"}),
                "was changed, and the change has not been judged yet",
            ),
            (
                json!({"observedGeneration": 2, "state": "ACCEPTED", "conditions": [{"type": "Programmed", "status": "False", "reason": "ApplyFailed", "message": "east refuses"}]}),
                "is accepted, but: east refuses (ApplyFailed)",
            ),
            (
                json!({"observedGeneration": 2, "state": "INVALID", "conditions": [{"type": "Accepted", "message": "no such Service"}]}),
                "is INVALID: no such Service",
            ),
        ] {
            let finding = of(status).unwrap();
            assert_eq!(finding.problem, problem);
            assert_eq!(finding.subject, "TrafficPolicy n/x");
            assert!(!finding.remedy.is_empty());
        }
    }

    #[test]
    fn trust_is_ready_when_it_is_said_to_be() {
        let of = |status: &str| {
            let conditions = json!([{"type": "TrustReady", "status": status, "reason": "Issuing", "message": "waiting for east"}]);
            distrust(&object(
                "VirtualMesh",
                json!({}),
                json!({"conditions": conditions}),
            ))
        };
        assert_eq!(of("True"), None);
        assert_eq!(
            of("False").unwrap().problem,
            "trust is not ready: waiting for east (Issuing)"
        );
        let silent = distrust(&object("VirtualMesh", json!({}), json!({})));
        assert_eq!(
            silent.unwrap().problem,
            "nobody has said whether trust is ready"
        );
    }

    #[test]
    fn a_federated_mesh_needs_a_gateway_with_an_address() {
        let virtual_mesh = json!({"spec": {"meshes": [{}, {}], "federation": {}}});
        let mesh = |gateways: Value| {
            let status = json!({"appliedVirtualMesh": virtual_mesh, "appliedEastWestIngressGateways": gateways});
            object("Mesh", json!({}), status)
        };
        let with = |addresses: Value| {
            mesh(json!([{"destinationRef": {"name": "gateway"}, "externalAddresses": addresses}]))
        };
        assert!(federates(&mesh(json!([]))));
        assert!(!federates(&object("Mesh", json!({}), json!({}))));
        assert_eq!(unreachable(&with(json!(["10.0.0.1"]))), []);
        assert!(
            unreachable(&with(json!([])))[0]
                .problem
                .contains("no address")
        );
        assert_eq!(
            unreachable(&mesh(json!([])))[0].problem,
            "has no east-west gateway"
        );
    }
}
