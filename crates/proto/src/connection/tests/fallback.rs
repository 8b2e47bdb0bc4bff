//! What the negotiation of streams comes to where a middlebox changes or drops SYNs: both ends agree, and every byte arrives.

use super::*;
use crate::testing::End;

fn wary() -> Config {
    Config { stream_offers: 1, ..config() }
}

fn without_flag(segment: &mut Segment<Marked>) -> bool {
    segment.header.flags = Flags::from_bits(segment.header.flags.bits() & !Flags::MSE.bits());
    true
}

/// Drops SYNs that ask for streams, or grant them.
fn refuses_multistream(segment: &mut Segment<Marked>) -> bool {
    segment.options.handshake().multistream.is_none()
}

fn streams(end: &End) -> Option<Option<u16>> {
    end.events.iter().find_map(|event| if let Event::Established { streams } = event { Some(*streams) } else { None })
}

/// A pair whose server has 3,000 bytes to say as soon as it may, and whose client has, too.
#[track_caller]
fn expect_agreement(mut pair: Pair, is_plain: bool) -> Pair {
    pair.run_until(|pair| streams(&pair.client).is_some() && streams(&pair.server).is_some());
    assert_eq!(streams(&pair.client), streams(&pair.server));
    assert_eq!(streams(&pair.client), Some(if is_plain { None } else { Some(8) }));
    let (up, down) = if is_plain { (Sid::PLAIN, Sid::PLAIN) } else { (pair.client.open(), pair.server.open()) };
    pair.client.write(up, 3000);
    pair.server.write(down, 3000);
    pair.run_until(|pair| pair.server.received(up) == 3000 && pair.client.received(down) == 3000);
    pair
}

#[test]
fn syn_without_option_or_flag_is_plain_at_both_ends() {
    for middlebox in [removes_multistream, without_flag] {
        for (up, down) in [(true, true), (true, false), (false, true)] {
            let mut pair = Pair::with(wary(), wary());
            if up {
                pair.up.middlebox = middlebox;
            }
            if down {
                pair.down.middlebox = middlebox;
            }
            expect_agreement(pair, true);
        }
    }
}

/// A middlebox takes the flag off what the client sends after its SYN alone: the server has no proof that its grant was seen.
#[test]
fn server_is_plain_where_the_grant_is_not_confirmed() {
    let mut pair = Pair::with(wary(), wary());
    pair.down.middlebox = removes_multistream;
    pair.run_for(ms(110));
    assert_eq!((streams(&pair.client), pair.states().1), (Some(None), State::SynReceived));
    expect_agreement(pair, true);
}

/// At most two SYNs: a second after the first.
#[test]
fn second_syn_asks_for_plain_tcp() {
    let mut pair = Pair::with(wary(), wary());
    pair.up.middlebox = refuses_multistream;
    let pair = expect_agreement(pair, true);
    let syns = || pair.up.log.iter().filter(|(_, segment)| segment.has(Flags::SYN));
    assert_eq!(syns().map(|(time, _)| *time).collect::<Vec<_>>(), [Time::ZERO, Time::ZERO + Span::from_secs(1)]);
}

#[test]
fn second_answer_grants_no_streams() {
    let mut pair = Pair::with(wary(), wary());
    pair.down.middlebox = refuses_multistream;
    expect_agreement(pair, true);
}

/// Whichever of the first segments is lost or late, both ends agree. Where the first SYN or its answer is lost, plain TCP is the price.
#[test]
fn ends_agree_whatever_segment_of_the_handshake_is_lost() {
    let faults = [Fault::Lose, Fault::Delay(ms(1020)), Fault::Delay(ms(2500)), Fault::Duplicate];
    for fault in faults {
        for number in 0..3 {
            for (is_up, is_both) in [(true, false), (false, false), (true, true)] {
                let mut pair = Pair::with(wary(), wary());
                if is_up {
                    pair.up.faults.insert(number, fault);
                }
                if !is_up || is_both {
                    pair.down.faults.insert(number, fault);
                }
                pair.run_until(|pair| streams(&pair.client).is_some() && streams(&pair.server).is_some());
                let is_plain = streams(&pair.client) == Some(None);
                expect_agreement(pair, is_plain);
            }
        }
    }
}

/// By default an offer stands: a lost SYN costs a second and no streams.
#[test]
fn offer_stands_by_default() {
    let mut pair = Pair::new();
    pair.lose(&[0]);
    expect_agreement(pair, false);
}

/// Nine bytes of each segment with content, beside twelve of timestamps whose padding has room for one.
#[test]
fn extents_take_their_room_from_the_data() {
    for (timestamps, extents, content) in
        [(false, false, 996), (true, false, 984), (false, true, 984), (true, true, 976)]
    {
        let ends = Config { timestamps, extents, ..config() };
        let mut pair = Pair::established(ends.clone(), ends.clone());
        assert_eq!(pair.client.connection.extents(), extents.then(|| (pair.client_at(0), pair.server_at(0))));
        pair.transfer(10 * content);
        let mut bytes = vec![];
        for (_, segment) in pair.up.data() {
            assert_eq!(u64::from(segment.content.len()), content);
            bytes.push(segment.options.space(extents) + segment.content.len() + crate::StreamHeader::LEN);
        }
        assert_eq!(bytes, vec![1000; 10]);
        assert_eq!(u64::from(ends.payload()), content);
    }
    let pair = Pair::established(Config { extents: true, ..config() }, config());
    assert_eq!((pair.client.connection.extents(), pair.server.connection.extents()), (None, None));
}
