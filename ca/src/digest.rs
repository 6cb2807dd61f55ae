//! SHA-256 as a value.

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::digest;

/// A SHA-256 digest, written as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The digest of all `parts`, one after the other.
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut context = digest::Context::new(&digest::SHA256);
        for part in parts {
            context.update(part);
        }
        let bytes = context.finish();
        Self(<[u8; 32]>::try_from(bytes.as_ref()).expect("a SHA-256 digest has 32 bytes"))
    }

    /// The digest itself.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first eight hexadecimal digits: enough to tell a few keys apart in a name.
    pub fn short(&self) -> String {
        self.to_string().chars().take(8).collect()
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a fingerprint is written as 64 hexadecimal digits")]
pub struct NotAFingerprint;

impl FromStr for Fingerprint {
    type Err = NotAFingerprint;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(NotAFingerprint);
        }
        for (index, byte) in bytes.iter_mut().enumerate() {
            let digits = text.get(index * 2..index * 2 + 2).ok_or(NotAFingerprint)?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| NotAFingerprint)?;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_the_sha_256_of_all_parts_together() {
        // FIPS 180-4, the message "abc".
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let parts: [&[u8]; 2] = [b"a", b"bc"];
        let digest = Fingerprint::of(parts);
        assert_eq!(digest.to_string(), known);
        assert_eq!(known.parse(), Ok(digest));
        assert_eq!(digest.short(), "ba7816bf");
    }

    #[test]
    fn text_that_is_not_a_fingerprint_is_refused() {
        assert_eq!("".parse::<Fingerprint>(), Err(NotAFingerprint));
        assert_eq!("+".repeat(64).parse::<Fingerprint>(), Err(NotAFingerprint));
        assert_eq!("é".repeat(32).parse::<Fingerprint>(), Err(NotAFingerprint));
    }
}
