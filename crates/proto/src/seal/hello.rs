//! The payloads of the handshake: cipher numbers, the time of the initiation, and one segment each.
//!
//! ```text
//! hello  count 1 | ciphers, 1 each | timestamp 12 | length 2 | SYN | anything
//! reply  responder's index 4 | cipher 1 | length 2 | SYN-ACK or RST | reset token 16 | after a RST: reason 1, count 4 | anything
//! ```

use anabranch_units::{NANO, Span};
use bytes::{Buf, Bytes};

use super::cipher::{Cipher, CipherPreference};
use super::full::Full;
use super::noise::TAG;
use super::reset::{Token, token};
use super::{Refusal, read_segment};
use crate::segment::{Flags, Segment};

/// The time of an initiation by its sender's clock, in TAI64N as in WireGuard. A replayed initiation has an old timestamp.
///
/// Only the order of the timestamps of one key matters, so clocks need not agree. If a clock is set back, listeners refuse its
/// key until the clock has caught up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp([u8; 12]);

/// The payload of the initiation.
#[derive(Debug)]
pub(super) struct Hello {
    /// Numbers of the offered ciphers, the preferred one first. Some may be unknown.
    pub(super) offer: Bytes,
    pub(super) timestamp: Timestamp,
    pub(super) syn: Segment<Bytes>,
}

/// The payload of the response.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) index: u32,
    pub(super) cipher: u8,
    pub(super) answer: Segment<Bytes>,
    pub(super) token: Option<Token>,
    pub(super) full: Option<Full>,
}

impl Timestamp {
    /// The timestamp at `age` after the beginning of 1970, as system clocks count.
    pub const fn since_1970(age: Span) -> Self {
        let (seconds, nanos) = ((EPOCH + age.ticks() / NANO).to_be_bytes(), (age.ticks() % NANO) as u32);
        let [a, b, c, d, e, f, g, h] = seconds;
        let [i, j, k, l] = nanos.to_be_bytes();
        Self([a, b, c, d, e, f, g, h, i, j, k, l])
    }
}

impl Hello {
    /// Appends a payload with these ciphers and a grease number, which ensures that receivers skip unknown numbers.
    pub(super) fn write(
        preference: &CipherPreference,
        grease: u8,
        timestamp: Timestamp,
        syn: &[u8],
        out: &mut Vec<u8>,
    ) {
        let ciphers = preference.ciphers();
        out.push(ciphers.len() as u8 + 1);
        let place = usize::from(grease & 0x0f) % (ciphers.len() + 1);
        for (at, cipher) in ciphers.iter().enumerate() {
            if at == place {
                out.push(grease | 0x0f);
            }
            out.push(cipher.number());
        }
        if place == ciphers.len() {
            out.push(grease | 0x0f);
        }
        out.extend(timestamp.0);
        out.extend((syn.len() as u16).to_be_bytes());
        out.extend(syn);
    }

    pub(super) fn read(mut payload: Bytes) -> Result<Self, Refusal> {
        let count = usize::from(payload.try_get_u8().map_err(|_| Refusal::NoSegment)?);
        if payload.len() < count + 12 {
            return Err(Refusal::NoSegment);
        }
        let offer = payload.split_to(count);
        let mut timestamp = [0; 12];
        payload.copy_to_slice(&mut timestamp);
        let (syn, _) = read_counted(payload)?;
        if !syn.has(Flags::SYN) {
            return Err(Refusal::NoSegment);
        }
        Ok(Self { offer, timestamp: Timestamp(timestamp), syn })
    }

    /// The first offered cipher that we support.
    pub(super) fn choose(&self, ours: &CipherPreference) -> Option<Cipher> {
        self.offer.iter().filter_map(|number| Cipher::of(*number)).find(|cipher| ours.has(*cipher))
    }
}

impl Reply {
    pub(super) fn write(index: u32, cipher: Cipher, answer: &[u8], token: &Token, out: &mut Vec<u8>) {
        out.extend(index.to_be_bytes());
        out.push(cipher.number());
        out.extend((answer.len() as u16).to_be_bytes());
        out.extend(answer);
        out.extend(token);
    }

    pub(super) fn read(mut payload: Bytes) -> Result<Self, Refusal> {
        let index = payload.try_get_u32().map_err(|_| Refusal::NoSegment)?;
        let cipher = payload.try_get_u8().map_err(|_| Refusal::NoSegment)?;
        let (answer, rest) = read_counted(payload)?;
        if !is_answer(&answer) {
            return Err(Refusal::NoSegment);
        }
        let token = token(&rest);
        let full = Some(rest).filter(|rest| answer.has(Flags::RST) && rest.len() > TAG);
        let full = full.and_then(|rest| Full::read(rest.slice(TAG..)));
        Ok(Self { index, cipher, answer, token, full })
    }
}

/// Whether a segment may answer an initiation. It may arrive repeatedly, so it must carry no data.
pub(super) fn is_answer(segment: &Segment<Bytes>) -> bool {
    (segment.has(Flags::SYN) || segment.has(Flags::RST)) && segment.content.is_empty()
}

/// Reads a segment after its length. Also returns the bytes after it.
fn read_counted(mut payload: Bytes) -> Result<(Segment<Bytes>, Bytes), Refusal> {
    let len = usize::from(payload.try_get_u16().map_err(|_| Refusal::NoSegment)?);
    if payload.len() < len {
        return Err(Refusal::NoSegment);
    }
    let rest = payload.split_off(len);
    Ok((read_segment(payload)?, rest))
}

impl std::fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The beginning of 1970 in TAI64: 2^62, plus the 10 s by which TAI was ahead of UTC.
const EPOCH: u64 = (1 << 62) + 10;

#[cfg(test)]
mod tests {
    use super::*;

    /// TAI64 begins 2^62 s before 1970. The year 1970 began 10 s later in UTC than in TAI.
    #[test]
    fn a_timestamp_is_tai64n() {
        let zero = Timestamp::since_1970(Span::ZERO);
        assert_eq!(format!("{zero:?}"), "400000000000000a00000000");
        let later = Timestamp::since_1970(Span::from_ticks(0x2a2b_2c23 * NANO + 5));
        assert_eq!(format!("{later:?}"), "400000002a2b2c2d00000005");
        assert!(zero < later && later < Timestamp::since_1970(Span::from_ticks(0x2a2b_2c23 * NANO + 6)));
    }

    #[test]
    fn the_responder_takes_the_first_that_it_has() {
        use Cipher::{Aes128Gcm, Aes256Gcm, ChaCha20Poly1305};
        let hello = |offer: &'static [u8]| Hello {
            offer: Bytes::from_static(offer),
            timestamp: Timestamp([0; 12]),
            syn: Segment {
                header: Default::default(),
                options: Default::default(),
                stream_header: None,
                content: crate::segment::Content::Nothing,
            },
        };
        let (fast, slow) = (CipherPreference::fast_aes(), CipherPreference::default());
        assert_eq!(hello(&[9, 2, 3, 1]).choose(&fast), Some(Aes128Gcm));
        assert_eq!(hello(&[3, 2, 1]).choose(&fast), Some(Aes256Gcm));
        assert_eq!(hello(&[9, 2, 3, 1]).choose(&slow), Some(ChaCha20Poly1305));
        assert_eq!(hello(&[1]).choose(&fast), Some(ChaCha20Poly1305));
        assert_eq!(hello(&[9, 0, 250]).choose(&fast), None);
    }
}
