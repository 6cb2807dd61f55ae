//! A Secret that cannot be printed.

use std::fmt;

use k8s_openapi::api::core::v1::Secret;
use zeroize::Zeroize as _;

/// A Secret with a private key in it: no `Debug` of its content, no `Clone`, wiped when dropped.
pub struct Sealed(Secret);

impl Sealed {
    /// The Secret itself, to be written.
    pub fn open(&self) -> &Secret {
        &self.0
    }

    /// The entries, name and content.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let entries = self.0.data.iter().flatten();
        entries.map(|(name, content)| (name.as_str(), content.0.as_slice()))
    }

    /// The content of one entry.
    pub fn entry(&self, name: &str) -> Option<&[u8]> {
        let entry = self.0.data.as_ref()?.get(name)?;
        Some(entry.0.as_slice())
    }
}

impl From<Secret> for Sealed {
    fn from(secret: Secret) -> Self {
        Self(secret)
    }
}

impl Drop for Sealed {
    fn drop(&mut self) {
        for content in self.0.data.iter_mut().flat_map(|data| data.values_mut()) {
            content.0.zeroize();
        }
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let meta = &self.0.metadata;
        let part = |part: &Option<String>| part.clone().unwrap_or_default();
        write!(f, "Secret({}/{})", part(&meta.namespace), part(&meta.name))
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;

    use super::*;

    #[test]
    fn the_content_of_a_sealed_secret_does_not_show() {
        let secret = Secret {
            data: Some([("key".to_owned(), ByteString(b"very private".to_vec()))].into()),
            ..Secret::default()
        };
        let bytes = format!("{:?}", b"very private");
        let shown = format!("{:?}", Sealed::from(secret));
        assert!(
            !shown.contains("private") && !shown.contains(&bytes),
            "{shown}"
        );
    }
}
