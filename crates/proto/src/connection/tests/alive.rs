//! Peers that are silent, and peers that send too much: keep-alive, the user timeout, challenge ACKs.

use super::*;
use crate::KeepAlive;
use crate::StreamBuffer;

const KEEP_ALIVE: KeepAlive = KeepAlive { idle: Span::from_secs(60), interval: Span::from_secs(10), probes_max: 3 };

fn asking() -> Pair {
    Pair::established(Config { keep_alive: Some(KEEP_ALIVE), ..config() }, config())
}

/// [rfc-9293] sec. 3.8.4: "MUST be able to turn keep-alives on or off, and they MUST default to off".
#[test]
fn an_idle_connection_says_nothing_by_default() {
    let patient = Config { idle_timeout: None, ..config() };
    let mut pair = Pair::established(patient.clone(), patient);
    pair.run_for(Span::from_secs(100_000));
    assert_eq!((pair.up.log.len(), pair.down.log.len()), (0, 0));
    assert_eq!(pair.states(), (State::Established, State::Established));
}

/// [rfc-9293] MUST-28: two hours, unless an application says otherwise.
#[test]
fn usual_keep_alive_waits_two_hours() {
    let config = Config { keep_alive: Some(KeepAlive::USUAL), idle_timeout: None, ..config() };
    let mut pair = Pair::established(config, Config { idle_timeout: None, ..self::config() });
    pair.run_for(Span::from_secs(7199));
    assert_eq!(pair.up.log.len(), 0);
    pair.run_for(Span::from_secs(2));
    assert_eq!(pair.up.log.len(), 1);
}

/// By default a vanished peer is given up after the idle timeout, exact to the millisecond; a peer that answers keep-alive probes
/// is not.
#[test]
fn an_idle_connection_ends() {
    let short = Config { idle_timeout: Some(Span::from_secs(90)), ..config() };
    let mut pair = Pair::established(short.clone(), config());
    pair.transfer(500);
    // The last acknowledgement takes 50 ms on its way back.
    pair.run_for(ms(50) + Span::from_secs(90) - ms(1));
    assert_eq!(pair.client.connection.state(), State::Established);
    pair.run_for(ms(1));
    assert_eq!(pair.client.events.last(), Some(&Event::Closed(CloseReason::TimedOut)));
    let mut pair = Pair::established(Config { keep_alive: Some(KEEP_ALIVE), ..short }, config());
    pair.run_for(Span::from_secs(3600));
    assert_eq!(pair.client.connection.state(), State::Established);
    assert!(config().idle_timeout.is_some());
}

/// A peer that acknowledges the FIN and then vanishes holds the connection for at most ten minutes, whatever the settings.
#[test]
fn fin_wait_2_ends() {
    let patient = Config { idle_timeout: None, ..config() };
    let mut pair = Pair::established(patient.clone(), patient);
    pair.client.connection.close();
    pair.run_until(|pair| pair.client.connection.state() == State::FinWait2);
    pair.run_for(Span::from_secs(599));
    assert_eq!(pair.states(), (State::FinWait2, State::CloseWait));
    pair.run_for(Span::from_secs(1));
    assert_eq!(pair.client.events.last(), Some(&Event::Closed(CloseReason::TimedOut)));
}

/// One keep-alive probe per minute, each answered: it has an old number and no content, and the peer answers with what it
/// expects.
#[test]
fn a_silent_peer_is_asked_and_lives_on() {
    let mut pair = asking();
    pair.run_for(Span::from_secs(60 * 10));
    assert_eq!((pair.up.log.len(), pair.down.log.len()), (9, 9));
    let (question, answer) = (&pair.up.log[0].1, &pair.down.log[0].1);
    assert_eq!((question.header.seq.plus(1), question.space()), (answer.header.ack, 0));
    assert_eq!(pair.states(), (State::Established, State::Established));
}

/// Every segment counts as a sign of life: no probes are sent while data flows.
#[test]
fn a_peer_that_speaks_is_not_asked() {
    let mut pair = asking();
    let sid = pair.client.open();
    for _ in 0..20 {
        pair.client.write(sid, 500);
        pair.run_for(Span::from_secs(59));
    }
    assert!(pair.up.log.iter().all(|(_, segment)| !segment.content.is_empty()));
}

/// The thresholds are exact: probes after 60, 70 and 80 s, given up after 90 s.
#[test]
fn a_peer_that_does_not_answer_is_given_up() {
    let mut pair = asking();
    let heard = pair.now;
    pair.up.is_cut = true;
    pair.run_until(|pair| pair.client.connection.state() == State::Closed || pair.up.log.len() == 1);
    pair.run_until(|pair| pair.client.connection.state() == State::Closed);
    assert_eq!((pair.up.log.len(), pair.client.events.last()), (4, Some(&Event::Closed(CloseReason::TimedOut))));
    // The client last heard from the peer 50 ms before the handshake was complete.
    let silence = pair.now - heard;
    assert!(Span::from_secs(90) >= silence && silence >= Span::from_millis(89_900), "{silence}");
    assert!(pair.up.log[3].1.has(Flags::RST), "if the peer lives after all, it hears so");
}

/// A restarted peer has no such connection, and sends a reset.
#[test]
fn a_peer_that_has_forgotten_resets() {
    let mut pair = asking();
    let tuple = pair.server.tuple;
    pair.server.connection =
        crate::Connection::listen(pair.now, config(), tuple, crate::Secret::predictable(SeqNumber(1))).unwrap();
    pair.run_for(Span::from_secs(61));
    assert_eq!(pair.client.events.last(), Some(&Event::Closed(CloseReason::Reset)));
}

/// [rfc-5482] sec. 1: "how long transmitted data may remain unacknowledged". Answers that acknowledge nothing new do not count:
/// here the peer keeps sending window probes that expect data which was sent long ago.
#[test]
fn a_peer_that_acknowledges_nothing_is_given_up() {
    let quick = Config { user_timeout: Some(Span::from_secs(30)), ..config() };
    let mut pair = Pair::established(quick, config());
    pair.up.is_cut = true;
    pair.send(5000);
    let begin = pair.now;
    while pair.client.connection.state() == State::Established {
        // What the server answers to every segment.
        let header = crate::Header {
            seq: pair.server_seq(),
            ack: pair.up.log[0].1.header.seq,
            flags: Flags::ACK,
            window: 1000,
            ..crate::Header::default()
        };
        let options = crate::Options::default();
        let segment = Segment { header, options, stream_header: None, content: Content::Nothing };
        pair.client.connection.handle_segment(pair.now, pair.client.tuple, segment);
        pair.run_for(ms(500));
    }
    assert_eq!(pair.now - begin, Span::from_secs(30));
    assert_eq!(pair.client.events.last(), Some(&Event::Closed(CloseReason::TimedOut)));
}

/// Half of all segments are lost, for minutes. Some get through, so the connection stays open.
#[test]
fn a_loss_ends_no_connection() {
    let quick = Config { user_timeout: Some(Span::from_secs(60)), ..config() };
    let mut pair = Pair::established(quick.clone(), quick);
    for number in (0..100_000).filter(|number| number % 2 == 0) {
        pair.up.faults.insert(number, Fault::Lose);
    }
    let sid = pair.send(996 * 2000);
    pair.run_for(Span::from_secs(600));
    assert_eq!(pair.states(), (State::Established, State::Established));
    assert!(pair.server.received(sid) > 0);
}

/// [rfc-9293] sec. 3.8.6.1: "MUST allow the connection to stay open" as long as zero-window probes are answered, even with a user
/// timeout.
#[test]
fn a_window_that_stays_shut_ends_no_connection() {
    let quick = Config { user_timeout: Some(Span::from_secs(100)), ..config() };
    let mut pair = Pair::established(
        quick,
        Config { receive_buffer: 10_000, stream_buffer: StreamBuffer::Bytes(1 << 20), ..config() },
    );
    pair.server.is_reading = false;
    let sid = pair.send(30_000);
    pair.run_for(Span::from_secs(24 * 3600));
    assert_eq!(pair.states(), (State::Established, State::Established));
    // One probe per minute, and no data into the zero window.
    let probes = pair.up.log.iter().filter(|(time, _)| *time > Time::ZERO + Span::from_secs(3600)).count();
    assert!((23 * 60 - 2..=23 * 60 + 2).contains(&probes), "{probes}");
    pair.server.is_reading = true;
    pair.run_until_received(sid, 30_000);
}

/// The peer vanishes while its window is zero: no probe is answered.
#[test]
fn a_probe_without_an_answer_counts() {
    let quick = Config { user_timeout: Some(Span::from_secs(100)), ..config() };
    let mut pair = Pair::established(
        quick,
        Config { receive_buffer: 10_000, stream_buffer: StreamBuffer::Bytes(1 << 20), ..config() },
    );
    pair.server.is_reading = false;
    pair.send(30_000);
    pair.run_for(Span::from_secs(1000));
    pair.down.is_cut = true;
    pair.run_for(Span::from_secs(161));
    assert_eq!(pair.client.events.last(), Some(&Event::Closed(CloseReason::TimedOut)));
}

/// [rfc-5961] sec. 7: ten challenge ACKs in five seconds, however many segments are forged; then ten again.
#[test]
fn challenges_are_limited() {
    let mut pair = Pair::established(config(), config());
    pair.send(5000);
    pair.run_for(ms(200));
    let forged = |pair: &Pair, flags: Flags, ahead: u64| {
        let last = &pair.down.log.last().unwrap().1.header;
        let header =
            crate::Header { seq: last.ack.plus(ahead), ack: last.seq, flags, window: 10, ..crate::Header::default() };
        Segment { header, options: crate::Options::default(), stream_header: None, content: Content::Nothing }
    };
    let begin = pair.down.log.len();
    for period in 1..=2 {
        for number in 0..100 {
            let (flags, ahead) = [(Flags::SYN, 0), (Flags::RST, 7), (Flags::ACK, 1 << 30)][number % 3];
            let segment = forged(&pair, flags, ahead);
            pair.server.connection.handle_segment(pair.now, pair.server.tuple, segment);
            pair.drain();
        }
        assert_eq!(pair.down.log.len() - begin, 10 * period);
        pair.run_for(Span::from_secs(6));
    }
    // Segments that need no challenge ACK are still answered.
    pair.transfer(5000);
}

/// Two ends that disagree about all numbers do not answer each other's answers for ever.
#[test]
fn two_ends_that_disagree_fall_silent() {
    let mut pair = Pair::established(config(), config());
    let far = |pair: &Pair| {
        let header = crate::Header {
            seq: pair.server_seq().plus(1 << 30),
            ack: pair.client_seq().plus(1 << 30),
            flags: Flags::ACK,
            window: 10,
            ..crate::Header::default()
        };
        Segment { header, options: crate::Options::default(), stream_header: None, content: Content::Nothing }
    };
    let segment = far(&pair);
    pair.client.connection.handle_segment(pair.now, pair.client.tuple, segment);
    pair.run_for(Span::from_secs(60));
    assert!(pair.up.log.len() <= 2, "{}", pair.up.log.len());
}
