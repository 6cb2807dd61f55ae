//! The little of DER that copying a name byte for byte needs: one element read, one written.

const LONG_FORM: u8 = 0x80;
const HIGH_TAG: u8 = 0x1f;
/// Tag of a SEQUENCE.
pub(crate) const SEQUENCE: u8 = 0x30;
const BIT_STRING: u8 = 0x03;
const VERSION: u8 = 0xa0;

/// One element: tag, length and content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Element<'a> {
    pub(crate) tag: u8,
    /// The element as it stands, tag and length included.
    pub(crate) whole: &'a [u8],
    pub(crate) content: &'a [u8],
}

/// Reads the first element of `input`, and returns what follows it. `None` if it is not DER with
/// a one-byte tag and a length in its shortest form.
pub(crate) fn read(input: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let (&tag, rest) = input.split_first()?;
    if tag & HIGH_TAG == HIGH_TAG {
        return None;
    }
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < LONG_FORM {
        (usize::from(first), rest)
    } else {
        let octets = usize::from(first & !LONG_FORM);
        if octets == 0 || octets > 4 {
            return None;
        }
        let (octets, rest) = rest.split_at_checked(octets)?;
        let length = octets.iter().try_fold(0_usize, |length, octet| {
            length.checked_mul(256)?.checked_add(usize::from(*octet))
        })?;
        let shortest = octets.first() != Some(&0) && length >= usize::from(LONG_FORM);
        if !shortest {
            return None;
        }
        (length, rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    let whole = input.get(..input.len().checked_sub(rest.len())?)?;
    Some((
        Element {
            tag,
            whole,
            content,
        },
        rest,
    ))
}

/// Reads an input that is one SEQUENCE and nothing else, and returns its content.
pub(crate) fn read_sequence(input: &[u8]) -> Option<&[u8]> {
    let (element, rest) = read(input)?;
    (element.tag == SEQUENCE && rest.is_empty()).then_some(element.content)
}

/// Writes one element.
pub(crate) fn write(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut element = vec![tag];
    match u8::try_from(content.len()) {
        Ok(short) if short < LONG_FORM => element.push(short),
        _ => {
            let octets = content.len().to_be_bytes();
            let zeros = octets.iter().take_while(|octet| **octet == 0).count();
            let octets = octets.get(zeros..).unwrap_or_default();
            let count = u8::try_from(octets.len()).expect("a length has at most eight octets");
            element.push(LONG_FORM | count);
            element.extend_from_slice(octets);
        }
    }
    element.extend_from_slice(content);
    element
}

/// The leading fields of a `TBSCertificate` (RFC 5280, 4.1), each as it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TbsFields<'a> {
    version: &'a [u8],
    pub(crate) serial: Element<'a>,
    /// Identifier of the algorithm that signs.
    pub(crate) algorithm: &'a [u8],
    pub(crate) issuer: &'a [u8],
    validity: &'a [u8],
    pub(crate) subject: &'a [u8],
    pub(crate) public_key: &'a [u8],
    /// Everything after the public key.
    rest: &'a [u8],
}

impl<'a> TbsFields<'a> {
    /// Reads them out of a whole certificate. `None` if it is not laid out as a version 3
    /// certificate.
    pub(crate) fn of_certificate(certificate: &'a [u8]) -> Option<Self> {
        let (tbs, _) = read(read_sequence(certificate)?)?;
        let (version, rest) = read(read_sequence(tbs.whole)?)?;
        if version.tag != VERSION {
            return None;
        }
        let (serial, rest) = read(rest)?;
        let (algorithm, rest) = read(rest)?;
        let (issuer, rest) = read(rest)?;
        let (validity, rest) = read(rest)?;
        let (subject, rest) = read(rest)?;
        let (public_key, rest) = read(rest)?;
        Some(Self {
            version: version.whole,
            serial,
            algorithm: algorithm.whole,
            issuer: issuer.whole,
            validity: validity.whole,
            subject: subject.whole,
            public_key: public_key.whole,
            rest,
        })
    }

    /// The `TBSCertificate` with another issuer name.
    pub(crate) fn with_issuer(&self, issuer: &[u8]) -> Vec<u8> {
        let fields = [
            self.version,
            self.serial.whole,
            self.algorithm,
            issuer,
            self.validity,
            self.subject,
            self.public_key,
            self.rest,
        ];
        write(SEQUENCE, &fields.concat())
    }
}

/// Puts a signed object together: what is signed, the algorithm, the signature (RFC 5280, 4.1.1).
pub(crate) fn write_signed(signed: &[u8], algorithm: &[u8], signature: &[u8]) -> Vec<u8> {
    let no_unused_bits = [&[0], signature].concat();
    let signature = write(BIT_STRING, &no_unused_bits);
    write(SEQUENCE, &[signed, algorithm, &signature].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_every_length_form_are_read_as_written() {
        for length in [0, 1, 127, 128, 255, 256, 65_535, 65_536] {
            let content = vec![7; length];
            let mut bytes = write(SEQUENCE, &content);
            bytes.push(9);
            let (element, rest) = read(&bytes).unwrap();
            assert_eq!(element.content, content);
            assert_eq!(rest, [9]);
        }
    }

    #[test]
    fn lengths_that_are_not_shortest_are_refused() {
        assert!(read(&[0x30, 0x81, 0x01, 0x00]).is_none());
        assert!(read(&[0x30, 0x82, 0x00, 0x80]).is_none());
        assert!(read(&[0x30, 0x80, 0x00, 0x00]).is_none());
        assert!(read(&[0x30, 0x85, 1, 0, 0, 0, 0]).is_none());
    }

    #[test]
    fn truncated_elements_are_refused() {
        assert!(read(&[]).is_none());
        assert!(read(&[0x30]).is_none());
        assert!(read(&[0x30, 0x02, 0x00]).is_none());
        assert!(read(&[0x1f, 0x01, 0x00]).is_none());
    }
}
