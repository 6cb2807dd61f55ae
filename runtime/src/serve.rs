//! HTTPS and HTTP serving with limits and a graceful end.
//!
//! Binding and serving are two steps, so that the address is known, and wrong ones are found, before
//! anybody is told to send traffic.
//!
//! The end has three stages. From the moment the token is cancelled every answer on HTTP/1.1 carries
//! `Connection: close`, while new connections are still taken: clients with a pool of connections, as API
//! servers have, leave one by one (the lame duck). Then the listener closes, idle connections are closed,
//! and requests in flight are answered. What is left at the deadline is cut.

mod connection;

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    extract::ConnectInfo,
    http::{HeaderValue, Request, StatusCode, Version, header::CONNECTION},
    response::{IntoResponse, Response},
};
use axum_server::{
    AddrListener, Handle, Server as HttpServer,
    accept::{Accept, DefaultAcceptor},
    tls_rustls::{RustlsAcceptor, RustlsConfig},
};
use hyper_util::rt::TokioTimer;
use tokio_util::sync::CancellationToken;
use tower::Service;

use self::connection::{Endpoint, Listener, Stream};
use crate::tls::{self, ServedCredential};

/// What one server allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time; further ones wait in the kernel's backlog.
    pub connections: usize,
    /// How long a TLS handshake may take.
    pub handshake_timeout: Duration,
    /// How long a connection of HTTP/1.1 may take to send the head of a request, the time that it is idle
    /// before it included. API servers close idle connections after 90 s; to close first would lose
    /// requests that are on their way.
    pub head_timeout: Duration,
    /// How long a request may take, its body included; none for streams without end.
    pub request_timeout: Option<Duration>,
    /// The age from which a connection is closed with its next answer, so that clients spread over
    /// replicas again. One that says nothing is closed `head_timeout` later.
    pub max_age: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            handshake_timeout: Duration::from_secs(10),
            head_timeout: Duration::from_secs(100),
            request_timeout: Some(Duration::from_secs(30)),
            max_age: Duration::from_mins(5),
        }
    }
}

/// How a server ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drain {
    /// How long new connections are still taken, for those who have not heard yet that we are going.
    pub lame_duck: Duration,
    /// How long requests may take after that.
    pub deadline: Duration,
}

impl Default for Drain {
    fn default() -> Self {
        Self {
            lame_duck: Duration::from_secs(5),
            deadline: Duration::from_secs(20),
        }
    }
}

/// How a server has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Drained {
    /// Connections that were cut at the deadline.
    pub cut: usize,
}

/// Why a server cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address cannot be listened on.
    #[error("listening on {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The listener broke.
    #[error("accepting connections on {address}")]
    Accept {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// A server that is bound to its address and does not serve yet.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    address: SocketAddr,
    limits: Limits,
}

// === impl Server ===

impl Server {
    /// Listens on `address`; port 0 takes a free one. Must be called within a Tokio runtime.
    pub async fn bind(address: SocketAddr, limits: Limits) -> Result<Self, Error> {
        let failed = |source| Error::Bind { address, source };
        let listener = Listener::bind_to(Endpoint::new(address, limits))
            .await
            .map_err(failed)?;
        let address = listener.get_local_addr().map_err(failed)?.address;
        Ok(Self {
            listener,
            address,
            limits,
        })
    }

    /// The address that is listened on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves `app` over TLS until `cancel`, then drains.
    ///
    /// Handlers find the peer's address as [`ConnectInfo<SocketAddr>`].
    pub async fn https(
        self,
        app: Router,
        credential: &ServedCredential,
        drain: Drain,
        cancel: CancellationToken,
    ) -> Result<Drained, Error> {
        let config = RustlsConfig::from_config(tls::server_config(credential));
        let acceptor = RustlsAcceptor::new(config).handshake_timeout(self.limits.handshake_timeout);
        self.serve(acceptor, app, drain, cancel).await
    }

    /// Serves `app` without TLS until `cancel`, then drains. For addresses inside a pod.
    pub async fn http(
        self,
        app: Router,
        drain: Drain,
        cancel: CancellationToken,
    ) -> Result<Drained, Error> {
        self.serve(DefaultAcceptor::new(), app, drain, cancel).await
    }

    async fn serve<A>(
        self,
        acceptor: A,
        app: Router,
        drain: Drain,
        cancel: CancellationToken,
    ) -> Result<Drained, Error>
    where
        A: Accept<Stream, Answering, Service = Answering> + Clone + Send + Sync + 'static,
        A::Stream: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send,
        A::Future: Send,
    {
        let Self {
            listener,
            address,
            limits,
        } = self;
        let handle = Handle::new();
        let mut server = HttpServer::<Endpoint>::from_listener(listener)
            .acceptor(acceptor)
            .handle(handle.clone());
        let mut http1 = server.http_builder().http1();
        http1
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head_timeout);
        let mut http2 = server.http_builder().http2();
        http2
            .timer(TokioTimer::new())
            .keep_alive_interval(Duration::from_secs(30))
            .keep_alive_timeout(Duration::from_secs(10));

        let draining = cancel.clone();
        let serving = server.serve(tower::service_fn(move |endpoint: Endpoint| {
            let answering = Answering {
                app: app.clone(),
                endpoint,
                draining: draining.clone(),
            };
            std::future::ready(Ok::<_, Infallible>(answering))
        }));
        let mut serving = std::pin::pin!(serving);
        let failed = |source| Error::Accept { address, source };

        let lame_duck = async {
            cancel.cancelled().await;
            tokio::time::sleep(drain.lame_duck).await;
        };
        tokio::select! {
            ended = &mut serving => return ended.map(|()| Drained { cut: 0 }).map_err(failed),
            () = lame_duck => {}
        }
        handle.graceful_shutdown(None);
        tokio::select! {
            biased;
            ended = &mut serving => ended.map(|()| Drained { cut: 0 }).map_err(failed),
            () = tokio::time::sleep(drain.deadline) => {
                let cut = handle.connection_count();
                handle.shutdown();
                serving.await.map(|()| Drained { cut }).map_err(failed)
            }
        }
    }
}

/// Answers the requests of one connection.
#[derive(Clone)]
struct Answering {
    app: Router,
    endpoint: Endpoint,
    draining: CancellationToken,
}

// === impl Answering ===

impl<B> Service<Request<B>> for Answering
where
    Router: Service<Request<B>, Response = Response, Error = Infallible, Future: Send + 'static>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let busy = self.endpoint.activity.begin();
        let limits = self.endpoint.limits;
        let draining = self.draining.clone();
        let is_http1 = request.version() <= Version::HTTP_11;
        let peer = ConnectInfo(self.endpoint.address);
        request.extensions_mut().insert(peer);
        let answer = self.app.call(request);
        Box::pin(async move {
            let answer = match limits.request_timeout {
                None => answer.await,
                Some(timeout) => match tokio::time::timeout(timeout, answer).await {
                    Ok(answer) => answer,
                    Err(_) => Ok(too_slow(timeout)),
                },
            };
            let Ok(mut answer) = answer;
            // HTTP/2 has no such header: GOAWAY takes its place when draining ends.
            if is_http1 && (draining.is_cancelled() || busy.age() >= limits.max_age) {
                answer
                    .headers_mut()
                    .insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok(answer)
        })
    }
}

fn too_slow(timeout: Duration) -> Response {
    let text = format!("no answer within {} s\n", timeout.as_secs());
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}
