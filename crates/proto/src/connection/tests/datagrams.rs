//! Unreliable datagrams between two engines.

use super::*;
use crate::datagrams::WEIGHT;
use crate::{
    Content, DatagramStats, Form, Header, Options, PathMtu, SendDatagramError, Ssn, StreamBuffer, StreamHeader, Urgency,
};

/// Packets carry what the MSS allows: datagrams of 996 bytes.
fn sealed() -> Config {
    Config { form: Form::Sealed, paths_max: 4, receive_buffer: 1 << 20, ..config() }
}

/// Neither the window nor credit limits a stream.
fn roomy() -> Config {
    Config { streams: 1, receive_buffer: 64 << 20, ..sealed() }
}

fn pair() -> Pair {
    Pair::established(sealed(), sealed())
}

#[track_caller]
fn send(pair: &mut Pair, len: u32) {
    pair.client.send_datagram(pair.now, len, Time::NEVER).expect("it can be sent");
}

fn stats(pair: &Pair) -> (DatagramStats, DatagramStats) {
    (pair.client.connection.datagram_stats(), pair.server.connection.datagram_stats())
}

/// What left the client as a datagram: when, and its bytes.
fn departures(pair: &Pair) -> Vec<(Time, u32)> {
    let log = pair.up.log.iter().chain(pair.routes.iter().flat_map(|route| &route.up.log));
    let datagrams = log.filter(|(_, segment)| segment.stream_header.is_some_and(|header| header.sid == Sid::DATAGRAM));
    datagrams.map(|(at, segment)| (*at, segment.content.len())).collect()
}

fn voids(pair: &Pair) -> Vec<(Time, u64, u32)> {
    let log = pair.up.log.iter().chain(pair.routes.iter().flat_map(|route| &route.up.log));
    let voids = log.filter(|(_, segment)| segment.stream_header.is_some_and(|header| header.sid == Sid::VOID));
    voids.map(|(at, segment)| (*at, segment.space(), segment.wire_size())).collect()
}

/// Ten datagrams, of which the fourth is lost. The others are read at once, and the place of the lost one is filled by a void, which has headers alone.
#[test]
fn lost_datagram_is_replaced_by_a_void() {
    let mut pair = pair();
    pair.lose(&[3]);
    (0..10).for_each(|len| send(&mut pair, 100 * len));
    pair.run_for(ms(50));
    assert_eq!(pair.server.datagram_numbers(), [0, 1, 2, 4, 5, 6, 7, 8, 9]);
    assert_eq!(pair.server.datagrams.iter().map(|datagram| datagram.len).sum::<u32>(), 4500 - 300);
    pair.run_for(ms(150));
    let lost = voids(&pair);
    assert_eq!(lost.iter().map(|(_, space, size)| (*space, *size)).collect::<Vec<_>>(), [(304, 44)]);
    assert_eq!(departures(&pair).len(), 10, "no datagram is sent twice");
    let (sent, arrived) = stats(&pair);
    assert_eq!((sent.sent, sent.delivered, sent.lost), (10, 9, 1));
    assert_eq!((arrived.received, arrived.missed, arrived.dropped_unread), (9, 1, 0));
    assert_eq!(pair.client.connection.acked(), pair.client.connection.sent());
    assert_eq!((pair.client.path().tally.lost, pair.client.path().flight), (1, 0.0), "the law was told");
}

/// The limit of the rate is that of datagrams, too: of ten of 996 bytes each takes its packet's time at 100 kbit/s after the one before.
#[test]
fn datagrams_leave_at_the_limit_of_the_rate() {
    let rate = anabranch_units::Rate::from_bits_per_second(100_000);
    let mut pair = Pair::established(Config { rate_max: Some(rate), ..sealed() }, sealed());
    pair.run_for(ms(2000));
    (0..10).for_each(|_| send(&mut pair, 996));
    pair.run_for(ms(2000));
    let times: Vec<Time> = departures(&pair).into_iter().map(|(at, _)| at).collect();
    // A segment of 1000 bytes of sequence space, in a packet of at most 100 bytes more.
    let steps = times.windows(2).skip(1).map(|pair| pair[1].since(pair[0]));
    assert!(times.len() == 10 && steps.clone().all(|step| step >= ms(80) && step <= ms(88)), "{times:?}");
}

/// Reno halves its window for lost datagrams as for segments: the same loss, with the same window after it.
#[test]
fn law_reduces_its_window_for_a_lost_datagram() {
    let window = |with_datagrams: bool| {
        let mut pair = pair();
        pair.lose(&[3]);
        if with_datagrams {
            (0..10).for_each(|_| send(&mut pair, 996));
        } else {
            pair.send(9960);
        }
        pair.run_for(Span::from_secs(1));
        pair.client.path().window
    };
    assert_eq!(window(true).to_bits(), window(false).to_bits());
}

/// A loss in front of a stream does not keep its datagrams, and lost datagrams do not keep a stream.
#[test]
fn neither_waits_for_the_other() {
    let mut pair = pair();
    pair.lose(&[0, 2, 4]);
    let sid = pair.send(996);
    send(&mut pair, 10);
    send(&mut pair, 20);
    pair.client.write(sid, 996);
    pair.drain();
    send(&mut pair, 30);
    send(&mut pair, 40);
    pair.run_for(ms(50));
    assert_eq!((pair.server.received(sid), pair.server.datagram_numbers()), (0, vec![0, 3]));
    pair.run_for(ms(250));
    assert_eq!((pair.server.received(sid), pair.server.datagram_numbers()), (1992, vec![0, 3]));
    assert_eq!(stats(&pair).1.missed, 2);
}

#[test]
fn both_ends_must_have_the_feature() {
    let none = || Config { datagram_receive_buffer: 0, ..sealed() };
    let tcp = || Config { form: Form::Tcp, ..config() };
    let plain = || Config { streams: 0, ..sealed() };
    let few = || Config { streams: 1, ..sealed() };
    let many = || Config { streams: Sid::STREAMS_MAX, receive_buffer: 32 << 20, ..sealed() };
    let (good, unsupported, disabled) = (Ok(()), Err(SendDatagramError::Unsupported), Err(SendDatagramError::Disabled));
    for (client, server, there, back) in [
        (sealed(), sealed(), good, good),
        (few(), many(), good, good),
        (many(), few(), good, good),
        (sealed(), none(), unsupported, disabled),
        (none(), sealed(), disabled, unsupported),
        (none(), none(), disabled, disabled),
        (plain(), sealed(), unsupported, unsupported),
        (tcp(), tcp(), unsupported, unsupported),
    ] {
        let mut pair = Pair::established(client, server);
        assert_eq!(pair.client.send_datagram(pair.now, 10, Time::NEVER), there);
        assert_eq!(pair.server.send_datagram(pair.now, 10, Time::NEVER), back);
        pair.run_for(ms(50));
        let count = usize::from(there.is_ok());
        assert_eq!((pair.server.datagrams.len(), pair.client.datagrams.len()), (count, count));
    }
    let mut pair = Pair::with(sealed(), sealed());
    assert_eq!(pair.client.send_datagram(pair.now, 10, Time::NEVER), Err(SendDatagramError::NotOpen));
    pair.run_for(ms(150));
    pair.client.connection.close();
    assert_eq!(pair.client.send_datagram(pair.now, 10, Time::NEVER), Err(SendDatagramError::NotOpen));
}

/// The MSS has 1000 bytes, of which four are the header. A datagram of no bytes is one, too.
#[test]
fn datagram_larger_than_a_packet_is_refused() {
    let mut pair = pair();
    let refused = Err(SendDatagramError::TooLarge { len: 997, max: 996 });
    assert_eq!(pair.client.send_datagram(pair.now, 997, Time::NEVER), refused);
    assert_eq!(pair.client.connection.datagrams().len_max(), Ok(996));
    send(&mut pair, 996);
    send(&mut pair, 0);
    pair.run_for(ms(50));
    assert_eq!(pair.server.datagrams.iter().map(|datagram| datagram.len).collect::<Vec<_>>(), [996, 0]);
    let small = Config { datagram_send_buffer: WEIGHT + 100, ..sealed() };
    let mut pair = Pair::established(small, sealed());
    let refused = Err(SendDatagramError::TooLarge { len: 101, max: 100 });
    assert_eq!(pair.client.send_datagram(pair.now, 101, Time::NEVER), refused);
    assert_eq!(pair.client.send_datagram(pair.now, 100, Time::NEVER), Ok(()));
}

/// A path begins with 1200 bytes of UDP payload, of which 56 surround a datagram. A refused datagram makes the engine look for larger packets, which carry it
/// after a round trip: 1500 bytes with 28 of IP and UDP.
#[test]
fn refused_datagram_begins_the_search_for_larger_packets() {
    let large = || Config { mss: 9000, path_mtu: PathMtu::USUAL, ..sealed() };
    let mut pair = Pair::established(large(), large());
    let refused = |max| Err(SendDatagramError::TooLarge { len: 1417, max });
    assert_eq!(pair.client.send_datagram(pair.now, 1417, Time::NEVER), refused(1200 - 56));
    pair.run_for(ms(110));
    // The addresses of the tests are IPv6.
    assert_eq!(pair.client.send_datagram(pair.now, 1417, Time::NEVER), refused(1500 - 48 - 56));
    assert_eq!(pair.client.send_datagram(pair.now, 1500 - 48 - 56, Time::NEVER), Ok(()));
}

/// The initial window has ten segments, and the next leaves after a round trip of 100 ms.
#[test]
fn expired_datagrams_are_dropped_and_counted() {
    let mut pair = pair();
    let at = pair.now + ms(60);
    (0..30).for_each(|_| pair.client.send_datagram(pair.now, 996, at).unwrap());
    pair.run_for(ms(90));
    (0..5).for_each(|_| send(&mut pair, 996));
    pair.run_for(ms(200));
    let (sent, arrived) = stats(&pair);
    assert_eq!((sent.sent, sent.expired, sent.dropped_unsent), (15, 20, 0));
    assert_eq!((arrived.received, arrived.missed), (15, 0));
}

/// Room for five: of thirty, the first ten leave at once, and then the last five are left.
#[test]
fn full_send_queue_drops_the_oldest() {
    let config = Config { datagram_send_buffer: 5 * (996 + WEIGHT), ..sealed() };
    let mut pair = Pair::established(config, sealed());
    for _ in 0..30 {
        send(&mut pair, 996);
        pair.drain();
    }
    pair.run_for(ms(300));
    let expected: Vec<u64> = (0..10).chain(25..30).collect();
    assert_eq!(pair.server.datagram_numbers(), expected);
    assert_eq!(stats(&pair).0.dropped_unsent, 15);
}

/// A peer floods an application that does not read: the queue keeps its limit, the newest datagrams are there, and streams go on.
#[test]
fn flood_of_unread_datagrams_is_bounded() {
    let limit = 20 * (100 + WEIGHT);
    let mut pair = Pair::established(sealed(), Config { datagram_receive_buffer: limit, ..sealed() });
    pair.server.reads_datagrams = false;
    for _ in 0..100 {
        (0..50).for_each(|_| send(&mut pair, 100));
        pair.run_for(ms(20));
        assert!(pair.server.connection.receiver.datagrams.weight() <= limit);
        assert_eq!(pair.server.connection.buffered(), 0, "they take nothing of the receive window");
    }
    pair.transfer(100_000);
    let told = pair.server.events.iter().filter(|event| **event == Event::DatagramsReadable).count();
    assert_eq!((stats(&pair).1.received, stats(&pair).1.dropped_unread, told), (5000, 4980, 1));
    pair.server.reads_datagrams = true;
    pair.drain();
    assert_eq!(pair.server.datagram_numbers(), (4980..5000).collect::<Vec<_>>());
}

/// Datagrams and voids are consumed on arrival. If the buffer grew with them, a peer could make room for data of streams that nobody reads.
#[test]
fn datagrams_do_not_grow_the_receive_buffer() {
    let growing = || Config { receive_buffer: 50_000, receive_buffer_max: 1 << 20, ..sealed() };
    let mut pair = Pair::established(growing(), growing());
    (0..2000).for_each(|_| send(&mut pair, 800));
    pair.run_for(Span::from_secs(20));
    assert!(stats(&pair).1.received > 1000);
    assert_eq!(pair.server.connection.receiver.window.capacity(), 50_000);
    pair.transfer(500_000);
    assert!(pair.server.connection.receiver.window.capacity() > 50_000, "reading a stream makes it grow");
}

#[test]
fn duplicate_datagram_is_read_once() {
    let mut pair = pair();
    pair.up.faults.extend([(0, Fault::Duplicate), (2, Fault::Duplicate)]);
    (0..3).for_each(|_| send(&mut pair, 500));
    pair.run_for(ms(200));
    assert_eq!((pair.server.datagram_numbers(), stats(&pair).1.received), (vec![0, 1, 2], 3));
}

/// What is reordered by less than a round trip arrives before its void; what comes later than its void is dropped.
#[test]
fn late_datagram_is_read_only_before_its_void() {
    for (delay, expected) in [(ms(60), vec![1, 2, 3, 4, 0]), (ms(400), vec![1, 2, 3, 4])] {
        let mut pair = pair();
        pair.up.faults.insert(0, Fault::Delay(delay));
        (0..5).for_each(|_| send(&mut pair, 500));
        pair.run_for(Span::from_secs(2));
        assert_eq!(pair.server.datagram_numbers(), expected, "{delay:?}");
        let (sent, arrived) = stats(&pair);
        assert_eq!(sent.lost, 1, "it counts as lost in either case");
        assert_eq!(arrived.received + arrived.missed, 5);
        assert_eq!(pair.client.connection.acked(), pair.client.connection.sent());
    }
}

/// Both have more than the link carries, a segment in a millisecond. Whatever the datagrams' size, each gets half of the bytes.
#[test]
fn streams_and_datagrams_share_a_link_evenly() {
    for len in [50, 400, 996] {
        let mut pair = Pair::established(roomy(), roomy());
        pair.up.spacing = ms(1);
        pair.send(1 << 30);
        let mut before = (0, 0);
        for round in 0..400 {
            while pair
                .client
                .connection
                .sender
                .datagrams
                .peek(Urgency::Usual)
                .is_none_or(|_| stats(&pair).0.dropped_unsent == 0)
            {
                send(&mut pair, len);
            }
            pair.client.connection.sender.datagrams.stats.dropped = 0;
            pair.run_for(ms(10));
            if round == 100 {
                before = (stats(&pair).0.sent, pair.client.connection.sent());
            }
        }
        let datagrams = (stats(&pair).0.sent - before.0) * u64::from(len + 4);
        let streams = pair.client.connection.sent() - before.1 - datagrams;
        assert!(streams > 500_000, "{streams}");
        assert!(datagrams.abs_diff(streams) <= 2000, "{datagrams} and {streams} bytes");
    }
}

/// Datagrams that need a tenth of the link do not wait behind a stream that would take all of it, and the stream gets the rest.
#[test]
fn few_datagrams_do_not_wait_behind_a_stream() {
    let mut pair = Pair::established(roomy(), roomy());
    pair.up.spacing = ms(1);
    pair.send(1 << 30);
    pair.run_for(Span::from_secs(1));
    let begin = (pair.now, pair.client.connection.sent());
    let (mut queued, mut count) = (vec![], departures(&pair).len());
    assert_eq!(count, 0);
    for _ in 0..300 {
        queued.push(pair.now);
        send(&mut pair, 996);
        pair.run_for(ms(10));
        count += 1;
    }
    pair.run_for(ms(500));
    let waits: Vec<Span> = departures(&pair).iter().zip(&queued).map(|((left, _), at)| left.since(*at)).collect();
    assert_eq!(waits.len(), count);
    // The window lets segments go with each ACK, which comes each 8 ms, and after a loss none for some time.
    let short = waits.iter().filter(|wait| **wait <= ms(8)).count();
    assert!(short * 10 >= count * 9, "{waits:?}");
    let bytes = pair.client.connection.sent() - begin.1;
    let time = pair.now.since(begin.0).as_secs_f64();
    assert!(bytes as f64 >= 0.8e6 * time, "{bytes} bytes in {time} s");
}

/// The peer reads no stream, and all of their credit is used up. Credit never takes the last of the window, so datagrams go on.
#[test]
fn unread_streams_do_not_block_datagrams() {
    let shared = || Config { receive_buffer: 100_000, stream_buffer: StreamBuffer::Shared, ..sealed() };
    let mut pair = Pair::established(shared(), shared());
    pair.server.is_reading = false;
    (0..8).for_each(|_| _ = pair.send(200_000));
    pair.run_for(Span::from_secs(5));
    let unread = pair.server.connection.buffered();
    for _ in 0..100 {
        send(&mut pair, 996);
        pair.run_for(ms(100));
    }
    pair.run_for(ms(100));
    assert_eq!((stats(&pair).1.received, pair.server.connection.buffered()), (100, unread));
}

/// A fixed buffer for each stream may fill the window. Then datagrams wait or expire, and both go on when the application reads.
#[test]
fn full_window_stops_datagrams_until_the_application_reads() {
    let fixed = || Config { receive_buffer: 20_000, stream_buffer: StreamBuffer::Bytes(1 << 20), ..sealed() };
    let mut pair = Pair::established(fixed(), fixed());
    pair.server.is_reading = false;
    let sid = pair.send(200_000);
    pair.run_for(Span::from_secs(2));
    pair.client.send_datagram(pair.now, 996, pair.now + ms(500)).unwrap();
    send(&mut pair, 500);
    pair.run_for(Span::from_secs(5));
    assert_eq!(pair.server.datagrams.len(), 0);
    pair.server.is_reading = true;
    pair.run_until_received(sid, 200_000);
    assert_eq!(pair.server.datagram_numbers(), [1]);
    assert_eq!(stats(&pair).0.expired, 1);
}

/// A FIN waits for datagrams as for data of streams.
#[test]
fn close_sends_what_waits() {
    let mut pair = pair();
    (0..40).for_each(|_| send(&mut pair, 996));
    pair.client.connection.close();
    pair.run_for(Span::from_secs(1));
    assert_eq!((pair.server.datagrams.len(), pair.states()), (40, (State::FinWait2, State::CloseWait)));
    assert_eq!(pair.server.send_datagram(pair.now, 7, Time::NEVER), Ok(()), "the other end may still send");
    pair.server.connection.close();
    pair.run_for(Span::from_secs(120));
    assert_eq!((pair.client.datagrams.len(), pair.states()), (1, (State::Closed, State::Closed)));
}

/// The second path is quicker, so it carries the datagrams as long as its window has room; then the first one does.
#[test]
fn datagrams_take_the_quickest_path_with_room() {
    let mut pair = pair();
    pair.join(ms(10));
    let (up, quick) = (pair.up.log.len(), pair.routes[0].up.log.len());
    (0..15).for_each(|_| send(&mut pair, 996));
    pair.drain();
    assert_eq!((pair.up.log.len() - up, pair.routes[0].up.log.len() - quick), (5, 10));
    pair.run_for(ms(100));
    assert_eq!(pair.server.datagrams.len(), 15);
}

/// The quicker path dies with ten datagrams on it. They are lost, their voids go over the other, and streams and later datagrams go on there.
#[test]
fn datagrams_on_a_dead_path_are_lost_and_nothing_else() {
    let mut pair = pair();
    pair.join(ms(10));
    (pair.routes[0].up.is_cut, pair.routes[0].down.is_cut) = (true, true);
    (0..10).for_each(|_| send(&mut pair, 996));
    pair.drain();
    let sid = pair.send(50_000);
    pair.run_for(Span::from_secs(3));
    assert_eq!(pair.server.received(sid), 50_000);
    (0..5).for_each(|_| send(&mut pair, 100));
    pair.run_for(Span::from_secs(1));
    assert_eq!(pair.server.datagram_numbers(), (10..15).collect::<Vec<_>>());
    assert_eq!((stats(&pair).0.lost, stats(&pair).1.missed), (10, 10));
    assert_eq!(pair.client.connection.acked(), pair.client.connection.sent());
}

/// A path that has carried packets of 1500 bytes loses what is longer than 1200, and nothing but datagrams is sent. Their voids arrive, so no segment is lost
/// twice; the losses themselves cast doubt on the MTU, and the datagrams are then as short as every path carries.
#[test]
fn datagrams_detect_a_smaller_path_mtu() {
    let large = || Config { mss: 9000, path_mtu: PathMtu::USUAL, ..sealed() };
    let mut pair = Pair::established(large(), large());
    assert!(pair.client.send_datagram(pair.now, 8000, Time::NEVER).is_err());
    pair.run_for(ms(500));
    let before = pair.client.connection.datagrams().len_max().unwrap();
    assert_eq!(before, 1396);
    pair.up.middlebox = |segment| segment.wire_size() <= 1200;
    let mut shortest = before;
    for _ in 0..200 {
        let max = pair.client.connection.datagrams().len_max().unwrap();
        shortest = shortest.min(max);
        send(&mut pair, max);
        pair.run_for(ms(30));
    }
    pair.run_for(Span::from_secs(10));
    assert_eq!(shortest, 1144);
    assert!(stats(&pair).1.received > 0, "the short ones arrive: {:?}", stats(&pair));
}

/// One datagram of 1,396 bytes is lost, and its void twice. A void has 56 bytes, so that says nothing of the path MTU, and the next datagrams are as long.
#[test]
fn lost_voids_cast_no_doubt_on_the_path_mtu() {
    let large = || Config { mss: 9000, path_mtu: PathMtu::USUAL, ..sealed() };
    let mut pair = Pair::established(large(), large());
    assert!(pair.client.send_datagram(pair.now, 8000, Time::NEVER).is_err());
    pair.run_for(ms(500));
    pair.up.faults.insert(pair.up.count, Fault::Lose);
    let is_no_void = |segment: &mut Segment<Marked>| segment.stream_header.is_none_or(|header| header.sid != Sid::VOID);
    pair.up.middlebox = is_no_void;
    for _ in 0..200 {
        send(&mut pair, 1396);
        pair.run_for(ms(10));
        if voids(&pair).len() >= 3 {
            pair.up.middlebox = |_| true;
        }
        assert_eq!(pair.client.connection.datagrams().len_max(), Ok(1396));
    }
    assert!(voids(&pair).len() >= 3 && stats(&pair).0.lost == 1, "{:?}", voids(&pair));
}

/// What a peer may not send: datagrams without the feature, and voids of more bytes than any segment has.
#[test]
fn forged_datagrams_and_voids_are_refused() {
    let forge = |pair: &mut Pair, sid, ssn, len| {
        let header = Header {
            seq: pair.client_at(pair.server.connection.received()),
            ack: pair.server_seq(),
            flags: Flags::ACK | Flags::MSE,
            window: 1000,
            ..Header::default()
        };
        let content =
            if sid == Sid::VOID { Content::Nothing } else { Content::Data(Marked { tag: u32::MAX, start: 0, len }) };
        let stream_header = Some(StreamHeader { sid, ssn: Ssn::of(ssn) });
        let segment = Segment { header, options: Options::default(), stream_header, content };
        let before = pair.server.connection.received();
        pair.server.connection.handle_segment(pair.now, pair.server.tuple, segment);
        pair.drain();
        pair.server.connection.received() - before
    };
    let mut pair = pair();
    assert_eq!(forge(&mut pair, Sid::VOID, 1001, 0), 0, "the MSS has 1000 bytes");
    assert_eq!(forge(&mut pair, Sid::VOID, (1 << 24) - 1, 0), 0);
    assert_eq!(forge(&mut pair, Sid::VOID, 1000, 0), 1004);
    assert_eq!(forge(&mut pair, Sid::VOID, 0, 0), 4);
    assert_eq!(forge(&mut pair, Sid::DATAGRAM, 12_345, 10), 14, "the SSN of a datagram is reserved");
    assert_eq!((stats(&pair).1.missed, stats(&pair).1.received), (2, 1));
    let none = || Config { datagram_receive_buffer: 0, ..sealed() };
    let mut pair = Pair::established(none(), none());
    assert_eq!(forge(&mut pair, Sid::DATAGRAM, 0, 10), 0);
    assert_eq!(forge(&mut pair, Sid::VOID, 10, 0), 0);
    assert_eq!(pair.server.datagrams.len(), 0);
}

/// A peer that acknowledges datagrams which it has not received is found out as with segments: they have nonces, and so have their voids.
#[test]
fn datagrams_have_nonces() {
    let mut pair = pair();
    pair.up.is_cut = true;
    (0..3).for_each(|_| send(&mut pair, 100));
    pair.drain();
    let header = Header {
        seq: pair.server_seq(),
        ack: pair.client_seq(),
        flags: Flags::ACK | Flags::MSE,
        window: 1000,
        nonce: 0,
        nonce_sum: 4711,
    };
    let segment = Segment { header, options: Options::default(), stream_header: None, content: Content::Nothing };
    pair.client.connection.handle_segment(pair.now, pair.client.tuple, segment);
    pair.drain();
    assert_eq!(pair.client.events.last(), Some(&Event::Closed(CloseReason::FalseAcknowledgement)));
}
