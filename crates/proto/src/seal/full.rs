//! Why a responder has no room for a connection. The answer to the initiation tells it.

use bytes::{Buf, Bytes};

use super::Seal;

/// The limit of connections that a new one would exceed, and the number of connections that count against it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The limit of the initiator's public key.
    Key(u32),
    /// The limit of the initiator's network: its IPv4 address, or the first 64 bits of its IPv6 address.
    Network(u32),
    /// The limit of all connections.
    Everybody(u32),
}

impl Seal {
    /// Why the responder has refused the connection, if it told so.
    pub fn full(&self) -> Option<Full> {
        self.full
    }

    /// The responder's answer, which must be a RST, will tell this reason.
    pub(crate) fn refuse(&mut self, full: Full) {
        self.full = Some(full);
    }
}

impl Full {
    pub(super) fn write(self, out: &mut Vec<u8>) {
        let (kind, count) = match self {
            Self::Key(count) => (KEY, count),
            Self::Network(count) => (NETWORK, count),
            Self::Everybody(count) => (EVERYBODY, count),
        };
        out.push(kind);
        out.extend(count.to_be_bytes());
    }

    /// Reads what follows the token; `None` if that is no reason.
    pub(super) fn read(mut rest: Bytes) -> Option<Self> {
        let kind = rest.try_get_u8().ok()?;
        let count = rest.try_get_u32().ok()?;
        match kind {
            KEY => Some(Self::Key(count)),
            NETWORK => Some(Self::Network(count)),
            EVERYBODY => Some(Self::Everybody(count)),
            _ => None,
        }
    }
}

const KEY: u8 = 1;
const NETWORK: u8 = 2;
const EVERYBODY: u8 = 3;
