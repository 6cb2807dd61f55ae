//! PEM text, read strictly and written so that every verifier reads it alike.
//!
//! Verifiers disagree on text that is slightly wrong: where one refuses a whole bundle because
//! two blocks share a line, another silently loses a root. So the reader takes only what all
//! take: boundaries alone on their lines, no headers, canonical base64. Text outside the blocks
//! is a comment. The writer ends every block with a newline and reads back what it wrote.

use zeroize::Zeroizing;

use crate::certificate::Certificate;
use crate::error::{Error, PemFault};

/// The most bytes of PEM text that are read as certificates.
pub const MAX_CERTIFICATES_BYTES: usize = 1024 * 1024;
/// The most certificates that one text may hold.
pub const MAX_CERTIFICATES: usize = 128;

pub(crate) const CERTIFICATE: &str = "CERTIFICATE";

/// The base64 characters of a line that is written.
const LINE: usize = 64;
/// The longest line of base64 that is read.
const MAX_LINE: usize = 76;
/// The most characters of a label that are shown.
const SHOWN: usize = 64;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// What may be read from one input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) bytes: usize,
    pub(crate) blocks: usize,
}

/// One block: its label and its decoded content, which may be secret.
pub(crate) struct Block {
    pub(crate) label: &'static str,
    pub(crate) content: Zeroizing<Vec<u8>>,
}

/// Reads one or more certificates, and nothing but certificates. `item` names the input in
/// errors.
///
/// # Errors
/// [`Error::Pem`] and [`Error::Der`].
pub fn read_certificates(item: &'static str, text: &[u8]) -> Result<Vec<Certificate>, Error> {
    let limits = Limits {
        bytes: MAX_CERTIFICATES_BYTES,
        blocks: MAX_CERTIFICATES,
    };
    let blocks = read_blocks(item, text, limits, &[CERTIFICATE])?;
    blocks
        .iter()
        .map(|block| Certificate::read(item, &block.content))
        .collect()
}

/// Reads exactly one certificate. `item` names the input in errors.
///
/// # Errors
/// [`Error::Pem`] and [`Error::Der`].
pub fn read_certificate(item: &'static str, text: &[u8]) -> Result<Certificate, Error> {
    let mut certificates = read_certificates(item, text)?.into_iter();
    match (certificates.next(), certificates.next()) {
        (Some(certificate), None) => Ok(certificate),
        _ => Err(Error::Pem {
            item,
            line: 1,
            fault: PemFault::TooMany { limit: 1 },
        }),
    }
}

/// Writes certificates one after the other, each block ended by a newline.
///
/// # Errors
/// [`Error::Pem`] if they are more than the reader takes.
pub fn write_certificates<'a>(
    item: &'static str,
    certificates: impl IntoIterator<Item = &'a Certificate>,
) -> Result<String, Error> {
    let certificates: Vec<&Certificate> = certificates.into_iter().collect();
    let mut text = String::new();
    for certificate in &certificates {
        text.push_str(&write_block(CERTIFICATE, certificate.der()));
    }
    let read = read_certificates(item, text.as_bytes())?;
    assert!(
        read.iter().eq(certificates),
        "what is written as PEM reads back the same"
    );
    Ok(text)
}

/// Writes one block. The text is allocated once, so that no copy of a key stays behind.
pub(crate) fn write_block(label: &str, content: &[u8]) -> Zeroizing<String> {
    let base64 = content.len().div_ceil(3) * 4;
    let boundaries = 2 * (label.len() + "-----BEGIN -----\n".len());
    let mut text = Zeroizing::new(String::with_capacity(
        base64 + base64.div_ceil(LINE) + boundaries,
    ));
    text.push_str("-----BEGIN ");
    text.push_str(label);
    text.push_str("-----\n");
    // 48 bytes are 64 characters of base64.
    for line in content.chunks(LINE / 4 * 3) {
        for group in line.chunks(3) {
            encode(group, &mut text);
        }
        text.push('\n');
    }
    text.push_str("-----END ");
    text.push_str(label);
    text.push_str("-----\n");
    text
}

fn encode(group: &[u8], text: &mut String) {
    let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or_default());
    let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (index, shift) in [18, 12, 6, 0].into_iter().enumerate() {
        if index > group.len() {
            text.push('=');
        } else {
            let digit = usize::try_from(bits >> shift & 0x3f).expect("six bits fit");
            text.push(char::from(ALPHABET[digit]));
        }
    }
}

enum Boundary<'a> {
    Begin(&'a str),
    End(&'a str),
}

/// A line that is a boundary; `Err` for one that holds a boundary and something else.
fn boundary(line: &[u8]) -> Result<Option<Boundary<'_>>, PemFault> {
    let holds = |wanted: &[u8]| line.windows(wanted.len()).any(|window| window == wanted);
    if !holds(b"-----BEGIN") && !holds(b"-----END") {
        return Ok(None);
    }
    let text = std::str::from_utf8(line).map_err(|_| PemFault::Boundary)?;
    let text = text.strip_suffix("-----").ok_or(PemFault::Boundary)?;
    let (begin, label) = match text.strip_prefix("-----BEGIN ") {
        Some(label) => (true, label),
        None => (
            false,
            text.strip_prefix("-----END ").ok_or(PemFault::Boundary)?,
        ),
    };
    let is_label = !label.is_empty()
        && label
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ');
    match (is_label, begin) {
        (false, _) => Err(PemFault::Boundary),
        (true, true) => Ok(Some(Boundary::Begin(label))),
        (true, false) => Ok(Some(Boundary::End(label))),
    }
}

struct Open {
    label: &'static str,
    line: usize,
    base64: Zeroizing<Vec<u8>>,
}

/// Reads every block of `text`; at least one, and all of these labels. The first label is the one
/// that errors ask for.
pub(crate) fn read_blocks(
    item: &'static str,
    text: &[u8],
    limits: Limits,
    labels: &[&'static str],
) -> Result<Vec<Block>, Error> {
    let wanted = labels.first().copied().unwrap_or_default();
    let fail = |line, fault| Err(Error::Pem { item, line, fault });
    if text.len() > limits.bytes {
        let fault = PemFault::TooLarge {
            bytes: text.len(),
            limit: limits.bytes,
        };
        return fail(1, fault);
    }
    let mut blocks = Vec::new();
    let mut open: Option<Open> = None;
    let lines = text.strip_suffix(b"\n").unwrap_or(text);
    for (index, line) in lines.split(|byte| *byte == b'\n').enumerate() {
        let number = index + 1;
        let line = line.trim_ascii_end();
        let boundary = match boundary(line) {
            Ok(boundary) => boundary,
            Err(fault) => return fail(number, fault),
        };
        match (boundary, open.take()) {
            (None, None) => {}
            (None, Some(mut block)) => {
                if line.contains(&b':') {
                    return fail(number, PemFault::Headers);
                }
                if line.len() > MAX_LINE {
                    return fail(number, PemFault::LongLine);
                }
                if line.is_empty() {
                    return fail(number, PemFault::Base64);
                }
                block.base64.extend_from_slice(line);
                open = Some(block);
            }
            (Some(Boundary::Begin(found)), None) => {
                let Some(label) = labels.iter().find(|label| **label == found) else {
                    let found = found.chars().take(SHOWN).collect();
                    return fail(number, PemFault::WrongBlock { wanted, found });
                };
                if blocks.len() == limits.blocks {
                    let limit = limits.blocks;
                    return fail(number, PemFault::TooMany { limit });
                }
                // Where one block is wanted it may be secret: room for all of it at once, so
                // that growing leaves no copies behind.
                let room = text.len() / limits.blocks;
                open = Some(Open {
                    label,
                    line: number,
                    base64: Zeroizing::new(Vec::with_capacity(room)),
                });
            }
            (Some(Boundary::Begin(_)), Some(block)) => {
                return fail(block.line, PemFault::Unterminated);
            }
            (Some(Boundary::End(label)), Some(block)) if label == block.label => {
                let Some(content) = decode(&block.base64) else {
                    return fail(block.line, PemFault::Base64);
                };
                blocks.push(Block {
                    label: block.label,
                    content,
                });
            }
            (Some(Boundary::End(_)), _) => return fail(number, PemFault::Boundary),
        }
    }
    match open {
        Some(block) => fail(block.line, PemFault::Unterminated),
        None if blocks.is_empty() => fail(1, PemFault::NoBlock { wanted }),
        None => Ok(blocks),
    }
}

/// Decodes canonical base64: padded, and without stray bits at the end.
fn decode(base64: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let mut content = Zeroizing::new(Vec::with_capacity(base64.len() / 4 * 3));
    let body = base64.strip_suffix(b"=").unwrap_or(base64);
    let body = body.strip_suffix(b"=").unwrap_or(body);
    if body.is_empty() || !base64.len().is_multiple_of(4) {
        return None;
    }
    for group in body.chunks(4) {
        let mut bits = 0;
        for digit in group {
            bits = bits << 6 | u32::from(sextet(*digit)?);
        }
        let missing = 4 - group.len();
        for _ in 0..missing {
            bits <<= 6;
        }
        let [_, bytes @ ..] = bits.to_be_bytes();
        let (bytes, stray) = bytes.split_at_checked(3 - missing)?;
        if stray.iter().any(|byte| *byte != 0) {
            return None;
        }
        content.extend_from_slice(bytes);
    }
    Some(content)
}

fn sextet(digit: u8) -> Option<u8> {
    match digit {
        b'A'..=b'Z' => Some(digit - b'A'),
        b'a'..=b'z' => Some(digit - b'a' + 26),
        b'0'..=b'9' => Some(digit - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: Limits = Limits {
        bytes: 1024 * 1024,
        blocks: 3,
    };

    fn contents(text: &[u8]) -> Result<Vec<Vec<u8>>, PemFault> {
        match read_blocks("test", text, LIMITS, &["X"]) {
            Ok(blocks) => Ok(blocks.iter().map(|block| block.content.to_vec()).collect()),
            Err(Error::Pem { fault, .. }) => Err(fault),
            Err(other) => panic!("{other}"),
        }
    }

    proptest! {
        #[test]
        fn a_written_block_reads_back_the_same(content in prop::collection::vec(any::<u8>(), 1..400)) {
            let text = write_block("X", &content);
            prop_assert!(text.ends_with('\n'));
            prop_assert_eq!(contents(text.as_bytes()), Ok(vec![content]));
        }

        #[test]
        fn arbitrary_text_never_panics(text in prop::collection::vec(any::<u8>(), 0..400)) {
            let _read = contents(&text);
        }

        #[test]
        fn text_made_of_boundaries_and_base64_never_panics(
            pieces in prop::collection::vec(
                prop::sample::select(vec![
                    "-----BEGIN X-----", "-----END X-----", "-----BEGIN Y-----", "\n", "\r\n",
                    "AAAA", "AA==", "=", "A", "-----", "a: b", " ", "-----BEGIN", "é",
                ]),
                0..30,
            )
        ) {
            let _read = contents(pieces.concat().as_bytes());
        }
    }

    #[test]
    fn writing_never_outgrows_its_first_allocation() {
        for size in [1, 2, 3, 47, 48, 49, 1200] {
            let text = write_block("PRIVATE KEY", &vec![1; size]);
            let spare = "BEGIN".len() - "END".len();
            assert_eq!(text.len() + spare, text.capacity());
        }
    }

    #[test]
    fn comments_and_both_line_ends_are_read() {
        let text = b"Certificate:\r\n    Data: \xff\r\n-----BEGIN X-----  \r\nAAEC\r\n-----END X-----\r\n# end";
        assert_eq!(contents(text), Ok(vec![vec![0, 1, 2]]));
    }

    #[test]
    fn blocks_of_another_label_are_refused_by_name() {
        let long = "Y".repeat(100_000);
        let text = format!("-----BEGIN {long}-----\n");
        let found = "Y".repeat(SHOWN);
        let fault = PemFault::WrongBlock { wanted: "X", found };
        assert_eq!(contents(text.as_bytes()), Err(fault));
    }

    #[test]
    fn blocks_that_share_a_line_are_refused() {
        let text =
            b"-----BEGIN X-----\nAAEC\n-----END X----------BEGIN X-----\nAAEC\n-----END X-----\n";
        assert_eq!(contents(text), Err(PemFault::Boundary));
    }

    #[test]
    fn a_boundary_with_anything_beside_it_is_refused() {
        for line in [
            " -----BEGIN X-----",
            "\u{feff}-----BEGIN X-----",
            "-----BEGIN X----- # root",
            "-----BEGIN X----",
            "-----BEGIN -----",
            "-----BEGIN x-----",
        ] {
            let text = format!("{line}\nAAEC\n-----END X-----\n");
            assert_eq!(contents(text.as_bytes()), Err(PemFault::Boundary), "{line}");
        }
    }

    #[test]
    fn an_end_without_its_begin_is_refused() {
        assert_eq!(contents(b"-----END X-----\n"), Err(PemFault::Boundary));
        assert_eq!(
            contents(b"-----BEGIN X-----\nAAEC\n-----END Y-----\n"),
            Err(PemFault::Boundary)
        );
    }

    #[test]
    fn a_block_that_is_not_closed_is_refused() {
        assert_eq!(
            contents(b"-----BEGIN X-----\nAAEC\n"),
            Err(PemFault::Unterminated)
        );
        assert_eq!(
            contents(b"-----BEGIN X-----\nAAEC\n-----BEGIN X-----\nAAEC\n-----END X-----\n"),
            Err(PemFault::Unterminated)
        );
    }

    #[test]
    fn headers_inside_a_block_are_refused() {
        let text = b"-----BEGIN X-----\nProc-Type: 4,ENCRYPTED\n\nAAEC\n-----END X-----\n";
        assert_eq!(contents(text), Err(PemFault::Headers));
    }

    #[test]
    fn base64_that_is_not_canonical_is_refused() {
        for base64 in [
            "AAE",
            "AAE=A",
            "AB==",
            "AAF=",
            "A===",
            "====",
            "AA\u{1}A",
            "AAEC\n\nAAEC",
        ] {
            let text = format!("-----BEGIN X-----\n{base64}\n-----END X-----\n");
            assert_eq!(contents(text.as_bytes()), Err(PemFault::Base64), "{base64}");
        }
    }

    #[test]
    fn lines_that_some_readers_cut_are_refused() {
        let text = format!("-----BEGIN X-----\n{}\n-----END X-----\n", "A".repeat(80));
        assert_eq!(contents(text.as_bytes()), Err(PemFault::LongLine));
    }

    #[test]
    fn inputs_are_bounded() {
        let block = "-----BEGIN X-----\nAAEC\n-----END X-----\n";
        assert_eq!(
            contents(block.repeat(4).as_bytes()),
            Err(PemFault::TooMany { limit: 3 })
        );
        assert!(matches!(
            contents(&vec![b' '; LIMITS.bytes + 1]),
            Err(PemFault::TooLarge { .. })
        ));
        assert_eq!(contents(b""), Err(PemFault::NoBlock { wanted: "X" }));
    }
}
