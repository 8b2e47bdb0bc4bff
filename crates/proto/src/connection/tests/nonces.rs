//! Optimistic acknowledgements ([savage-1999]): a peer acknowledges segments that it has not received, to make the sender faster.

use super::*;
use crate::{AcknowledgementOptions, Form, Header, Options, PathId, SackBlocks};

fn sealed() -> Config {
    Config { form: Form::Sealed, paths_max: 4, ..config() }
}

/// Makes a forged segment from the last segment sent.
type Lie = fn(&Pair, &Header) -> Segment<Marked>;

/// A client with endless data and a server that receives nothing. For a fifth of a second, a forger sends each millisecond what
/// `lie` makes of the client's numbers. Returns the bytes sent.
fn flood(config: &Config, lie: impl Fn(&Pair, &Header) -> Segment<Marked>) -> (u64, Pair) {
    let mut pair = Pair::established(config.clone(), config.clone());
    (pair.up.is_cut, pair.down.is_cut) = (true, true);
    let before = pair.client.connection.sent();
    pair.send(1 << 40);
    for _ in 0..200 {
        pair.run_for(ms(1));
        let (_, last) = *pair.up.log.last().unwrap();
        let lie = lie(&pair, &last.header);
        pair.client.connection.handle_segment(pair.now, pair.client.tuple, lie);
        pair.drain();
    }
    (pair.client.connection.sent() - before, pair)
}

fn acknowledgement(pair: &Pair, ack: u64, sack: SackBlocks) -> Segment<Marked> {
    let (seq, ack, flags) = (pair.server_seq(), pair.client_at(ack), Flags::ACK | Flags::MSE);
    let header = Header { seq, ack, flags, window: u16::MAX, nonce: 7, nonce_sum: 7 };
    let options = Options::Acknowledgement(AcknowledgementOptions::new(sack, None));
    Segment { header, options, stream_header: None, content: Content::Nothing }
}

fn all_of_it(pair: &Pair, _: &Header) -> Segment<Marked> {
    acknowledgement(pair, pair.client.connection.sent(), SackBlocks::default())
}

fn all_but_the_first(pair: &Pair, _: &Header) -> Segment<Marked> {
    let mut sack = SackBlocks::default();
    sack.push(pair.client_at(1001), pair.client_at(pair.client.connection.sent()));
    // Segments below the first SACK block need no proof.
    let lie = acknowledgement(pair, 1, sack);
    Segment { header: Header { nonce_sum: 0, ..lie.header }, ..lie }
}

/// In the TCP form each lie makes the client send more, as no segment has a nonce. If the forger acknowledges everything, the
/// window doubles each time. If it acknowledges all but the first segment by SACK, each reported arrival sends one segment
/// ([rfc-9937]), until the law's window is full again. In the sealed form the first lie ends the connection, and only the initial
/// window was sent.
#[test]
fn ack_of_missing_segment_fails_nonce() {
    for (lie, least) in [(all_of_it as Lie, 500_000), (all_but_the_first, 30_000)] {
        let (bytes, _) = flood(&config(), lie);
        assert!(bytes > least, "{bytes} bytes for lies that nobody can tell");
        let (bytes, pair) = flood(&sealed(), lie);
        assert_eq!(bytes, 10_000);
        assert_eq!(pair.client.events.last(), Some(&Event::Closed(CloseReason::FalseAcknowledgement)));
        assert!(pair.up.log.last().unwrap().1.has(Flags::RST), "the peer is told");
    }
}

/// A receiver of five segments can acknowledge five, and report them by SACK.
#[test]
fn ack_of_received_segment_passes_nonce() {
    let mut pair = Pair::established(sealed(), sealed());
    pair.lose(&[2, 4]);
    let sid = pair.send(996 * 5);
    pair.run_for(ms(60));
    let header = |index: usize| pair.up.log[index].1.header;
    let nonces: Vec<_> = (0..5).map(|index| header(index).nonce).collect();
    let answers: Vec<_> = pair.down.log.iter().map(|(_, ack)| (ack.header.nonce_sum, ack.header.nonce)).collect();
    let below = nonces[0].wrapping_add(nonces[1]);
    assert_eq!(answers, [(nonces[0], 0), (below, 0), (below, nonces[3])]);
    pair.run_until_received(sid, 996 * 5);
    pair.run_for(ms(100));
    assert_eq!(pair.client.connection.acked(), 1 + 5 * 1000);
    let again: Vec<_> = pair.up.log[5..].iter().map(|(_, segment)| segment.header.nonce).collect();
    assert_eq!(again, [nonces[2], nonces[4]], "it is the same when it is sent again");
}

/// Nonces that repeat or count up would not be secret.
#[test]
fn nonces_are_drawn() {
    let mut pair = Pair::established(sealed(), sealed());
    pair.transfer(996 * 1000);
    let mut nonces: Vec<_> = pair.up.data().map(|(_, segment)| segment.header.nonce).collect();
    let steps: std::collections::BTreeSet<_> = nonces.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
    assert!(steps.len() > 980, "{} steps", steps.len());
    nonces.sort_unstable();
    nonces.dedup();
    // A thousand of 65,536 values: eight pairs are equal on average.
    assert!(nonces.len() > 970, "{} of 1000", nonces.len());
}

/// An overtaken acknowledgement reports a block of which a part was acknowledged since. It proves nothing, and is ignored.
#[test]
fn ack_without_known_nonce_is_no_news() {
    let mut pair = Pair::established(sealed(), sealed());
    pair.join(ms(50));
    let before = pair.client.connection.acked();
    pair.send(996 * 3);
    pair.run_for(ms(110));
    let acked = pair.client.connection.acked();
    assert_eq!(acked, before + 3000);
    (pair.up.is_cut, pair.routes[0].up.is_cut) = (true, true);
    pair.client.write(Sid::new(1), 996 * 4);
    pair.drain();
    let mut sack = SackBlocks::default();
    sack.push(pair.client_at(acked - 1000), pair.client_at(acked + 3000));
    let lie = acknowledgement(&pair, acked - 2000, sack);
    let delivered = |pair: &Pair| pair.client.connection.path(PathId::FIRST).unwrap().tally.delivered;
    let before = delivered(&pair);
    pair.client.connection.handle_segment(pair.now, pair.client.tuple, lie);
    assert_eq!((delivered(&pair), pair.states().0), (before, State::Established));
}

/// One of 65,536 sums is right, so two accepted lies in a row have a chance of one in four thousand million.
#[test]
fn a_guess_is_right_once_in_65536_times() {
    let mut pair = Pair::established(sealed(), sealed());
    (pair.up.is_cut, pair.down.is_cut) = (true, true);
    pair.send(996);
    let (_, sent) = *pair.up.log.last().unwrap();
    let right = sent.header.nonce;
    let lie = |sum| {
        let answer = acknowledgement(&pair, 1001, SackBlocks::default());
        Segment { header: Header { nonce_sum: sum, nonce: 0, ..answer.header }, ..answer }
    };
    let (wrong, right) = (lie(right.wrapping_add(1)), lie(right));
    let (now, tuple) = (pair.now, pair.client.tuple);
    pair.client.connection.handle_segment(now, tuple, right);
    assert_eq!(pair.client.connection.acked(), 1001);
    pair.client.connection.handle_segment(now, tuple, wrong);
    assert_eq!(pair.states().0, State::Closed);
}
