//! What happened in a run, as CSV: `flow.<id>.csv` and `link.<id>.csv`, a row at each change.

use std::io::{self, Write};

use anabranch_sim::{GaugeRow, Happening, Observer, PacketEvent};
use anabranch_units::{Bytes, Rate, SimTime};

/// What changes on a link.
pub(crate) struct LinkTrace {
    rate: Rate,
    /// When the transmitter is free again.
    free_at: SimTime,
    changes: Vec<(SimTime, Change)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Departed,
    Received,
    Enqueued,
    Dropped,
}

impl LinkTrace {
    pub(crate) fn new(rate: Rate) -> Self {
        Self { rate, free_at: SimTime::ZERO, changes: Vec::new() }
    }

    /// Writes `time_s,queue_packets,dropped_packets,forwarded_packets`; the packet in service is in the queue, the other two
    /// count up.
    pub(crate) fn write_csv(&self, end: SimTime, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "time_s,queue_packets,dropped_packets,forwarded_packets")?;
        let mut changes = self.changes.clone();
        changes.sort_by_key(|&(time, change)| (time, change));
        let (mut queue, mut dropped, mut forwarded) = (0_u64, 0_u64, 0_u64);
        let mut changes = changes.into_iter().filter(|&(time, _)| time <= end).peekable();
        while let Some((time, change)) = changes.next() {
            match change {
                Change::Departed => queue -= 1,
                Change::Received => forwarded += 1,
                Change::Enqueued => queue += 1,
                Change::Dropped => dropped += 1,
            }
            // What happens at one time is one row.
            if changes.peek().is_none_or(|&(next, _)| next != time) {
                writeln!(out, "{:.9},{queue},{dropped},{forwarded}", time.as_secs_f64())?;
            }
        }
        Ok(())
    }
}

impl Observer for LinkTrace {
    fn on_packet(&mut self, event: &PacketEvent<'_>) {
        let change = match event.happening {
            Happening::Enqueued => {
                // First in, first out: the departure is known when a packet comes in.
                let begin = self.free_at.max(event.time);
                self.free_at = begin.saturating_add(self.rate.transmission(Bytes::new(event.size.into())));
                self.changes.push((self.free_at, Change::Departed));
                Change::Enqueued
            }
            Happening::Received => Change::Received,
            Happening::Dropped(_) => Change::Dropped,
        };
        self.changes.push((event.time, change));
    }
}

/// Writes `time_s,window,ssthresh,rtt_s,base_rtt_s,avg_rtt_s,in_flight`; what an agent does not keep is empty.
pub(crate) fn write_flow_csv(rows: &[GaugeRow], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "time_s,window,ssthresh,rtt_s,base_rtt_s,avg_rtt_s,in_flight")?;
    for GaugeRow { time, gauges } in rows {
        let base = gauges.rtt_base.map_or(String::new(), |base| base.as_secs_f64().to_string());
        writeln!(
            out,
            "{:.9},{},{},{},{base},{},{}",
            time.as_secs_f64(),
            gauges.window,
            gauges.ssthresh,
            gauges.rtt.as_secs_f64(),
            gauges.rtt_smoothed.as_secs_f64(),
            gauges.in_flight
        )?;
    }
    Ok(())
}
