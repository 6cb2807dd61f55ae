//! The token of the account: how it is got, how long it lives, how it is renewed.
//!
//! By default a token is requested that expires, and whoever holds it may request the next one. So a copy
//! that lies somewhere (in a backup, in an old Secret) is worth nothing after some days; a thief who uses
//! it at once is stopped by deregistering, which deletes the account. No copy is made but the one in the
//! kubeconfig Secret. Where nobody renews, a token that never expires can be asked for instead.

use std::{collections::BTreeMap, fmt, time::Duration};

use ferromesh_crds::{
    meta,
    name::{ClusterName, Namespace},
};
use k8s_openapi::{
    ByteString,
    api::{
        authentication::v1::{TokenRequest, TokenRequestSpec},
        core::v1::{Secret, ServiceAccount},
    },
    jiff::{SignedDuration, Timestamp},
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::time::Instant;
use zeroize::Zeroizing;

use crate::{
    door::{Action, Door},
    error::Error,
    kubeconfig,
    object::{Reference, Side},
};

/// For how long a token is requested: renewed after half of it, it outlives an outage of the management
/// plane, or of the way to a cluster, of three and a half days: a long weekend.
///
/// API servers may grant less (Kubernetes: `--service-account-max-token-expiration`; some providers allow
/// a day). What was granted counts.
pub const DEFAULT_LIFETIME: Duration = Duration::from_hours(7 * 24);

/// The shortest time for which a token can be requested (Kubernetes: `TokenRequestSpec`).
pub const MIN_LIFETIME: Duration = Duration::from_mins(10);

/// Annotations on a kubeconfig Secret: when the token in it was issued, and when it expires (RFC 3339).
const ISSUED_ANNOTATION: &str = "registration.mesh.gloo.solo.io/credential-issued";
const EXPIRES_ANNOTATION: &str = "registration.mesh.gloo.solo.io/credential-expires";
/// Instead of the latter date, where there is none.
const NEVER: &str = "never";

/// How long the token of a Secret may take to appear, and how often it is looked for.
const TOKEN_DEADLINE: Duration = Duration::from_secs(10);
const TOKEN_POLL: Duration = Duration::from_millis(200);

/// How the management plane shows who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialKind {
    /// By a token that expires and is renewed.
    Requested {
        /// For how long it is requested; at least [`MIN_LIFETIME`].
        lifetime: Duration,
    },
    /// By a token that lives as long as its Secret in the remote cluster. Nobody can renew it.
    LongLived,
}

/// From when to when a token is valid, by the clock of the API server that issued it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// When it was issued.
    pub issued: Timestamp,
    /// When it expires.
    pub expires: Timestamp,
}

/// A bearer token. It is wiped when it is dropped, and never shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token(Zeroizing<String>);

/// A token, and how long it is valid if it expires.
#[derive(Clone, Debug)]
pub(crate) struct Credential {
    pub(crate) token: Token,
    pub(crate) validity: Option<Validity>,
}

/// Whose credential is to be renewed.
#[derive(Clone, Debug)]
pub struct Account {
    /// The name of the registered cluster.
    pub cluster: ClusterName,
    /// The namespace of the kubeconfig Secret.
    pub management_namespace: Namespace,
    /// The namespace of the `ServiceAccount` in the remote cluster: `KubernetesCluster`
    /// `status.namespace`.
    pub remote_namespace: Namespace,
}

/// What came of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// There is a new token in the Secret.
    Renewed(Validity),
    /// The token in the Secret does not say that it expires: it is not ours to renew.
    NeverExpires,
    /// The Secret is gone: the cluster has been deregistered.
    Deregistered,
}

// === impl CredentialKind ===

impl CredentialKind {
    /// Whether the token expires.
    pub fn expires(self) -> bool {
        matches!(self, Self::Requested { .. })
    }
}

/// A token of [`DEFAULT_LIFETIME`].
impl Default for CredentialKind {
    fn default() -> Self {
        Self::Requested {
            lifetime: DEFAULT_LIFETIME,
        }
    }
}

// === impl Token ===

impl Token {
    pub(crate) fn new(token: String) -> Self {
        Self(Zeroizing::new(token))
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

// === impl Validity ===

impl Validity {
    /// Of the token in a kubeconfig Secret, if it expires.
    pub fn of(secret: &Secret) -> Option<Self> {
        let annotations = secret.metadata.annotations.as_ref()?;
        let time = |key| annotations.get(key)?.parse().ok();
        Some(Self {
            issued: time(ISSUED_ANNOTATION)?,
            expires: time(EXPIRES_ANNOTATION)?,
        })
    }

    /// When half of the token's life is over: the time to renew it, with as much time again to retry.
    pub fn renewal(self) -> Timestamp {
        let life = self.expires.duration_since(self.issued);
        self.issued
            .checked_add(life / 2)
            .unwrap_or(self.expires)
            .min(self.expires)
    }

    /// Whether it is time to renew the token.
    pub fn is_renewal_due(self, now: Timestamp) -> bool {
        now >= self.renewal()
    }

    /// The annotations that say so.
    fn annotations(self) -> BTreeMap<String, String> {
        [
            (ISSUED_ANNOTATION.to_owned(), self.issued.to_string()),
            (EXPIRES_ANNOTATION.to_owned(), self.expires.to_string()),
        ]
        .into()
    }
}

// === impl Credential ===

impl Credential {
    /// The annotations of the Secret that holds it.
    ///
    /// A token that does not expire says so, rather than nothing: after a renewal the annotations of the
    /// one before belong to the server, and would stay.
    pub(crate) fn annotations(&self) -> BTreeMap<String, String> {
        match self.validity {
            Some(validity) => validity.annotations(),
            None => [(EXPIRES_ANNOTATION.to_owned(), NEVER.to_owned())].into(),
        }
    }
}

/// Renews the credential of a registered cluster, whether or not it is due.
///
/// `remote` is a client with the present credential: its right to request its own next token is the one
/// that is used. Of the Secret only the kubeconfig and the two dates change. A Secret that somebody else
/// has changed meanwhile is left alone: that is [`Failure::Conflict`](crate::error::Failure::Conflict), and
/// the renewal can be tried again.
pub async fn renew(
    management: &Client,
    remote: &Client,
    account: &Account,
    lifetime: Duration,
) -> Result<Renewal, Error> {
    let door = Door::new(Side::Management, management);
    let name = account.cluster.as_str();
    let namespace = account.management_namespace.as_str();
    let reference = Reference::new("Secret", Some(namespace), name);
    let Some(secret) = door.find_secret(namespace, name).await? else {
        return Ok(Renewal::Deregistered);
    };
    if Validity::of(&secret).is_none() {
        return Ok(Renewal::NeverExpires);
    }
    let kubeconfig = secret
        .data
        .as_ref()
        .and_then(|data| data.get(meta::KUBECONFIG_KEY));
    let kubeconfig = kubeconfig.map(|ByteString(bytes)| bytes.as_slice());

    let door = Door::new(Side::Remote, remote);
    let (token, validity) =
        request(&door, &account.cluster, &account.remote_namespace, lifetime).await?;
    let kubeconfig =
        kubeconfig::with_token(kubeconfig.unwrap_or_default(), &token).map_err(|source| {
            Error::Stored {
                object: reference.clone(),
                source: Box::new(source),
            }
        })?;

    let data = json!({ meta::KUBECONFIG_KEY: ByteString(kubeconfig.into_bytes()) });
    // Not by server-side apply: that would bring a Secret back that was deleted meanwhile.
    let patch = json!({
        "metadata": {
            "resourceVersion": secret.metadata.resource_version,
            "annotations": validity.annotations(),
        },
        "data": data,
    });
    let parameters = PatchParams {
        field_manager: Some(meta::FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let door = Door::new(Side::Management, management);
    let secrets: Api<Secret> = Api::namespaced(management.clone(), namespace);
    match secrets
        .patch(name, &parameters, &Patch::Merge(&patch))
        .await
    {
        Ok(_) => Ok(Renewal::Renewed(validity)),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(Renewal::Deregistered),
        Err(error) => Err(door.failed(Action::Write, &reference)(error)),
    }
}

/// Requests a token of the cluster's account.
pub(crate) async fn request(
    door: &Door<'_>,
    cluster: &ClusterName,
    namespace: &Namespace,
    lifetime: Duration,
) -> Result<(Token, Validity), Error> {
    let name = cluster.as_str();
    let reference = Reference::new("ServiceAccount", Some(namespace.as_str()), name);
    let accounts: Api<ServiceAccount> = Api::namespaced(door.client().clone(), namespace.as_str());
    let request = TokenRequest {
        spec: TokenRequestSpec {
            expiration_seconds: Some(i64::try_from(lifetime.as_secs()).unwrap_or(i64::MAX)),
            ..TokenRequestSpec::default()
        },
        ..TokenRequest::default()
    };
    let answer = accounts
        .create_token_request(name, &PostParams::default(), &request)
        .await
        .map_err(door.failed(Action::RequestToken, &reference))?;
    let status = answer.status.ok_or_else(|| Error::NoToken {
        object: reference.clone(),
    })?;
    let token = Token::new(status.token);
    if token.expose().is_empty() {
        return Err(Error::NoToken { object: reference });
    }
    let expires = status.expiration_timestamp.0;
    // Reckoned from what was granted, so that both ends are told by one clock.
    let granted = answer.spec.expiration_seconds;
    let issued = granted
        .and_then(|seconds| expires.checked_sub(SignedDuration::from_secs(seconds)).ok())
        .unwrap_or_else(Timestamp::now);
    Ok((token, Validity { issued, expires }))
}

/// The token of a Secret that the cluster fills by itself.
pub(crate) async fn await_token(
    door: &Door<'_>,
    namespace: &Namespace,
    name: &str,
) -> Result<Token, Error> {
    let reference = Reference::new("Secret", Some(namespace.as_str()), name);
    let deadline = Instant::now() + TOKEN_DEADLINE;
    loop {
        let secret = door.find_secret(namespace.as_str(), name).await?;
        let token = secret
            .and_then(|secret| secret.data)
            .and_then(|mut data| data.remove("token"));
        let token = token.and_then(|ByteString(token)| String::from_utf8(token).ok());
        match token.filter(|token| !token.is_empty()) {
            Some(token) => return Ok(Token::new(token)),
            None if Instant::now() >= deadline => return Err(Error::NoToken { object: reference }),
            None => tokio::time::sleep(TOKEN_POLL).await,
        }
    }
}
