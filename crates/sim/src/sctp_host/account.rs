//! The account of an endpoint of ns-2's SCTP. It counts bytes; its windows are reported in packets, as for the other agents.

use std::borrow::Cow;

use anabranch_ns2::sctp::{self, Endpoint};
use anabranch_units::SimSpan;

use super::Ns2Sctp;
use crate::account::{Account, HostReport, HostSeries, Points, Portion, Portions, ReceivedReport, SentReport, points};
use crate::gauges::{GaugeRow, joined};
use crate::history::History;

impl Account for Ns2Sctp {
    fn report(&self) -> HostReport<'_> {
        let (counters, received) = (self.endpoint.counters(), self.endpoint.received());
        let sent = SentReport {
            packets: counters.sent_packets,
            retransmitted: counters.retransmitted_chunks,
            seq_max: Some(self.endpoint.tsn().into()),
            acked_seq: Some(self.endpoint.acked_tsn().into()),
            timeouts: Some(counters.timeouts),
            timeouts_in_row_max: Some(counters.timeouts_in_row_max.into()),
            window: Some(summed(&self.endpoint).window),
            ..SentReport::default()
        };
        let received = ReceivedReport {
            payload: received.unique_bytes,
            wire: received.bytes,
            packets: received.unique_chunks,
            reordered: Some(received.reordered_chunks),
            held_max: Some(received.held_chunks_max.into()),
            buffered_max: None,
            delay_sum: Some(received.delay_sum),
        };
        HostReport { sent, received }
    }

    fn gauges(&self) -> Option<Cow<'_, [GaugeRow]>> {
        let record = self.record.as_ref()?;
        let rows = record.rows.iter().map(|rows| rows.entries().iter().map(|row| (row.time, row.gauges))).collect();
        Some(Cow::Owned(joined(rows, |present| sum(present.iter().flatten(), self.room()))))
    }

    fn series(&self, series: HostSeries) -> Option<Points<'_>> {
        let room = f64::from(self.room());
        let of: fn(&sctp::Gauges) -> i32 = match series {
            HostSeries::PathWindow(_) => |it| it.window,
            HostSeries::PathSsthresh(_) => |it| it.ssthresh,
            HostSeries::PathInFlight(_) => |it| it.in_flight,
            HostSeries::AckedSeq => return self.acked().map(|acked| points(acked, |tsn| tsn as f64)),
            HostSeries::Held => return self.held().map(|held| points(held, f64::from)),
            HostSeries::PeerWindow => {
                let windows = self.peer_windows()?.iter();
                return Some(Box::new(windows.map(move |&(time, bytes)| (time, f64::from(bytes) / room))));
            }
        };
        let rows = self.rows(series.path()?)?.iter();
        Some(Box::new(rows.map(move |row| (row.time, f64::from(of(&row.gauges)) / room))))
    }

    fn delivered(&self) -> Option<Portions<'_>> {
        let deliveries = self.deliveries()?.iter();
        Some(Box::new(deliveries.map(|it| Portion {
            time: it.time,
            stream: it.delivery.stream.into(),
            bits: 8 * u64::from(it.delivery.bytes),
        })))
    }

    fn resolution(&self) -> Option<SimSpan> {
        let record = self.record.as_ref()?;
        let others = [&record.held, &record.peer_windows].map(History::resolution);
        let others = others.into_iter().chain([record.deliveries.resolution(), record.acked.resolution()]);
        record.rows.iter().map(History::resolution).chain(others).max()
    }
}

impl Ns2Sctp {
    /// The bytes of a packet available to chunks.
    fn room(&self) -> u32 {
        self.endpoint.config().room()
    }
}

/// The variables of an endpoint over all its destinations.
pub(super) fn summed(endpoint: &Endpoint) -> anabranch_ns2::Gauges {
    let gauges: Vec<_> = (0..endpoint.destinations()).map(|destination| endpoint.gauges(destination)).collect();
    sum(gauges.iter(), endpoint.config().room())
}

/// Windows, thresholds and bytes in flight are sums; the RTT is that of the first destination that has one.
fn sum<'a>(destinations: impl Iterator<Item = &'a sctp::Gauges> + Clone, room: u32) -> anabranch_ns2::Gauges {
    let total = |of: fn(&sctp::Gauges) -> i32| destinations.clone().map(|it| i64::from(of(it))).sum::<i64>();
    let rtt = destinations.clone().find_map(|it| it.srtt_s).unwrap_or(0.0);
    anabranch_ns2::Gauges {
        window: total(|it| it.window) as f64 / f64::from(room),
        ssthresh: total(|it| it.ssthresh) as f64 / f64::from(room),
        rtt: SimSpan::from_secs_f64(rtt),
        rtt_smoothed: SimSpan::from_secs_f64(rtt),
        rtt_base: None,
        in_flight: (total(|it| it.in_flight) / i64::from(room)) as i32,
        reroutes: 0,
    }
}
