//! The transport's engine as hosts.

use anabranch_cc::{Settings, registry};
use anabranch_proto::{Config, State, StreamBuffer};
use anabranch_sim::{Builder, Capture, Detail, EngineSink, EngineSource, ErrorSpec, HostId, LinkId, World};
use anabranch_units::SimTime;
use pcap_file::pcapng::{Block, PcapNgReader};

use super::standard::{millis, spec};

fn config(streams: u16) -> Config {
    let law = Settings::default_for(registry::find("reno").unwrap());
    // One stream may use the whole buffer, so that only the window limits the source.
    let stream_buffer = StreamBuffer::Bytes(u64::MAX);
    Config { mss: 1000, streams, receive_buffer: 16_000, stream_buffer, ..Config::new(law) }
}

/// A source and a sink with a delay of 10 ms and 8 Mbit/s. The forward direction loses packets according to `error`.
fn world(streams: u16, error: ErrorSpec, observe: impl FnOnce(&mut Builder, LinkId)) -> (World, [HostId; 2]) {
    let mut net = Builder::new(1);
    let (left, right) = (net.node("left"), net.node("right"));
    let there = net.link(left, right, spec("8Mbit/s", "10ms").error(error)).unwrap();
    net.link(right, left, spec("8Mbit/s", "10ms")).unwrap();
    let source = net.host(left, EngineSource::new(config(streams)).unwrap().traced_in(Detail::WHOLE)).unwrap();
    let sink = net.host(right, EngineSink::new(config(streams)).unwrap().traced_in(Detail::WHOLE)).unwrap();
    net.flow(source, sink).unwrap();
    net.start(SimTime::ZERO, source).unwrap();
    observe(&mut net, there);
    (net.build().unwrap(), [source, sink])
}

#[test]
fn a_capture_shows_real_headers() {
    let mut id = None;
    let (mut world, _) = world(5, ErrorSpec::List(vec![]), |net, there| {
        let capture = Capture::new(Vec::new(), [(there, "there")]).unwrap();
        id = Some(net.observe(&[there], capture).unwrap());
    });
    world.run_until(millis(60));
    let capture = id.as_ref().unwrap().borrow();
    let mut reader = PcapNgReader::new(capture.writer().as_slice()).unwrap();
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            packets.push((packet.original_len, packet.data[20..].to_vec()));
        }
    }
    let (len, syn) = &packets[0];
    assert_eq!(*len, 60);
    // Sequence number 0, 10 words of header, SYN and the formerly reserved bit. MSS 1000, a window scale of 0, SACK permitted, MS
    // version 2 with 5 streams, no features and a credit of 2^31.
    assert_eq!(syn[4..14], [0, 0, 0, 0, 0, 0, 0, 0, 0xa2, 0x02]);
    assert_eq!(syn[20..37], [2, 4, 0x03, 0xe8, 3, 3, 0, 4, 2, 253, 8, b'M', b'S', 2, 5, 0, 31]);
    // The third segment of the handshake, then the first segment of each stream: 5 words, ACK and the formerly reserved bit, the
    // stream and its number 0.
    for (number, (len, data)) in packets[2..7].iter().enumerate() {
        assert_eq!(*len, 1040);
        assert_eq!(data[4..8], (1 + 1000 * number as u32).to_be_bytes());
        assert_eq!((&data[12..14], &data[20..24]), (&[0x52, 0x10][..], &[number as u8 + 1, 0, 0, 0][..]));
    }
}

/// Packet 12 is lost. The reader of its stream waits, those of the other streams do not, and everything arrives in the end.
#[test]
fn a_loss_is_repaired_and_everything_is_accounted_for() {
    let (mut world, [source, sink]) = world(5, ErrorSpec::List(vec![12]), |_, _| ());
    world.run_until(millis(5000));
    world.assert_conserved();
    let (source, sink): (&EngineSource, &EngineSink) = (world.host(source).unwrap(), world.host(sink).unwrap());
    assert_eq!(source.connection().map(|connection| connection.state()), Some(State::Established));
    let tally = source.path().unwrap().tally;
    assert_eq!((tally.lost, tally.sent_again, tally.timeouts), (1, 1, 0));
    assert_eq!(sink.read(), 996 * sink.connection().arrived());
    let remembered: u64 = sink.deliveries().unwrap().iter().map(|portion| portion.bits).sum();
    assert_eq!(remembered, 8 * sink.read());
    // The buffer holds 16 segments, and a segment's ACK is sent before the reader has taken the data.
    let most = source.rows(0).unwrap().iter().map(|row| row.gauges.in_flight).max();
    assert!((14..=16).contains(&most.unwrap()), "{most:?}");
}
