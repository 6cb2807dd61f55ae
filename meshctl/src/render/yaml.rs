//! YAML: one document.

use std::io::{self, Write};

use serde::Serialize;
use serde_saphyr::ser::Error;

pub(super) fn write(out: &mut impl Write, document: &impl Serialize) -> io::Result<()> {
    serde_saphyr::to_io_writer(out, document).map_err(|error| match error {
        Error::IO { error } => error,
        error => io::Error::other(error),
    })
}
