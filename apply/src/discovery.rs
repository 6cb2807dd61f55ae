//! In which version a cluster serves a kind.

use std::sync::Arc;

use serde::Deserialize;

use crate::{error::Error, object::Kind, ssa::Writer};

/// What of an `APIResourceList` counts.
#[derive(Deserialize)]
struct Resources {
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    name: String,
}

/// The best version of a kind that the cluster serves; none if it serves none of them.
pub(crate) async fn best_version(writer: &Writer, kind: &Kind) -> Result<Option<Arc<str>>, Error> {
    for version in &kind.versions {
        let path = match &*kind.group {
            "" => format!("/api/{version}"),
            group => format!("/apis/{group}/{version}"),
        };
        let action = || format!("asking which kinds {path} serves");
        let served = writer.document::<Resources>(action, &path).await?;
        let mut resources = served
            .map(|served| served.resources)
            .unwrap_or_default()
            .into_iter();
        if resources.any(|resource| *resource.name == *kind.plural) {
            return Ok(Some(Arc::clone(version)));
        }
    }
    Ok(None)
}
