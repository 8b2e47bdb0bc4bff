//! MFast's receiver: one connection with up to 255 streams, each delivered in its own order.
//!
//! ```text
//! SSN = ESSN of SID:  deliver the packet and those that follow it in its stream;  ESSN ← first packet missing in the stream
//! SSN > ESSN of SID:  keep the packet in the receiver's buffer
//! SEQ = ESEQ:         ESEQ ← first packet missing in the connection
//! SEQ > ESEQ:         report the packet in a SACK block
//! answer:             ESEQ, SID, ESSN of SID
//! ```
//! Citation: mfast-2019 sec. IV, Procedure 1. Its sender is FAST's. Only the receiver is new, so every packet and every
//! acknowledgement is sent when FAST would send it.
//!
//! Differs from the paper in:
//! * The stream header is not carried; only its four bytes count. The paper's source sends a packet of each stream in turn, so
//!   both ends derive the header from the sequence number ([`StreamHeader::round_robin`]).
//! * An ACK's SID and ESSN are in [`Delivery`], not on the wire: nothing in the sender depends on them, and ns-2's ACK would
//!   exceed its 40 bytes.
//! * The SSN is not taken modulo 2^24.
//! * The buffer is finite. A packet that finds no room counts as not received and is not acknowledged. The paper does not say.

use std::num::NonZeroU8;

use crate::arrivals::{Arrival, Arrivals};

/// Bytes of the stream header: SID and SSN (mfast-2019, Figure 3).
pub const STREAM_HEADER: u32 = 4;

/// The header of a packet in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamHeader {
    /// The stream (SID), from 1.
    pub stream: u8,
    /// The packet's number in the stream (SSN), from 0.
    pub ssn: i32,
}

impl StreamHeader {
    /// The header of packet `seq` from a source that serves its streams in turn. `None` for the SYN, packet 0, which is in no
    /// stream.
    pub fn round_robin(seq: i32, streams: NonZeroU8) -> Option<Self> {
        let index = seq.checked_sub(1).filter(|&index| index >= 0)?;
        let streams = i32::from(streams.get());
        // The remainder is below 255, so the stream is at most 255.
        Some(Self { stream: (index % streams) as u8 + 1, ssn: index / streams })
    }
}

/// The streams of MFast's receiver and their buffer. It stands beside a [`Sink`](crate::Sink), which keeps ESEQ and acknowledges.
#[derive(Clone, Debug)]
pub struct Streams {
    /// Per stream, its ESSN and the packets that arrived above it.
    streams: Vec<Arrivals>,
    count: NonZeroU8,
    buffer_max: u32,
    held: u32,
    held_max: u32,
}

/// The result of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The SYN, which belongs to no stream.
    Syn,
    /// The stream has accepted the packet.
    Data(Delivery),
    /// The buffer is full: the sink must not get the packet.
    NoRoom,
}

/// The effect of a data packet for the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its stream, from 1.
    pub stream: u8,
    /// Packets of this stream that are newly deliverable; zero if the packet must wait.
    pub packets: u32,
    /// First packet missing in the stream (ESSN): the paper's ACK carries it beside ESEQ.
    pub essn: i32,
}

impl Streams {
    /// `count` streams with nothing received. The buffer has room for `buffer_max` packets. The receiver advertises a window of
    /// the same size, so a sender that obeys it never finds the buffer full.
    pub fn new(count: NonZeroU8, buffer_max: u32) -> Self {
        let streams = vec![Arrivals::default(); usize::from(count.get())];
        Self { streams, count, buffer_max, held: 0, held_max: 0 }
    }

    /// Packet `seq` arrived. Call this before the sink handles the packet.
    pub fn take(&mut self, seq: i32) -> Taken {
        let Some(header) = StreamHeader::round_robin(seq, self.count) else { return Taken::Syn };
        let stream = &mut self.streams[usize::from(header.stream - 1)];
        let waits = header.ssn > stream.next() && !stream.has(header.ssn);
        if waits && self.held >= self.buffer_max {
            return Taken::NoRoom;
        }
        // [mfast-2019] Procedure 1, lines 5 to 22.
        let before = stream.held();
        let arrival = stream.take(header.ssn);
        self.held = self.held - before + stream.held();
        self.held_max = self.held_max.max(self.held);
        let packets = if let Arrival::InOrder(packets) = arrival { packets } else { 0 };
        Taken::Data(Delivery { stream: header.stream, packets, essn: stream.next() })
    }

    /// Packets that wait for an earlier one in their stream: the used part of the receiver's buffer.
    pub fn held_packets(&self) -> u32 {
        self.held
    }

    /// The maximum of [`Self::held_packets`].
    pub fn held_packets_max(&self) -> u32 {
        self.held_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Streams that have received the SYN.
    fn streams(count: u8, buffer_max: u32) -> Streams {
        let mut streams = Streams::new(NonZeroU8::new(count).unwrap(), buffer_max);
        assert_eq!(streams.take(0), Taken::Syn);
        streams
    }

    /// Per arrival, the stream and the number of packets delivered.
    fn delivered(streams: &mut Streams, seqs: &[i32]) -> Vec<(u8, u32)> {
        let mut deliver = |&seq: &i32| match streams.take(seq) {
            Taken::Data(delivery) => (delivery.stream, delivery.packets),
            other => panic!("{other:?} of packet {seq}"),
        };
        seqs.iter().map(&mut deliver).collect()
    }

    /// Packets 1 to 6 of two streams: 1, 3, 5 and 2, 4, 6. Packet 2 is lost, so 4 and 6 wait for it and stream 1 continues.
    #[test]
    fn a_hole_stops_its_own_stream_only() {
        let mut streams = streams(2, 10);
        assert_eq!(delivered(&mut streams, &[1, 3, 4, 5, 6]), [(1, 1), (1, 1), (2, 0), (1, 1), (2, 0)]);
        assert_eq!(streams.held_packets(), 2);
        assert_eq!(delivered(&mut streams, &[2]), [(2, 3)]);
        assert_eq!((streams.held_packets(), streams.held_packets_max()), (0, 2));
    }

    /// [mfast-2019] Procedure 1, lines 8, 14 and 21: ack.SSN is the stream's ESSN, whatever packet arrived.
    #[test]
    fn the_answer_names_stream_and_essn() {
        let mut streams = streams(2, 10);
        let essn = |seq| match streams.take(seq) {
            Taken::Data(delivery) => (delivery.stream, delivery.essn),
            other => panic!("{other:?} of packet {seq}"),
        };
        assert_eq!([1, 4, 4, 2, 2].map(essn), [(1, 1), (2, 0), (2, 0), (2, 2), (2, 2)]);
    }

    /// With one stream there is one order: the packets that wait are those above the hole.
    #[test]
    fn one_stream_is_plain_tcp() {
        let mut streams = streams(1, 10);
        assert_eq!(delivered(&mut streams, &[1, 3, 4, 2]), [(1, 1), (1, 0), (1, 0), (1, 3)]);
        assert_eq!(streams.held_packets_max(), 2);
    }

    /// Two packets fit, a third does not. A duplicate and a packet that fills the hole need no room.
    #[test]
    fn a_full_buffer_takes_no_more() {
        let mut streams = streams(1, 2);
        assert_eq!(delivered(&mut streams, &[2, 3]), [(1, 0), (1, 0)]);
        assert_eq!(streams.take(4), Taken::NoRoom);
        assert_eq!(delivered(&mut streams, &[3, 1, 4]), [(1, 0), (1, 3), (1, 1)]);
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
