//! MFast's receiver: one connection with up to 255 streams, each handed over in an order of its own.
//!
//! ```text
//! SSN = ESSN of SID:  hand over the packet and what follows it in its stream;  ESSN ← first that is missing there
//! SSN > ESSN of SID:  keep the packet in the receiver's buffer
//! SEQ = ESEQ:         ESEQ ← first that is missing of the connection
//! SEQ > ESEQ:         report the packet in a SACK block
//! answer:             ESEQ, SID, ESSN of SID
//! ```
//!
//! Citation: mfast-2019 sec. IV, Procedure 1. Its sender is FAST's: what is new is at the receiver, so every packet and every
//! acknowledgement leaves when FAST's would.
//!
//! Differs from the paper in:
//! * The stream header is not carried, it only weighs its four bytes. The paper's source sends a packet of each stream in turn,
//!   so both ends know the header from the sequence number ([`StreamHeader::round_robin`]).
//! * An ACK's SID and ESSN are told to whoever asks ([`Delivery`]) and are not on the wire: nothing in the sender depends on
//!   them, and ns-2's ACK would outgrow its 40 bytes.
//! * The SSN is not taken modulo 2^24.
//! * A buffer has an end. A packet that finds no room is not received at all, and not acknowledged; the paper does not say.

use std::num::NonZeroU8;

use anabranch_units::SimTime;

use crate::arrivals::{Arrival, Arrivals};
use crate::packet::Packet;
use crate::sink::Sink;

/// Bytes of the stream header: SID and SSN (mfast-2019, Figure 3).
pub const STREAM_HEADER: u32 = 4;

/// What names a packet within its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamHeader {
    /// The stream (SID), from 1.
    pub stream: u8,
    /// The packet's number in it (SSN), from 0.
    pub ssn: i32,
}

impl StreamHeader {
    /// The header of packet `seq` from a source that serves its streams in turn. The SYN, packet 0, is in none.
    pub fn round_robin(seq: i32, streams: NonZeroU8) -> Option<Self> {
        let index = seq.checked_sub(1).filter(|&index| index >= 0)?;
        let streams = i32::from(streams.get());
        // The remainder is below 255, so the stream is at most that.
        Some(Self { stream: (index % streams) as u8 + 1, ssn: index / streams })
    }
}

/// MFast's receiver.
#[derive(Clone, Debug)]
pub struct MfastSink {
    /// The connection: ESEQ, SACK blocks, acknowledgements.
    sink: Sink,
    /// ESSN of each stream, and what waits above it.
    streams: Vec<Arrivals>,
    count: NonZeroU8,
    buffer_max: u32,
    held: u32,
    held_max: u32,
    delivery: Option<Delivery>,
}

/// What became of a packet with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its stream, from 1.
    pub stream: u8,
    /// Packets of this stream that the application can have now and could not before; none if it waits.
    pub packets: u32,
    /// First packet of the stream that is missing (ESSN): what an ACK of the paper says beside ESEQ.
    pub essn: i32,
}

impl MfastSink {
    /// A receiver on top of `sink`, which has received nothing either. Its buffer has room for `buffer_max` packets; the
    /// window that it advertises is as large, so a sender that keeps to it never finds it full.
    pub fn new(sink: Sink, streams: NonZeroU8, buffer_max: u32) -> Self {
        let count = usize::from(streams.get());
        Self {
            sink,
            streams: vec![Arrivals::default(); count],
            count: streams,
            buffer_max,
            held: 0,
            held_max: 0,
            delivery: None,
        }
    }

    /// A data packet arrived.
    pub fn handle(&mut self, now: SimTime, packet: &Packet) {
        self.delivery = None;
        if let Some(header) = StreamHeader::round_robin(packet.seq, self.count) {
            let stream = &mut self.streams[usize::from(header.stream - 1)];
            let waits = header.ssn > stream.next() && !stream.has(header.ssn);
            if waits && self.held >= self.buffer_max {
                return;
            }
            let before = stream.held();
            let arrival = stream.take(header.ssn);
            self.held = self.held - before + stream.held();
            self.held_max = self.held_max.max(self.held);
            let packets = if let Arrival::InOrder(packets) = arrival { packets } else { 0 };
            self.delivery = Some(Delivery { stream: header.stream, packets, essn: stream.next() });
        }
        self.sink.handle(now, packet);
        debug_assert!(
            self.held <= self.sink.held_packets(),
            "what is in order on the connection is in order on its stream"
        );
    }

    /// The time of [`MfastSink::poll_timeout`] has come.
    pub fn handle_timeout(&mut self, now: SimTime) {
        self.sink.handle_timeout(now);
    }

    /// The ACK to put on the wire, if there is one.
    pub fn poll_transmit(&mut self) -> Option<Packet> {
        self.sink.poll_transmit()
    }

    /// What became of the last packet, once; nothing if it was the SYN or found no room.
    pub fn poll_delivery(&mut self) -> Option<Delivery> {
        self.delivery.take()
    }

    /// When [`MfastSink::handle_timeout`] wants to be called.
    pub fn poll_timeout(&self) -> SimTime {
        self.sink.poll_timeout()
    }

    /// The connection below the streams.
    pub fn sink(&self) -> &Sink {
        &self.sink
    }

    /// Packets that wait for one before them in their stream: what of the receiver's buffer is in use.
    pub fn held_packets(&self) -> u32 {
        self.held
    }

    /// The most there were at one time.
    pub fn held_packets_max(&self) -> u32 {
        self.held_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SinkConfig;
    use crate::packet::{Kind, SackBlocks};

    const SACK: SinkConfig = SinkConfig { sack: true, delay: None };

    fn packet(seq: i32) -> Packet {
        Packet {
            kind: Kind::Data,
            size: 1000,
            seq,
            sent_at: SimTime::ZERO,
            first_sent_at: SimTime::ZERO,
            echo: SimTime::ZERO,
            sack: SackBlocks::default(),
        }
    }

    /// A receiver that has the SYN.
    fn receiver(streams: u8, buffer_max: u32) -> MfastSink {
        let mut receiver = MfastSink::new(Sink::new(SACK), NonZeroU8::new(streams).unwrap(), buffer_max);
        receiver.handle(SimTime::ZERO, &packet(0));
        assert_eq!(receiver.poll_delivery(), None);
        receiver
    }

    /// Stream and packets of what each arrival hands over.
    fn delivered(receiver: &mut MfastSink, seqs: &[i32]) -> Vec<(u8, u32)> {
        let mut deliver = |&seq: &i32| {
            receiver.handle(SimTime::ZERO, &packet(seq));
            receiver.poll_delivery().map(|delivery| (delivery.stream, delivery.packets)).unwrap()
        };
        seqs.iter().map(&mut deliver).collect()
    }

    /// Packets 1 to 6 of two streams: 1, 3, 5 and 2, 4, 6. Packet 2 is lost, so 4 and 6 wait for it and stream 1 goes on.
    #[test]
    fn a_hole_stops_its_own_stream_only() {
        let mut receiver = receiver(2, 10);
        assert_eq!(delivered(&mut receiver, &[1, 3, 4, 5, 6]), [(1, 1), (1, 1), (2, 0), (1, 1), (2, 0)]);
        assert_eq!((receiver.held_packets(), receiver.sink().held_packets()), (2, 4));
        assert_eq!(delivered(&mut receiver, &[2]), [(2, 3)]);
        assert_eq!((receiver.held_packets(), receiver.held_packets_max()), (0, 2));
        assert_eq!(receiver.sink().held_packets_max(), 4);
    }

    /// [mfast-2019] Procedure 1, lines 8, 14 and 21: ack.SSN is the ESSN of the stream whatever came.
    #[test]
    fn the_answer_names_stream_and_essn() {
        let mut receiver = receiver(2, 10);
        let mut essn = |seq| {
            receiver.handle(SimTime::ZERO, &packet(seq));
            receiver.poll_delivery().map(|delivery| (delivery.stream, delivery.essn)).unwrap()
        };
        assert_eq!([1, 4, 4, 2, 2].map(&mut essn), [(1, 1), (2, 0), (2, 0), (2, 2), (2, 2)]);
    }

    /// What differs from FAST is what the application gets and when, not what the sender sees.
    #[test]
    fn acknowledgements_are_those_of_the_sink_below() {
        let mut plain = Sink::new(SACK);
        plain.handle(SimTime::ZERO, &packet(0));
        plain.poll_transmit();
        let mut receiver = receiver(5, 10);
        receiver.poll_transmit();
        for seq in [1, 2, 4, 5, 9, 3, 7, 9, 6, 8] {
            plain.handle(SimTime::ZERO, &packet(seq));
            receiver.handle(SimTime::ZERO, &packet(seq));
            assert_eq!(receiver.poll_transmit(), plain.poll_transmit(), "the answer to packet {seq}");
        }
    }

    /// With one stream there is one order: what waits on the stream waits on the connection.
    #[test]
    fn one_stream_is_plain_tcp() {
        let mut receiver = receiver(1, 10);
        assert_eq!(delivered(&mut receiver, &[1, 3, 4, 2]), [(1, 1), (1, 0), (1, 0), (1, 3)]);
        assert_eq!(receiver.held_packets_max(), receiver.sink().held_packets_max());
    }

    /// Two fit and a third does not; what fills a hole needs no room.
    #[test]
    fn a_full_buffer_takes_no_more() {
        let mut receiver = receiver(1, 2);
        assert_eq!(delivered(&mut receiver, &[2, 3]), [(1, 0), (1, 0)]);
        receiver.poll_transmit();
        receiver.handle(SimTime::ZERO, &packet(4));
        assert_eq!((receiver.poll_delivery(), receiver.poll_transmit()), (None, None));
        // What is there already is acknowledged again.
        assert_eq!(delivered(&mut receiver, &[3]), [(1, 0)]);
        assert!(receiver.poll_transmit().is_some());
        assert_eq!(delivered(&mut receiver, &[1, 4]), [(1, 3), (1, 1)]);
    }

    #[test]
    fn streams_take_turns_up_to_255() {
        let streams = NonZeroU8::new(5).unwrap();
        assert_eq!(StreamHeader::round_robin(0, streams), None);
        assert_eq!(StreamHeader::round_robin(6682, streams), Some(StreamHeader { stream: 2, ssn: 1336 }));
        assert_eq!(StreamHeader::round_robin(255, NonZeroU8::MAX), Some(StreamHeader { stream: 255, ssn: 0 }));
        assert_eq!(StreamHeader::round_robin(256, NonZeroU8::MAX), Some(StreamHeader { stream: 1, ssn: 1 }));
    }
}
