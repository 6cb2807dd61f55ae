//! Spans, told to a collector by OTLP: protobuf over HTTP/1.1.
//!
//! The collector stands beside this process or in its cluster: there is no TLS to it. Spans are gathered and
//! sent by a thread of their own; where the collector is slow or away they are dropped.

use std::{fmt, future::Future, pin::Pin, time::Duration};

use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{Bytes, HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    trace::{BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider},
};
use tokio::runtime::Runtime;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::{Layer, filter::filter_fn, registry::LookupSpan};

use super::{Error, SPANS};

/// Where collectors listen for spans (OTLP: OTLP/HTTP request).
const PATH: &str = "/v1/traces";
/// How long spans are gathered before they are sent.
const DELAY: Duration = Duration::from_secs(1);
/// How long a collector may take for its answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The largest answer that is read, in bytes.
const MAX_ANSWER: usize = 64 * 1024;

/// Sends what has been gathered when it is told to [end](Self::end).
#[derive(Debug)]
pub struct Traces {
    provider: SdkTracerProvider,
}

/// A collector, asked by a thread that does nothing else.
struct Collector {
    runtime: Runtime,
    client: Client<HttpConnector, Full<Bytes>>,
}

/// The layer that tells spans to the collector at `endpoint`, as `http://collector:4318`.
pub(super) fn layer<S>(
    endpoint: &str,
    service: &'static str,
) -> Result<(impl Layer<S> + Send + Sync + 'static, Traces), Error>
where
    S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
{
    let endpoint = address(endpoint)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::Runtime)?;
    let client = Client::builder(TokioExecutor::new()).build_http();
    let exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(endpoint)
        .with_timeout(TIMEOUT)
        .with_http_client(Collector { runtime, client })
        .build()
        .map_err(Error::Exporter)?;
    let batches = BatchConfigBuilder::default()
        .with_scheduled_delay(DELAY)
        .build();
    let processor = BatchSpanProcessor::builder(exporter)
        .with_batch_config(batches)
        .build();
    let provider = SdkTracerProvider::builder()
        .with_span_processor(processor)
        .with_resource(Resource::builder().with_service_name(service).build())
        .build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer(service))
        .with_filter(filter_fn(is_traced));
    Ok((layer, Traces { provider }))
}

/// Whether a span tells what becomes of a change. Events are for logs.
fn is_traced(of: &Metadata<'_>) -> bool {
    of.is_span() && of.target() == SPANS
}

/// The address that spans are sent to.
fn address(endpoint: &str) -> Result<String, Error> {
    let refused = || Error::Endpoint {
        endpoint: endpoint.to_owned(),
    };
    let uri: Uri = endpoint.parse().map_err(|_| refused())?;
    if uri.scheme_str() != Some("http") || uri.query().is_some() {
        return Err(refused());
    }
    let base = endpoint.trim_end_matches('/');
    Ok(format!("{base}{PATH}"))
}

// === impl Traces ===

impl Traces {
    /// Sends what has been gathered. Takes as long as the collector does, a few seconds at most.
    pub fn end(self) {
        if let Err(error) = self.provider.shutdown_with_timeout(TIMEOUT) {
            tracing::warn!(%error, "the last spans could not be sent");
        }
    }
}

// === impl Collector ===

impl Collector {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let answer = self.client.request(request.map(Full::new)).await?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, MAX_ANSWER).collect().await?.to_bytes();
        Ok(Response::from_parts(head, body))
    }
}

impl HttpClient for Collector {
    /// Blocks: the thread that gathers spans has nothing else to do, and no runtime.
    fn send_bytes<'life0, 'async_trait>(
        &'life0 self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async move {
            let answer = async { tokio::time::timeout(TIMEOUT, self.send(request)).await };
            self.runtime.block_on(answer)?
        })
    }
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_is_named_by_its_address_alone() {
        assert_eq!(
            address("http://collector:4318").unwrap(),
            "http://collector:4318/v1/traces"
        );
        assert_eq!(
            address("http://collector/otlp/").unwrap(),
            "http://collector/otlp/v1/traces"
        );
        for wrong in ["collector:4318", "https://collector", "http://a?b", "", "/"] {
            let error = address(wrong).unwrap_err().to_string();
            assert!(error.contains("http://"), "{wrong}: {error}");
        }
    }
}
