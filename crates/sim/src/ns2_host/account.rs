//! The accounts of ns-2's one-way agents.

use std::borrow::Cow;

use anabranch_ns2::config::Agent;
use anabranch_ns2::{Counters, Received};
use anabranch_units::SimSpan;

use super::{DeliveryRow, Ns2Sink, Ns2Source, SYN_PACKETS};
use crate::account::{
    Account, HostReport, HostSeries, Points, Portion, Portions, ReceivedReport, SentReport, WindowLimit, points,
};
use crate::gauges::GaugeRow;
use crate::history::History;

impl Account for Ns2Source {
    fn report(&self) -> HostReport<'_> {
        let (config, counters) = (self.sender.config(), self.sender.counters());
        let window_limit = WindowLimit {
            window: config.window,
            limited_acks: counters.window_limited_acks,
            acks: counters.rtt_samples,
        };
        let sent = SentReport {
            seq_max: Some(self.sender.max_seq().into()),
            acked_seq: Some(self.sender.acked_seq().into()),
            rtts: Some(&self.rtts),
            window: Some(self.sender.gauges().window),
            reroutes: matches!(config.agent, Agent::Fast(_)).then(|| self.sender.reroutes()),
            window_limit: Some(window_limit),
            ..sent(&counters)
        };
        HostReport { sent, ..HostReport::default() }
    }

    fn gauges(&self) -> Option<Cow<'_, [GaugeRow]>> {
        self.rows().map(Cow::Borrowed)
    }

    fn series(&self, series: HostSeries) -> Option<Points<'_>> {
        match series {
            HostSeries::AckedSeq => self.acked().map(|acked| points(acked, |seq| seq as f64)),
            _ => None,
        }
    }

    fn resolution(&self) -> Option<SimSpan> {
        self.record.as_ref()?.resolution()
    }
}

impl Account for Ns2Sink {
    fn report(&self) -> HostReport<'_> {
        let received = received(&self.sink.received(), SYN_PACKETS, self.payload, self.held_packets_max());
        HostReport { received, ..HostReport::default() }
    }

    fn series(&self, series: HostSeries) -> Option<Points<'_>> {
        match series {
            HostSeries::Held => self.rows().map(held),
            _ => None,
        }
    }

    fn delivered(&self) -> Option<Portions<'_>> {
        self.rows().map(|rows| portions(rows, self.payload))
    }

    fn resolution(&self) -> Option<SimSpan> {
        self.extras.as_ref()?.rows.as_ref().map(History::resolution)
    }
}

/// The counters of an agent, on one path or several.
pub(crate) fn sent(counters: &Counters) -> SentReport<'static> {
    SentReport {
        packets: counters.sent_packets,
        retransmitted: counters.retransmitted_packets,
        timeouts: Some(counters.timeouts),
        random_losses: Some(counters.random_losses),
        rtt_sum: counters.rtt_sum,
        rtt_samples: counters.rtt_samples,
        ..SentReport::default()
    }
}

/// The counters of a sink, on one path or several. Each path begins with a SYN, a packet without payload.
pub(crate) fn received(counted: &Received, syns: u64, payload: u32, held_max: u32) -> ReceivedReport {
    ReceivedReport {
        payload: counted.unique_packets.saturating_sub(syns) * u64::from(payload),
        wire: counted.bytes,
        packets: counted.unique_packets,
        reordered: Some(counted.reordered_packets),
        held_max: Some(held_max.into()),
        buffered_max: None,
        delay_sum: Some(counted.delay_sum),
    }
}

/// The number of packets held for a missing earlier one.
pub(crate) fn held(rows: &[DeliveryRow]) -> Points<'_> {
    Box::new(rows.iter().map(|row| (row.time, row.held.into())))
}

/// The data deliverable to the application, in packets of `payload` bytes.
pub(crate) fn portions(rows: &[DeliveryRow], payload: u32) -> Portions<'_> {
    let bits = 8 * u64::from(payload);
    let rows = rows.iter().filter(|row| row.packets > 0);
    Box::new(rows.map(move |row| Portion {
        time: row.time,
        stream: usize::from(row.stream).saturating_sub(1),
        bits: u64::from(row.packets) * bits,
    }))
}
