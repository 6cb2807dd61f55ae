use ferromesh_registration::{CredentialKind, Plan, Registration, Side};
use serde_json::{Value, json};

use super::given::{east, kubeconfig_in, planned, registration, yaml};

fn references(plan: &Plan, side: Side) -> Vec<String> {
    plan.objects()
        .filter(|object| object.side() == side)
        .map(|object| object.reference().to_string())
        .collect()
}

#[test]
fn a_registration_is_these_objects_in_this_order() {
    let plan = Plan::new(&registration("east"));
    assert_eq!(
        references(&plan, Side::Remote),
        [
            "Namespace gloo-mesh",
            "CustomResourceDefinition issuedcertificates.certificates.mesh.gloo.solo.io",
            "CustomResourceDefinition certificaterequests.certificates.mesh.gloo.solo.io",
            "CustomResourceDefinition podbouncedirectives.certificates.mesh.gloo.solo.io",
            "ServiceAccount gloo-mesh/east",
            "ClusterRole gloomesh-remote-access-east",
            "ClusterRoleBinding east-gloomesh-remote-access-clusterrole-binding",
            "Role gloo-mesh/gloomesh-remote-access-east",
            "RoleBinding gloo-mesh/east-gloomesh-remote-access-role-binding",
            "Role istio-system/gloomesh-remote-access-east",
            "RoleBinding istio-system/east-gloomesh-remote-access-role-binding",
        ]
    );
    assert_eq!(
        references(&plan, Side::Management),
        [
            "Namespace gloo-mesh",
            "Secret gloo-mesh/east",
            "KubernetesCluster gloo-mesh/east"
        ]
    );
}

#[test]
fn the_remote_side_reads_like_this() {
    let plan = Plan::new(&registration("east"));
    let remote: Vec<Value> = plan
        .remote
        .iter()
        .filter(|object| {
            !["CustomResourceDefinition", "ClusterRole"].contains(&&*object.resource().kind)
        })
        .map(|object| serde_json::to_value(object.body()).unwrap())
        .collect();
    let expected = yaml(
        r#"
- apiVersion: v1
  kind: Namespace
  metadata: {name: gloo-mesh, labels: {istio-injection: disabled}}
- apiVersion: v1
  kind: ServiceAccount
  metadata: &in-gloo-mesh
    name: east
    namespace: gloo-mesh
    labels: {registration.mesh.gloo.solo.io/cluster: east}
- apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRoleBinding
  metadata:
    name: east-gloomesh-remote-access-clusterrole-binding
    labels: {registration.mesh.gloo.solo.io/cluster: east}
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gloomesh-remote-access-east}
  subjects: [{kind: ServiceAccount, name: east, namespace: gloo-mesh}]
- apiVersion: rbac.authorization.k8s.io/v1
  kind: Role
  metadata:
    name: gloomesh-remote-access-east
    namespace: gloo-mesh
    labels: {registration.mesh.gloo.solo.io/cluster: east}
  rules:
  - apiGroups: [""]
    resources: [secrets]
    verbs: [get, create, delete]
  - apiGroups: [""]
    resources: [serviceaccounts/token]
    resourceNames: [east]
    verbs: [create]
- apiVersion: rbac.authorization.k8s.io/v1
  kind: RoleBinding
  metadata:
    name: east-gloomesh-remote-access-role-binding
    namespace: gloo-mesh
    labels: {registration.mesh.gloo.solo.io/cluster: east}
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: gloomesh-remote-access-east}
  subjects: [{kind: ServiceAccount, name: east, namespace: gloo-mesh}]
- apiVersion: rbac.authorization.k8s.io/v1
  kind: Role
  metadata:
    name: gloomesh-remote-access-east
    namespace: istio-system
    labels: {registration.mesh.gloo.solo.io/cluster: east}
  rules:
  - apiGroups: [""]
    resources: [secrets]
    resourceNames: [cacerts]
    verbs: [get, list, watch, patch]
  - apiGroups: [""]
    resources: [secrets]
    verbs: [create]
  - apiGroups: [""]
    resources: [configmaps]
    verbs: [list, watch]
- apiVersion: rbac.authorization.k8s.io/v1
  kind: RoleBinding
  metadata:
    name: east-gloomesh-remote-access-role-binding
    namespace: istio-system
    labels: {registration.mesh.gloo.solo.io/cluster: east}
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: gloomesh-remote-access-east}
  subjects: [{kind: ServiceAccount, name: east, namespace: gloo-mesh}]
"#,
    );
    assert_eq!(Value::Array(remote), expected);
}

#[test]
fn the_management_side_reads_like_this() {
    let mut registration = registration("east");
    registration.management_namespace = "mesh-admin".parse().unwrap();
    registration.remote_namespace = "mesh-agent".parse().unwrap();
    registration.cluster_domain = "east.example.org".parse().unwrap();
    registration.labels = [("team".to_owned(), "green".to_owned())].into();
    let plan = Plan::new(&registration);

    assert_eq!(
        references(&plan, Side::Management)[0],
        "Namespace mesh-admin"
    );
    let mut secret = planned(&plan, "Secret mesh-admin/east");
    let kubeconfig = kubeconfig_in(&secret);
    secret["data"]["kubeconfig"] = json!("…");
    assert_eq!(
        secret,
        yaml(
            "
apiVersion: v1
kind: Secret
type: solo.io/kubeconfig
metadata:
  name: east
  namespace: mesh-admin
  labels: {registration.mesh.gloo.solo.io/cluster: east, team: green}
  annotations: {registration.mesh.gloo.solo.io/credential-expires: never}
data: {kubeconfig: …}
"
        )
    );
    assert_eq!(
        kubeconfig,
        yaml(
            "
apiVersion: v1
kind: Config
current-context: east
clusters:
- name: east
  cluster: {server: 'https://east.example.com:6443'}
contexts:
- name: east
  context: {cluster: east, user: east, namespace: default}
users:
- name: east
  user: {token: <token of ServiceAccount mesh-agent/east>}
"
        )
    );
    let mut cluster = planned(&plan, "KubernetesCluster mesh-admin/east");
    let rules = cluster["status"]
        .as_object_mut()
        .unwrap()
        .remove("policyRules")
        .unwrap();
    assert_eq!(
        cluster,
        yaml(
            "
apiVersion: multicluster.solo.io/v1alpha1
kind: KubernetesCluster
metadata:
  name: east
  namespace: mesh-admin
  labels: {registration.mesh.gloo.solo.io/cluster: east, team: green}
  annotations: {registration.mesh.gloo.solo.io/cluster-uid: <uid of Namespace kube-system>}
spec: {secretName: east, clusterDomain: east.example.org}
status: {namespace: mesh-agent}
"
        )
    );
    assert_eq!(
        rules,
        planned(&plan, "ClusterRole gloomesh-remote-access-east")["rules"]
    );
}

#[test]
fn the_credential_of_the_person_who_registers_goes_nowhere() {
    let text = Plan::new(&registration("east")).to_yaml();
    assert!(!text.contains("secret-of-a-person"));
    let secret = planned(&Plan::new(&registration("east")), "Secret gloo-mesh/east");
    assert!(
        !kubeconfig_in(&secret)
            .to_string()
            .contains("secret-of-a-person")
    );
}

#[test]
fn debug_shows_which_objects_and_not_what_they_hold() {
    let text = format!("{:?}", Plan::new(&registration("east")));
    assert!(
        text.contains("Secret gloo-mesh/east in the management cluster"),
        "{text}"
    );
    assert!(!text.contains("kubeconfig"), "{text}");
}

#[test]
fn a_plan_as_yaml_tells_the_side_of_each_object() {
    let plan = Plan::new(&registration("east"));
    let text = plan.to_yaml();
    let documents: Vec<&str> = text.split("---\n").skip(1).collect();
    assert_eq!(documents.len(), plan.objects().count());
    for (document, object) in documents.iter().zip(plan.objects()) {
        let comment = format!("# In {}.\n", object.side());
        assert!(document.starts_with(&comment), "{document}");
        assert_eq!(yaml(document), serde_json::to_value(object.body()).unwrap());
    }
}

#[test]
fn a_token_that_never_expires_is_a_secret_of_the_remote_cluster() {
    let mut registration = registration("east");
    registration.credential = CredentialKind::LongLived;
    let plan = Plan::new(&registration);
    assert_eq!(
        planned(&plan, "Secret gloo-mesh/east-token"),
        yaml(
            "
apiVersion: v1
kind: Secret
type: kubernetes.io/service-account-token
metadata:
  name: east-token
  namespace: gloo-mesh
  labels: {registration.mesh.gloo.solo.io/cluster: east}
  annotations: {kubernetes.io/service-account.name: east}
"
        )
    );
}

#[test]
fn one_cluster_under_two_names_shares_no_right() {
    let rbac = |name: &str| -> Vec<String> {
        references(&Plan::new(&registration(name)), Side::Remote)
            .into_iter()
            .filter(|reference| reference.contains("Role") || reference.contains("Account"))
            .collect()
    };
    let (east, west) = (rbac("east"), rbac("west"));
    assert!(
        !east.is_empty() && !east.iter().any(|object| west.contains(object)),
        "{east:?}"
    );
}

#[test]
fn labels_of_the_user_never_replace_our_own() {
    let mut registration = registration("east");
    registration.labels = [(
        "registration.mesh.gloo.solo.io/cluster".to_owned(),
        "west".to_owned(),
    )]
    .into();
    let secret = planned(&Plan::new(&registration), "Secret gloo-mesh/east");
    assert_eq!(
        secret["metadata"]["labels"]["registration.mesh.gloo.solo.io/cluster"],
        "east"
    );
}

#[test]
fn the_longest_name_of_a_cluster_gives_names_that_kubernetes_takes() {
    let name = "a".repeat(63);
    let api_server = east("server: 'https://east.example.com:6443'", None);
    let mut registration = Registration::new(name.parse().unwrap(), api_server);
    registration.credential = CredentialKind::LongLived;
    for object in Plan::new(&registration).objects() {
        assert!(object.reference().name.len() <= 253);
    }
}
