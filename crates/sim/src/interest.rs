//! What observers of links are told of: most packets of most links concern only some observers, or none.

/// What an observer is told of. Packets that are lost are told to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    /// Packets that a queue accepts.
    pub enqueued: bool,
    /// Packets that leave at the far end.
    pub received: bool,
    /// Departures from the transmitter.
    pub departures: bool,
}

impl Interest {
    /// All packets, and all departures.
    pub const ALL: Self = Self { enqueued: true, received: true, departures: true };
    /// Lost packets alone.
    pub const LOSSES: Self = Self { enqueued: false, received: false, departures: false };

    /// Whether it is in packets that enter the link.
    pub(crate) const fn is_in_entrance(self) -> bool {
        self.enqueued || self.departures
    }

    /// What at least one of two observers is told of.
    pub(crate) const fn or(self, other: Self) -> Self {
        Self {
            enqueued: self.enqueued || other.enqueued,
            received: self.received || other.received,
            departures: self.departures || other.departures,
        }
    }
}
