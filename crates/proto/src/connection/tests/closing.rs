use super::*;
use crate::{AckPolicy, Form};

fn closed(pair: &Pair) -> bool {
    pair.states() == (State::Closed, State::Closed)
}

fn pair() -> Pair {
    let quick = Config { time_wait: Span::from_secs(1), ..config() };
    Pair::established(quick.clone(), quick)
}

#[test]
fn one_closes_and_then_the_other() {
    let mut pair = pair();
    let sid = pair.send(5000);
    pair.client.connection.close();
    pair.run_for(ms(120));
    assert_eq!(pair.states(), (State::FinWait2, State::CloseWait));
    assert_eq!((pair.server.received(sid), pair.server.ended(sid)), (5000, 1));
    assert_eq!(pair.server.events.last(), Some(&Event::PeerClosed));
    // The other direction is still open.
    let back = pair.server.open();
    pair.server.write(back, 3000);
    pair.run_until(|pair| pair.client.received(back) == 3000);
    pair.server.connection.close();
    pair.run_for(ms(60));
    assert_eq!(pair.states(), (State::TimeWait, State::LastAck));
    pair.run_until(closed);
    assert_eq!(pair.client.events.last(), Some(&Event::Closed(CloseReason::Finished)));
    assert_eq!(pair.server.events.last(), Some(&Event::Closed(CloseReason::Finished)));
}

#[test]
fn both_close_at_once() {
    let mut pair = pair();
    pair.client.connection.close();
    pair.server.connection.close();
    pair.run_for(ms(60));
    assert_eq!(pair.states(), (State::Closing, State::Closing));
    pair.run_for(ms(60));
    assert_eq!(pair.states(), (State::TimeWait, State::TimeWait));
    pair.run_until(closed);
}

#[test]
fn each_segment_of_the_close_may_be_lost() {
    for lost in 0..4 {
        for wire in 0..2 {
            let mut pair = pair();
            let faults = if wire == 0 { &mut pair.up.faults } else { &mut pair.down.faults };
            faults.insert(lost, Fault::Lose);
            let sid = pair.send(2500);
            pair.client.connection.close();
            pair.server.connection.close();
            pair.run_until(closed);
            assert_eq!(pair.server.received(sid), 2500);
            assert_eq!(pair.client.events.last(), Some(&Event::Closed(CloseReason::Finished)));
        }
    }
}

#[test]
fn an_abort_is_told() {
    let mut pair = pair();
    pair.send(5000);
    pair.client.connection.abort();
    pair.run_for(ms(60));
    assert_eq!(pair.client.events.last(), Some(&Event::Closed(CloseReason::Aborted)));
    assert_eq!(pair.server.events.last(), Some(&Event::Closed(CloseReason::Reset)));
}

fn forged(pair: &Pair, flags: Flags, ahead: u64) -> Segment<Marked> {
    let (_, last) = pair.up.log.last().copied().unwrap_or_else(|| panic!("something was sent"));
    let header = crate::Header { flags, seq: last.header.seq.plus(last.space() + ahead), ..last.header };
    Segment { header, options: crate::Options::default(), stream_header: None, content: Content::Nothing }
}

/// [rfc-5961] sec. 3.2 and 4.2.
#[test]
fn a_reset_or_a_syn_that_only_comes_close_is_challenged() {
    for (flags, ahead) in [(Flags::RST, 1), (Flags::RST, 1000), (Flags::SYN, 0), (Flags::SYN, 1000)] {
        let mut pair = pair();
        pair.send(5000);
        pair.run_for(ms(200));
        let (segment, answers) = (forged(&pair, flags, ahead), pair.down.log.len());
        pair.server.connection.handle_segment(pair.now, pair.server.tuple, segment);
        pair.drain();
        assert_eq!(pair.server.connection.state(), State::Established);
        assert_eq!(pair.down.log.len(), answers + 1, "{flags:?}");
    }
}

#[test]
fn a_reset_that_hits_ends_the_connection() {
    let mut pair = pair();
    pair.send(5000);
    pair.run_for(ms(200));
    let segment = forged(&pair, Flags::RST, 0);
    pair.server.connection.handle_segment(pair.now, pair.server.tuple, segment);
    assert_eq!(pair.server.connection.state(), State::Closed);
}

/// Only the peer can seal a reset, so its number may be within the window, at its end or far beyond.
#[test]
fn sealed_reset_with_any_number_ends_the_connection() {
    for ahead in [0, 1, 1000, 1 << 20, 1 << 30] {
        let sealed = || Config { form: Form::Sealed, ..config() };
        let mut pair = Pair::established(sealed(), sealed());
        pair.send(5000);
        pair.run_for(ms(200));
        let segment = forged(&pair, Flags::RST, ahead);
        pair.server.connection.handle_segment(pair.now, pair.server.tuple, segment);
        assert_eq!(pair.server.connection.state(), State::Closed, "{ahead}");
    }
}

/// The threshold is exact: a second before the user timeout the connection is open.
#[test]
fn a_peer_that_is_gone_is_given_up_after_the_user_timeout() {
    let mut pair = pair();
    pair.up.is_cut = true;
    pair.send(5000);
    pair.run_for(Span::from_secs(299));
    assert_eq!(pair.client.connection.state(), State::Established);
    pair.run_for(Span::from_secs(2));
    assert_eq!(pair.client.events.last(), Some(&Event::Closed(CloseReason::TimedOut)));
}

#[test]
fn plain_tcp_ends_its_stream_with_a_fin() {
    let plain = Config { streams: 0, time_wait: ms(100), ..config() };
    let mut pair = Pair::established(plain.clone(), plain);
    pair.client.write(Sid::PLAIN, 5000);
    pair.drain();
    pair.client.connection.streams().finish(Sid::PLAIN).unwrap();
    pair.run_for(ms(120));
    assert_eq!((pair.server.received(Sid::PLAIN), pair.server.ended(Sid::PLAIN)), (5000, 1));
    pair.server.connection.close();
    pair.run_until(closed);
}

/// A peer that acknowledges every hundredth segment, and delays an ACK by up to 40 ms.
fn lazy(streams: u16) -> Config {
    Config { streams, acks: AckPolicy { every: 100, delay: ms(40) }, ..config() }
}

/// The end arrives after 50 ms and is acknowledged at once: a stream's end (a record, in plain TCP a FIN), and the connection's.
#[test]
fn an_end_is_acknowledged_when_it_comes() {
    for streams in [8, 0] {
        let mut pair = Pair::established(lazy(streams), lazy(streams));
        let sid = if streams > 0 { pair.client.open() } else { Sid::PLAIN };
        // The first segment on a path may be acknowledged at once for another reason.
        pair.client.write(sid, 500);
        pair.run_for(ms(300));
        let mut answered = |act: &dyn Fn(&mut Pair)| {
            pair.down.log.clear();
            let begin = pair.now;
            act(&mut pair);
            pair.run_for(ms(100));
            pair.down.log.iter().map(|(at, _)| *at - begin).collect::<Vec<_>>()
        };
        let write = |pair: &mut Pair| pair.client.write(sid, 500);
        assert_eq!(answered(&write), [ms(90)], "what is no end waits");
        assert_eq!(answered(&|pair| pair.client.finish(sid).unwrap()), [ms(50)], "{streams} streams");
        if streams > 0 {
            assert_eq!(answered(&|pair| pair.client.connection.close()), [ms(50)]);
        }
        assert_eq!(pair.client.connection.acked(), pair.client.connection.sent());
    }
}

/// A hundred segments on each of eight streams take eight ACKs, and each of their ends takes at most one more.
#[test]
fn ends_are_acknowledged_once() {
    let mut pair = Pair::established(lazy(8), lazy(8));
    pair.up.spacing = ms(1);
    pair.down.log.clear();
    for _ in 0..8 {
        let sid = pair.send(100 * 996);
        pair.client.finish(sid).unwrap();
    }
    pair.run_until(|pair| pair.client.connection.acked() == pair.client.connection.sent());
    let (segments, acks) =
        (pair.up.data().count(), pair.down.log.iter().filter(|(_, segment)| segment.content.is_empty()).count());
    assert_eq!(pair.client.path().tally.sent_again, 0);
    // One ACK per 40 ms while the window is small.
    let waits = 2 + (pair.now - Time::ZERO).ticks() / ms(40).ticks();
    assert!(segments >= 800 && acks as u64 <= waits + 8 + 8, "{acks} for {segments} in {}", pair.now);
}
