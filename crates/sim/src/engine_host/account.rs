//! The accounts of the transport's two ends.

use std::borrow::Cow;

use anabranch_units::{SimSpan, Span};

use super::{EngineSink, EngineSource, picoseconds};
use crate::account::{
    Account, FirstArrivals, HostReport, HostSeries, MessageTimes, Points, Portions, ReceivedReport, SenderPath,
    SentReport, path_points, points,
};
use crate::gauges::{GaugeRow, rows_of_paths};
use crate::history::History;

impl Account for EngineSource {
    fn report(&self) -> HostReport<'_> {
        let mut sent = SentReport {
            seq_max: Some(self.departed() as i64),
            acked_seq: Some(self.acknowledged() as i64),
            rtts: Some(&self.rtts),
            ..SentReport::default()
        };
        for (index, path) in self.paths() {
            let (tally, rtt_sum) = (path.tally, Span::rescale(path.tally.rtt_sum));
            sent.packets += tally.sent;
            sent.retransmitted += tally.sent_again;
            sent.timeouts = Some(sent.timeouts.unwrap_or(0) + tally.timeouts);
            sent.random_losses = Some(sent.random_losses.unwrap_or(0) + tally.random);
            (sent.rtt_sum, sent.rtt_samples) = (sent.rtt_sum + rtt_sum, sent.rtt_samples + tally.rtt_samples);
            sent.window = Some(sent.window.unwrap_or(0.0) + path.window);
            // Only FAST discards a baseRTT.
            if path.gauges.value("rtt_base_s").is_some() {
                let reroutes = path.gauges.value("reroutes").unwrap_or(0.0) as u64;
                sent.reroutes = Some(sent.reroutes.unwrap_or(0) + reroutes);
            }
            sent.paths.push(SenderPath {
                index,
                state: Some(path.state),
                packets: tally.sent,
                retransmitted: tally.sent_again,
                delivered: Some(tally.delivered),
                rtt_sum,
                rtt_samples: tally.rtt_samples,
                window: path.window,
            });
        }
        sent.paths.sort_by_key(|path| path.index);
        HostReport { sent, ..HostReport::default() }
    }

    fn gauges(&self) -> Option<Cow<'_, [GaugeRow]>> {
        let record = self.record.as_ref()?;
        Some(match &record.rows[..] {
            [only] => Cow::Borrowed(only.entries()),
            several => Cow::Owned(rows_of_paths(several.iter().map(History::entries))),
        })
    }

    fn series(&self, series: HostSeries) -> Option<Points<'_>> {
        match series {
            HostSeries::AckedSeq => self.acked().map(|acked| points(acked, |count| count as f64)),
            _ => path_points(self.rows(series.path()?)?, series),
        }
    }

    fn offered(&self) -> Option<Portions<'_>> {
        Some(Box::new(self.offers()?.iter().copied()))
    }

    fn resolution(&self) -> Option<SimSpan> {
        self.record.as_ref()?.resolution()
    }

    fn delay_mean_s(&self, sink: &dyn Account) -> Option<f64> {
        let arrived = sink.first_arrivals()?;
        let missing = self.departures.waiting.iter().filter(|(offset, _)| !arrived.has(*offset));
        let departed = missing.fold(self.departures.sum, |sum, (_, time)| sum - picoseconds(*time));
        // Every arrival has an earlier departure, so the subtraction does not underflow.
        let mean = arrived.sum().checked_sub(departed)?.checked_div(arrived.count().into())?;
        Some(SimSpan::from_ticks(mean as u64).as_secs_f64())
    }
}

impl Account for EngineSink {
    fn report(&self) -> HostReport<'_> {
        let received = ReceivedReport {
            payload: self.read,
            wire: self.wire,
            packets: self.connection.arrived(),
            reordered: Some(self.connection.reordered()),
            held_max: Some(self.held_max()),
            buffered_max: Some(self.buffered_max),
            delay_sum: None,
        };
        HostReport { received, ..HostReport::default() }
    }

    fn series(&self, series: HostSeries) -> Option<Points<'_>> {
        match series {
            HostSeries::Held => self.held().map(|held| points(held, f64::from)),
            _ => None,
        }
    }

    fn delivered(&self) -> Option<Portions<'_>> {
        Some(Box::new(self.deliveries()?.iter().copied()))
    }

    fn resolution(&self) -> Option<SimSpan> {
        let held = self.held.as_ref().map(History::resolution);
        held.max(self.deliveries.as_ref().map(History::resolution))
    }

    fn first_arrivals(&self) -> Option<&dyn FirstArrivals> {
        Some(self)
    }

    fn messages(&self) -> Option<MessageTimes<'_>> {
        let expected = self.expected.as_ref()?;
        Some(MessageTimes { asked: expected.asked(), finished: expected.finished() })
    }
}

impl FirstArrivals for EngineSink {
    fn count(&self) -> u64 {
        self.connection.arrived()
    }

    fn sum(&self) -> u128 {
        self.arrivals
    }

    fn has(&self, offset: u64) -> bool {
        self.connection.has_arrived(offset)
    }
}
