//! The accounts of the two ends of FAST multihoming.

use std::borrow::Cow;

use anabranch_units::SimSpan;

use super::{MultihomedSink, MultihomedSource};
use crate::account::{Account, HostReport, HostSeries, Points, Portions, SenderPath, SentReport, path_points, points};
use crate::gauges::{GaugeRow, rows_of_paths, sum_of_paths};
use crate::history::History;
use crate::ns2_host::account::{held, portions, received, sent};

impl Account for MultihomedSource {
    fn report(&self) -> HostReport<'_> {
        let paths = 0..self.sender.config().paths;
        let gauges = sum_of_paths(paths.clone().map(|path| self.sender.gauges(path)));
        let path = |index| {
            let counters = self.sender.path_counters(index);
            SenderPath {
                index,
                state: None,
                packets: counters.sent_packets,
                retransmitted: counters.retransmitted_packets,
                delivered: None,
                rtt_sum: counters.rtt_sum,
                rtt_samples: counters.rtt_samples,
                window: self.sender.gauges(index).window,
            }
        };
        let sent = SentReport {
            seq_max: Some(self.sender.max_seq().into()),
            acked_seq: Some(self.sender.acked_seq().into()),
            rtts: Some(&self.rtts),
            window: gauges.map(|gauges| gauges.window),
            reroutes: gauges.map(|gauges| gauges.reroutes),
            paths: paths.map(path).collect(),
            ..sent(&self.sender.counters())
        };
        HostReport { sent, ..HostReport::default() }
    }

    fn gauges(&self) -> Option<Cow<'_, [GaugeRow]>> {
        let record = self.record.as_ref()?;
        Some(Cow::Owned(rows_of_paths(record.rows.iter().map(History::entries))))
    }

    fn series(&self, series: HostSeries) -> Option<Points<'_>> {
        match series {
            HostSeries::AckedSeq => self.acked().map(|acked| points(acked, |seq| seq as f64)),
            _ => path_points(self.rows(series.path()?)?, series),
        }
    }

    fn resolution(&self) -> Option<SimSpan> {
        self.record.as_ref()?.resolution()
    }
}

impl Account for MultihomedSink {
    fn report(&self) -> HostReport<'_> {
        let received = received(&self.sink.received(), self.paths, self.payload, self.sink.held_packets_max());
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
        self.rows.as_ref().map(History::resolution)
    }
}
