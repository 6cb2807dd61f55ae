use std::collections::BTreeSet;

use ferromesh_registration::{
    CredentialKind, Plan, Registration,
    object::Object,
    right::{Right, Scope, rights},
};

use super::given::{planned, registration};

fn scope(scope: &Scope) -> &str {
    match scope {
        Scope::Cluster => "*",
        Scope::Namespace(namespace) => namespace.as_str(),
    }
}

/// One line: where, what, which, how.
fn line(right: &Right) -> String {
    let group = match right.group {
        "" => String::new(),
        group => format!("{group}: "),
    };
    let names = match &*right.names {
        [] => String::new(),
        names => format!(" [{}]", names.join(" ")),
    };
    let (resources, verbs) = (right.resources.join(" "), right.verbs.join(" "));
    format!(
        "{} | {group}{resources}{names} | {verbs}",
        scope(&right.scope)
    )
}

fn lines(registration: &Registration) -> Vec<(String, &'static str)> {
    rights(registration)
        .iter()
        .map(|right| (line(right), right.reason))
        .collect()
}

#[test]
fn every_right_is_in_this_table_with_its_reason() {
    const WRITE: &str = "get list watch create patch delete";
    let follow = "list watch";
    let expected = [
        (
            format!("* | pods services nodes namespaces | {follow}"),
            "discovery finds workloads, destinations, their addresses and their locality in them",
        ),
        (
            format!("* | apps: deployments replicasets daemonsets statefulsets | {follow}"),
            "discovery finds control planes and workloads in them",
        ),
        (
            format!("* | discovery.k8s.io: endpointslices | {follow}"),
            "discovery finds the endpoints of destinations in them",
        ),
        (
            format!("* | configmaps [istio] | {follow}"),
            "the configuration of a mesh, in whatever namespace istiod runs",
        ),
        (
            String::from("* | configmaps [istio-ca-root-cert] | get"),
            "pods are not restarted before istiod hands out the new root in their namespace",
        ),
        (
            format!(
                "* | networking.istio.io: virtualservices destinationrules serviceentries gateways | {WRITE}"
            ),
            "policies and federation become these objects, next to the services that they speak of",
        ),
        (
            format!("* | security.istio.io: authorizationpolicies | {WRITE}"),
            "policies and federation become these objects, next to the services that they speak of",
        ),
        (
            format!(
                "* | certificates.mesh.gloo.solo.io: issuedcertificates podbouncedirectives | {WRITE}"
            ),
            "the life of a mesh's certificate authority is kept in these objects, where the agent runs",
        ),
        (
            String::from(
                "* | certificates.mesh.gloo.solo.io: certificaterequests | get list watch create patch",
            ),
            "a certificate is asked for by such an object, and again when it is renewed",
        ),
        (
            String::from(
                "* | certificates.mesh.gloo.solo.io: issuedcertificates/status certificaterequests/status podbouncedirectives/status | update",
            ),
            "a certificate is signed, and its progress told, in their status",
        ),
        (
            String::from("* | pods/eviction | create"),
            "workloads get a new root by a restart that respects disruption budgets, where a virtual \
             mesh asks for it",
        ),
        (
            String::from("gloo-mesh | secrets | get create delete"),
            "keys of certificate authorities wait here for their certificate; they are named after \
             meshes, which nobody knows beforehand",
        ),
        (
            String::from("gloo-mesh | serviceaccounts/token [east] | create"),
            "the credential is renewed before it expires",
        ),
        (
            String::from("istio-system | secrets [cacerts] | get list watch patch"),
            "istiod takes its certificate authority from this Secret, which is never deleted",
        ),
        (
            String::from("istio-system | secrets | create"),
            "the Secret of the certificate authority is created; RBAC cannot limit that to a name",
        ),
        (
            format!("istio-system | configmaps | {follow}"),
            "the configuration of a revision is in istio-<revision>, and revisions come and go",
        ),
    ];
    assert_eq!(lines(&registration("east")), expected);
}

#[test]
fn secrets_are_out_of_reach_but_in_two_namespaces() {
    for right in rights(&registration("east")) {
        let touches_secrets = right.resources.contains(&"secrets");
        assert!(
            !touches_secrets || right.scope != Scope::Cluster,
            "{right:?}"
        );
        let is_wild =
            right.group == "*" || right.resources.contains(&"*") || right.verbs.contains(&"*");
        assert!(!is_wild, "{right:?}");
    }
}

#[test]
fn nothing_but_its_own_account_can_be_impersonated() {
    for right in rights(&registration("east")) {
        for resource in &right.resources {
            if resource.starts_with("serviceaccounts") {
                assert_eq!(right.names, ["east"]);
            }
        }
        for verb in ["impersonate", "escalate", "bind"] {
            assert!(!right.verbs.contains(&verb), "{right:?}");
        }
        assert_ne!(right.group, "rbac.authorization.k8s.io");
    }
}

#[test]
fn a_credential_that_does_not_expire_renews_nothing() {
    let mut registration = registration("east");
    registration.credential = CredentialKind::LongLived;
    let lines: Vec<_> = lines(&registration)
        .into_iter()
        .map(|(line, _)| line)
        .collect();
    assert!(
        !lines.iter().any(|line| line.contains("serviceaccounts")),
        "{lines:?}"
    );
}

#[test]
fn each_namespace_of_istiod_gets_a_role_of_its_own() {
    let mut registration = registration("east");
    registration.istio_namespaces = ["istio-a", "istio-b"]
        .map(|name| name.parse().unwrap())
        .into();
    let plan = Plan::new(&registration);
    for namespace in ["istio-a", "istio-b"] {
        let role = planned(
            &plan,
            &format!("Role {namespace}/gloomesh-remote-access-east"),
        );
        assert_eq!(role["rules"].as_array().unwrap().len(), 3);
        let binding = format!("RoleBinding {namespace}/east-gloomesh-remote-access-role-binding");
        let binding = planned(&plan, &binding);
        assert_eq!(binding["subjects"][0]["namespace"], "gloo-mesh");
    }
}

#[test]
fn an_agent_next_to_istiod_gets_one_role_with_the_rights_of_both() {
    let mut registration = registration("east");
    registration.remote_namespace = "istio-system".parse().unwrap();
    let plan = Plan::new(&registration);
    let role = planned(&plan, "Role istio-system/gloomesh-remote-access-east");
    assert_eq!(role["rules"].as_array().unwrap().len(), 5);
    let references: Vec<_> = plan.objects().map(Object::reference).collect();
    let unique: BTreeSet<_> = references.iter().collect();
    // The namespace gloo-mesh is that of the management cluster alone.
    assert_eq!(unique.len(), references.len(), "{references:?}");
}
