//! Captures and traces, read by a third-party reader.

use anabranch_ns2::{Kind, Packet, SackBlocks};
use anabranch_sim::{Arrival, Capture, Host, Input, Trace, Transmit};
use anabranch_units::SimTime;
use pcap_file::pcapng::{Block, PcapNgReader};

use super::standard::{millis, spec};
use super::support::{Log, Pair};

/// Sends one data packet and one ACK with a SACK block.
#[derive(Default)]
struct Two(Vec<Packet>);

impl Host for Two {
    fn handle(&mut self, _now: SimTime, _arrival: Arrival<'_>) {}

    fn handle_input(&mut self, now: SimTime, _input: Input) {
        let mut sack = SackBlocks::default();
        let data = Packet {
            kind: Kind::Data,
            size: 1040,
            seq: 3,
            sent_at: now,
            first_sent_at: now,
            echo: SimTime::ZERO,
            sack,
        };
        sack.push(5, 7);
        self.0 = vec![Packet { kind: Kind::Ack, size: 40, seq: 3, sack, ..data }, data];
    }

    fn poll_transmit(&mut self, _now: SimTime) -> Option<Transmit> {
        self.0.pop().map(Transmit::from)
    }
}

#[test]
fn a_capture_is_readable_and_says_what_was_sent() {
    let mut pair = Pair::new(Two::default(), Log::default(), [spec("8Mbit/s", "1ms")]);
    let capture = Capture::new(Vec::new(), [(pair.links[0], "n0>n1")]).unwrap();
    let capture = pair.net.observe(&pair.links, capture).unwrap();
    pair.net.start(millis(1500), pair.source).unwrap();
    let mut world = pair.net.build().unwrap();
    world.run_until(SimTime::NEVER);

    let capture = capture.borrow();
    assert!(capture.error().is_none());
    let mut reader = PcapNgReader::new(capture.writer().as_slice()).unwrap();
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        match block.unwrap() {
            Block::EnhancedPacket(packet) => {
                // The reader counts in nanoseconds, whatever resolution the file states.
                packets.push((packet.timestamp.as_nanos(), packet.original_len, packet.data.to_vec()));
            }
            Block::InterfaceDescription(interface) => assert_eq!(u32::from(interface.linktype), 101),
            block => panic!("{block:?}"),
        }
    }
    let word = |data: &[u8], at: usize| u32::from_be_bytes(data[at..at + 4].try_into().unwrap());
    let [(time, len, data), (_, ack_len, ack)] = packets.as_slice() else { panic!("{packets:?}") };
    assert_eq!((*time, *len, data.len()), (1_500_000_000, 1040, 40));
    // IPv4, TCP from 10.0.0.1 to 10.0.0.2, sequence number 3 · 1000.
    assert_eq!((data[0], data[9], word(data, 12), word(data, 16)), (0x45, 6, 0x0a00_0001, 0x0a00_0002));
    assert_eq!(word(data, 24), 3000);
    // With the checksum included, the header's words sum up to zero.
    let sum: u32 = data[..20].chunks(2).map(|pair| u32::from(pair[0]) * 256 + u32::from(pair[1])).sum();
    assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    // Acknowledges 4000, and 5000 to 7000 selectively, in 12 bytes of options.
    assert_eq!((*ack_len, ack.len(), ack[32] >> 4), (52, 52, 8));
    assert_eq!((word(ack, 28), word(ack, 40), ack[42], ack[43]), (4000, 0x0101_050a, 5, 10));
    assert_eq!((word(ack, 44), word(ack, 48)), (5000, 7000));
}

#[test]
fn a_trace_prints_as_lines() {
    let mut pair = Pair::new(Two::default(), Log::default(), [spec("8Mbit/s", "1ms")]);
    let trace = pair.net.observe(&pair.links, Trace::default()).unwrap();
    pair.net.start(millis(1500), pair.source).unwrap();
    let mut world = pair.net.build().unwrap();
    world.run_until(SimTime::NEVER);
    let lines: Vec<_> = trace.borrow().records.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "+ 1.500000000000 l0 f0> 3 1040",
            "+ 1.500000000000 l0 f0> 3 40",
            "r 1.502040000000 l0 f0> 3 1040",
            "r 1.502080000000 l0 f0> 3 40",
        ]
    );
}
