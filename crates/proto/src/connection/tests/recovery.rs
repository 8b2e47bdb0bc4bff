use super::*;
use crate::{Header, Options, PathId};

fn law(name: &str) -> Config {
    Config { law: Settings::default_for(registry::find(name).unwrap()), ..config() }
}

/// A constant window of 20 segments: the effects of losses are visible without those of the window.
fn steady() -> Config {
    let row = registry::find("reno").unwrap();
    Config { law: Settings::parse(row, [("initial_window", "20")]).unwrap(), ..config() }
}

/// The loss is detected with the third segment above the hole. The retransmission is sent at once and arrives 1.5 RTT after the
/// original would have arrived.
#[test]
fn a_lost_segment_comes_again_within_a_round_trip() {
    let mut pair = Pair::established(steady(), config());
    pair.lose(&[3]);
    let sid = pair.send(996 * 20);
    assert_eq!(pair.run_until_received(sid, 996 * 20), ms(150));
    let tally = pair.client.path().tally;
    assert_eq!((tally.sent_again, tally.timeouts, tally.lost), (1, 0, 1));
}

#[test]
fn a_retransmission_is_the_same_segment() {
    let mut pair = Pair::established(steady(), config());
    pair.lose(&[3]);
    pair.transfer(996 * 20);
    let data: Vec<_> = pair.up.data().map(|(_, segment)| *segment).collect();
    let again: Vec<_> =
        data[20..].iter().map(|segment| (segment.header.seq, segment.stream_header, segment.content)).collect();
    assert_eq!(again, [(data[3].header.seq, data[3].stream_header, data[3].content)]);
}

#[test]
fn the_controller_hears_of_one_episode_however_many_are_lost() {
    let mut pair = Pair::established(steady(), config());
    pair.lose(&[3, 4, 8, 15]);
    pair.transfer(996 * 60);
    assert_eq!(pair.client.path().tally.sent_again, 4);
    assert_eq!(pair.client.path().gauges.value("ssthresh").map(|window| window > 9.0), Some(true), "halved once");
}

/// RACK detects the loss of a retransmission; duplicate ACK counting needs a timeout ([rfc-8985] sec. 1).
#[test]
fn a_lost_retransmission_needs_no_timeout() {
    let mut pair = Pair::established(steady(), config());
    pair.lose(&[3]);
    let sid = pair.send(996 * 200);
    pair.run_for(ms(100));
    let again = pair.up.data().count() as u64;
    assert!(again > 20, "{again}");
    // The retransmission was the first segment after the third duplicate ACK.
    let position = pair.up.log.iter().rposition(|(_, s)| s.header.seq == pair.up.log[3].1.header.seq).unwrap();
    assert!(position > 3);
    let mut pair = Pair::established(steady(), config());
    pair.lose(&[3, position as u64]);
    let sid_again = pair.send(996 * 200);
    assert_eq!(sid, sid_again);
    pair.run_until_received(sid_again, 996 * 200);
    let tally = pair.client.path().tally;
    assert_eq!((tally.timeouts, tally.sent_again), (0, 2));
}

/// [rfc-8985] sec. 7: the probe is sent two SRTT after the last segment.
#[test]
fn a_lost_tail_is_probed() {
    let mut pair = Pair::established(steady(), config());
    pair.lose(&[18, 19]);
    let sid = pair.send(996 * 20);
    let took = pair.run_until_received(sid, 996 * 20);
    assert!(took <= ms(100 + 200 + 150), "{took}");
    assert_eq!(pair.client.path().tally.timeouts, 0);
}

/// The whole window is lost, and the probe with it: after an RTO everything is retransmitted.
#[test]
fn silence_ends_in_a_timeout() {
    let mut pair = Pair::established(steady(), config());
    let sid = pair.send(996 * 20);
    pair.run_for(ms(200));
    let more = 996 * 10;
    pair.up.is_cut = true;
    pair.client.write(sid, more);
    pair.run_for(ms(2000));
    assert!(pair.client.path().tally.timeouts >= 2);
    assert_eq!(pair.client.path().window.to_bits(), 1_f64.to_bits());
    pair.up.is_cut = false;
    pair.run_until_received(sid, 996 * 20 + more);
}

#[test]
fn the_timeout_backs_off() {
    let mut pair = Pair::established(steady(), config());
    pair.up.is_cut = true;
    pair.send(996);
    pair.run_for(Span::from_secs(30));
    let times: Vec<Time> = pair.up.data().map(|(time, _)| *time).collect();
    let gaps: Vec<u64> = times.windows(2).map(|pair| (pair[1] - pair[0]).ticks() / 1_000_000).collect();
    // The handshake gave an RTT of 100 ms and a variation of 50 ms, so the RTO is 300 ms. A probe of a single segment would be due after two RTTs and 200 ms: it
    // leaves when the timer would expire, which starts again ([rfc-8985] sec. 7.2).
    assert_eq!(gaps[..6], [300, 300, 600, 1200, 2400, 4800], "{gaps:?}");
}

#[test]
fn a_doubled_segment_does_no_harm() {
    let mut pair = Pair::established(steady(), config());
    pair.up.faults.insert(5, Fault::Duplicate);
    let sid = pair.send(996 * 20);
    assert_eq!(pair.run_until_received(sid, 996 * 20), ms(50));
    assert_eq!(pair.client.path().tally.sent_again, 0);
}

/// It arrives after three later segments, but within a quarter of the RTT. Before any reordering was seen, three duplicate ACKs
/// are a loss.
#[test]
fn a_network_that_reorders_is_learnt() {
    let mut pair = Pair::established(steady(), config());
    pair.up.spacing = ms(1);
    let sid = pair.send(996 * 400);
    for number in [30, 90, 150, 210, 270] {
        pair.up.faults.insert(number, Fault::Delay(ms(6)));
    }
    pair.run_until_received(sid, 996 * 400);
    let tally = pair.client.path().tally;
    assert!(tally.sent_again <= 1, "one is a lesson: {tally:?}");
}

/// ctcp-2019 through the engine: a single hole without queueing delay is a random loss, and composite keeps the window.
#[test]
fn a_random_loss_is_told_from_congestion() {
    let window = |name: &str| {
        let row = registry::find(name).unwrap();
        let law = Settings::parse(row, [("initial_window", "20")]).unwrap();
        let mut pair = Pair::established(Config { law, ..config() }, config());
        pair.lose(&[5]);
        pair.transfer(996 * 20);
        assert_eq!(pair.client.path().tally.sent_again, 1);
        pair.client.path().window
    };
    let (reno, composite) = (window("reno"), window("composite"));
    assert!(reno < 16.0 && composite >= 20.0, "{reno} and {composite}");
}

#[test]
fn lost_acknowledgements_cost_nothing() {
    let mut pair = Pair::established(steady(), config());
    for number in (0..200).filter(|number| number % 3 != 0) {
        pair.down.faults.insert(number, Fault::Lose);
    }
    pair.transfer(996 * 200);
    assert_eq!(pair.client.path().tally.timeouts, 0);
}

/// Without SACK nothing reports arrivals above a hole, but time reveals the loss.
#[test]
fn a_peer_without_sack_gets_everything_too() {
    let mut pair = Pair::with(steady(), config());
    (pair.up.middlebox, pair.down.middlebox) = (removes_sack, removes_sack);
    pair.run_for(ms(150));
    pair.lose(&[7, 11, 12, 40]);
    pair.transfer(996 * 100);
    assert!(pair.down.log.iter().all(|(_, segment)| segment.options.acknowledgement().sack().is_empty()));
}

#[test]
fn a_third_of_everything_may_be_lost() {
    let mut pair = Pair::established(config(), config());
    for number in (0..3000).filter(|number| number % 3 == 1) {
        pair.up.faults.insert(number, Fault::Lose);
    }
    pair.transfer(996 * 100);
}

/// FAST's law needs the flight and the window at the time when the segment was sent, not at present.
#[test]
fn every_law_fills_a_pipe() {
    for row in registry::rows() {
        let mut pair = Pair::established(law(row.name), config());
        // 1000 B per millisecond: 100 segments in 100 ms.
        pair.up.spacing = ms(1);
        let sid = pair.send(996 * 20_000);
        let took = pair.run_until_received(sid, 996 * 20_000);
        assert!(took < Span::from_secs(26), "{} took {took} for what takes 20 s", row.name);
    }
}

/// The path is dead for 20 s, lets one retransmission pass, and is dead for 300 ms more. By then the timeout was backed off to
/// about 19.2 s. The ACK sets it to twice its first value (300 ms with an RTT of 100 ms), so the rest is sent within 600 ms of
/// the next.
#[test]
fn an_answer_to_a_retransmission_ends_the_long_waits() {
    let mut pair = Pair::established(steady(), config());
    let sid = pair.send(996 * 200);
    pair.run_for(ms(250));
    pair.up.is_cut = true;
    pair.run_for(Span::from_secs(20));
    let received = pair.server.received(sid);
    pair.up.is_cut = false;
    pair.run_until(|pair| pair.server.received(sid) > received);
    pair.up.is_cut = true;
    let cut = pair.now;
    pair.run_for(ms(300));
    pair.up.is_cut = false;
    pair.run_until_received(sid, 996 * 200);
    let silence = pair.now - cut;
    assert!(silence <= ms(2500), "{silence}");
    assert!(pair.client.path().tally.timeouts >= 6, "{:?}", pair.client.path().tally);
}

/// Two timeouts have quadrupled the RTO. An ACK that arrives sooner after the last retransmission than the minimum RTT belongs to
/// an earlier transmission. It says nothing about the path, and the timeout stays, however late the ACK is read. An ACK that
/// arrives a moment later may belong to the retransmission ([rfc-8985] sec. 6.2 step 2), and one doubling remains.
#[test]
fn an_answer_that_waits_to_be_read_is_no_later_for_that() {
    for (came_after, timeout) in [(ms(99), ms(1200)), (ms(100), ms(600))] {
        let mut pair = Pair::established(steady(), config());
        let rto = |pair: &Pair| pair.client.connection.paths[PathId::FIRST].control.rto();
        assert_eq!(rto(&pair), ms(300), "100 ms and the margin");
        pair.up.is_cut = true;
        pair.send(996);
        pair.run_until(|pair| pair.client.path().tally.timeouts == 2);
        assert_eq!(rto(&pair), ms(1200));
        let header = Header {
            seq: pair.server_seq(),
            ack: pair.client_seq(),
            flags: Flags::ACK | Flags::MSE,
            window: 1000,
            ..Header::default()
        };
        let segment = Segment { header, options: Options::default(), stream_header: None, content: Content::Nothing };
        let (read, arrived, tuple) = (pair.now + ms(250), pair.now + came_after, pair.client.tuple);
        pair.client.connection.handle_late(read, arrived, tuple, None, segment);
        assert_eq!(pair.client.connection.acked(), pair.client.connection.sent());
        assert_eq!(rto(&pair), timeout, "it came after {came_after}");
    }
}

/// A peer that closes its window, as Linux does, drops the segments in flight and all retransmissions while the window is closed:
/// for eight seconds, in which the timeout doubles. When the window opens, data arrives half a round trip later.
#[test]
fn data_resume_at_once_after_window_shut_eight_seconds() {
    let plain = || Config { streams: 0, ..config() };
    let mut pair = Pair::established(plain(), plain());
    let says = |pair: &mut Pair, window| {
        let header = Header {
            seq: pair.server_seq(),
            ack: pair.client_at(pair.client.connection.acked()),
            flags: Flags::ACK,
            window,
            ..Header::default()
        };
        let segment = Segment { header, options: Options::default(), stream_header: None, content: Content::Nothing };
        let (now, tuple) = (pair.now, pair.client.tuple);
        pair.client.connection.handle_segment(now, tuple, segment);
        pair.drain();
    };
    pair.up.is_cut = true;
    pair.client.write(Sid::PLAIN, 100_000);
    pair.run_for(ms(50));
    says(&mut pair, 0);
    pair.run_for(Span::from_secs(8));
    assert!(pair.client.path().tally.timeouts >= 3, "{}", pair.client.path().tally.timeouts);
    pair.up.is_cut = false;
    says(&mut pair, 1000);
    assert_eq!(pair.run_until_received(Sid::PLAIN, 1000), ms(50));
}

/// A host reads a batch in which every other segment is missing, and then sends as many ACKs as are needed to report all
/// arrivals.
#[test]
fn a_batch_with_many_holes_is_reported_whole() {
    let law = Settings::parse(registry::find("reno").unwrap(), [("initial_window", "40")]).unwrap();
    let mut pair = Pair::established(Config { law, ..config() }, config());
    let sid = pair.client.open();
    pair.client.write(sid, 0);
    let mut payload = Marked { tag: 0, start: 0, len: 40 * 996 };
    pair.client.connection.streams().write(sid, &mut payload).unwrap();
    let now = pair.now;
    let sent: Vec<_> = std::iter::from_fn(|| pair.client.connection.poll_transmit(now)).collect();
    assert_eq!(sent.len(), 40);
    let later = now + ms(50);
    for transmit in sent.iter().skip(1).step_by(2) {
        pair.server.connection.handle_segment(later, pair.server.tuple, transmit.segment);
    }
    let answers: Vec<_> = std::iter::from_fn(|| pair.server.connection.poll_transmit(later)).collect();
    let blocks: Vec<_> =
        answers.iter().flat_map(|answer| answer.segment.options.acknowledgement().sack().as_slice().to_vec()).collect();
    for transmit in sent.iter().skip(1).step_by(2) {
        let seq = transmit.segment.header.seq;
        assert!(blocks.iter().any(|(left, _)| *left == seq), "{seq} is not reported: {blocks:?}");
    }
    assert_eq!(answers.len(), 7, "twenty in threes");
}

/// By default, a law without its own pacing rate sends 1.25 windows per round trip ([rfc-9002] sec. 7.7): of sixty segments, ten
/// are sent at once, then what the credit of 2 ms allows, and the rest within 67 ms.
#[test]
fn a_window_is_paced_by_default() {
    let row = registry::find("reno").unwrap();
    let law = Settings::parse(row, [("initial_window", "60")]).unwrap();
    let usual = Config { mss: 1000, ..Config::new(law) };
    let mut pair = Pair::established(usual.clone(), usual);
    pair.send(996 * 60);
    pair.run_for(ms(99));
    let times: Vec<Time> = pair.up.data().map(|(time, _)| *time).collect();
    let first = times.iter().filter(|time| **time == times[0]).count();
    let took = times[times.len() - 1] - times[0];
    assert_eq!(times.len(), 60);
    assert!((10..=14).contains(&first) && (ms(60)..=ms(67)).contains(&took), "{first} at once, the last after {took}");
}

/// The first timeout of 1 s is shorter than the RTT, so the handshake and the first data are sent twice and give no sample. The
/// timeout doubles until data gives one. Before, a probe came before each ACK, and no window grew.
#[test]
fn rtt_above_the_first_timeout_is_found() {
    for delay in [510, 600, 1200, 2500] {
        let mut pair = Pair::with(steady(), config());
        (pair.up.delay, pair.down.delay) = (ms(delay), ms(delay));
        pair.run_until(|pair| pair.states() == (State::Established, State::Established));
        let sid = pair.send(996 * 60);
        let took = pair.run_until_received(sid, 996 * 60);
        assert!(pair.client.path().rtt_smoothed.is_some_and(|rtt| rtt >= ms(2 * delay)), "{delay} ms");
        assert!(took < ms(2 * delay) * 8, "{delay} ms: {took}");
    }
}
