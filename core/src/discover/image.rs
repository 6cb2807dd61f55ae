//! Image references.

/// Tag of an image, else its digest, else nothing.
///
/// The part after the last slash may have a tag after a colon; a digest follows an `@`
/// (distribution reference grammar).
pub(super) fn version(image: &str) -> &str {
    let (name, digest) = match image.split_once('@') {
        Some((name, digest)) => (name, digest),
        None => (image, ""),
    };
    let last = name.rsplit('/').next().unwrap_or(name);
    last.split_once(':').map_or(digest, |(_, tag)| tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_wins_over_a_digest_and_a_registry_port_is_no_tag() {
        for (image, expected) in [
            ("docker.io/istio/pilot:1.26.2", "1.26.2"),
            ("istio-pilot:latest", "latest"),
            ("localhost:5000/istio/pilot", ""),
            ("istio/pilot@sha256:abc", "sha256:abc"),
            ("istio/pilot:1.26@sha256:abc", "1.26"),
        ] {
            assert_eq!(version(image), expected, "{image}");
        }
    }
}
