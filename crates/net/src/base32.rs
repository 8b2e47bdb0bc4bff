//! Base32 in lower case without padding ([rfc-4648] sec. 6): easy to read out, type and paste.

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Encodes bytes, five bits a letter.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(5) * 8);
    let (mut bits, mut count) = (0u32, 0);
    for &byte in bytes {
        (bits, count) = (bits << 8 | u32::from(byte), count + 8);
        while count >= 5 {
            count -= 5;
            text.push(char::from(ALPHABET[(bits >> count & 31) as usize]));
        }
    }
    if count > 0 {
        text.push(char::from(ALPHABET[(bits << (5 - count) & 31) as usize]));
    }
    text
}

/// Why a text is not valid base32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base32Error {
    /// The letter at this position, counted from 0, is invalid.
    Letter(usize),
    /// Bits are left that form no byte.
    Length,
}

/// Decodes a text; upper case is accepted.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, Base32Error> {
    let mut bytes = Vec::with_capacity(text.len() * 5 / 8);
    let (mut bits, mut count) = (0u32, 0);
    for (place, letter) in text.chars().enumerate() {
        let letter = u8::try_from(letter.to_ascii_lowercase()).map_err(|_| Base32Error::Letter(place))?;
        let value = ALPHABET.iter().position(|&known| known == letter).ok_or(Base32Error::Letter(place))?;
        (bits, count) = (bits << 5 | value as u32, count + 5);
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    // The remaining bits must be zero and fewer than a letter has.
    let is_canonical = count < 5 && bits & ((1 << count) - 1) == 0;
    if is_canonical { Ok(bytes) } else { Err(Base32Error::Length) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [rfc-4648] sec. 10.
    #[test]
    fn the_vectors_of_the_rfc() {
        let vectors = [
            ("", ""),
            ("f", "my"),
            ("fo", "mzxq"),
            ("foo", "mzxw6"),
            ("foob", "mzxw6yq"),
            ("fooba", "mzxw6ytb"),
            ("foobar", "mzxw6ytboi"),
        ];
        for (plain, text) in vectors {
            assert_eq!(encode(plain.as_bytes()), text);
            assert_eq!(decode(text).unwrap(), plain.as_bytes());
            assert_eq!(decode(&text.to_uppercase()).unwrap(), plain.as_bytes());
        }
    }

    #[test]
    fn invalid_base32_is_refused() {
        assert_eq!(decode("mz1w6"), Err(Base32Error::Letter(2)));
        assert_eq!(decode("mzxß"), Err(Base32Error::Letter(3)));
        assert_eq!(decode("mz"), Err(Base32Error::Length), "bits that belong to no byte");
        assert_eq!(decode("mzx"), Err(Base32Error::Length), "no number of bytes has three letters");
    }
}
