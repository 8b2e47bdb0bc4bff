//! Datagrams of the seal's own, which belong to no path of the connection: messages of rekeying, reset tokens, and grease.

use anabranch_units::Time;

use super::allowance::Load;
use super::datagram::{DataHeader, PATH_NUMBERS, word};
use super::noise::TAG;
use super::renewal::Renewal;
use super::{Refusal, Role, Seal, plain, reset};
use crate::path::PathId;

impl Seal {
    /// Seals a rekeying message, a reset token, or a grease datagram.
    pub(super) fn seal_own(&mut self, now: Time, out: &mut Vec<u8>) -> bool {
        let limits = &self.config.limits;
        let start = out.len();
        out.resize(start + DataHeader::LEN, 0);
        match &mut self.renewal {
            Renewal::Asking { message, at, wait, .. } if *at <= now => {
                *at = now.saturating_add(*wait);
                *wait = wait.saturating_mul(2).min(limits.rekey_retry_max);
                out.extend(plain::REQUEST.to_be_bytes());
                out.extend_from_slice(message);
            }
            Renewal::Answered { answer, is_due, .. } if *is_due => {
                *is_due = false;
                out.extend(plain::ANSWER.to_be_bytes());
                out.extend_from_slice(answer);
            }
            Renewal::None | Renewal::Asking { .. } | Renewal::Answered { .. } => {
                let Some(session) = &self.current else { return false };
                if let Some(address) = self.given.take_due() {
                    out.extend(plain::TOKEN.to_be_bytes());
                    out.extend(session.local.to_be_bytes());
                    out.extend(self.resets.token(session.local, address));
                    return self.seal_rest(start, out);
                }
                if self.until_grease > 0 {
                    return false;
                }
                let [a, b, c, d, e, f, rest @ ..] = session.grease;
                self.until_grease = GREASE_LEAST + u64::from(u16::from_be_bytes([a, b]));
                out.extend([0x0a, c & 0xf0 | 0x0a, d & 0xf0 | 0x0a, e & 0xf0 | 0x0a]);
                out.extend_from_slice(&rest[..usize::from(f) % rest.len()]);
            }
        }
        self.seal_rest(start, out)
    }

    /// Seals the plain text after the header that begins at `start`.
    fn seal_rest(&mut self, start: usize, out: &mut Vec<u8>) -> bool {
        // Bytes after a length-prefixed message are ignored.
        let least = self.config.padding.least(out.len() - start + TAG, 0).min(Self::DATAGRAM_FIRST as usize);
        let len = (out.len() - start + TAG).max(least);
        out.resize(start + len, 0);
        let Some(session) = &mut self.current else { return false };
        if !self.addresses.allows(self.path.remote, Load::one(len)) || session.room(&self.config.limits) == 0 {
            return false;
        }
        session.seal(OWN_PATH, &mut out[start..]);
        true
    }

    /// The responder has given the reset token of another address.
    pub(super) fn take_token(&mut self, message: &[u8]) -> Result<(), Refusal> {
        let (index, rest) = word(message).ok_or(Refusal::Malformed)?;
        let token = reset::token(rest).ok_or(Refusal::Malformed)?;
        // Between rekeying and the first datagram with the new keys, it is about the old ones.
        if self.role == Role::Initiator && self.current.as_ref().is_some_and(|session| session.remote == index) {
            self.tokens.add(token);
        }
        Ok(())
    }
}

/// The path number of datagrams that belong to no path of the connection.
const OWN_PATH: u8 = PathId::NOWHERE.number();

const _: () = assert!(PathId::NOWHERE.index() < PATH_NUMBERS);

/// Datagrams before the first grease datagram, and the least distance between two. A random number of up to 2^16 is added, so the
/// cost is negligible.
pub(super) const GREASE_FIRST: u64 = 16;
const GREASE_LEAST: u64 = 1 << 10;
