//! Objects that are made to cost much: as large as an API server stores, or contradictory, or in circles.

use serde_json::{Map, Value, json};

use crate::dice::Dice;
use crate::value::{deep, expression, text};

/// Most bytes of the large ones: what etcd takes by default is half of it.
const LARGE: usize = 3 << 20;

const POLICIES: &str = "networking.mesh.gloo.solo.io/v1";
const DISCOVERY: &str = "discovery.mesh.gloo.solo.io/v1";

/// What an object overdoes, and what makes one.
pub(crate) type Bomb = (&'static str, fn(&mut Dice) -> Value);

/// All of them.
pub(crate) const BOMBS: &[Bomb] = &[
    ("expressions", expressions),
    ("empty selectors", empty_selectors),
    ("selectors", selectors),
    ("selector labels", selector_labels),
    ("selector namespaces", selector_namespaces),
    ("service references", service_references),
    ("callers and matchers", callers_and_matchers),
    ("callers", callers),
    ("shift", shift),
    ("access", access),
    ("access sources", access_sources),
    ("accounts", accounts),
    ("long header", long_header),
    ("virtual mesh", virtual_mesh),
    ("federation selectors", federation_selectors),
    ("gateway selectors", gateway_selectors),
    ("settings", settings),
    ("service labels", service_labels),
    ("service ports", service_ports),
    ("endpoint slice", endpoint_slice),
    ("owners in a circle", owners_in_a_circle),
    ("owners", owners),
    ("pod labels", pod_labels),
    ("containers", containers),
    ("destination", destination),
    ("destination labels", destination_labels),
    ("workload labels", workload_labels),
    ("mesh gateways", mesh_gateways),
    ("mesh configuration", mesh_configuration),
    ("unknown fields", unknown_fields),
    ("last applied", last_applied),
    ("long text", long_text),
    ("deep", nested),
    ("node", node),
    ("cluster", cluster),
];

fn policy(kind: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": POLICIES,
        "kind": kind,
        "metadata": { "name": name, "namespace": "gloo-mesh", "generation": 1 },
        "spec": spec,
    })
}

fn traffic(spec: &Value) -> Value {
    let mut spec = spec.clone();
    if spec.get("policy").is_none() {
        spec["policy"] = json!({ "requestTimeout": "5s" });
    }
    policy("TrafficPolicy", "a", &spec)
}

fn core(kind: &str, name: &str, rest: &Value) -> Value {
    let mut object = rest.clone();
    object["apiVersion"] = json!("v1");
    object["kind"] = json!(kind);
    object["metadata"]["name"] = json!(name);
    object["metadata"]["namespace"] = json!("shop");
    object
}

/// As many of something as fit, and no more than `most`.
fn many(most: usize, each: impl Fn(usize) -> Value) -> Value {
    let size = each(most).to_string().len() + 1;
    (0..most.min(LARGE / size)).map(each).collect()
}

fn many_labels(most: usize, name: &str) -> Value {
    let most = most.min(LARGE / (2 * name.len() + 24));
    let label = |at: usize| (format!("{name}-{at}"), json!(format!("{name}-{at}")));
    Value::Object((0..most).map(label).collect::<Map<_, _>>())
}

fn count(dice: &mut Dice) -> usize {
    *dice.pick(&[1_000, 1_001, 5_000, 60_000])
}

fn expressions(dice: &mut Dice) -> Value {
    let pattern = expression(dice);
    let conditions = |name: &str| {
        many(
            64,
            |at| json!({ "name": format!("{name}-{at}"), "value": pattern, "regex": true }),
        )
    };
    let matcher = json!({
        "uri": { "regex": pattern },
        "headers": conditions("h"),
        "queryParameters": conditions("q"),
    });
    traffic(&json!({ "httpRequestMatchers": many(300, |_| matcher.clone()) }))
}

fn empty_selectors(dice: &mut Dice) -> Value {
    let selector = json!({ "kubeServiceMatcher": {} });
    traffic(&json!({ "destinationSelector": many(count(dice), |_| selector.clone()) }))
}

fn selectors(dice: &mut Dice) -> Value {
    let selector = |at: usize| {
        json!({ "kubeServiceMatcher": {
            "labels": { "app": format!("a-{}", at % 3) },
            "namespaces": ["shop", format!("n-{at}")],
            "clusters": ["c1", format!("c-{at}")],
        }})
    };
    traffic(&json!({ "destinationSelector": many(count(dice), selector) }))
}

fn selector_labels(dice: &mut Dice) -> Value {
    let labels = many_labels(count(dice), "app");
    let selector = json!([{ "kubeServiceMatcher": { "labels": labels } }]);
    traffic(&json!({ "destinationSelector": selector }))
}

fn selector_namespaces(dice: &mut Dice) -> Value {
    let names = many(count(dice), |at| json!(format!("team-{at}")));
    let matcher = json!({ "namespaces": names, "clusters": names });
    traffic(&json!({
        "destinationSelector": [{ "kubeServiceMatcher": matcher }],
        "sourceSelector": [{ "kubeWorkloadMatcher": matcher }],
    }))
}

fn service_references(dice: &mut Dice) -> Value {
    let is_there = dice.one_in(2);
    let service = |at: usize| {
        let name = if is_there {
            "reviews".to_owned()
        } else {
            format!("gone-{at}")
        };
        json!({ "name": name, "namespace": "shop", "clusterName": "c1" })
    };
    let per_selector = many(1_000, service);
    let selector = json!({ "kubeServiceRefs": { "services": per_selector } });
    traffic(&json!({ "destinationSelector": many(count(dice), |_| selector.clone()) }))
}

fn callers_and_matchers(dice: &mut Dice) -> Value {
    let callers = *dice.pick(&[4, 30, 1_000]);
    traffic(&json!({
        "sourceSelector": many(callers, |at| json!({ "kubeWorkloadMatcher": {
            "labels": { "app": format!("a-{at}") },
            "clusters": ["c1", "c2", "c3"],
        }})),
        "httpRequestMatchers": many(250, |at| json!({ "uri": { "prefix": format!("/{at}") } })),
    }))
}

fn callers(dice: &mut Dice) -> Value {
    // The same callers in another order are the same callers, which has to be found out.
    let order = dice.below(2);
    let caller = |at: usize| {
        let at = if order == 0 { at } else { 999 - at.min(999) };
        json!({ "kubeWorkloadMatcher": { "labels": { "app": format!("a-{at}") } } })
    };
    let mut object = traffic(&json!({ "sourceSelector": many(1_000, caller) }));
    object["metadata"]["name"] = json!(format!("callers-{}", dice.below(40)));
    object
}

fn shift(dice: &mut Dice) -> Value {
    let is_same = dice.one_in(2);
    let target = |at: usize| {
        let version = if is_same { 0 } else { at };
        json!({ "weight": 1, "kubeService": {
            "name": "reviews", "namespace": "shop", "clusterName": "c1",
            "subset": { "version": format!("v{version}") },
        }})
    };
    let targets = many(count(dice), target);
    traffic(&json!({ "policy": { "trafficShift": { "destinations": targets } } }))
}

fn access(dice: &mut Dice) -> Value {
    let entry = text(dice);
    let entries = many(count(dice), |_| json!(entry));
    let ports = many(count(dice), |at| json!(at));
    policy(
        "AccessPolicy",
        "a",
        &json!({ "allowedPaths": entries, "allowedMethods": entries, "allowedPorts": ports }),
    )
}

fn access_sources(dice: &mut Dice) -> Value {
    let account =
        |at: usize| json!({ "name": format!("n-{at}"), "namespace": "shop", "clusterName": "c1" });
    let accounts = many(count(dice), account);
    let source = json!({
        "kubeIdentityMatcher": { "namespaces": many(30, |at| json!(format!("n-{at}"))), "clusters": ["c1", "c2"] },
        "kubeServiceAccountRefs": { "serviceAccounts": accounts },
    });
    let sources = *dice.pick(&[1, 10, 1_000]);
    policy(
        "AccessPolicy",
        "a",
        &json!({ "sourceSelector": many(sources, |_| source.clone()) }),
    )
}

fn accounts(dice: &mut Dice) -> Value {
    // Without a cluster each stands for one of every trust domain.
    let account = |at: usize| json!({ "name": format!("n-{at}"), "namespace": "shop" });
    let accounts = many(*dice.pick(&[9_000, 10_001, 60_000]), account);
    let source = json!({ "kubeServiceAccountRefs": { "serviceAccounts": accounts } });
    policy("AccessPolicy", "a", &json!({ "sourceSelector": [source] }))
}

fn long_header(dice: &mut Dice) -> Value {
    // With every namespace once.
    let long = "x".repeat(*dice.pick(&[1_000, 30_000, 1_000_000]));
    let namespaces = many(1_000, |at| json!(format!("n-{at}")));
    traffic(&json!({
        "sourceSelector": [{ "kubeWorkloadMatcher": { "namespaces": namespaces } }],
        "httpRequestMatchers": [{ "headers": [{ "name": "h", "value": long }] }],
    }))
}

fn virtual_mesh(dice: &mut Dice) -> Value {
    let is_there = dice.one_in(2);
    let mesh = |at: usize| {
        let name = if is_there {
            format!("istiod-istio-system-c{}", at % 4)
        } else {
            format!("gone-{at}")
        };
        json!({ "name": name, "namespace": "gloo-mesh" })
    };
    let name = *dice.pick(&["vm-a", "vm-0", "vm-z"]);
    let meshes = many(count(dice), mesh);
    let selector = json!({ "destinationSelectors": [], "meshes": meshes });
    policy(
        "VirtualMesh",
        name,
        &json!({
            "meshes": meshes,
            "federation": { "selectors": many(1_000, |_| selector.clone()) },
            "globalAccessPolicy": "ENABLED",
        }),
    )
}

fn federation_selectors(dice: &mut Dice) -> Value {
    let selector = json!({
        "destinationSelectors": [{ "kubeServiceMatcher": { "namespaces": ["nowhere"] } }],
        "meshes": [{ "name": "istiod-istio-system-c1", "namespace": "gloo-mesh" }],
    });
    policy(
        "VirtualMesh",
        "vm-a",
        &json!({
            "meshes": many(4, |at| json!({ "name": format!("istiod-istio-system-c{at}"), "namespace": "gloo-mesh" })),
            "federation": {
                "selectors": many(count(dice), |_| selector.clone()),
                "hostnameSuffix": text(dice),
            },
        }),
    )
}

fn gateway_selectors(dice: &mut Dice) -> Value {
    let matcher = *dice.pick(&["kubeServiceMatcher", "nothing"]);
    let selector = json!({
        "destinationSelectors": many(50, |_| json!({ matcher: {} })),
        "portName": text(dice),
    });
    policy(
        "VirtualMesh",
        "vm-a",
        &json!({
            "meshes": many(4, |at| json!({ "name": format!("istiod-istio-system-c{at}"), "namespace": "gloo-mesh" })),
            "federation": {
                "selectors": [{}],
                "eastWestIngressGatewaySelectors": many(count(dice), |_| selector.clone()),
            },
        }),
    )
}

fn settings(dice: &mut Dice) -> Value {
    let most = count(dice).min(20_000);
    let detectors = (0..most).map(|at| {
        let detector =
            json!({ "gatewayTlsPortName": "tls", "gatewayWorkloadLabels": { "a": "b" } });
        (format!("c{at}"), detector)
    });
    let detectors = Value::Object(detectors.collect());
    let mut object = policy(
        "Settings",
        "settings",
        &json!({ "discovery": { "istio": { "ingressGatewayDetectors": detectors } } }),
    );
    object["apiVersion"] = json!("settings.mesh.gloo.solo.io/v1");
    object
}

fn service_labels(dice: &mut Dice) -> Value {
    let labels = many_labels(count(dice), "app");
    core(
        "Service",
        "reviews",
        &json!({
            "metadata": { "labels": labels, "annotations": labels },
            "spec": { "selector": { "app": "reviews" }, "ports": [{ "port": 80, "name": "http" }] },
        }),
    )
}

fn service_ports(dice: &mut Dice) -> Value {
    let ports = many(
        count(dice),
        |at| json!({ "port": at, "name": "http", "nodePort": at }),
    );
    core(
        "Service",
        dice.pick::<&str>(&["reviews", "istio-ingressgateway"]),
        &json!({
            "metadata": {},
            "spec": { "type": "NodePort", "selector": { "app": "reviews" }, "ports": ports },
        }),
    )
}

fn endpoint_slice(dice: &mut Dice) -> Value {
    let endpoint = |at: usize| {
        json!({
            "addresses": [format!("10.{}.{}.{}", at >> 16, (at >> 8) & 255, at & 255)],
            "nodeName": "node-1",
            "targetRef": { "kind": "Pod", "name": "reviews-v1-7d5f8-abcde", "namespace": "shop" },
        })
    };
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "reviews-x", "namespace": "shop",
            "labels": { "kubernetes.io/service-name": "reviews" },
        },
        "addressType": *dice.pick(&["IPv4", "IPv6", "FQDN", ""]),
        "ports": many(150, |at| json!({ "port": at, "name": "http", "protocol": "TCP" })),
        "endpoints": many(count(dice), endpoint),
    })
}

fn owners_in_a_circle(dice: &mut Dice) -> Value {
    let names = ["reviews-v1-7d5f8", "istio-ingressgateway-5c", "self"];
    let owner = *dice.pick(&names);
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": *dice.pick(&names), "namespace": "shop",
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": "u", "controller": true,
            }],
        },
        "spec": {
            "selector": { "matchLabels": { "app": "reviews" } },
            "template": {
                "metadata": { "labels": { "app": "reviews" } },
                "spec": { "containers": [{ "name": "istio-proxy", "image": "istio/proxyv2:1" }] },
            },
        },
    })
}

fn owners(dice: &mut Dice) -> Value {
    let owner = |at: usize| {
        json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("r-{at}"), "uid": "u", "controller": true,
        })
    };
    let mut pod = core(
        "Pod",
        "reviews-v1-7d5f8-abcde",
        &json!({ "metadata": {}, "spec": { "containers": [] } }),
    );
    pod["metadata"]["ownerReferences"] = many(count(dice), owner);
    pod
}

fn pod_labels(dice: &mut Dice) -> Value {
    let labels = many_labels(count(dice), "app");
    let template = json!({
        "metadata": { "labels": labels, "annotations": labels },
        "spec": { "containers": [{ "name": "istio-proxy", "image": "istio/proxyv2:1" }] },
    });
    json!({
        "apiVersion": "apps/v1",
        "kind": *dice.pick(&["Deployment", "StatefulSet", "DaemonSet"]),
        "metadata": { "name": "reviews-v1", "namespace": "shop" },
        "spec": { "selector": { "matchLabels": labels }, "serviceName": "x", "template": template },
    })
}

fn containers(dice: &mut Dice) -> Value {
    let image = *dice.pick(&["istio/pilot:1", "istio/proxyv2:1", "osm-controller"]);
    let container = json!({
        "name": "a", "image": image,
        "env": many(20, |at| json!({ "name": "CLUSTER_ID", "value": at.to_string() })),
    });
    let containers = many(count(dice), |_| container.clone());
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "istiod", "namespace": "istio-system" },
        "spec": {
            "selector": { "matchLabels": { "istio": "pilot" } },
            "template": { "metadata": {}, "spec": { "containers": containers, "initContainers": containers } },
        },
    })
}

fn stored(kind: &str, name: &str, spec: &Value) -> Value {
    let mut object = policy(kind, name, spec);
    object["apiVersion"] = json!(DISCOVERY);
    object
}

fn destination(dice: &mut Dice) -> Value {
    let endpoint = |at: usize| {
        json!({
            "ipAddress": format!("host-{at}"), "labels": { "version": format!("v{at}") },
            "subLocality": { "zone": "z", "subZone": "s" },
        })
    };
    let ports = many(
        150,
        |at| json!({ "port": at, "name": "http", "protocol": "TCP" }),
    );
    let name = *dice.pick(&["reviews-shop-c2", "twin", "gateway-c2"]);
    stored(
        "Destination",
        name,
        &json!({
            "mesh": { "name": "istiod-istio-system-c2", "namespace": "gloo-mesh" },
            "kubeService": {
                "ref": { "name": "reviews", "namespace": "shop", "clusterName": "c2" },
                "labels": { "app": "reviews" },
                "workloadSelectorLabels": { "app": "reviews", "istio": "ingressgateway" },
                "serviceType": "LOAD_BALANCER",
                "externalAddresses": many(1_000, |at| json!({ "ip": format!("10.0.{at}.1") })),
                "ports": ports,
                "endpointSubsets": [{ "endpoints": many(count(dice), endpoint), "ports": ports }],
            },
        }),
    )
}

fn destination_labels(dice: &mut Dice) -> Value {
    let labels = many_labels(count(dice), "app");
    stored(
        "Destination",
        "twin",
        &json!({
            "mesh": { "name": "istiod-istio-system-c2", "namespace": "gloo-mesh" },
            "kubeService": {
                "ref": { "name": "twin", "namespace": "shop", "clusterName": "c2" },
                "labels": labels, "workloadSelectorLabels": labels,
                "ports": [{ "port": 80, "name": "http" }],
            },
        }),
    )
}

fn workload_labels(dice: &mut Dice) -> Value {
    stored(
        "Workload",
        "web-shop-c2-deployment",
        &json!({
            "mesh": { "name": "istiod-istio-system-c2", "namespace": "gloo-mesh" },
            "kubernetes": {
                "controller": { "name": "web", "namespace": "shop", "clusterName": "c2" },
                "podLabels": many_labels(count(dice), "app"),
            },
        }),
    )
}

fn mesh_gateways(dice: &mut Dice) -> Value {
    let gateway = |at: usize| {
        json!({
            "name": format!("g-{at}"), "namespace": "istio-system", "ip": "172.18.0.9",
            "externalTlsPort": at, "tlsContainerPort": 8443, "workloadLabels": { "istio": "ingressgateway" },
        })
    };
    stored(
        "Mesh",
        "istiod-istio-system-c2",
        &json!({ "istio": {
            "installation": { "cluster": "c2", "namespace": "istio-system" },
            "trustDomain": text(dice),
            "ingressGateways": many(count(dice), gateway),
        }}),
    )
}

fn mesh_configuration(dice: &mut Dice) -> Value {
    let text = match dice.below(6) {
        0 => aliases(9),
        1 => format!("{}x{}", "[".repeat(50_000), "]".repeat(50_000)),
        2 => "a: {".repeat(20_000),
        3 => "- ".repeat(100_000),
        4 => format!("trustDomain: {}", "x".repeat(1 << 20)),
        _ => repeated_text(1 << 20),
    };
    let mut object = core("ConfigMap", "istio", &json!({ "metadata": {} }));
    object["metadata"]["namespace"] = json!("istio-system");
    object["data"] = json!({ "mesh": text, "meshNetworks": text });
    object
}

/// YAML whose values are ten times as many with each level.
pub(crate) fn aliases(levels: usize) -> String {
    let first = "l0: &l0 [x, x, x, x, x, x, x, x, x, x]".to_owned();
    let others = (1..=levels).map(|level| {
        let below = format!("*l{}", level - 1);
        format!("l{level}: &l{level} [{}]", vec![below; 10].join(", "))
    });
    let lines: Vec<_> = std::iter::once(first).chain(others).collect();
    lines.join("\n")
}

/// YAML with long texts that are repeated by name.
pub(crate) fn repeated_text(length: usize) -> String {
    let text = "x".repeat(length / 20);
    let anchors = (0..20).map(|anchor| format!("k{anchor}: &k{anchor} {text}\n"));
    let repeats: Vec<_> = (0..150_000).map(|at| format!("*k{}", at % 20)).collect();
    let anchors: Vec<_> = anchors.collect();
    format!("{}all: [{}]\n", anchors.concat(), repeats.join(", "))
}

fn unknown_fields(dice: &mut Dice) -> Value {
    let mut object = traffic(&json!({}));
    let name = *dice.pick(&["destinationSelectors", "x", "polícy", "httpRequestMatcher"]);
    object["spec"] = many_labels(count(dice), name);
    object["spec"]["policy"] = many_labels(1_000, "requestTimeou");
    object
}

fn last_applied(dice: &mut Dice) -> Value {
    let mut object = traffic(&json!({}));
    let applied = match dice.below(4) {
        0 => "[".repeat(1 << 20),
        1 => format!("{}1{}", "[".repeat(1 << 18), "]".repeat(1 << 18)),
        2 => json!({ "spec": deep(100) }).to_string(),
        _ => json!({ "spec": many_labels(60_000, "destinationSelector") }).to_string(),
    };
    object["metadata"]["annotations"] =
        json!({ "kubectl.kubernetes.io/last-applied-configuration": applied });
    object
}

fn long_text(dice: &mut Dice) -> Value {
    let long = dice
        .pick(&["x", "ä", "[", "0", "a.", "\u{1}", "(", "/"])
        .repeat(1 << 20);
    let mut object = match dice.below(7) {
        0 => traffic(
            &json!({ "policy": { "requestTimeout": long, "retries": { "perTryTimeout": long } } }),
        ),
        1 => traffic(&json!({ "httpRequestMatchers": [{
            "uri": { "regex": long }, "headers": [{ "name": long, "value": long }], "method": long,
        }]})),
        2 => traffic(
            &json!({ "destinationSelector": [{ "kubeServiceRefs": { "services": [
                { "name": long, "namespace": long, "clusterName": "c1" },
            ]}}]}),
        ),
        3 => policy(
            "VirtualMesh",
            "vm-a",
            &json!({
                "meshes": [{ "name": long, "namespace": long }],
                "federation": { "hostnameSuffix": long, "selectors": [{}] },
                "mtlsConfig": { "shared": { "rootCertificateAuthority": { "generated": { "orgName": long } } } },
            }),
        ),
        4 => policy(
            "AccessPolicy",
            "a",
            &json!({ "allowedPaths": [long], "allowedMethods": [long] }),
        ),
        5 => core(
            "Service",
            "reviews",
            &json!({
                "metadata": {},
                "spec": { "externalName": long, "ports": [{ "port": 80, "name": long, "targetPort": long }] },
            }),
        ),
        _ => traffic(&json!({ "sourceSelector": [{ "kubeWorkloadMatcher": {
            "labels": { long.clone(): long }, "namespaces": [long], "clusters": [long],
        }}]})),
    };
    if dice.one_in(3) {
        object["metadata"]["name"] = json!(long);
    }
    object
}

fn nested(dice: &mut Dice) -> Value {
    let mut object = traffic(&json!({}));
    let levels = *dice.pick(&[10, 60, 120]);
    match dice.below(3) {
        0 => object["spec"] = deep(levels),
        1 => object["spec"]["policy"] = deep(levels),
        _ => object["metadata"]["annotations"] = deep(levels),
    }
    object
}

fn node(dice: &mut Dice) -> Value {
    let names = many(count(dice), |at| json!(format!("kindnetd-{at}")));
    let mut object = core("Node", "node-1", &json!({ "metadata": {} }));
    object["status"] = json!({
        "addresses": many(1_000, |at| json!({ "type": "ExternalIP", "address": format!("10.0.0.{at}") })),
        "images": [{ "names": names }],
    });
    object
}

fn cluster(dice: &mut Dice) -> Value {
    json!({
        "apiVersion": "multicluster.solo.io/v1alpha1",
        "kind": "KubernetesCluster",
        "metadata": { "name": *dice.pick(&["c1", "c2", ""]), "namespace": "gloo-mesh" },
        "spec": { "secretName": text(dice), "clusterDomain": text(dice) },
        "status": { "namespace": text(dice) },
    })
}
