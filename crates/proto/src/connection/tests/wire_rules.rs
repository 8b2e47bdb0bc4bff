//! Rules for segments that `docs/wire.md` states in one sentence each, and that an independent decoder once misread.

use super::*;
use crate::{AcknowledgementOptions, Form, Header, Options, PathOption, PathState, SackBlocks};

/// 1.2: "all segments except path segments have them", also the reset of a close.
#[test]
fn timestamps_stand_in_all_segments_but_path_segments() {
    let timed = Config { timestamps: true, paths_max: 4, receive_buffer: 5000, ..config() };
    let mut pair = Pair::established(timed.clone(), timed);
    pair.join(ms(20));
    // Data, records, acknowledgements, zero-window probes, and the end.
    pair.server.is_reading = false;
    let sid = pair.send(20_000);
    pair.run_for(Span::from_secs(5));
    pair.server.is_reading = true;
    pair.run_until_received(sid, 20_000);
    pair.client.finish(sid).unwrap();
    pair.run_for(Span::from_secs(1));
    pair.client.connection.abort();
    pair.drain();
    let routes = pair.routes.iter().flat_map(|route| [&route.up, &route.down]);
    let all: Vec<_> = [&pair.up, &pair.down].into_iter().chain(routes).flat_map(|wire| &wire.log).collect();
    let mut kinds = [0; 3];
    for (_, segment) in all {
        let is_path = matches!(segment.options, Options::Path(_));
        assert_eq!(segment.timestamps().is_none(), is_path, "{segment:?}");
        kinds[if is_path { 0 } else { usize::from(segment.has(Flags::RST)) + 1 }] += 1;
    }
    assert!(kinds[0] >= 4 && kinds[1] > 20 && kinds[2] == 1, "{kinds:?}");
}

/// A segment of the server with five bytes and a SACK block for `left..right` of the client's data.
fn data_with_sack(pair: &Pair, left: u64, right: u64) -> Segment<Marked> {
    let mut sack = SackBlocks::default();
    sack.push(pair.client_at(left), pair.client_at(right));
    let header = Header {
        seq: pair.server_seq(),
        ack: pair.client_at(1),
        flags: Flags::ACK | Flags::MSE,
        window: u16::MAX,
        ..Header::default()
    };
    Segment {
        header,
        options: Options::Acknowledgement(AcknowledgementOptions::new(sack, None)),
        stream_header: Some(crate::StreamHeader { sid: Sid::new(1), ssn: crate::Ssn::of(0) }),
        content: Content::Data(Marked { tag: 0, start: 0, len: 5 }),
    }
}

/// 1.2: "only in segments without content; a receiver accepts them in any". With nonces, 2.6: "If it cannot verify the blocks,
/// [...] it ignores them", and the acknowledgement does not count as false.
#[test]
fn sack_is_understood_in_data_unless_it_must_be_proved() {
    for form in [Form::Tcp, Form::Sealed] {
        let config = Config { form, ..config() };
        let mut pair = Pair::established(config.clone(), config);
        pair.down.is_cut = true;
        pair.send(996 * 4);
        pair.run_for(ms(60));
        let segment = data_with_sack(&pair, 1001, 2001);
        pair.client.connection.handle_segment(pair.now, pair.client.tuple, segment);
        pair.drain();
        let delivered = pair.client.path().tally.delivered;
        assert_eq!(delivered, if form == Form::Tcp { 1000 } else { 0 }, "{form:?}");
        assert_eq!(pair.client.connection.state(), State::Established);
        assert_eq!(pair.client.received(Sid::new(1)), 5, "its data counts");
    }
}

/// 2.5: "At the maximum an end still answers challenges on one further path, and sends a challenge there; after the response it
/// refuses the path with a *leave*".
#[test]
fn a_path_too_many_is_refused_by_a_leave() {
    let several = |paths_max| Config { paths_max, ..config() };
    let mut pair = Pair::established(several(4), several(2));
    pair.join(ms(50));
    let tuple = pair.route(ms(50));
    let id = pair.client.connection.paths().add(pair.now, tuple).unwrap();
    pair.run_for(ms(500));
    assert_eq!(pair.client.connection.path(id), None);
    assert!(pair.client.events.ends_with(&[Event::PathValidated(id), Event::PathGone(id)]));
    let said = |wire: &crate::testing::Wire| -> Vec<_> {
        let options = wire.log.iter().map(|(_, segment)| segment.options);
        options
            .filter_map(|option| match option {
                Options::Path(PathOption::Challenge(_)) => Some("challenge"),
                Options::Path(PathOption::Response(_)) => Some("response"),
                Options::Path(PathOption::Leave(_)) => Some("leave"),
                Options::Acknowledgement(_) | Options::Handshake(_) => None,
            })
            .collect()
    };
    assert_eq!(said(&pair.routes[1].down), ["response", "challenge", "leave"]);
    assert_eq!(pair.server.connection.paths().ids().count(), 2);
    assert_eq!(pair.client.path().state, PathState::Live);
}

/// 2.5: "In the sealed form, *challenge* and *response* are also used without this feature, if there are streams".
#[test]
fn a_challenge_is_answered_where_there_is_one_path() {
    for (form, streams, answers) in [(Form::Sealed, 8, 1), (Form::Sealed, 0, 0), (Form::Tcp, 8, 0)] {
        let one = Config { form, streams, ..config() };
        let mut pair = Pair::established(one.clone(), one);
        let header = Header { seq: pair.client_seq(), ack: pair.server_seq(), ..pair_header() };
        let options = Options::Path(PathOption::Challenge([7; 8]));
        let challenge = Segment { header, options, stream_header: None, content: Content::Nothing };
        pair.server.connection.handle_segment(pair.now, pair.server.tuple, challenge);
        let said =
            pair.server.connection.poll_transmit(pair.now).map(|transmit| (transmit.segment.options, transmit.pad_to));
        let response = (Options::Path(PathOption::Response([7; 8])), 1200);
        assert_eq!(said, (answers > 0).then_some(response), "{form:?}, {streams} streams");
    }
}

fn pair_header() -> Header {
    Header { flags: Flags::ACK | Flags::MSE, window: u16::MAX, ..Header::default() }
}
