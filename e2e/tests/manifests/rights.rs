//! What the management plane may do, against what it was seen to do.
//!
//! The API servers of the test bed tell every request in an audit log, which `hack/test` has them write.
//! It runs this after everything else, so that whatever the server does has been done.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use ferromesh_e2e::account::{NAME, NAMESPACE, manifests};
use ferromesh_e2e::{kubeconfigs, yaml};
use ferromesh_registration::right::{Scope, rights};
use ferromesh_registration::{ApiServer, Registration, kubeconfig};
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::ResourceExt as _;
use serde_json::Value;

/// Rights that a run need not use: why they are granted all the same, whose they are, verb and resource.
const SELDOM: &[(&str, Who, &[&str])] = &[
    (
        "after a conflict an object is looked at before it is written again",
        Who::Server,
        &["get meshes", "get workloads", "get destinations"],
    ),
    (
        "after a conflict an object is looked at before it is written again",
        Who::Registration,
        &[
            "get virtualservices",
            "get destinationrules",
            "get serviceentries",
            "get gateways",
            "get issuedcertificates",
        ],
    ),
    (
        "there need not be an AccessPolicy, nor Settings",
        Who::Server,
        &["patch accesspolicies/status", "patch settings/status"],
    ),
    (
        "there need not be an AccessPolicy",
        Who::Registration,
        &[
            "get authorizationpolicies",
            "create authorizationpolicies",
            "patch authorizationpolicies",
            "delete authorizationpolicies",
        ],
    ),
    (
        "an annotation is taken away by which a person has released a mass delete",
        Who::Server,
        &["patch kubernetesclusters"],
    ),
    (
        "credentials and certificates are renewed after days or more",
        Who::Server,
        &["patch secrets", "update secrets"],
    ),
    (
        "credentials and certificates are renewed after days or more",
        Who::Registration,
        &[
            "create serviceaccounts/token",
            "delete secrets",
            "patch certificaterequests",
        ],
    ),
    (
        "a mesh leaves its virtual mesh",
        Who::Registration,
        &["delete gateways", "delete issuedcertificates"],
    ),
    (
        "a control plane may have a revision",
        Who::Registration,
        &["list configmaps", "watch configmaps"],
    ),
    (
        "a virtual mesh may ask for restarts",
        Who::Registration,
        &[
            "get configmaps",
            "get podbouncedirectives",
            "create podbouncedirectives",
            "patch podbouncedirectives",
            "delete podbouncedirectives",
            "update podbouncedirectives/status",
            "create pods/eviction",
        ],
    ),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    /// The server, in the management cluster.
    Server,
    /// The account of a registration, in a managed cluster.
    Registration,
}

/// Something that one may do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Grant {
    who: Who,
    verb: String,
    group: String,
    /// With its subresource.
    resource: String,
    /// None in the whole cluster.
    namespace: Option<String>,
    /// None means all.
    name: Option<String>,
}

/// Something that was done, or was to be.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Request {
    who: Who,
    verb: String,
    group: String,
    resource: String,
    namespace: String,
    name: String,
}

impl Grant {
    fn covers(&self, request: &Request) -> bool {
        let fits = |granted: &Option<String>, asked: &String| {
            granted.as_ref().is_none_or(|granted| granted == asked)
        };
        self.who == request.who
            && self.verb == request.verb
            && self.group == request.group
            && self.resource == request.resource
            && fits(&self.namespace, &request.namespace)
            && fits(&self.name, &request.name)
    }

    fn words(&self) -> String {
        format!("{} {}", self.verb, self.resource)
    }

    /// Why it need not be used.
    fn reason(&self) -> Option<&'static str> {
        let words = self.words();
        let mut seldom = SELDOM.iter();
        let found = seldom.find(|(_, who, rights)| *who == self.who && rights.contains(&&*words));
        found.map(|(reason, ..)| *reason)
    }

    /// How much it leaves open.
    fn width(&self) -> usize {
        usize::from(self.namespace.is_none()) * 2 + usize::from(self.name.is_none())
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            who,
            verb,
            group,
            resource,
            namespace,
            name,
        } = self;
        write!(f, "{who:?}: {verb} {resource}")?;
        if !group.is_empty() {
            write!(f, ".{group}")?;
        }
        if let Some(name) = name {
            write!(f, " {name}")?;
        }
        match namespace {
            Some(namespace) => write!(f, " in {namespace}"),
            None => f.write_str(" everywhere"),
        }
    }
}

/// What a rule grants, one by one.
fn split(who: Who, rule: &PolicyRule, namespace: Option<&str>) -> Vec<Grant> {
    let texts = |texts: &Option<Vec<String>>| texts.clone().unwrap_or_default();
    let names = rule.resource_names.clone();
    let names: Vec<Option<String>> = match names {
        Some(names) => names.into_iter().map(Some).collect(),
        None => vec![None],
    };
    let mut grants = Vec::new();
    for group in texts(&rule.api_groups) {
        for resource in texts(&rule.resources) {
            for verb in &rule.verbs {
                for name in &names {
                    let plain = ![&group, &resource, verb].iter().any(|it| it.contains('*'));
                    assert!(plain, "a right to everything: {rule:?}");
                    grants.push(Grant {
                        who,
                        verb: verb.clone(),
                        group: group.clone(),
                        resource: resource.clone(),
                        namespace: namespace.map(str::to_owned),
                        name: name.clone(),
                    });
                }
            }
        }
    }
    grants
}

/// What is granted by the manifests, and by a registration.
fn granted() -> Vec<Grant> {
    let mut grants = Vec::new();
    for object in yaml::objects(&manifests()) {
        let kind = object.types.clone().unwrap_or_default().kind;
        if kind == "Role" || kind == "ClusterRole" {
            let rules: Vec<PolicyRule> =
                serde_json::from_value(object.data["rules"].clone()).unwrap();
            let namespace = object.namespace();
            let rules = rules.iter();
            grants.extend(rules.flat_map(|rule| split(Who::Server, rule, namespace.as_deref())));
        }
    }
    let file = kubeconfig::read(Some(kubeconfigs()[1].as_ref())).unwrap();
    let server = ApiServer::resolve(&file, None, None).unwrap();
    let registration = Registration::new("cluster-1".parse().unwrap(), server);
    for right in rights(&registration) {
        let namespace = match &right.scope {
            Scope::Cluster => None,
            Scope::Namespace(namespace) => Some(namespace.as_str()),
        };
        let mut rule = right.rule();
        // Its own account, which is named after the cluster.
        if right.names == ["cluster-1"] {
            rule.resource_names = None;
        }
        grants.extend(split(Who::Registration, &rule, namespace));
    }
    // A request is taken for a use of the narrowest right that covers it.
    grants.sort_by_key(Grant::width);
    grants
}

/// The requests that an event of an audit log stands for.
fn requests(event: &Value, accounts: &[(Who, String)]) -> Vec<Request> {
    let user = &event["user"]["username"];
    let account = accounts.iter().find(|(_, account)| user == account);
    let (Some((who, _)), Some(object)) = (account, event["objectRef"].as_object()) else {
        return Vec::new();
    };
    let text = |field: &str| {
        let field = object.get(field).and_then(Value::as_str);
        field.unwrap_or_default().to_owned()
    };
    let request = |verb: &str| Request {
        who: *who,
        verb: verb.to_owned(),
        group: text("apiGroup"),
        resource: match text("subresource").as_str() {
            "" => text("resource"),
            subresource => format!("{}/{subresource}", text("resource")),
        },
        namespace: text("namespace"),
        name: text("name"),
    };
    let verb = event["verb"].as_str().unwrap_or_default();
    let mut requests = vec![request(verb)];
    // An apply of what is not there needs the right to create it.
    if verb == "patch" && event["responseStatus"]["code"] == 201 {
        requests.push(request("create"));
    }
    requests
}

/// Everything that was asked for, in all clusters.
fn asked() -> BTreeSet<Request> {
    let mut asked = BTreeSet::new();
    for (cluster, kubeconfig) in kubeconfigs().iter().enumerate() {
        let account = |name: &str| format!("system:serviceaccount:{NAMESPACE}:{name}");
        let accounts = match cluster {
            0 => [(Who::Server, account(NAME))],
            cluster => [(Who::Registration, account(&format!("cluster-{cluster}")))],
        };
        let log = Path::new(kubeconfig).with_file_name("audit.jsonl");
        let log = File::open(&log).unwrap_or_else(|error| {
            panic!(
                "{}: {error}; start the test bed with --audit",
                log.display()
            )
        });
        for line in BufReader::new(log).lines() {
            let line = line.unwrap();
            if accounts.iter().any(|(_, account)| line.contains(account)) {
                let event = serde_json::from_str(&line).unwrap();
                asked.extend(requests(&event, &accounts));
            }
        }
    }
    asked
}

#[test]
#[ignore = "reads what all other tests have left in the audit logs: hack/test runs it after them"]
fn every_right_is_used_and_every_request_is_by_right() {
    let (granted, asked) = (granted(), asked());
    assert!(asked.iter().any(|request| request.who == Who::Server));
    let mut used = BTreeSet::new();
    let mut wrong = Vec::new();
    for request in &asked {
        match granted.iter().find(|grant| grant.covers(request)) {
            Some(grant) => drop(used.insert(grant)),
            None => wrong.push(format!("not granted: {request:?}")),
        }
    }
    for grant in &granted {
        if !used.contains(grant) && grant.reason().is_none() {
            wrong.push(format!("granted and not used: {grant}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_right_that_is_seldom_used_is_granted() {
    let granted = granted();
    for (reason, who, rights) in SELDOM {
        for right in *rights {
            let is_it = |grant: &Grant| grant.who == *who && grant.words() == *right;
            assert!(granted.iter().any(is_it), "{who:?}: {right}: {reason}");
        }
    }
}
