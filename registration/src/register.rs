//! Registers a cluster, or brings its registration up to date.

use std::collections::BTreeSet;

use ferromesh_crds::{
    KubernetesCluster, meta,
    name::{ClusterName, Namespace},
};
use ferromesh_runtime::client::{self, Options};
use k8s_openapi::api::core::v1;
use kube::{
    Client,
    core::{ApiResource, DynamicObject, ObjectMeta},
};

use crate::{
    account::{self, has_label},
    credential::{self, Credential, CredentialKind, Validity},
    door::Door,
    error::{Error, Failure},
    object::{Claim, Object, Side},
    plan::{Answers, CLUSTER_UID_ANNOTATION, Plan, Registration, token_secret},
    progress::{Event, Warning},
};

/// Carries a [`Plan`] out, and tells how long the credential is valid if it expires.
///
/// Everything that can be refused is looked at before anything is written. What fails later leaves objects
/// that the next run takes up again; a run that finds all as planned changes nothing but the token.
pub async fn register(
    management: &Client,
    remote: &Client,
    registration: &Registration,
    progress: &mut (dyn FnMut(Event) + Send),
) -> Result<Option<Validity>, Error> {
    let management = Door::new(Side::Management, management);
    let remote = Door::new(Side::Remote, remote);
    let draft = Plan::new(registration);

    check_kubeconfig(registration, progress)?;
    let registered = registered(&management, registration).await?;
    let cluster_uid = cluster_uid(&remote).await?;
    if let Some(registered) = &registered {
        check_same_cluster(&registration.name, registered, &cluster_uid)?;
    }
    if !cluster_uid.is_empty() && self::cluster_uid(&management).await? == cluster_uid {
        progress(Event::Warning(Warning::SameCluster));
    }
    for other in other_names(&management, registration, &cluster_uid).await? {
        progress(Event::Warning(Warning::RegisteredTwice { other }));
    }
    let absent = absent_namespaces(&remote, registration).await?;
    let on_remote: Vec<&Object> = draft
        .remote
        .iter()
        .filter(|object| {
            object
                .namespace()
                .is_none_or(|namespace| !absent.contains(namespace))
        })
        .collect();
    let on_remote = found(&remote, on_remote, registration).await?;
    let in_management: Vec<&Object> = draft.management.iter().collect();
    let in_management = found(&management, in_management, registration).await?;
    for namespace in absent {
        progress(Event::Warning(Warning::NoIstioNamespace { namespace }));
    }

    for (object, current) in &on_remote {
        write(&remote, object, current.as_ref(), progress).await?;
    }
    let credential = issue(&remote, registration).await?;
    let validity = credential.validity;
    progress(Event::CredentialIssued { validity });
    let plan = Plan::with(
        registration,
        &Answers {
            credential,
            cluster_uid,
        },
    );
    for (object, (_, current)) in plan.management.iter().zip(&in_management) {
        write(&management, object, current.as_ref(), progress).await?;
    }
    // What an earlier run was told to make and this one was not: an account elsewhere, rights in another
    // namespace, a token that never expires.
    let keep = draft.remote.iter().map(Object::reference).collect();
    account::remove(&remote, &registration.name, &keep, progress).await?;
    Ok(validity)
}

/// Refuses what the management plane would refuse, and warns of what it would warn of.
fn check_kubeconfig(
    registration: &Registration,
    progress: &mut (dyn FnMut(Event) + Send),
) -> Result<(), Error> {
    let placeholder = Answers::unknown(registration).credential.token;
    let Registration {
        name, api_server, ..
    } = registration;
    let kubeconfig = api_server.kubeconfig(name, &placeholder);
    let connection =
        client::from_bytes(kubeconfig.as_bytes(), &Options::default()).map_err(|source| {
            Error::Unusable {
                cluster: name.clone(),
                source: Box::new(source),
            }
        })?;
    for warning in connection.warnings {
        progress(Event::Warning(Warning::Connection(warning)));
    }
    if api_server.is_local() {
        let server = api_server.address().to_owned();
        progress(Event::Warning(Warning::LocalAddress { server }));
    }
    Ok(())
}

/// What is known of the cluster that is registered under the name, if there is one.
async fn registered(
    management: &Door<'_>,
    registration: &Registration,
) -> Result<Option<ObjectMeta>, Error> {
    let clusters = ApiResource::erase::<KubernetesCluster>(&());
    let namespace = registration.management_namespace.as_str();
    let name = registration.name.as_str();
    let found = management
        .find_metadata(&clusters, Some(namespace), name)
        .await?;
    if found.is_none() && !management.serves(&clusters, namespace).await? {
        return Err(Error::NoDefinitions);
    }
    Ok(found)
}

/// The uid of a cluster's `kube-system`, which every cluster has and none shares; empty if it may not be read.
pub(crate) async fn cluster_uid(door: &Door<'_>) -> Result<String, Error> {
    let namespaces = ApiResource::erase::<v1::Namespace>(&());
    match door.find_metadata(&namespaces, None, "kube-system").await {
        Ok(found) => Ok(found.and_then(|meta| meta.uid).unwrap_or_default()),
        Err(error) if error.failure() == Some(Failure::Forbidden) => Ok(String::new()),
        Err(error) => Err(error),
    }
}

/// Refuses to take one cluster for another of the same name.
pub(crate) fn check_same_cluster(
    cluster: &ClusterName,
    registered: &ObjectMeta,
    given: &str,
) -> Result<(), Error> {
    let annotations = registered.annotations.as_ref();
    let uid = annotations.and_then(|annotations| annotations.get(CLUSTER_UID_ANNOTATION));
    match uid {
        Some(registered) if registered != given && !given.is_empty() => Err(Error::OtherCluster {
            cluster: cluster.clone(),
            registered: registered.clone(),
            given: given.to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Other names under which the same cluster is registered, as far as they may be read.
async fn other_names(
    management: &Door<'_>,
    registration: &Registration,
    cluster_uid: &str,
) -> Result<Vec<String>, Error> {
    let clusters = ApiResource::erase::<KubernetesCluster>(&());
    let registered = match management.list(&clusters, "").await {
        Err(error) if error.failure() == Some(Failure::Forbidden) => None,
        registered => registered?,
    };
    let namespace = registration.management_namespace.as_str();
    let is_same = |it: &ObjectMeta| {
        let uid = it
            .annotations
            .as_ref()
            .and_then(|all| all.get(CLUSTER_UID_ANNOTATION));
        it.namespace.as_deref() == Some(namespace)
            && uid.is_some_and(|uid| !uid.is_empty() && uid == cluster_uid)
    };
    let registered = registered.into_iter().flatten().filter(is_same);
    let mut names: Vec<_> = registered.filter_map(|it| it.name).collect();
    names.retain(|name| name != registration.name.as_str());
    Ok(names)
}

/// The namespaces of istiod that do not exist yet.
async fn absent_namespaces(
    remote: &Door<'_>,
    registration: &Registration,
) -> Result<BTreeSet<Namespace>, Error> {
    let namespaces = ApiResource::erase::<v1::Namespace>(&());
    let mut absent = BTreeSet::new();
    for namespace in &registration.istio_namespaces {
        // The plan makes that one.
        if *namespace == registration.remote_namespace {
            continue;
        }
        if remote
            .find_metadata(&namespaces, None, namespace.as_str())
            .await?
            .is_none()
        {
            absent.insert(namespace.clone());
        }
    }
    Ok(absent)
}

/// What each object is now. An object that belongs to somebody else is an error.
async fn found<'a>(
    door: &Door<'_>,
    objects: Vec<&'a Object>,
    registration: &Registration,
) -> Result<Vec<(&'a Object, Option<DynamicObject>)>, Error> {
    let mut found = Vec::with_capacity(objects.len());
    for object in objects {
        let current = door.find(object).await?;
        if let Some(current) = &current
            && !is_ours(object, current, &registration.name)
        {
            return Err(Error::Foreign {
                object: object.reference(),
                side: door.side(),
                cluster: registration.name.clone(),
            });
        }
        found.push((object, current));
    }
    Ok(found)
}

fn is_ours(object: &Object, current: &DynamicObject, cluster: &ClusterName) -> bool {
    match object.claim() {
        Claim::Everybodys | Claim::Shared | Claim::Definition => true,
        Claim::Labelled => has_label(&current.metadata, cluster),
        Claim::Named => current.data.get("type") == object.body().data.get("type"),
    }
}

async fn write(
    door: &Door<'_>,
    object: &Object,
    current: Option<&DynamicObject>,
    progress: &mut (dyn FnMut(Event) + Send),
) -> Result<(), Error> {
    let (side, reference) = (door.side(), object.reference());
    if object.claim() == Claim::Definition && current.is_some_and(|current| !is_applied(current)) {
        let reason = "somebody else installed it";
        progress(Event::Kept {
            side,
            object: reference,
            reason,
        });
        return Ok(());
    }
    let change = door.apply(object, current).await?;
    progress(Event::Applied {
        side,
        object: reference,
        change,
    });
    Ok(())
}

/// Whether a registration has written the object.
fn is_applied(object: &DynamicObject) -> bool {
    let fields = object.metadata.managed_fields.iter().flatten();
    fields
        .into_iter()
        .any(|entry| entry.manager.as_deref() == Some(meta::CLI_FIELD_MANAGER))
}

async fn issue(remote: &Door<'_>, registration: &Registration) -> Result<Credential, Error> {
    let Registration {
        name,
        remote_namespace,
        ..
    } = registration;
    match registration.credential {
        CredentialKind::Requested { lifetime } => {
            let (token, validity) =
                credential::request(remote, name, remote_namespace, lifetime).await?;
            Ok(Credential {
                token,
                validity: Some(validity),
            })
        }
        CredentialKind::LongLived => {
            let secret = token_secret(name);
            let token = credential::await_token(remote, remote_namespace, &secret).await?;
            Ok(Credential {
                token,
                validity: None,
            })
        }
    }
}
