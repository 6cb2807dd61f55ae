//! Where something stands.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Place {
    file: Arc<str>,
    /// The document, counted from 1 among those that hold something; none where it is the only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<usize>,
    /// The item, counted from 1, where the document is a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<usize>,
}

impl Place {
    /// A file as a whole.
    pub(super) fn file(file: Arc<str>) -> Self {
        Self {
            file,
            document: None,
            item: None,
        }
    }

    /// A document in it.
    pub(super) fn document(&self, document: usize) -> Self {
        Self {
            document: Some(document),
            ..self.clone()
        }
    }

    /// An item of a list there.
    pub(super) fn item(&self, item: usize) -> Self {
        Self {
            item: Some(item),
            ..self.clone()
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(document) = self.document {
            write!(f, ", document {document}")?;
        }
        match self.item {
            Some(item) => write!(f, ", item {item}"),
            None => Ok(()),
        }
    }
}
