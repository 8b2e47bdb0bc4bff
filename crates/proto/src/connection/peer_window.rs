//! The peer's receive window, and zero-window probes ([rfc-9293] sec. 3.8.6).
//!
//! ```text
//!        nothing fits, nothing is in flight            an RTO
//! Open ───────────────────────────────────> Waiting ─────────────> Due
//!  ^                                          ^  │                  │
//!  ├──── the edge moves, a segment is sent ───┼──┘                  │
//!  │                                          └── a probe is sent, and its interval doubles
//!  └───────────────────────────────────────────────────────────────┘
//! ```

use anabranch_units::{Span, Time};

use crate::seq::Offset;
use crate::stream::outbound::Framing;

/// The peer's window, and the wait for a window update.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerWindow {
    /// The shift of the window field.
    shift: u8,
    /// The right edge: the peer accepts bytes below it.
    edge: Offset,
    /// The largest window so far.
    largest: u64,
    /// Sequence and acknowledgement numbers of the segment that gave the edge ([rfc-9293] SND.WL1, SND.WL2).
    edge_from: (Offset, Offset),
    persist: Persist,
}

/// The state of zero-window probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Persist {
    /// The window is open.
    Open,
    /// The next probe is due at `at`; `probes` have been sent.
    Waiting { at: Time, probes: u32 },
    /// A probe is due now.
    Due { probes: u32 },
}

impl PeerWindow {
    /// Before the handshake there is room for a SYN.
    pub(super) fn new() -> Self {
        Self { shift: 0, edge: 1, largest: 0, edge_from: (0, 0), persist: Persist::Open }
    }

    /// The peer's SYN arrived. Its window is not scaled ([rfc-7323] sec. 2.2).
    pub(super) fn on_syn(&mut self, field: u16) {
        (self.edge, self.edge_from, self.largest) = (1 + u64::from(field), (0, 0), field.into());
    }

    /// Windows after the handshake are scaled.
    pub(super) fn set_shift(&mut self, shift: u8) {
        self.shift = shift;
    }

    /// A segment at `offset` that acknowledges everything below `ack` has this window field. With streams the peer never moves
    /// the right edge back, so an old segment cannot do it either.
    pub(super) fn on_field(&mut self, framing: Framing, offset: Offset, ack: Offset, field: u16) {
        let window = u64::from(field) << self.shift;
        self.largest = self.largest.max(window);
        let before = self.edge;
        match framing {
            Framing::Streams => self.edge = before.max(ack + window),
            // [rfc-9293] sec. 3.10.7.4: SND.WL1 and SND.WL2.
            Framing::Plain => {
                if self.edge_from <= (offset, ack) {
                    (self.edge, self.edge_from) = (ack + window, (offset, ack));
                }
            }
        }
        if self.edge > before {
            self.persist = Persist::Open;
        }
    }

    pub(super) fn edge(&self) -> Offset {
        self.edge
    }

    /// The largest window announced so far. It is used for silly window syndrome avoidance, and for the age of acknowledgements.
    pub(super) fn largest(&self) -> u64 {
        self.largest
    }

    /// Bytes that the window allows from `place` on.
    pub(super) fn room(&self, place: Offset) -> u64 {
        self.edge.saturating_sub(place)
    }

    /// Whether the sender waits for the window to open.
    pub(super) fn is_waited_for(&self) -> bool {
        self.persist != Persist::Open
    }

    /// Whether a zero-window probe is due.
    pub(super) fn is_probe_due(&self) -> bool {
        matches!(self.persist, Persist::Due { .. })
    }

    /// A segment is sent.
    pub(super) fn on_sent(&mut self) {
        self.persist = Persist::Open;
    }

    /// Nothing fits the window, and nothing is in flight that would be acknowledged. Only a window update helps, and it may have
    /// been lost. Returns whether the wait starts now. [rfc-9293] sec. 3.8.6.1: the first probe is due after a retransmission
    /// timeout.
    pub(super) fn wait(&mut self, now: Time, rto: Span) -> bool {
        let begins = self.persist == Persist::Open;
        if begins {
            self.persist = Persist::Waiting { at: now.saturating_add(rto), probes: 0 };
        }
        begins
    }

    /// Whether a probe is sent now.
    pub(super) fn poll_probe(&mut self, now: Time, rto: Span) -> bool {
        let Persist::Due { probes } = self.persist else { return false };
        let wait = rto.saturating_mul(2 << probes.min(PROBES_DOUBLED)).min(PERSIST_MAX.max(rto));
        self.persist = Persist::Waiting { at: now.saturating_add(wait), probes: probes + 1 };
        true
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        if let Persist::Waiting { at, probes } = self.persist
            && at <= now
        {
            self.persist = Persist::Due { probes };
        }
    }

    /// When a probe is due.
    pub(super) fn deadline(&self) -> Time {
        match self.persist {
            Persist::Waiting { at, .. } => at,
            Persist::Open | Persist::Due { .. } => Time::NEVER,
        }
    }
}

/// The longest interval between zero-window probes ([rfc-9293] sec. 3.8.6.1 leaves it open).
const PERSIST_MAX: Span = Span::from_secs(60);

/// After so many doublings any timeout exceeds [`PERSIST_MAX`].
const PROBES_DOUBLED: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    const RTO: Span = Span::from_millis(300);

    #[test]
    fn only_plain_tcp_takes_back_an_edge_and_not_by_an_old_segment() {
        let (mut streams, mut plain) = (PeerWindow::new(), PeerWindow::new());
        for (window, framing) in [(&mut streams, Framing::Streams), (&mut plain, Framing::Plain)] {
            window.on_syn(1000);
            assert_eq!((window.edge(), window.room(1)), (1001, 1000));
            window.set_shift(3);
            window.on_field(framing, 10, 101, 100);
            assert_eq!(
                (window.edge(), window.largest()),
                (901.max(if framing == Framing::Streams { 1001 } else { 0 }), 1000)
            );
        }
        plain.on_field(Framing::Plain, 9, 101, 500);
        assert_eq!(plain.edge(), 901, "what was sent before says nothing");
        streams.on_field(Framing::Streams, 9, 101, 500);
        assert_eq!((streams.edge(), streams.largest()), (4101, 4000));
        assert_eq!(streams.room(5000), 0);
    }

    /// [rfc-9293] sec. 3.8.6.1: "increase exponentially the interval between successive probes".
    #[test]
    fn a_shut_window_is_probed_ever_more_seldom() {
        let mut window = PeerWindow::new();
        assert!(window.wait(at(0), RTO) && !window.wait(at(1), RTO), "a wait begins once");
        let mut gaps = vec![];
        let mut now = at(0);
        for _ in 0..12 {
            let due = window.deadline();
            gaps.push(due.since(now).as_secs_f64());
            now = due;
            assert!(!window.poll_probe(now, RTO), "not before the timer says so");
            window.handle_timeout(now);
            assert!(window.is_probe_due() && window.poll_probe(now, RTO) && !window.is_probe_due());
        }
        assert_eq!(gaps, [0.3, 0.6, 1.2, 2.4, 4.8, 9.6, 19.2, 38.4, 60.0, 60.0, 60.0, 60.0]);
        assert!(window.is_waited_for());
        window.on_field(Framing::Streams, 0, 1, 1);
        assert!(!window.is_waited_for() && window.deadline() == Time::NEVER, "it has opened");
    }
}
