//! Two clusters, and what is registered there for one test.

use std::collections::BTreeMap;

use ferromesh_crds::name::{ClusterName, Namespace};
use ferromesh_crds::{KubernetesCluster, managed};
use ferromesh_e2e::{MANAGEMENT, client, install, kubeconfigs, namespace};
use ferromesh_registration::progress::Change;
use ferromesh_registration::{
    ApiServer, Deregistration, Error, Event, Registration, Side, deregister, kubeconfig, register,
};
use ferromesh_runtime::client::{Options, from_bytes};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams};
use kube::core::ApiResource;
use kube::{Client, Resource};

/// The managed cluster's place among the clusters.
const MANAGED: usize = 1;

/// Namespaces of a test's own in both clusters, and a cluster that is registered under a name of
/// the test's own.
pub(crate) struct Estate {
    pub(crate) management: Client,
    pub(crate) remote: Client,
    pub(crate) registration: Registration,
}

impl Estate {
    pub(crate) async fn new(test: &str) -> Self {
        let management = client(MANAGEMENT).await;
        let remote = client(MANAGED).await;
        install(&management, ferromesh_crds::all()).await;
        // Otherwise whichever registration comes first would have made them.
        install(&remote, managed()).await;
        let own = namespace(&management, test).await;
        let agent = namespace(&remote, &format!("{test}-agent")).await;
        let istio = namespace(&remote, &format!("{test}-istio")).await;
        let name: ClusterName = own.parse().unwrap();
        let kubeconfig = kubeconfig::read(Some(kubeconfigs()[MANAGED].as_ref())).unwrap();
        let api_server = ApiServer::resolve(&kubeconfig, None, None).unwrap();
        let mut registration = Registration::new(name, api_server);
        registration.management_namespace = own.parse().unwrap();
        registration.remote_namespace = agent.parse().unwrap();
        registration.istio_namespaces = [istio.parse().unwrap()].into();
        Self {
            management,
            remote,
            registration,
        }
    }

    pub(crate) fn name(&self) -> &str {
        self.registration.name.as_str()
    }

    /// The namespace of the registration in the remote cluster.
    pub(crate) fn agent(&self) -> &str {
        self.registration.remote_namespace.as_str()
    }

    /// The namespace of istiod in the remote cluster.
    pub(crate) fn istio(&self) -> &str {
        let namespaces: Vec<&Namespace> = self.registration.istio_namespaces.iter().collect();
        namespaces[0].as_str()
    }

    pub(crate) async fn register(&self) -> Vec<Event> {
        let mut events = Vec::new();
        let mut progress = |event| events.push(event);
        let Self {
            management,
            remote,
            registration,
        } = self;
        register(management, remote, registration, &mut progress)
            .await
            .unwrap();
        events
    }

    pub(crate) async fn deregister(&self, remote: Option<&Client>) -> Result<Vec<Event>, Error> {
        let mut events = Vec::new();
        let deregistration = Deregistration {
            name: self.registration.name.clone(),
            management_namespace: self.registration.management_namespace.clone(),
            purge: false,
        };
        let mut progress = |event| events.push(event);
        deregister(&self.management, remote, &deregistration, &mut progress).await?;
        Ok(events)
    }

    pub(crate) fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.management.clone(), self.name())
    }

    /// The text of the kubeconfig that the management plane holds.
    pub(crate) async fn kubeconfig(&self) -> Vec<u8> {
        let secret = self.secrets().get(self.name()).await.unwrap();
        assert_eq!(secret.type_.as_deref(), Some("solo.io/kubeconfig"));
        let ByteString(kubeconfig) = secret.data.unwrap().remove("kubeconfig").unwrap();
        kubeconfig
    }

    /// A client as the management plane makes it.
    pub(crate) async fn as_management_plane(&self) -> Client {
        let connection = from_bytes(&self.kubeconfig().await, &Options::default());
        connection.unwrap().client
    }

    /// What the two clusters hold of this registration, with the versions of the objects.
    pub(crate) async fn content(&self) -> BTreeMap<String, String> {
        let mut content = BTreeMap::new();
        let label = format!("registration.mesh.gloo.solo.io/cluster={}", self.name());
        let Self {
            management, remote, ..
        } = self;
        list::<Secret>(management, &label, &mut content).await;
        list::<KubernetesCluster>(management, &label, &mut content).await;
        list::<Secret>(remote, &label, &mut content).await;
        list::<ServiceAccount>(remote, &label, &mut content).await;
        list::<ClusterRole>(remote, &label, &mut content).await;
        list::<ClusterRoleBinding>(remote, &label, &mut content).await;
        list::<Role>(remote, &label, &mut content).await;
        list::<RoleBinding>(remote, &label, &mut content).await;
        content
    }

    /// Leaves nothing behind.
    pub(crate) async fn end(self) {
        self.deregister(Some(&self.remote)).await.unwrap();
        let delete = async |client: &Client, name: &str| {
            let all = Api::<k8s_openapi::api::core::v1::Namespace>::all(client.clone());
            all.delete(name, &DeleteParams::default()).await.unwrap();
        };
        delete(&self.management, self.name()).await;
        delete(&self.remote, self.agent()).await;
        delete(&self.remote, self.istio()).await;
    }
}

async fn list<K: Resource<DynamicType = ()>>(
    client: &Client,
    label: &str,
    content: &mut BTreeMap<String, String>,
) {
    let resource = ApiResource::erase::<K>(&());
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let found = api.list(&ListParams::default().labels(label)).await;
    for object in found.unwrap().items {
        let meta = object.metadata;
        let namespace = meta.namespace.unwrap_or_default();
        let name = format!("{} {namespace}/{}", resource.kind, meta.name.unwrap());
        content.insert(name, meta.resource_version.unwrap());
    }
}

/// Which objects a run applied with another outcome than that nothing was to be done.
pub(crate) fn changed(events: &[Event]) -> Vec<(Side, String)> {
    let changed = events.iter().filter_map(|event| match event {
        Event::Applied {
            side,
            object,
            change,
        } if *change != Change::Unchanged => Some((*side, object.to_string())),
        Event::Deleted { side, object } => Some((*side, format!("deleted {object}"))),
        _ => None,
    });
    changed.collect()
}
