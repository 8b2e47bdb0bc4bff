//! What happened in a run, as CSV: `flow.<id>.csv` and `link.<id>.csv`, a row at each change.

use std::collections::{BTreeSet, VecDeque};
use std::io::{self, Write};

use anabranch_sim::{Body, Direction, FlowId, GaugeRow, Happening, Observer, PacketEvent};
use anabranch_units::{Bytes, Rate, SimSpan, SimTime};

/// What changes on a link.
pub(crate) struct LinkTrace {
    rate: Rate,
    delay: SimSpan,
    /// When the last packet that has come out had left the transmitter.
    free_at: SimTime,
    /// What the queue has taken and has not come out: when it came, and its number and size.
    inside: VecDeque<(SimTime, i64, u32)>,
    changes: Vec<(SimTime, Change)>,
}

/// At equal times, in this order: what comes before what goes, so that a queue is never shorter than nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    /// The queue took a packet.
    Enqueued,
    /// A packet left the transmitter.
    Departed,
    /// A packet came out at the far end.
    Received,
    /// The queue threw a packet away that it had taken.
    Discarded,
    /// A packet was lost in front of the queue.
    Dropped,
}

/// A link's variables from some time on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkRow {
    pub(crate) time: SimTime,
    /// Packets, the one in service included.
    pub(crate) queue: u64,
    /// Packets lost so far.
    pub(crate) dropped: u64,
    /// Packets that have come out.
    pub(crate) forwarded: u64,
}

impl LinkTrace {
    pub(crate) fn new(rate: Rate, delay: SimSpan) -> Self {
        Self { rate, delay, free_at: SimTime::ZERO, inside: VecDeque::new(), changes: Vec::new() }
    }

    /// A row at each time until `end` at which something changed.
    pub(crate) fn rows(&self, end: SimTime) -> Vec<LinkRow> {
        let mut changes = self.changes.clone();
        // When a packet left is known when it has come out. The rest leaves one after the other.
        let mut free_at = self.free_at;
        for &(since, _, size) in &self.inside {
            free_at = free_at.max(since).saturating_add(self.rate.transmission(Bytes::new(size.into())));
            changes.push((free_at, Change::Departed));
        }
        changes.retain(|&(time, _)| time <= end);
        changes.sort_by_key(|&(time, change)| (time, change));
        let mut rows: Vec<LinkRow> = Vec::new();
        for (time, change) in changes {
            let last = rows.last().copied().unwrap_or_default();
            // What happens at one time is one row.
            if rows.is_empty() || last.time != time {
                rows.push(LinkRow { time, ..last });
            }
            let row = rows.last_mut().expect("one was pushed");
            match change {
                Change::Departed => row.queue -= 1,
                Change::Received => row.forwarded += 1,
                Change::Enqueued => row.queue += 1,
                Change::Discarded => (row.queue, row.dropped) = (row.queue - 1, row.dropped + 1),
                Change::Dropped => row.dropped += 1,
            }
        }
        rows
    }

    /// Writes `time_s,queue_packets,dropped_packets,forwarded_packets`; the packet in service is in the queue, the other two
    /// count up.
    pub(crate) fn write_csv(&self, end: SimTime, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "time_s,queue_packets,dropped_packets,forwarded_packets")?;
        for LinkRow { time, queue, dropped, forwarded } in self.rows(end) {
            writeln!(out, "{:.9},{queue},{dropped},{forwarded}", time.as_secs_f64())?;
        }
        Ok(())
    }
}

impl Observer for LinkTrace {
    fn on_packet(&mut self, event: &PacketEvent<'_>) {
        let change = match event.happening {
            Happening::Enqueued => {
                self.inside.push_back((event.time, event.body.seq(), event.size));
                Change::Enqueued
            }
            Happening::Received => {
                // First in, first out, and the delay is constant.
                self.inside.pop_front();
                self.free_at = event.time - self.delay;
                self.changes.push((self.free_at, Change::Departed));
                Change::Received
            }
            Happening::Discarded => {
                let (seq, size) = (event.body.seq(), event.size);
                let place = self.inside.iter().position(|&(_, waiting, bytes)| (waiting, bytes) == (seq, size));
                self.inside.remove(place.expect("a queue discards what it has taken"));
                Change::Discarded
            }
            Happening::Dropped(_) => Change::Dropped,
        };
        self.changes.push((event.time, change));
    }
}

/// What comes to the destination of a flow.
pub(crate) struct DeliveryTrace {
    flow: FlowId,
    /// Bytes of payload of an ns-2 packet.
    payload: u32,
    /// First packet that has not come.
    next: i32,
    /// What has come above it.
    above: BTreeSet<i32>,
    /// Bits on the wire, and when they came.
    pub(crate) wire: Vec<(SimTime, u64)>,
    /// Bits of payload, and when they could be handed to the application: in order.
    pub(crate) in_order: Vec<(SimTime, u64)>,
}

impl DeliveryTrace {
    pub(crate) fn new(flow: FlowId, payload: u32) -> Self {
        Self { flow, payload, next: 0, above: BTreeSet::new(), wire: Vec::new(), in_order: Vec::new() }
    }

    /// Bits that an arrival lets the application have.
    fn released(&mut self, event: &PacketEvent<'_>) -> u64 {
        let packet = match event.body {
            Body::Raw(_) => return 8 * u64::from(event.size),
            Body::Ns2(packet) => packet,
            // The sink itself remembers what it read.
            Body::Segment(_) => return 0,
        };
        if packet.seq >= self.next {
            self.above.insert(packet.seq);
        }
        let mut packets = 0;
        while self.above.remove(&self.next) {
            // The SYN is packet 0 and has no payload.
            packets += u64::from(self.next > 0);
            self.next += 1;
        }
        8 * packets * u64::from(self.payload)
    }
}

impl Observer for DeliveryTrace {
    fn on_packet(&mut self, event: &PacketEvent<'_>) {
        let is_ours = event.flow == self.flow && event.direction == Direction::Forward;
        if event.happening != Happening::Received || !is_ours {
            return;
        }
        self.wire.push((event.time, 8 * u64::from(event.size)));
        match self.released(event) {
            0 => {}
            bits => self.in_order.push((event.time, bits)),
        }
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
