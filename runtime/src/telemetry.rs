//! Logs: text for people, JSON for machines, on standard error; what is logged can change while running.
//!
//! Where the feature `otlp` is there, spans of [`SPANS`] are told to a collector; logs never are.

#[cfg(feature = "otlp")]
mod otlp;

use std::{error::Error as StdError, fmt, io::IsTerminal};

use kube::core::Status;
use tracing::Subscriber;
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    filter::ParseError,
    fmt::{MakeWriter, layer},
    layer::SubscriberExt,
    registry::LookupSpan,
    reload,
    util::{SubscriberInitExt, TryInitError},
};

/// The client logs whole answers that it cannot read, Secrets among them, and each failure that it also
/// returns: only on explicit demand.
const ALWAYS: &str = "kube_client::client=off";

/// The target of spans that tell what becomes of a change. In logs they are seen at level `trace` alone.
pub const SPANS: &str = "ferromesh_change";

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// A line of text.
    #[default]
    Text,
    /// A JSON object per line.
    Json,
}

/// Why logs are not as they were asked for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not a filter.
    #[error(
        "reading the log filter {directives:?}: expected a level, or target=level, separated by commas"
    )]
    Filter {
        /// What was given.
        directives: String,
        /// Why.
        #[source]
        source: ParseError,
    },
    /// This process has a subscriber already.
    #[error("installing the log subscriber")]
    Install(#[source] TryInitError),
    /// Spans cannot be sent there.
    #[cfg(feature = "otlp")]
    #[error("reading the address {endpoint:?} of a collector: expected http://host:port")]
    Endpoint {
        /// What was given.
        endpoint: String,
    },
    /// What sends spans cannot begin.
    #[cfg(feature = "otlp")]
    #[error("starting a runtime that sends spans")]
    Runtime(#[source] std::io::Error),
    /// What sends spans is not as it should.
    #[cfg(feature = "otlp")]
    #[error("making what sends spans")]
    Exporter(#[source] opentelemetry_otlp::ExporterBuildError),
    /// The subscriber is gone.
    #[error("changing the log filter")]
    Reload(#[source] reload::Error),
}

/// Changes what is logged. Clones share it.
#[derive(Clone, Debug)]
pub struct LogHandle {
    filter: reload::Handle<EnvFilter, Registry>,
}

#[cfg(feature = "otlp")]
pub use self::otlp::Traces;

/// An error and its causes in one line, each told once.
///
/// For log fields, statuses and messages: `error = %Chain(&error)`.
pub struct Chain<'a>(pub &'a (dyn StdError + 'static));

/// Logs to standard error from now on. At most once per process.
///
/// `directives` is a level, or `target=level` pairs, as `info,tower=debug`.
pub fn init(directives: &str, format: LogFormat) -> Result<LogHandle, Error> {
    let is_terminal = std::io::stderr().is_terminal();
    let (subscriber, handle) = subscriber(directives, format, is_terminal, std::io::stderr)?;
    subscriber.try_init().map_err(Error::Install)?;
    Ok(handle)
}

/// As [`init`], and tells spans to the collector at `endpoint`, as `http://collector:4318`, as those of
/// `service`.
#[cfg(feature = "otlp")]
pub fn init_traced(
    directives: &str,
    format: LogFormat,
    endpoint: &str,
    service: &'static str,
) -> Result<(LogHandle, Traces), Error> {
    let is_terminal = std::io::stderr().is_terminal();
    let (subscriber, handle) = subscriber(directives, format, is_terminal, std::io::stderr)?;
    let (spans, traces) = otlp::layer(endpoint, service)?;
    subscriber.with(spans).try_init().map_err(Error::Install)?;
    Ok((handle, traces))
}

fn subscriber<W>(
    directives: &str,
    format: LogFormat,
    has_colours: bool,
    writer: W,
) -> Result<
    (
        impl Subscriber + for<'a> LookupSpan<'a> + Send + Sync + 'static,
        LogHandle,
    ),
    Error,
>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let (filter, handle) = reload::Layer::new(filter(directives)?);
    let lines = match format {
        LogFormat::Text => layer().with_ansi(has_colours).with_writer(writer).boxed(),
        LogFormat::Json => layer()
            .json()
            .flatten_event(true)
            .with_writer(writer)
            .boxed(),
    };
    // What is logged says nothing of what is traced.
    let subscriber = Registry::default().with(lines.with_filter(filter));
    Ok((subscriber, LogHandle { filter: handle }))
}

fn filter(directives: &str) -> Result<EnvFilter, Error> {
    EnvFilter::try_new(format!("{ALWAYS},{directives}")).map_err(|source| Error::Filter {
        directives: directives.to_owned(),
        source,
    })
}

// === impl LogHandle ===

impl LogHandle {
    /// Logs by these directives from now on. If they cannot be read, nothing changes.
    pub fn set(&self, directives: &str) -> Result<(), Error> {
        self.filter
            .reload(filter(directives)?)
            .map_err(Error::Reload)
    }
}

// === impl Chain ===

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut told = text(self.0);
        f.write_str(&told)?;
        let mut source = self.0.source();
        while let Some(error) = source {
            let text = text(error);
            // Some libraries repeat the cause in the text of the error.
            if !told.contains(&text) {
                write!(f, ": {text}")?;
                told = text;
            }
            source = error.source();
        }
        Ok(())
    }
}

/// What an error says; of an API server's refusal its message alone, which kube prints with its debug form.
fn text(error: &(dyn StdError + 'static)) -> String {
    let kube = downcast::<kube::Error>(error);
    let status = match kube {
        Some(kube::Error::Api(status)) => Some(status.as_ref()),
        _ => downcast::<Status>(error),
    };
    match status {
        Some(status) if !status.message.is_empty() => status.message.clone(),
        Some(status) => format!("{} {}", status.code, status.reason),
        None => error.to_string(),
    }
}

fn downcast<'a, E: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a E> {
    let boxed = || error.downcast_ref::<Box<E>>().map(Box::as_ref);
    error.downcast_ref::<E>().or_else(boxed)
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use tracing::subscriber::with_default;

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Lines {
        fn take(&self) -> String {
            String::from_utf8(std::mem::take(&mut self.0.lock().unwrap())).unwrap()
        }
    }

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(directives: &str, format: LogFormat, body: impl FnOnce(&LogHandle, &Lines)) {
        let lines = Lines::default();
        let writer = lines.clone();
        let (subscriber, handle) =
            subscriber(directives, format, false, move || writer.clone()).unwrap();
        with_default(subscriber, || body(&handle, &lines));
    }

    #[test]
    fn json_lines_are_objects_with_the_fields_of_the_event() {
        logged("info", LogFormat::Json, |_, lines| {
            tracing::info!(kind = "Pod", "watching");
            let line: serde_json::Value = serde_json::from_str(&lines.take()).unwrap();
            assert_eq!(line["message"], "watching");
            assert_eq!(line["kind"], "Pod");
            assert_eq!(line["level"], "INFO");
        });
    }

    #[test]
    fn the_filter_changes_at_run_time_and_a_bad_one_changes_nothing() {
        logged("info", LogFormat::Text, |handle, lines| {
            tracing::debug!("before");
            handle.set("debug").unwrap();
            tracing::debug!("after");
            let error = handle.set("a=b=c").unwrap_err();
            assert!(error.to_string().contains("a=b=c"), "{error}");
            tracing::debug!("still");
            let text = lines.take();
            assert!(
                !text.contains("before") && text.contains("after") && text.contains("still"),
                "{text}"
            );
        });
    }

    #[test]
    fn the_clients_own_log_of_answers_stays_off_until_it_is_named() {
        logged("trace", LogFormat::Text, |handle, lines| {
            tracing::warn!(target: "kube_client::client", "answer with a secret");
            assert_eq!(lines.take(), "");
            handle.set("info,kube_client::client=warn").unwrap();
            tracing::warn!(target: "kube_client::client", "asked for");
            assert!(lines.take().contains("asked for"));
        });
    }

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layered {
        text: &'static str,
        source: Option<Box<Layered>>,
    }

    #[test]
    fn a_chain_tells_each_cause_once() {
        let source = |text, source: Option<Layered>| Layered {
            text,
            source: source.map(Box::new),
        };
        let refused = source("connection refused", None);
        let connect = source("tcp connect", Some(refused));
        let repeating = source("client error: tcp connect", Some(connect));
        let error = source("listing pods", Some(repeating));
        assert_eq!(
            Chain(&error).to_string(),
            "listing pods: client error: tcp connect: connection refused"
        );
    }

    #[test]
    fn a_refusal_is_told_in_the_words_of_the_api_server() {
        let status = Status::failure("pods is forbidden", "Forbidden").with_code(403);
        let error = kube::Error::Api(status.boxed());
        assert_eq!(Chain(&error).to_string(), "pods is forbidden");
        let boxed: Box<kube::Error> = Box::new(error);
        assert_eq!(Chain(&boxed).to_string(), "pods is forbidden");
    }
}
