//! From a request to the network: the layers of [`kube`], and below them what may stop a write at the last moment.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use axum::{
    body::{Bytes, HttpBody},
    http::Request,
};
use http_body::{Frame, SizeHint};
use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{Client as Transport, connect::HttpConnector},
    rt::TokioExecutor,
};
use kube::{
    Client, Config,
    client::{Body, ConfigExt, retry::RetryPolicy},
};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use tower::{BoxError, ServiceBuilder, retry::RetryLayer, timeout::TimeoutLayer};

use super::Options;

/// Asked at the last moment whether what a request carries may still be sent; stands in its extensions.
///
/// Between a caller and the network a request waits for several tasks. This is asked by the one that writes to the
/// connection, in the same breath. A request that carries nothing is not asked for.
#[derive(Clone)]
pub(crate) struct Gate(Arc<dyn Fn() -> bool + Send + Sync>);

/// The gate of a request was closed.
#[derive(Debug, thiserror::Error)]
#[error("what the request carries may not be sent any more")]
struct Closed;

/// What a request carries, behind its gate.
struct Gated {
    body: Body,
    gate: Option<Gate>,
}

/// A client of the API server of `config`, which has no proxy.
pub(super) fn client(config: &Config, options: &Options) -> kube::Result<Client> {
    if CryptoProvider::get_default().is_none() {
        // The only error is that there is one since.
        drop(aws_lc_rs::default_provider().install_default());
    }
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    let tls = config.rustls_https_connector_with_connector(tcp)?;
    let mut connector = TimeoutConnector::new(tls);
    connector.set_connect_timeout(Some(options.connect_timeout));
    connector.set_read_timeout(Some(options.read_timeout));
    // Otherwise the time that a pooled connection was idle counts as silence of the next answer.
    connector.set_reset_reader_on_write(true);
    let retries = options
        .retries
        .then(|| RetryLayer::new(RetryPolicy::server_retry()));
    let service = ServiceBuilder::new()
        .layer(TimeoutLayer::new(options.response_timeout))
        .layer(config.base_uri_layer())
        .option_layer(retries)
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_request(gated)
        .map_err(BoxError::from)
        .service(Transport::builder(TokioExecutor::new()).build(connector));
    Ok(Client::new(service, config.default_namespace.clone()))
}

fn gated(request: Request<Body>) -> Request<Gated> {
    let (mut head, body) = request.into_parts();
    let gate = head.extensions.remove();
    Request::from_parts(head, Gated { body, gate })
}

// === impl Gate ===

impl Gate {
    /// A gate that is open as long as `is_open` says so.
    pub(crate) fn new(is_open: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_open))
    }

    fn is_open(&self) -> bool {
        self.0()
    }
}

// === impl Gated ===

impl HttpBody for Gated {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if self.gate.as_ref().is_some_and(|gate| !gate.is_open()) {
            return Poll::Ready(Some(Err(Closed.into())));
        }
        Poll::Ready(frame.map(|frame| frame.map_err(BoxError::from)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
        task::JoinHandle,
    };

    use super::*;

    const CARRIED: &str = r#"{"kind":"ConfigMap"}"#;

    /// An API server that reads one request to its end or that of the connection, and agrees.
    async fn server() -> (Client, JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let read = tokio::spawn(async move {
            let (mut connection, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(CARRIED.as_bytes())
                && connection.read_buf(&mut request).await.unwrap() > 0
            {}
            let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
            // Nobody may be there any more.
            drop(connection.write_all(answer.as_bytes()).await);
            String::from_utf8(request).unwrap()
        });
        let config = Config::new(address.parse().unwrap());
        (client(&config, &Options::default()).unwrap(), read)
    }

    fn write(gate: Gate) -> Request<Body> {
        let mut request = Request::put("/x").body(CARRIED.as_bytes().to_vec().into());
        request.as_mut().unwrap().extensions_mut().insert(gate);
        request.unwrap()
    }

    #[tokio::test]
    async fn what_is_behind_an_open_gate_is_sent_with_its_length() {
        let (client, read) = server().await;
        let answer = client.send(write(Gate::new(|| true))).await.unwrap();
        assert_eq!(answer.status(), 200);
        let request = read.await.unwrap();
        assert!(request.ends_with(CARRIED), "{request}");
        let length = format!("content-length: {}\r\n", CARRIED.len());
        assert!(request.contains(&length), "{request}");
    }

    #[tokio::test]
    async fn what_is_behind_a_closed_gate_never_leaves_though_the_request_was_on_its_way() {
        let (client, read) = server().await;
        let error = client.send(write(Gate::new(|| false))).await.unwrap_err();
        drop(client);
        let request = read.await.unwrap();
        assert!(!request.contains(CARRIED), "{request}");
        let mut told = Vec::new();
        let mut source: Option<&dyn Error> = Some(&error);
        while let Some(error) = source {
            told.push(error.to_string());
            source = error.source();
        }
        assert!(told.contains(&Closed.to_string()), "{told:?}");
    }
}
