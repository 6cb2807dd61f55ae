//! Image references.

/// Tag of an image, else its digest, else nothing.
///
/// The part after the last slash may have a tag after a colon; a digest follows an `@`
/// (distribution reference grammar). What cannot be a tag says nothing.
pub(super) fn version(image: &str) -> &str {
    let (name, digest) = image.split_once('@').unwrap_or((image, ""));
    let last = name.rsplit('/').next().unwrap_or(name);
    match last.split_once(':') {
        Some((_, tag)) if is_tag(tag) => tag,
        Some(_) => "",
        None => digest,
    }
}

/// Letters, digits, `_`, `.` and `-`, neither of the last two in front, at most 128.
fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= 128
        && text.bytes().next().is_some_and(is_word)
        && text
            .bytes()
            .all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'))
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
            ("istio/pilot:", ""),
            ("istio/pilot:1.26 rc", ""),
        ] {
            assert_eq!(version(image), expected, "{image}");
        }
    }
}
