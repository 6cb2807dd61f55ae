//! Pages of lists and events of watches, read object by object.

use std::{io, marker::PhantomData, pin::Pin, time::Duration};

use axum::http::{HeaderValue, Request, header::ACCEPT_ENCODING};
use futures_util::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};
use kube::{
    Api, Client, Resource,
    api::{ListParams, WatchParams},
    core::{Status, request},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::{Config, Error, InvalidObject, NamespacedName};

/// The largest page of a list that is read. 500 objects of ordinary size have some megabytes.
const MAX_PAGE: u64 = 256 * 1024 * 1024;

/// The largest event of a watch that is read. Objects are bounded by etcd, at 1.5 MiB by default.
const MAX_EVENT: u64 = 16 * 1024 * 1024;

/// The longest error that is kept of an invalid object.
const MAX_ERROR: usize = 512;

/// An object of the kind, or what can be said of one that is not.
pub(super) type Parsed<K> = Result<K, InvalidObject>;

/// The path of a collection, which every error names.
#[derive(Clone)]
struct Place(String);

/// One collection of one API server.
pub(super) struct Source<K> {
    client: Client,
    place: Place,
    request: request::Request,
    list: ListParams,
    watch: WatchParams,
    timeout: Duration,
    kind: PhantomData<fn() -> K>,
}

/// A page of a list, its objects not yet parsed.
#[derive(Deserialize)]
pub(super) struct Page {
    #[serde(default)]
    metadata: PageMeta,
    /// Go writes an empty list as `null` at times.
    items: Option<Vec<Box<RawValue>>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PageMeta {
    resource_version: Option<String>,
    r#continue: Option<String>,
}

/// Events of one watch.
pub(super) struct Events<K> {
    place: Place,
    stream: Pin<Box<dyn AsyncBufRead + Send>>,
    line: Vec<u8>,
    kind: PhantomData<fn() -> K>,
}

/// An event and where it leaves the watch.
pub(super) struct Positioned<K> {
    pub(super) version: Option<String>,
    pub(super) event: Event<K>,
}

pub(super) enum Event<K> {
    Applied(Parsed<K>),
    Deleted(NamespacedName),
    Bookmark,
}

/// What identifies an object, be the rest of it what it may.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Identified {
    metadata: Identity,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Identity {
    namespace: Option<String>,
    name: Option<String>,
    generation: Option<i64>,
    resource_version: Option<String>,
}

#[derive(Deserialize)]
struct Line<'a> {
    r#type: EventType,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum EventType {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
}

// === impl Source ===

impl<K: Resource + DeserializeOwned + 'static> Source<K> {
    pub(super) fn new(api: Api<K>, config: &Config<K>) -> Self {
        let seconds = u32::try_from(config.watch_timeout.as_secs()).unwrap_or(u32::MAX);
        Self {
            place: Place(api.resource_url().to_owned()),
            request: request::Request::new(api.resource_url()),
            client: api.into_client(),
            list: ListParams {
                label_selector: config.labels.clone(),
                field_selector: config.fields.clone(),
                limit: Some(config.page_size.get()),
                ..ListParams::default()
            },
            watch: WatchParams {
                label_selector: config.labels.clone(),
                field_selector: config.fields.clone(),
                timeout: Some(seconds.max(1)),
                bookmarks: true,
                send_initial_events: false,
            },
            timeout: config.request_timeout,
            kind: PhantomData,
        }
    }

    /// The first page of a list, or the one that follows `token`.
    pub(super) async fn page(&self, token: Option<String>) -> Result<Page, Error> {
        let params = ListParams {
            continue_token: token,
            ..self.list.clone()
        };
        self.list(params).await
    }

    /// The version that the API server has come to, if it tells.
    pub(super) async fn newest(&self) -> Result<Option<String>, Error> {
        let params = ListParams {
            limit: Some(1),
            ..self.list.clone()
        };
        Ok(self.list(params).await?.version())
    }

    async fn list(&self, params: ListParams) -> Result<Page, Error> {
        let request = if K::metadata_api() {
            self.request.list_metadata(&params)
        } else {
            self.request.list(&params)
        };
        let read = async {
            let mut stream = Box::pin(self.open(request).await?.take(MAX_PAGE));
            let mut body = Vec::new();
            let read = stream.read_to_end(&mut body).await;
            read.map_err(|source| self.place.broken(source))?;
            if stream.limit() == 0 {
                return Err(self.place.too_large(MAX_PAGE));
            }
            serde_json::from_slice(&body).map_err(|source| self.place.malformed(source))
        };
        self.within_timeout(read).await
    }

    /// What happens after `version`.
    pub(super) async fn watch(&self, version: &str) -> Result<Events<K>, Error> {
        let request = if K::metadata_api() {
            self.request.watch_metadata(&self.watch, version)
        } else {
            self.request.watch(&self.watch, version)
        };
        let stream = self.within_timeout(self.open(request)).await?;
        Ok(Events {
            place: self.place.clone(),
            stream: Box::pin(stream),
            line: Vec::new(),
            kind: PhantomData,
        })
    }

    async fn open(
        &self,
        request: Result<Request<Vec<u8>>, request::Error>,
    ) -> Result<impl AsyncBufRead + Send + use<K>, Error> {
        let opened = async {
            let mut request = request.map_err(kube::Error::BuildRequest)?;
            let identity = HeaderValue::from_static("identity");
            // Events must come when they happen and not when a compressor is full.
            request.headers_mut().insert(ACCEPT_ENCODING, identity);
            self.client.request_stream(request).await
        };
        opened.await.map_err(|error| match error {
            kube::Error::Api(status) => self.place.refused(status),
            source => Error::Transport {
                path: self.place.path(),
                source: Box::new(source),
            },
        })
    }

    async fn within_timeout<T>(
        &self,
        request: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let answered = tokio::time::timeout(self.timeout, request).await;
        answered.unwrap_or_else(|_| {
            Err(Error::TimedOut {
                path: self.place.path(),
                after: self.timeout,
            })
        })
    }

    pub(super) fn short_watch(&self) -> Error {
        Error::ShortWatch {
            path: self.place.path(),
        }
    }

    pub(super) fn no_resource_version(&self) -> Error {
        Error::NoResourceVersion {
            path: self.place.path(),
        }
    }
}

// === impl Place ===

impl Place {
    fn path(&self) -> String {
        self.0.clone()
    }

    fn refused(&self, status: Box<Status>) -> Error {
        Error::Refused {
            path: self.path(),
            status,
        }
    }

    fn broken(&self, source: io::Error) -> Error {
        Error::Broken {
            path: self.path(),
            source,
        }
    }

    fn malformed(&self, source: serde_json::Error) -> Error {
        Error::Malformed {
            path: self.path(),
            source,
        }
    }

    fn too_large(&self, limit: u64) -> Error {
        Error::TooLarge {
            path: self.path(),
            limit,
        }
    }
}

// === impl Page ===

impl Page {
    /// Takes the objects out.
    pub(super) fn objects<K: DeserializeOwned>(
        &mut self,
    ) -> impl Iterator<Item = Parsed<K>> + use<K> {
        let items = self.items.take().unwrap_or_default();
        items.into_iter().map(|object| parse(&object))
    }

    /// The token of the page after this one, if this is not the last.
    pub(super) fn next_page(&self) -> Option<String> {
        self.metadata
            .r#continue
            .clone()
            .filter(|token| !token.is_empty())
    }

    /// The version of the list.
    pub(super) fn version(&self) -> Option<String> {
        self.metadata
            .resource_version
            .clone()
            .filter(|version| !version.is_empty())
    }
}

// === impl Events ===

impl<K: Resource + DeserializeOwned> Events<K> {
    /// The next event; none at the end of the watch. After an error the watch is of no use.
    pub(super) async fn next(&mut self) -> Result<Option<Positioned<K>>, Error> {
        loop {
            self.line.clear();
            let mut bounded = (&mut self.stream).take(MAX_EVENT);
            let read = bounded.read_until(b'\n', &mut self.line).await;
            read.map_err(|source| self.place.broken(source))?;
            if self.line.last() != Some(&b'\n') {
                let is_too_large = bounded.limit() == 0;
                return if is_too_large {
                    Err(self.place.too_large(MAX_EVENT))
                } else {
                    Ok(None)
                };
            }
            if !self.line.trim_ascii().is_empty() {
                return self.read_line().map(Some);
            }
        }
    }

    fn read_line(&self) -> Result<Positioned<K>, Error> {
        let line: Line =
            serde_json::from_slice(&self.line).map_err(|source| self.place.malformed(source))?;
        match line.r#type {
            EventType::Added | EventType::Modified => {
                let object = parse::<K>(line.object);
                let version = match &object {
                    Ok(object) => object.meta().resource_version.clone(),
                    Err(_) => Identity::of(line.object).resource_version,
                };
                Ok(Positioned {
                    version,
                    event: Event::Applied(object),
                })
            }
            EventType::Deleted => {
                let identity = Identity::of(line.object);
                let version = identity.resource_version.clone();
                Ok(Positioned {
                    version,
                    event: Event::Deleted(identity.key()),
                })
            }
            EventType::Bookmark => Ok(Positioned {
                version: Identity::of(line.object).resource_version,
                event: Event::Bookmark,
            }),
            EventType::Error => match serde_json::from_str::<Status>(line.object.get()) {
                Ok(status) => Err(self.place.refused(Box::new(status))),
                Err(error) => Err(self.place.malformed(error)),
            },
        }
    }
}

// === impl Identity ===

impl Identity {
    /// As much as can be read.
    fn of(object: &RawValue) -> Self {
        serde_json::from_str::<Identified>(object.get())
            .unwrap_or_default()
            .metadata
    }

    fn key(self) -> NamespacedName {
        NamespacedName {
            namespace: self.namespace,
            name: self.name.unwrap_or_default(),
        }
    }
}

fn parse<K: DeserializeOwned>(object: &RawValue) -> Parsed<K> {
    serde_json::from_str(object.get()).map_err(|error| {
        let identity = Identity::of(object);
        let mut error = error.to_string();
        error.truncate(error.floor_char_boundary(MAX_ERROR));
        InvalidObject {
            generation: identity.generation,
            key: identity.key(),
            error,
        }
    })
}
