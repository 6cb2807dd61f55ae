//! A digest of some content, to see whether it has changed.

use std::fmt;

use aws_lc_rs::digest::{Context, SHA256, SHA256_OUTPUT_LEN};

/// SHA-256 over one or several pieces of content.
///
/// Nothing of the content can be read from it, so it may appear in logs and statuses even if the content
/// is secret.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; SHA256_OUTPUT_LEN]);

impl Fingerprint {
    /// The fingerprint of `pieces`; where one piece ends and the next begins counts.
    pub fn of<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut context = Context::new(&SHA256);
        for piece in pieces {
            let length = u64::try_from(piece.len()).expect("a length in memory fits 64 bits");
            context.update(&length.to_be_bytes());
            context.update(piece);
        }
        let digest = context.finish();
        let mut bytes = [0; SHA256_OUTPUT_LEN];
        bytes.copy_from_slice(digest.as_ref());
        Self(bytes)
    }
}

/// The first 16 hexadecimal digits: enough for an eye to see a difference.
impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .take(8)
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::Fingerprint;

    #[test]
    fn moving_a_byte_between_pieces_changes_the_fingerprint() {
        let one = Fingerprint::of([b"ab".as_slice(), b"c"]);
        let other = Fingerprint::of([b"a".as_slice(), b"bc"]);
        assert_ne!(one, other);
        assert_eq!(one, Fingerprint::of([b"ab".as_slice(), b"c"]));
    }

    #[test]
    fn is_printed_as_sixteen_hexadecimal_digits() {
        let text = Fingerprint::of([b"content".as_slice()]).to_string();
        assert_eq!(text.len(), 16);
        assert!(text.chars().all(|c| c.is_ascii_hexdigit()), "{text}");
    }
}
