//! The keys of both directions and their counters.

use std::fmt;

use anabranch_units::Time;
use zeroize::Zeroize;

use super::cipher::{Cipher, Key, UseLimits};
use super::datagram::{DataHeader, PATH_NUMBERS};
use super::noise::{Handshake, TAG};
use super::replay::ReplayWindow;
use super::{Limits, Refusal};

/// The keys of one handshake. They are used until they are replaced.
pub(super) struct Session {
    /// Our index, by which the peer addresses this session, and the peer's index.
    pub(super) local: u32,
    pub(super) remote: u32,
    pub(super) cipher: Cipher,
    sealing: Key,
    opening: Key,
    /// The handshake hash, to which the next handshake is bound.
    pub(super) binding: [u8; 32],
    /// The next counter of each path.
    counters: [u64; PATH_NUMBERS],
    /// The replay window of each path, for datagrams of the peer.
    windows: [Option<ReplayWindow>; PATH_NUMBERS],
    /// Datagrams that we have sealed; and those that the peer has sealed, according to its counters.
    pub(super) sealed: u64,
    sealed_by_peer: u64,
    pub(super) since: Time,
    /// Datagrams that failed to open.
    forged: u64,
    /// Unpredictable filler for grease datagrams: the tag of the last datagram.
    pub(super) grease: [u8; TAG],
}

impl Session {
    /// The session of a finished handshake.
    pub(super) fn new(
        now: Time,
        local: u32,
        remote: u32,
        cipher: Cipher,
        handshake: Handshake,
    ) -> Result<Self, Refusal> {
        let (mut split, binding) = handshake.finish().map_err(|_| Refusal::Forged)?;
        let [sealing, opening] = split.each_ref().map(|split| Key::derive(cipher, split));
        split.zeroize();
        Ok(Self {
            local,
            remote,
            cipher,
            sealing,
            opening,
            binding,
            counters: [0; PATH_NUMBERS],
            windows: [const { None }; PATH_NUMBERS],
            sealed: 0,
            sealed_by_peer: 0,
            since: now,
            forged: 0,
            grease: *binding.first_chunk().expect("a hash is longer than a tag"),
        })
    }

    /// How many datagrams may still be sealed.
    pub(super) fn room(&self, limits: &Limits) -> u64 {
        self.limits(limits).messages.saturating_sub(self.sealed)
    }

    /// Seals a datagram in place. `datagram` has room for the header before the plain text, and for the tag after it.
    /// [`Session::room`] must not be zero.
    pub(super) fn seal(&mut self, path: u8, datagram: &mut [u8]) {
        let counter = &mut self.counters[usize::from(path)];
        let header =
            DataHeader { path, grease: [self.grease[0], self.grease[1]], receiver: self.remote, counter: *counter };
        *counter += 1;
        self.sealed += 1;
        let bytes = header.bytes();
        let (head, rest) = datagram.split_at_mut(DataHeader::LEN);
        head.copy_from_slice(&bytes);
        let (plain, end) = rest.split_at_mut(rest.len() - TAG);
        let tag = self.sealing.seal(header.nonce(), &bytes, plain);
        end.copy_from_slice(&tag);
        self.grease = tag;
    }

    /// Decrypts a datagram in place, if it is authentic and new. Returns by how much its counter exceeds the highest of its path.
    pub(super) fn open(&mut self, limits: &Limits, header: &DataHeader, datagram: &mut [u8]) -> Result<u64, Refusal> {
        if self.forged >= self.limits(limits).forgeries {
            return Err(Refusal::Exhausted);
        }
        let window = &mut self.windows[usize::from(header.path)];
        let next = window.as_ref().map_or(0, ReplayWindow::next);
        if !window.as_ref().is_none_or(|window| window.is_new(header.counter)) || header.counter == u64::MAX {
            return Err(Refusal::Replayed);
        }
        if !self.opening.open(header.nonce(), &header.bytes(), &mut datagram[DataHeader::LEN..]) {
            self.forged += 1;
            return Err(Refusal::Forged);
        }
        window.get_or_insert_with(ReplayWindow::new).insert(header.counter);
        let ahead = (header.counter + 1).saturating_sub(next);
        self.sealed_by_peer = self.sealed_by_peer.saturating_add(ahead);
        Ok(ahead)
    }

    /// Whether these keys must be replaced.
    pub(super) fn is_worn(&self, now: Time, limits: &Limits) -> bool {
        let messages = self.sealed.max(self.sealed_by_peer);
        now.since(self.since) >= limits.rekey_after || messages >= self.limits(limits).rekey_after_messages
    }

    /// The stricter ones of the cipher's and the configured limits.
    fn limits(&self, limits: &Limits) -> UseLimits {
        let UseLimits { messages, rekey_after_messages, forgeries } = self.cipher.limits();
        UseLimits {
            messages: messages.min(limits.messages),
            rekey_after_messages: rekey_after_messages.min(limits.rekey_after_messages),
            forgeries: forgeries.min(limits.forgeries),
        }
    }
}

/// Bytes of a datagram with `plain` bytes of plain text.
pub(super) const fn sealed_len(plain: usize) -> usize {
    DataHeader::LEN + plain + TAG
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { local, remote, cipher, sealed, since, forged, .. } = self;
        write!(
            f,
            "Session {{ local: {local:#x}, remote: {remote:#x}, cipher: {cipher:?}, sealed: {sealed}, since: {since:?}, \
             forged: {forged} }}"
        )
    }
}
