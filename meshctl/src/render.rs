//! What is shown, and where: data on stdout, everything else on stderr.

mod json;
pub(crate) mod table;
mod yaml;

use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, Stderr, Stdout, Write};

use ferromesh_core::report::Report;
use ferromesh_runtime::telemetry::Chain;
use serde::Serialize;

use crate::args::Form;
use crate::error::{Error, Exit, Outcome};

/// Both streams of this process.
pub(crate) struct Screen {
    out: BufWriter<Stdout>,
    err: Stderr,
}

impl Screen {
    pub(crate) fn new() -> Self {
        Self {
            out: BufWriter::with_capacity(1 << 16, io::stdout()),
            err: io::stderr(),
        }
    }

    /// Shows a document.
    pub(crate) fn document(&mut self, form: Form, document: &impl Serialize) -> Result<(), Error> {
        match form {
            Form::Json => json::write(&mut self.out, document),
            Form::Yaml => yaml::write(&mut self.out, document),
        }
        .map_err(Error::write)
    }

    /// Shows what comes of objects.
    pub(crate) fn report(&mut self, form: Form, report: &Report) -> Result<(), Error> {
        match form {
            Form::Json => json::report(&mut self.out, report),
            Form::Yaml => yaml::write(&mut self.out, report),
        }
        .map_err(Error::write)
    }

    /// Shows a line, or several.
    pub(crate) fn line(&mut self, line: impl Display) -> Result<(), Error> {
        writeln!(self.out, "{}", plain(&line.to_string())).map_err(Error::write)
    }

    /// Shows a text as it is.
    pub(crate) fn bytes(&mut self, text: &[u8]) -> Result<(), Error> {
        self.out.write_all(text).map_err(Error::write)
    }

    /// Tells something beside the data.
    pub(crate) fn note(&mut self, note: impl Display) {
        // Who closed stderr does not want to know.
        writeln!(self.err, "{}", plain(&note.to_string())).ok();
    }

    /// Ends the showing: tells why a verb failed, and says what the caller gets to know.
    pub(crate) fn close(mut self, result: Result<Outcome, Error>) -> Exit {
        let result = result.and_then(|outcome| {
            self.out.flush().map_err(Error::write)?;
            Ok(outcome)
        });
        match result {
            Ok(outcome) => outcome.into(),
            // Whoever reads has seen enough, as `head` has.
            Err(Error::System { source, .. }) if source.kind() == ErrorKind::BrokenPipe => {
                Exit::Clean
            }
            Err(error) => {
                let exit = error.exit();
                self.note(format_args!("error: {}", Chain(&error)));
                exit
            }
        }
    }
}

/// A text without what a terminal would obey: it may come from anybody.
fn plain(text: &str) -> String {
    text.replace(|c: char| c.is_control() && c != '\n', "\u{fffd}")
}

/// So many things, in words: `1 object`, `2 objects`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// A part of a document as YAML, without a newline at its end.
pub(crate) fn yaml_of(part: &impl Serialize) -> String {
    let text = serde_saphyr::to_string(part).unwrap_or_default();
    text.trim_end().to_owned()
}
