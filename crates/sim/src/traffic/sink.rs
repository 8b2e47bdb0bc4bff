use anabranch_units::{SimSpan, SimTime};

use crate::account::{Account, HostReport, ReceivedReport};
use crate::host::{Arrival, Host};
use crate::packet::Body;

/// Counts arrivals and answers nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sink {
    /// Packets that arrived.
    pub packets: u64,
    /// The bytes of those packets.
    pub bytes: u64,
    /// When the last one arrived.
    pub last_at: SimTime,
    /// The sum of the delays of [`crate::Raw`] packets.
    pub delay: SimSpan,
}

impl Account for Sink {
    fn report(&self) -> HostReport<'_> {
        let received = ReceivedReport {
            payload: self.bytes,
            wire: self.bytes,
            packets: self.packets,
            delay_sum: Some(self.delay),
            ..ReceivedReport::default()
        };
        HostReport { received, ..HostReport::default() }
    }
}

impl Host for Sink {
    fn handle(&mut self, now: SimTime, arrival: Arrival<'_>) {
        self.packets += 1;
        self.bytes += u64::from(arrival.size);
        self.last_at = now;
        if let Body::Raw(raw) = arrival.body {
            self.delay = self.delay.saturating_add(now.since(raw.sent_at));
        }
    }

    fn account(&self) -> &dyn Account {
        self
    }
}
