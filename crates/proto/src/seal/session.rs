//! The keys of both directions, with their counters.

use std::fmt;

use anabranch_units::Time;
use bytes::{Bytes, BytesMut};

use super::datagram::{DATA, DATA_HEADER, begin};
use super::noise::{Handshake, MESSAGE_MAX, TAG};
use super::replay::ReplayWindow;
use super::{Limits, Refusal, SealError};

/// One pair of keys, in use until it is replaced.
pub(super) struct Session {
    /// By which the peer names it to us, and we to the peer.
    pub(super) local: u32,
    pub(super) remote: u32,
    keys: snow::StatelessTransportState,
    /// A hash of the handshake, which the next handshake refers to.
    pub(super) binding: [u8; 32],
    /// The next counter.
    pub(super) sent: u64,
    pub(super) window: ReplayWindow,
    pub(super) since: Time,
    /// Datagrams that were not authentic.
    forged: u64,
}

impl Session {
    /// The keys of a handshake that is over.
    pub(super) fn new(now: Time, local: u32, remote: u32, handshake: Handshake) -> Result<Self, Refusal> {
        let (keys, binding) = handshake.finish().map_err(|_| Refusal::Forged)?;
        Ok(Self { local, remote, keys, binding, sent: 0, window: ReplayWindow::new(), since: now, forged: 0 })
    }

    /// Appends a datagram with this in it to `out`.
    pub(super) fn seal(&mut self, limits: &Limits, plain: &[u8], out: &mut Vec<u8>) -> Result<(), SealError> {
        if self.sent >= limits.messages {
            return Err(SealError::Exhausted);
        }
        if plain.len() + TAG > MESSAGE_MAX {
            return Err(SealError::TooLong);
        }
        begin(DATA, self.remote, out);
        out.extend(self.sent.to_be_bytes());
        let start = out.len();
        out.resize(start + plain.len() + TAG, 0);
        let written = self.keys.write_message(self.sent, plain, &mut out[start..]);
        debug_assert_eq!(written.ok(), Some(plain.len() + TAG), "the lengths were checked");
        self.sent += 1;
        Ok(())
    }

    /// What is in a datagram with data, if it is authentic and new. `buffer` is emptied, and lends its memory.
    pub(super) fn open(
        &mut self,
        limits: &Limits,
        counter: u64,
        sealed: &[u8],
        buffer: &mut BytesMut,
    ) -> Result<Bytes, Refusal> {
        if self.forged >= limits.forgeries {
            return Err(Refusal::Exhausted);
        }
        if !self.window.is_new(counter) {
            return Err(Refusal::Replayed);
        }
        buffer.clear();
        buffer.resize(sealed.len() - TAG, 0);
        if self.keys.read_message(counter, sealed, buffer).is_err() {
            self.forged += 1;
            return Err(Refusal::Forged);
        }
        self.window.insert(counter);
        Ok(buffer.split().freeze())
    }

    /// Whether these keys have done enough.
    pub(super) fn is_worn(&self, now: Time, limits: &Limits) -> bool {
        let messages = self.sent.max(self.window.next());
        now.since(self.since) >= limits.rekey_after || messages >= limits.rekey_after_messages
    }
}

/// Bytes of a datagram with so many in it.
pub(super) const fn sealed_len(plain: usize) -> usize {
    DATA_HEADER + plain + TAG
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { local, remote, sent, since, forged, .. } = self;
        write!(
            f,
            "Session {{ local: {local:#x}, remote: {remote:#x}, sent: {sent}, since: {since:?}, forged: {forged} }}"
        )
    }
}
