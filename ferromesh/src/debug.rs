//! `GET /debug/snapshot`: what this replica knows and does, for a person who looks for the cause of something.
//!
//! Without a query: the clusters, the lease, queues and how much there is of everything; `?cluster=` names
//! the one cluster that is meant. With `?kind=&namespace=&name=&cluster=`: why one object is as it is. No
//! content of an object that was read is told, of a Secret not even why it cannot be read.

mod view;

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use ferromesh_controller::Metrics;
use ferromesh_core::explain::{Explanation, Question};
use ferromesh_mirror::Handle;
use ferromesh_runtime::beside;
use ferromesh_runtime::lease::Claim;
use serde::Serialize;
use tokio::sync::watch;

use self::view::Snapshot;

/// Where it is asked for; RBAC grants it by this name.
const PATH: &str = "/debug/snapshot";
/// The largest answer, in bytes.
const MAX_ANSWER: usize = 8 << 20;

/// What there is to look into.
pub(crate) struct Replica {
    pub(crate) mirror: Handle,
    pub(crate) claim: watch::Receiver<Claim>,
    pub(crate) metrics: Metrics,
    /// By which name it claims the lease.
    pub(crate) identity: String,
}

/// What is asked.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    /// Everything, or everything about one registered cluster.
    All { cluster: Option<String> },
    /// One object.
    Object(Question),
}

/// Why one object is as it is, and which state says so.
#[derive(Serialize)]
struct Told {
    revision: u64,
    #[serde(flatten)]
    explanation: Explanation,
}

/// What cannot be told.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{0}; ask for kind=, namespace=, name= and cluster=, or for cluster= alone")]
    Query(String),
    #[error("the answer has more than {} MiB: name one cluster with ?cluster=", MAX_ANSWER >> 20)]
    TooLarge,
    #[error("the answer could not be written")]
    Unwritten,
}

/// The route. Whoever calls this sees to it that not everybody may ask.
pub(crate) fn router(replica: Replica) -> Router {
    Router::new()
        .route(PATH, get(snapshot))
        .with_state(Arc::new(replica))
}

async fn snapshot(
    State(replica): State<Arc<Replica>>,
    RawQuery(query): RawQuery,
) -> Result<Response, Error> {
    let asked = Asked::read(query.as_deref().unwrap_or_default())?;
    let told = beside::run(move || replica.tell(&asked)).await;
    let text = told.map_err(|_| Error::Unwritten)??;
    Ok(([(CONTENT_TYPE, "application/json")], text).into_response())
}

// === impl Asked ===

impl Asked {
    /// Reads a query. Names of objects hold nothing that would be escaped there.
    fn read(query: &str) -> Result<Self, Error> {
        let [mut kind, mut namespace, mut name, mut cluster] = [const { None }; 4];
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (field, value) = pair.split_once('=').unwrap_or((pair, ""));
            let place = match field {
                "kind" => &mut kind,
                "namespace" => &mut namespace,
                "name" => &mut name,
                "cluster" => &mut cluster,
                _ => return Err(Error::Query(format!("there is no {field}="))),
            };
            if place.replace(value).is_some() {
                return Err(Error::Query(format!("{field}= is there twice")));
            }
        }
        match (kind, name) {
            (None, None) if namespace.is_none() => Ok(Self::All {
                cluster: cluster.map(str::to_owned),
            }),
            (Some(kind), Some(name)) => {
                let namespace = namespace.unwrap_or_default();
                let cluster = cluster.unwrap_or_default();
                let question = Question::new(kind, namespace, name, cluster);
                let question = question.map_err(|error| Error::Query(error.to_string()))?;
                Ok(Self::Object(question))
            }
            (None, _) => Err(Error::Query("kind= is missing".to_owned())),
            (Some(_), None) => Err(Error::Query("name= is missing".to_owned())),
        }
    }
}

// === impl Replica ===

impl Replica {
    fn tell(&self, asked: &Asked) -> Result<Vec<u8>, Error> {
        match asked {
            Asked::All { cluster } => write(&Snapshot::take(self, cluster.as_deref())),
            Asked::Object(question) => write(&Told {
                revision: *self.mirror.revision().borrow(),
                explanation: self.mirror.state().explain(question),
            }),
        }
    }
}

/// JSON, as far as there is room.
fn write(value: &impl Serialize) -> Result<Vec<u8>, Error> {
    let mut text = Bounded(Vec::new());
    match serde_json::to_writer_pretty(&mut text, value) {
        Ok(()) => Ok(text.0),
        Err(error) if error.is_io() => Err(Error::TooLarge),
        Err(_) => Err(Error::Unwritten),
    }
}

/// A text that does not grow beyond what an answer may have.
struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_ANSWER {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let status = match self {
            Self::Query(_) => StatusCode::BAD_REQUEST,
            Self::TooLarge => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Unwritten => StatusCode::INTERNAL_SERVER_ERROR,
        };
        (status, format!("{self}\n")).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_means_everything_one_cluster_or_one_object() {
        let all = |cluster: Option<&str>| Asked::All {
            cluster: cluster.map(str::to_owned),
        };
        assert_eq!(Asked::read("").unwrap(), all(None));
        assert_eq!(Asked::read("cluster=east").unwrap(), all(Some("east")));
        let object = Question::new("Service", "shop", "reviews", "east").unwrap();
        assert_eq!(
            Asked::read("kind=Service&namespace=shop&name=reviews&cluster=east").unwrap(),
            Asked::Object(object)
        );
    }

    #[test]
    fn a_query_that_means_nothing_is_told_what_it_lacks() {
        for (query, told) in [
            ("kind=Service", "name= is missing"),
            ("name=reviews", "kind= is missing"),
            ("namespace=shop", "kind= is missing"),
            ("color=red", "there is no color="),
            ("cluster=a&cluster=b", "cluster= is there twice"),
            ("kind=Sock&name=a", "kind \"Sock\" is not one"),
        ] {
            let error = Asked::read(query).unwrap_err().to_string();
            assert!(error.contains(told), "{query}: {error}");
        }
    }

    #[test]
    fn an_answer_that_is_too_large_is_not_given() {
        let large = "x".repeat(MAX_ANSWER / 2);
        assert!(write(&[&large]).is_ok());
        let error = write(&[&large, &large]).unwrap_err();
        assert!(matches!(error, Error::TooLarge), "{error}");
    }
}
