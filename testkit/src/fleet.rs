//! Fleets of any size, as JSON, the same for the same numbers.
//!
//! A fleet has clusters with one Istio mesh each, and services with two versions; each version is a
//! Deployment of one pod. Services are spread over clusters and namespaces, one VirtualMesh groups all
//! meshes and federates every service, each `TrafficPolicy` selects one service by name, and each `AccessPolicy` one by
//! label.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

/// The namespace of the management plane.
const OWN: &str = "gloo-mesh";
/// The versions of each service.
const VERSIONS: [&str; 2] = ["v1", "v2"];
/// The namespaces of each cluster.
const NAMESPACES: u32 = 50;
/// How many services share a node.
const SERVICES_PER_NODE: u32 = 50;

/// How large a fleet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fleet {
    /// Clusters, each with one mesh.
    pub clusters: u32,
    /// Services in all clusters together, without the gateways.
    pub services: u32,
    /// Traffic policies, each with a timeout and retries, at most one for each service.
    pub traffic_policies: u32,
    /// Access policies, at most one for each service.
    pub access_policies: u32,
    /// Which services the policies are for, and where each service is.
    pub seed: u64,
}

/// A service of a fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Its number in the fleet.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// The name of its cluster.
    pub cluster: String,
}

// === impl Fleet ===

impl Fleet {
    /// A fleet of this size, with a traffic policy for each tenth service and an access policy for each
    /// twentieth.
    pub fn new(clusters: u32, services: u32, seed: u64) -> Self {
        Self {
            clusters,
            services,
            traffic_policies: services / 10,
            access_policies: services / 20,
            seed,
        }
    }

    /// The names of the clusters.
    pub fn cluster_names(&self) -> impl Iterator<Item = String> + use<> {
        (0..self.clusters).map(cluster_name)
    }

    /// The service of a number below [`services`](Self::services).
    pub fn service(&self, number: u32) -> Service {
        let place = mix(self.seed, number);
        let namespace = format!("team-{}", (place >> 32) % u64::from(NAMESPACES));
        Service {
            number,
            name: format!("service-{number}"),
            namespace,
            // In turn, so that every cluster is as large as the next.
            cluster: cluster_name(number % self.clusters),
        }
    }

    /// The services.
    pub fn all(&self) -> impl Iterator<Item = Service> {
        (0..self.services).map(|number| self.service(number))
    }

    /// What people have written: one VirtualMesh, and policies.
    pub fn policies(&self) -> impl Iterator<Item = Value> {
        let chosen = |step: u32| {
            let step = u64::from(step.max(1));
            let first = self.seed % step;
            (0..).map(move |turn: u64| u32::try_from(first + turn * step).unwrap_or(u32::MAX))
        };
        let traffic = chosen(self.services / self.traffic_policies.max(1))
            .take_while(|number| *number < self.services)
            .zip(0..self.traffic_policies)
            .map(|(number, _)| {
                let service = self.service(number);
                service.traffic_policy(&format!("timeout-{number}"), 5)
            });
        let access = chosen(self.services / self.access_policies.max(1))
            .take_while(|number| *number < self.services)
            .zip(0..self.access_policies)
            .map(|(number, _)| self.service(number).access_policy());
        std::iter::once(self.virtual_mesh())
            .chain(traffic)
            .chain(access)
    }

    fn virtual_mesh(&self) -> Value {
        let meshes: Vec<_> = self.cluster_names().map(|cluster| mesh(&cluster)).collect();
        json!({
            "apiVersion": "networking.mesh.gloo.solo.io/v1", "kind": "VirtualMesh",
            "metadata": meta(OWN, "everything"),
            "spec": { "meshes": meshes, "federation": { "permissive": {} } },
        })
    }

    /// What discovery makes of the fleet: meshes, workloads, destinations.
    pub fn discovered(&self) -> impl Iterator<Item = Value> {
        let meshes = (0..self.clusters).flat_map(|number| {
            let cluster = cluster_name(number);
            [
                discovered_mesh(&cluster),
                discovered_gateway(&cluster, number),
            ]
        });
        meshes.chain(self.all().flat_map(|service| {
            let workloads = VERSIONS.map(|version| service.discovered_workload(version));
            let [first, second] = workloads;
            [service.discovered_destination(), first, second]
        }))
    }

    /// What stands in a cluster.
    pub fn kubernetes(&self, number: u32) -> impl Iterator<Item = Value> {
        let cluster = cluster_name(number);
        let namespaces = (0..NAMESPACES).map(|number| format!("team-{number}"));
        let namespaces = namespaces.chain(["istio-system".to_owned()]).map(|name| {
            let labels = match &*name {
                "istio-system" => json!({}),
                _ => json!({ "istio-injection": "enabled" }),
            };
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "labels": labels } })
        });
        let here = self.services / self.clusters.max(1);
        let nodes = (0..=here / SERVICES_PER_NODE).map(node);
        let services = self
            .all()
            .filter(move |service| service.cluster == cluster)
            .flat_map(|service| service.kubernetes());
        namespaces
            .chain(nodes)
            .chain(control_plane(number))
            .chain(services)
    }
}

// === impl Service ===

impl Service {
    /// The name of its Destination.
    pub fn destination(&self) -> String {
        format!("{}-{}-{}", self.name, self.namespace, self.cluster)
    }

    /// A policy for it alone, with a timeout of so many seconds and retries.
    pub fn traffic_policy(&self, name: &str, timeout: u32) -> Value {
        json!({
            "apiVersion": "networking.mesh.gloo.solo.io/v1", "kind": "TrafficPolicy",
            "metadata": meta(OWN, name),
            "spec": {
                "destinationSelector": [{ "kubeServiceRefs": { "services": [self.reference()] } }],
                "policy": {
                    "requestTimeout": format!("{timeout}s"),
                    "retries": { "attempts": 3, "perTryTimeout": "1s" },
                },
            },
        })
    }

    fn access_policy(&self) -> Value {
        json!({
            "apiVersion": "networking.mesh.gloo.solo.io/v1", "kind": "AccessPolicy",
            "metadata": meta(OWN, &format!("callers-{}", self.number)),
            "spec": {
                "sourceSelector": [{ "kubeIdentityMatcher": { "namespaces": [self.namespace] } }],
                "destinationSelector": [{ "kubeServiceMatcher": { "labels": { "app": self.name } } }],
                "allowedMethods": ["GET"],
            },
        })
    }

    fn reference(&self) -> Value {
        json!({ "name": self.name, "namespace": self.namespace, "clusterName": self.cluster })
    }

    /// The address of the pod of a version.
    fn address(&self, version: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 0).to_bits() + self.number * 2 + version)
    }

    fn labels(&self, version: &str) -> Value {
        json!({ "app": self.name, "version": version })
    }

    fn endpoints(&self) -> Vec<Value> {
        let versions = VERSIONS.iter().zip(0..);
        let endpoints = versions.map(|(version, number)| {
            json!({ "ipAddress": self.address(number), "labels": self.labels(version) })
        });
        endpoints.collect()
    }

    fn discovered_destination(&self) -> Value {
        json!({
            "apiVersion": "discovery.mesh.gloo.solo.io/v1", "kind": "Destination",
            "metadata": discovered(&self.destination(), &self.cluster),
            "spec": {
                "mesh": mesh(&self.cluster),
                "kubeService": {
                    "ref": self.reference(),
                    "labels": { "app": self.name },
                    "workloadSelectorLabels": { "app": self.name },
                    "ports": [{ "name": "http", "port": 8080, "protocol": "TCP", "targetPortNumber": 8080 }],
                    "subsets": { "version": { "values": VERSIONS } },
                    "endpointSubsets": [{
                        "endpoints": self.endpoints(),
                        "ports": [{ "name": "http", "port": 8080, "protocol": "TCP" }],
                    }],
                },
            },
        })
    }

    fn discovered_workload(&self, version: &str) -> Value {
        let controller = format!("{}-{version}", self.name);
        let name = format!(
            "{controller}-{}-{}-deployment",
            self.namespace, self.cluster
        );
        json!({
            "apiVersion": "discovery.mesh.gloo.solo.io/v1", "kind": "Workload",
            "metadata": discovered(&name, &self.cluster),
            "spec": {
                "mesh": mesh(&self.cluster),
                "kubernetes": {
                    "controller": {
                        "name": controller, "namespace": self.namespace, "clusterName": self.cluster,
                    },
                    "podLabels": self.labels(version),
                    "serviceAccountName": self.name,
                },
            },
        })
    }

    fn kubernetes(&self) -> Vec<Value> {
        let Self {
            name, namespace, ..
        } = self;
        let selector = json!({ "app": name });
        let mut objects = vec![
            json!({
                "apiVersion": "v1", "kind": "Service",
                "metadata": labelled(namespace, name, &selector),
                "spec": {
                    "type": "ClusterIP", "clusterIP": Ipv4Addr::from_bits(0xAC10_0000 + self.number),
                    "selector": selector,
                    "ports": [{ "name": "http", "port": 8080, "protocol": "TCP", "targetPort": 8080 }],
                },
            }),
            self.endpoint_slice(2),
        ];
        for number in [0, 1] {
            objects.extend(self.version(number));
        }
        objects
    }

    /// Its endpoints: so many of them, at most two.
    pub fn endpoint_slice(&self, count: u32) -> Value {
        let Self {
            name, namespace, ..
        } = self;
        let endpoints: Vec<_> = (0..count.min(2))
            .map(|version| self.endpoint(version))
            .collect();
        let service = json!({ "kubernetes.io/service-name": name });
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": labelled(namespace, &format!("{name}-abcde"), &service),
            "ports": [{ "name": "http", "port": 8080, "protocol": "TCP" }],
            "endpoints": endpoints,
        })
    }

    fn node(&self) -> String {
        format!("node-{}", self.number % SERVICES_PER_NODE)
    }

    fn endpoint(&self, version: u32) -> Value {
        json!({
            "addresses": [self.address(version)],
            "conditions": { "ready": true },
            "nodeName": self.node(),
            "targetRef": { "kind": "Pod", "namespace": self.namespace, "name": self.pod_name(version) },
        })
    }

    fn pod_name(&self, version: u32) -> String {
        format!("{}-{}-0", self.name, VERSIONS[usize::from(version != 0)])
    }

    /// A pod of a version, 0 or 1, on the node of this name.
    pub fn pod(&self, version: u32, node: &str) -> Value {
        let labels = self.labels(VERSIONS[usize::from(version != 0)]);
        let set = format!("{}-{}", self.name, VERSIONS[usize::from(version != 0)]);
        let mut metadata = labelled(&self.namespace, &self.pod_name(version), &labels);
        metadata["ownerReferences"] = owner("ReplicaSet", &set);
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
            "spec": {
                "nodeName": node, "serviceAccountName": self.name,
                "containers": [
                    { "name": "app", "image": "registry.example/app:1" },
                    { "name": "istio-proxy", "image": "docker.io/istio/proxyv2:1.29.2" },
                ],
            },
            "status": { "phase": "Running", "podIP": self.address(version) },
        })
    }

    fn version(&self, number: u32) -> [Value; 3] {
        let version = VERSIONS[usize::from(number != 0)];
        let labels = self.labels(version);
        let name = format!("{}-{version}", self.name);
        let template = json!({
            "metadata": { "labels": labels },
            "spec": {
                "serviceAccountName": self.name,
                "containers": [{ "name": "app", "image": "registry.example/app:1" }],
            },
        });
        let spec = json!({ "selector": { "matchLabels": labels }, "template": template });
        let mut set = labelled(&self.namespace, &name, &labels);
        set["ownerReferences"] = owner("Deployment", &name);
        [
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": labelled(&self.namespace, &name, &labels), "spec": spec,
            }),
            json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": set, "spec": spec }),
            self.pod(number, &self.node()),
        ]
    }
}

/// A policy that selects every destination and delays its callers by so many seconds.
pub fn broad_policy(name: &str, delay: u32) -> Value {
    json!({
        "apiVersion": "networking.mesh.gloo.solo.io/v1", "kind": "TrafficPolicy",
        "metadata": meta(OWN, name),
        "spec": { "policy": { "faultInjection": { "fixedDelay": format!("{delay}s"), "percentage": 1 } } },
    })
}

fn cluster_name(number: u32) -> String {
    format!("cluster-{number}")
}

fn mesh(cluster: &str) -> Value {
    json!({ "name": format!("istiod-istio-system-{cluster}"), "namespace": OWN })
}

fn meta(namespace: &str, name: &str) -> Value {
    json!({ "namespace": namespace, "name": name })
}

fn labelled(namespace: &str, name: &str, labels: &Value) -> Value {
    json!({ "namespace": namespace, "name": name, "labels": labels })
}

fn discovered(name: &str, cluster: &str) -> Value {
    let labels = json!({
        "cluster.discovery.mesh.gloo.solo.io": cluster,
        "owner.discovery.mesh.gloo.solo.io": OWN,
    });
    labelled(OWN, name, &labels)
}

fn owner(kind: &str, name: &str) -> Value {
    json!([{ "apiVersion": "apps/v1", "kind": kind, "name": name, "uid": name, "controller": true }])
}

fn node(number: u32) -> Value {
    let zone = ["a", "b", "c"][usize::try_from(number % 3).unwrap_or_default()];
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": format!("node-{number}"), "labels": {
            "topology.kubernetes.io/region": "region-1",
            "topology.kubernetes.io/zone": format!("region-1-{zone}"),
        } },
        "status": { "addresses": [{ "type": "InternalIP", "address": Ipv4Addr::from_bits(0xC0A8_0000 + number) }] },
    })
}

/// Where the gateway of a cluster is reached.
fn gateway_address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0xAC12_0001 + number)
}

fn discovered_mesh(cluster: &str) -> Value {
    json!({
        "apiVersion": "discovery.mesh.gloo.solo.io/v1", "kind": "Mesh",
        "metadata": discovered(&format!("istiod-istio-system-{cluster}"), cluster),
        "spec": { "istio": {
            "installation": {
                "cluster": cluster, "namespace": "istio-system", "version": "1.29.2",
                "podLabels": { "istio": "pilot" },
            },
            "trustDomain": format!("{cluster}.example"),
            "istiodServiceAccount": "istiod",
            "smartDnsProxyingEnabled": true,
        } },
    })
}

fn discovered_gateway(cluster: &str, number: u32) -> Value {
    let name = "istio-ingressgateway";
    json!({
        "apiVersion": "discovery.mesh.gloo.solo.io/v1", "kind": "Destination",
        "metadata": discovered(&format!("{name}-istio-system-{cluster}"), cluster),
        "spec": {
            "mesh": mesh(cluster),
            "kubeService": {
                "ref": { "name": name, "namespace": "istio-system", "clusterName": cluster },
                "workloadSelectorLabels": { "istio": "ingressgateway" },
                "serviceType": "LOAD_BALANCER",
                "externalAddresses": [{ "ip": gateway_address(number) }],
                "ports": [{ "name": "tls", "port": 15443, "protocol": "TCP", "targetPortNumber": 15443 }],
            },
        },
    })
}

/// istiod, its configuration, and a gateway with an address.
fn control_plane(number: u32) -> [Value; 4] {
    let system = "istio-system";
    let gateway = json!({ "istio": "ingressgateway" });
    let configuration = format!(
        "trustDomain: {}.example\ndefaultConfig:\n  proxyMetadata:\n    ISTIO_META_DNS_CAPTURE: \"true\"\n",
        cluster_name(number)
    );
    let deployment = |name: &str, labels: &Value, account: &str, container: &str, image: &str| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": labelled(system, name, labels),
            "spec": {
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": {
                        "serviceAccountName": account,
                        "containers": [{ "name": container, "image": image }],
                    },
                },
            },
        })
    };
    [
        deployment(
            "istiod",
            &json!({ "app": "istiod", "istio": "pilot" }),
            "istiod",
            "discovery",
            "docker.io/istio/pilot:1.29.2",
        ),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": meta(system, "istio"),
            "data": { "mesh": configuration },
        }),
        deployment(
            "istio-ingressgateway",
            &gateway,
            "istio-ingressgateway",
            "istio-proxy",
            "docker.io/istio/proxyv2:1.29.2",
        ),
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": labelled(system, "istio-ingressgateway", &gateway),
            "spec": {
                "type": "LoadBalancer", "clusterIP": "172.31.255.1", "selector": gateway,
                "ports": [{ "name": "tls", "port": 15443, "protocol": "TCP", "targetPort": 15443, "nodePort": 31443 }],
            },
            "status": { "loadBalancer": { "ingress": [{ "ip": gateway_address(number) }] } },
        }),
    ]
}

/// `SplitMix64`, of a seed and a number.
fn mix(seed: u64, number: u32) -> u64 {
    let mut mixed = seed.wrapping_add(u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
