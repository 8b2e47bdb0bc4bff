//! Each state of a connection, and what ends it.

use super::*;
use crate::Segment as Any;

type Forged = Any<Marked>;

fn quick() -> Config {
    Config { time_wait: Span::from_secs(2), ..config() }
}

fn pair() -> Pair {
    Pair::established(quick(), quick())
}

fn closed(pair: &Pair) -> bool {
    pair.states() == (State::Closed, State::Closed)
}

fn bare(header: crate::Header) -> Forged {
    Segment { header, options: crate::Options::default(), stream_header: None, content: Content::Nothing }
}

/// What the client would send now, with a sequence number that is `ahead` bytes higher.
fn from_client(pair: &Pair, flags: Flags, ahead: u64) -> Forged {
    let (seq, ack) = (pair.client_at(pair.server.connection.received()).plus(ahead), pair.server_seq());
    bare(crate::Header { seq, ack, flags, window: 1000, ..crate::Header::default() })
}

fn from_server(pair: &Pair, flags: Flags, ahead: u64) -> Forged {
    let (seq, ack) = (pair.server_at(pair.client.connection.received()).plus(ahead), pair.client_seq());
    bare(crate::Header { seq, ack, flags, window: 1000, ..crate::Header::default() })
}

fn to_client(pair: &mut Pair, segment: Forged) {
    pair.client.connection.handle_segment(pair.now, pair.client.tuple, segment);
    pair.drain();
}

fn to_server(pair: &mut Pair, segment: Forged) {
    pair.server.connection.handle_segment(pair.now, pair.server.tuple, segment);
    pair.drain();
}

/// A pair whose client has reached this state.
fn client_in(state: State) -> Pair {
    let mut pair = pair();
    match state {
        State::Established => {}
        State::FinWait1 => {
            pair.up.is_cut = true;
            pair.client.connection.close();
        }
        State::FinWait2 => {
            pair.client.connection.close();
            pair.run_for(ms(110));
        }
        State::CloseWait => {
            pair.server.connection.close();
            pair.run_for(ms(110));
        }
        State::Closing => {
            pair.up.is_cut = true;
            pair.client.connection.close();
            pair.server.connection.close();
            pair.run_for(ms(60));
        }
        State::LastAck => {
            pair.server.connection.close();
            pair.run_for(ms(110));
            pair.up.is_cut = true;
            pair.client.connection.close();
        }
        State::TimeWait => {
            pair.client.connection.close();
            pair.run_for(ms(110));
            pair.server.connection.close();
            pair.run_for(ms(60));
        }
        State::Closed | State::Listen | State::SynSent | State::SynReceived => unreachable!("before the handshake"),
    }
    pair.drain();
    assert_eq!(pair.client.connection.state(), state);
    pair
}

const SYNCHRONIZED: [State; 7] = [
    State::Established,
    State::FinWait1,
    State::FinWait2,
    State::CloseWait,
    State::Closing,
    State::LastAck,
    State::TimeWait,
];

/// [rfc-9293] sec. 3.10.7.4, second step, with [rfc-5961] sec. 3.2: a reset with the exact number ends the connection in every
/// state. In TIME-WAIT both ends had received everything.
#[test]
fn a_reset_ends_every_state() {
    for state in SYNCHRONIZED {
        let mut pair = client_in(state);
        let segment = from_server(&pair, Flags::RST, 0);
        to_client(&mut pair, segment);
        let reason = if state == State::TimeWait { CloseReason::Finished } else { CloseReason::Reset };
        assert_eq!(pair.client.events.last(), Some(&Event::Closed(reason)), "{state:?}");
        assert_eq!(pair.client.connection.state(), State::Closed);
        assert_eq!(pair.client.connection.poll_timeout(), Time::NEVER, "nothing is left to do");
    }
}

/// A reset within the window gets a challenge ACK in every state. A reset beyond the window gets not even that.
#[test]
fn a_reset_that_misses_ends_no_state() {
    for state in SYNCHRONIZED {
        for (ahead, answers) in [(1, 1), (1 << 30, 0)] {
            let mut pair = client_in(state);
            let before = pair.up.log.len();
            let segment = from_server(&pair, Flags::RST, ahead);
            to_client(&mut pair, segment);
            assert_eq!(pair.client.connection.state(), state);
            assert_eq!(pair.up.log.len(), before + answers, "{state:?}");
        }
    }
}

/// [rfc-5961] sec. 4.2: a SYN gets a challenge ACK in every state, whatever its number is. A restarted peer then answers with a
/// reset.
#[test]
fn a_syn_ends_no_state() {
    for state in SYNCHRONIZED {
        for ahead in [0, 1, 1 << 30] {
            let mut pair = client_in(state);
            let before = pair.up.log.len();
            let segment = from_server(&pair, Flags::SYN, ahead);
            to_client(&mut pair, segment);
            assert_eq!((pair.client.connection.state(), pair.up.log.len()), (state, before + 1), "{ahead} ahead");
            assert!(pair.up.log[before].1.has(Flags::ACK) && !pair.up.log[before].1.has(Flags::RST));
        }
    }
}

/// [rfc-5961] sec. 5.2: data within the window is dropped if its acknowledgement number is impossible.
#[test]
fn data_with_an_impossible_acknowledgement_is_not_taken() {
    let mut pair = pair();
    let sid = pair.send(2000);
    pair.run_for(ms(200));
    let ssn = crate::Ssn::of(3);
    let content = Content::Data(Marked { tag: sid.number().into(), start: 2000, len: 10 });
    let received = pair.server.connection.received();
    for (ack, taken) in [(1_u64 << 31, 0), (1 << 30, 0), (1, 0), (0, 14)] {
        let mut segment = from_client(&pair, Flags::ACK, 0);
        segment.header.ack = segment.header.ack.plus(ack);
        let segment = Segment { stream_header: Some(crate::StreamHeader { sid, ssn }), content, ..segment };
        let before = pair.down.log.len();
        to_server(&mut pair, segment);
        assert_eq!(pair.server.connection.received(), received + taken, "{ack} ahead");
        assert_eq!(pair.down.log.len(), before + 1, "and answered");
    }
}

/// The same for an acknowledgement that is too old: "SND.UNA - MAX.SND.WND =< SEG.ACK", exact to the byte. The largest window
/// that the client has announced is its buffer.
#[test]
fn data_with_an_ancient_acknowledgement_is_not_taken() {
    let mut pair = Pair::established(Config { receive_buffer: 10_000, ..quick() }, quick());
    let back = pair.server.open();
    pair.server.write(back, 50_000);
    let sid = pair.send(2000);
    pair.run_until(|pair| pair.client.received(back) == 50_000);
    pair.run_for(ms(200));
    let windows = pair.up.log.iter().map(|(_, segment)| segment.header.window);
    assert_eq!(windows.max(), Some(10_000), "it is not scaled");
    let content = Content::Data(Marked { tag: sid.number().into(), start: 2000, len: 10 });
    let stream_header = Some(crate::StreamHeader { sid, ssn: crate::Ssn::of(3) });
    let received = pair.server.connection.received();
    for (behind, taken) in [(10_001, 0), (1 << 20, 0), (10_000, 14)] {
        let mut segment = Segment { stream_header, content, ..from_client(&pair, Flags::ACK, 0) };
        segment.header.ack = pair.server_at(pair.server.connection.acked()).plus(0_u64.wrapping_sub(behind));
        let before = pair.down.log.len();
        to_server(&mut pair, segment);
        assert_eq!(pair.server.connection.received(), received + taken, "{behind} behind");
        assert_eq!(pair.down.log.len(), before + 1, "and answered");
    }
}

/// [rfc-9293] sec. 3.10.7.3: a reset counts only if it acknowledges the SYN.
#[test]
fn a_syn_is_refused_by_a_reset_that_answers_it() {
    for (flags, ahead, is_refused) in
        [(Flags::RST, 1, false), (Flags::RST | Flags::ACK, 2, false), (Flags::RST | Flags::ACK, 1, true)]
    {
        let mut pair = Pair::with(quick(), quick());
        pair.drain();
        let header = crate::Header {
            seq: SeqNumber(5),
            ack: pair.client_at(ahead),
            flags,
            window: 0,
            ..crate::Header::default()
        };
        to_client(&mut pair, bare(header));
        let expected = if is_refused { State::Closed } else { State::SynSent };
        assert_eq!(pair.client.connection.state(), expected, "{flags:?} {ahead}");
        assert_eq!(pair.client.events.is_empty(), !is_refused);
    }
}

/// The same section, third step: an answer to another SYN is reset.
#[test]
fn an_answer_to_another_syn_is_reset() {
    let mut pair = Pair::with(quick(), quick());
    pair.drain();
    let header = crate::Header {
        seq: SeqNumber(5),
        ack: pair.client_at(77),
        flags: Flags::SYN | Flags::ACK,
        window: 9,
        ..crate::Header::default()
    };
    to_client(&mut pair, bare(header));
    assert_eq!(pair.client.connection.state(), State::SynSent);
    let reset = pair.up.log.last().unwrap().1.header;
    assert_eq!((reset.flags, reset.seq), (Flags::RST, pair.client_at(77)));
}

/// [rfc-9293] sec. 3.10.7.4: a handshake in progress can be refused, and a bad acknowledgement is reset.
#[test]
fn a_half_open_connection_can_be_refused() {
    let half_open = || {
        let mut pair = Pair::with(quick(), quick());
        pair.lose(&[1]);
        pair.run_for(ms(110));
        assert_eq!(pair.states(), (State::Established, State::SynReceived));
        pair
    };
    let mut pair = half_open();
    let segment = from_client(&pair, Flags::RST, 0);
    to_server(&mut pair, segment);
    assert_eq!(pair.server.events, [Event::Closed(CloseReason::Refused)]);
    let mut pair = half_open();
    let mut segment = from_client(&pair, Flags::ACK, 0);
    segment.header.ack = segment.header.ack.plus(9);
    to_server(&mut pair, segment);
    assert_eq!(pair.server.connection.state(), State::SynReceived);
    assert!(pair.down.log.last().unwrap().1.has(Flags::RST));
}

/// [rfc-9293] sec. 3.10.7.1: a segment without a connection is reset, unless it is a reset.
#[test]
fn closed_port_answers_with_reset() {
    let mut pair = pair();
    pair.client.connection.abort();
    pair.drain();
    let before = pair.up.log.len();
    let segment = from_server(&pair, Flags::ACK, 0);
    to_client(&mut pair, segment);
    let reset = pair.up.log[before].1.header;
    assert_eq!((reset.flags, reset.seq), (Flags::RST, segment.header.ack));
    let segment = from_server(&pair, Flags::RST, 0);
    to_client(&mut pair, segment);
    assert_eq!(pair.up.log.len(), before + 1);
}

/// [rfc-6298] sec. 5.5: after one second, then two, four and so on. [rfc-9293] sec. 3.8.3: a SYN is retried for at least three
/// minutes.
#[test]
fn a_syn_comes_ever_more_rarely_until_it_is_given_up() {
    let mut pair = Pair::with(quick(), quick());
    pair.up.is_cut = true;
    pair.run_for(Span::from_secs(400));
    let seconds: Vec<u64> =
        pair.up.log.iter().map(|(time, _)| time.since(Time::ZERO).ticks() / 1_000_000_000).collect();
    assert_eq!(seconds, [0, 1, 3, 7, 15, 31, 63, 123, 183, 243]);
    assert_eq!(pair.client.events, [Event::Closed(CloseReason::TimedOut)]);
}

/// The SYN-ACK is lost. The server's own timer and the retransmitted SYN send it again, and later copies change nothing.
#[test]
fn an_answer_comes_again_until_it_is_heard() {
    let mut pair = Pair::with(quick(), quick());
    for number in 0..4 {
        pair.down.faults.insert(number, Fault::Lose);
    }
    pair.run_until(|pair| pair.states() == (State::Established, State::Established));
    // A SYN at 0, 1, 3, 7 and 15 s and a SYN-ACK 50 ms later, when the server's own timer expires, too. The fifth arrives.
    assert_eq!(pair.now, Time::ZERO + ms(15_150));
    pair.transfer(5000);
    assert_eq!(pair.client.events.iter().filter(|event| matches!(event, Event::Established { .. })).count(), 1);
}

/// Each segment of the handshake is lost, duplicated or delayed, in both directions, with early data: there is one connection,
/// and everything arrives.
#[test]
fn faulty_network_gives_one_handshake() {
    for fault in [Fault::Lose, Fault::Duplicate, Fault::Delay(ms(1500))] {
        for (up, down) in [(Some(0), None), (Some(1), None), (Some(2), None), (None, Some(0)), (Some(0), Some(0))] {
            let mut pair = Pair::with(quick(), quick());
            pair.up.faults.extend(up.map(|number| (number, fault)));
            pair.down.faults.extend(down.map(|number| (number, fault)));
            pair.run_until(|pair| pair.client.connection.state() == State::Established);
            pair.transfer(5000);
            pair.run_for(ms(5000));
            assert_eq!(pair.states(), (State::Established, State::Established), "{fault:?} {up:?} {down:?}");
            for end in [&pair.client, &pair.server] {
                assert_eq!(end.events.iter().filter(|event| matches!(event, Event::Established { .. })).count(), 1);
            }
        }
    }
}

/// A simultaneous open, in which each of the four segments may be lost.
#[test]
fn a_simultaneous_open_survives_a_loss() {
    for lost in 0..2 {
        for wire in 0..3 {
            let mut pair = Pair::with(quick(), quick());
            let tuple = pair.server.tuple;
            pair.server.connection =
                crate::Connection::connect(Time::ZERO, quick(), tuple, crate::Secret::predictable(pair.server_at(0)))
                    .expect("it is good");
            if wire != 0 {
                pair.up.faults.insert(lost, Fault::Lose);
            }
            if wire != 1 {
                pair.down.faults.insert(lost, Fault::Lose);
            }
            pair.run_until(|pair| pair.states() == (State::Established, State::Established));
            pair.transfer(5000);
        }
    }
}

/// [rfc-9293] sec. 3.6: both ends close, some time apart, with data in flight in both directions. Any segment may be lost or
/// delayed in either direction. Everything arrives, and both ends know it.
#[test]
fn every_order_of_fins_ends_well() {
    for streams in [0, 8] {
        for apart in [-150_i64, -60, -20, 0, 20, 60, 150] {
            for fault in [Fault::Lose, Fault::Duplicate, Fault::Delay(ms(70))] {
                for number in 0..7 {
                    for wire in 0..2 {
                        let config = Config { streams, ..quick() };
                        let mut pair = Pair::established(config.clone(), config);
                        if wire == 0 { &mut pair.up } else { &mut pair.down }.faults.insert(number, fault);
                        expect_end(&mut pair, streams, apart);
                    }
                }
            }
        }
    }
}

#[track_caller]
fn expect_end(pair: &mut Pair, streams: u16, apart: i64) {
    let sids = if streams == 0 { [Sid::PLAIN; 2] } else { [pair.client.open(), pair.server.open()] };
    pair.client.write(sids[0], 3000);
    pair.server.write(sids[1], 2000);
    pair.drain();
    if apart >= 0 {
        pair.client.connection.close();
        pair.run_for(ms(apart.unsigned_abs()));
        pair.server.connection.close();
    } else {
        pair.server.connection.close();
        pair.run_for(ms(apart.unsigned_abs()));
        pair.client.connection.close();
    }
    let begin = pair.now;
    pair.run_until(closed);
    for (end, sid, bytes) in [(&pair.server, sids[0], 3000), (&pair.client, sids[1], 2000)] {
        assert_eq!((end.received(sid), end.ended(sid)), (bytes, 1));
        assert_eq!(end.events.iter().filter(|event| **event == Event::PeerClosed).count(), 1);
        assert_eq!(end.events.last(), Some(&Event::Closed(CloseReason::Finished)));
    }
    // TIME-WAIT, which restarts with each retransmitted FIN, and one retransmission timeout.
    assert!(pair.now - begin <= ms(2000 + 1500), "{}", pair.now - begin);
}

/// A FIN that overtakes the data before it must wait for that data.
#[test]
fn a_fin_that_overtakes_its_data_waits() {
    let mut pair = pair();
    pair.up.faults.insert(1, Fault::Delay(ms(20)));
    let sid = pair.send(2000);
    pair.client.connection.close();
    pair.run_for(ms(60));
    assert_eq!(pair.server.connection.state(), State::Established);
    pair.run_for(ms(20));
    assert_eq!((pair.server.connection.state(), pair.server.received(sid)), (State::CloseWait, 2000));
}

/// Other implementations retransmit a FIN together with the data before it. Here the FIN alone had arrived above the hole that
/// this data fills.
#[test]
fn a_fin_that_came_above_a_hole_may_come_again_with_the_data() {
    let plain = Config { streams: 0, ..config() };
    let mut pair = Pair::established(plain.clone(), plain);
    let fin = from_client(&pair, Flags::FIN | Flags::ACK, 100);
    let content = Content::Data(Marked { tag: Sid::PLAIN.number().into(), start: 0, len: 100 });
    let both = Segment { content, ..from_client(&pair, Flags::FIN | Flags::ACK, 0) };
    to_server(&mut pair, fin);
    assert_eq!(pair.server.connection.state(), State::Established);
    to_server(&mut pair, both);
    let server = &pair.server;
    assert_eq!(
        (server.connection.state(), server.received(Sid::PLAIN), server.ended(Sid::PLAIN)),
        (State::CloseWait, 100, 1)
    );
    assert_eq!(server.connection.received(), 1 + 100 + 1);
}

/// In each state after a FIN, a retransmitted FIN is acknowledged again.
#[test]
fn a_fin_that_comes_again_is_acknowledged_again() {
    for state in [State::CloseWait, State::Closing, State::LastAck, State::TimeWait] {
        let mut pair = client_in(state);
        let before = pair.up.log.len();
        let mut segment = from_server(&pair, Flags::FIN | Flags::ACK, 0);
        segment.header.seq = pair.server_at(pair.client.connection.received() - 1);
        segment.header.ack = pair.client_at(pair.client.connection.acked());
        to_client(&mut pair, segment);
        assert_eq!((pair.client.connection.state(), pair.up.log.len()), (state, before + 1), "{state:?}");
        assert_eq!(pair.up.log[before].1.header.ack, pair.server_at(pair.client.connection.received()));
    }
}

/// [rfc-9293] sec. 3.10.7.4: "restart the 2 MSL timeout". The acknowledgement of the FIN is lost three times.
#[test]
fn time_wait_begins_again_with_a_fin_that_comes_again() {
    let mut pair = client_in(State::FinWait2);
    pair.server.connection.close();
    let first = pair.up.count;
    for number in first..first + 3 {
        pair.up.faults.insert(number, Fault::Lose);
    }
    pair.run_until(|pair| pair.server.connection.state() == State::Closed);
    assert_eq!(pair.client.connection.state(), State::TimeWait);
    // The last FIN arrived 50 ms ago.
    pair.run_for(ms(1949));
    assert_eq!(pair.client.connection.state(), State::TimeWait);
    pair.run_for(ms(2));
    assert_eq!(pair.client.events.last(), Some(&Event::Closed(CloseReason::Finished)));
}

/// One end has closed. The other sends a megabyte through a window of 20 kB, with losses, and then closes.
#[test]
fn a_half_closed_connection_carries_data() {
    let small = Config { receive_buffer: 20_000, ..quick() };
    let mut pair = Pair::established(small, quick());
    pair.client.connection.close();
    pair.run_for(ms(110));
    assert_eq!(pair.states(), (State::FinWait2, State::CloseWait));
    for number in (20..1000).step_by(41) {
        pair.down.faults.insert(number, Fault::Lose);
    }
    let sid = pair.server.open();
    pair.server.write(sid, 1_000_000);
    pair.run_until(|pair| pair.client.received(sid) == 1_000_000);
    assert_eq!(pair.client.connection.streams().open(), Err(OpenError::NotEstablished));
    pair.server.connection.close();
    pair.run_until(closed);
}

/// A close during the handshake waits for its end ([rfc-9293] sec. 3.10.4). A close before the SYN is answered ends the
/// connection.
#[test]
fn a_connection_may_be_closed_before_it_is_open() {
    let mut pair = Pair::with(quick(), quick());
    pair.client.connection.close();
    assert_eq!(pair.client.connection.poll_event(), Some(Event::Closed(CloseReason::Finished)));
    let mut pair = Pair::with(quick(), quick());
    pair.run_for(ms(60));
    assert_eq!(pair.server.connection.state(), State::SynReceived);
    pair.server.connection.close();
    pair.run_for(ms(200));
    assert_eq!(pair.states(), (State::CloseWait, State::FinWait2));
}

/// [rfc-7323] sec. 2.2: if one end does not send the option, neither end scales its window.
#[test]
fn a_peer_without_a_scale_gets_the_window_as_it_is() {
    let law = Settings::parse(registry::find("reno").unwrap(), [("initial_window", "200")]).unwrap();
    for is_client in [true, false] {
        let mut pair = Pair::with(Config { law: law.clone(), ..quick() }, quick());
        if is_client { &mut pair.up } else { &mut pair.down }.middlebox = removes_scale;
        pair.run_for(ms(150));
        let offers: Vec<bool> = pair
            .down
            .log
            .iter()
            .filter(|(_, segment)| segment.has(Flags::SYN))
            .map(|(_, segment)| segment.options.handshake().window_scale.is_some())
            .collect();
        assert_eq!(offers, [false], "nothing is offered that was not asked for, or it is taken out");
        let sid = pair.send(200_000);
        pair.run_for(ms(20));
        assert!((1000..=65_536).contains(&pair.client.connection.sent()), "{}", pair.client.connection.sent());
        pair.run_until_received(sid, 200_000);
    }
}

/// [rfc-9293] sec. 3.7.1: 536 bytes without the option, and never more than the smaller value of both ends.
#[test]
fn segments_are_as_small_as_the_peer_wants() {
    let largest = |pair: &Pair| pair.up.data().map(|(_, segment)| segment.wire_size() - 40).max();
    let roomy = Config { mss: 1460, ..quick() };
    let mut pair = Pair::with(roomy.clone(), roomy);
    pair.down.middlebox = removes_mss;
    pair.run_for(ms(150));
    pair.transfer(20_000);
    // [rfc-9293] MUST-15: the default of IPv6, whose addresses these are.
    assert_eq!(largest(&pair), Some(1220));
    for (ours, theirs, agreed) in [(1460, 700, 700), (700, 1460, 700), (1000, 1000, 1000)] {
        let mut pair = Pair::established(Config { mss: ours, ..quick() }, Config { mss: theirs, ..quick() });
        pair.transfer(20_000);
        assert_eq!(largest(&pair), Some(agreed));
    }
}

/// A peer that announces an absurd MSS still gets segments of a useful size.
#[test]
fn a_tiny_mss_is_not_believed() {
    let mut pair = Pair::with(quick(), quick());
    pair.drain();
    let options = crate::HandshakeOptions { mss: Some(1), sack_permitted: true, ..Default::default() };
    let header = crate::Header {
        seq: pair.server_at(0),
        ack: pair.client_at(1),
        flags: Flags::SYN | Flags::ACK,
        window: u16::MAX,
        ..crate::Header::default()
    };
    to_client(&mut pair, Segment { options: crate::Options::Handshake(options), ..bare(header) });
    pair.client.write(Sid::PLAIN, 1000);
    pair.drain();
    assert_eq!(pair.up.data().next().map(|(_, segment)| segment.content.len()), Some(Config::MSS_MIN.into()));
}
