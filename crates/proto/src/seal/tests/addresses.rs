//! Where datagrams are sent, and what changes that.

use super::*;

/// The response is sent as often as it may be, after each of thirty copies of the initiation of which every third is lost. At no
/// time is it more than three times what came, counted as UDP payload, or with the headers of IPv4 or of IPv6; and in the end one
/// more would be too much by one of these counts.
#[test]
fn answers_do_not_exceed_three_times_initiation() {
    let (_, mut server, initiation) = half_open();
    let (mut received, mut sent, mut response) = (vec![initiation.len()], vec![], 0);
    let ratio = |sent: &[usize], received: &[usize], headers: usize| {
        let bytes = |datagrams: &[usize]| datagrams.iter().map(|len| len + headers).sum::<usize>() as f64;
        bytes(sent) / bytes(received)
    };
    for copy in 1..=30 {
        let mut datagram = vec![];
        while server.seal(secs(0), &on(PATH.reversed()), &syn_ack(), &mut datagram).is_ok() {
            response = datagram.len();
            sent.push(response);
            datagram.clear();
            for headers in [0, 28, 48] {
                let ratio = ratio(&sent, &received, headers);
                assert!(ratio <= 3.0, "{ratio} with headers of {headers} bytes after {copy} copies");
            }
        }
        if copy % 3 > 0 {
            opened(&mut server, secs(0), PATH.reversed(), &initiation).unwrap();
            received.push(initiation.len());
        }
    }
    sent.push(response);
    assert!([0, 48].iter().any(|&headers| ratio(&sent, &received, headers) > 3.0));
}

#[test]
fn new_address_gets_three_times_its_bytes_until_validated() {
    let (mut client, mut server) = pair(Limits::default());
    let moved = FourTuple { remote: Address { address: 77, port: 5 }, ..PATH.reversed() };
    let send = |server: &mut Seal, path| server.seal(secs(1), &on(path), &data(5), &mut vec![]).is_ok();
    assert!(!send(&mut server, moved), "nothing came from there");
    let datagram = sealed(&mut client, secs(1), PATH, &data(1));
    assert_eq!(opened(&mut server, secs(1), moved, &datagram), Ok(Some(data(1))));
    assert_eq!((0..10).filter(|_| send(&mut server, moved)).count(), 3, "as long as what came");
    assert!(send(&mut server, PATH.reversed()), "the old address is as good as before");
    assert_eq!(opened(&mut server, secs(1), moved, &datagram), Err(Refusal::Replayed));
    assert!(!send(&mut server, moved), "a replay is worth nothing");
    server.validate(moved);
    assert!((0..100).all(|_| send(&mut server, moved)));
}

/// A challenge is padded as far as the address's allowance permits ([rfc-9000] sec. 8.2.1): 183 bytes for the 61 received.
#[test]
fn padding_gives_way_where_an_address_is_not_validated() {
    let (mut client, mut server) = pair(Limits::default());
    let moved = FourTuple { remote: Address { address: 77, port: 5 }, ..PATH.reversed() };
    let datagram = sealed(&mut client, secs(1), PATH, &data(1));
    opened(&mut server, secs(1), moved, &datagram).unwrap();
    let outgoing = |path| Outgoing { datagram_max: 1200, pad_to: 1200, ..on(path) };
    let mut len = |path| server.seal(secs(1), &outgoing(path), &data(5), &mut vec![]).map(|sealed| sealed.size);
    assert_eq!((len(moved), len(moved)), (Ok(3 * datagram.len()), Err(SealError::NotAllowed)));
    assert_eq!(len(PATH.reversed()), Ok(1200));
}

/// Either all fragments fit an address's allowance, or none is sent.
#[test]
fn fragments_are_allowed_together_or_not_at_all() {
    let (mut client, mut server) = pair(Limits::default());
    let moved = FourTuple { remote: Address { address: 77, port: 5 }, ..PATH.reversed() };
    let datagram = sealed(&mut client, secs(1), PATH, &data(1));
    opened(&mut server, secs(1), moved, &datagram).unwrap();
    let long = Segment { content: Content::Data(Bytes::from(vec![1; 150])), ..data(1) };
    let mut out = vec![];
    let outgoing = Outgoing { datagram_max: 150, ..on(moved) };
    assert_eq!(server.seal(secs(1), &outgoing, &long, &mut out), Err(SealError::NotAllowed), "258 bytes for 61");
    assert_eq!((out.len(), server.seal(secs(1), &on(moved), &data(1), &mut out).is_ok()), (0, true));
}

/// The seal's own datagrams go to the source of the newest datagram, if that address is validated.
#[test]
fn late_or_foreign_datagrams_do_not_move_address() {
    let (mut client, mut server) = pair(Limits::default());
    let (old, new) = (PATH.reversed(), FourTuple { remote: Address { address: 55, port: 5 }, ..PATH.reversed() });
    let late = sealed(&mut client, secs(1), PATH, &data(1));
    let first = sealed(&mut client, secs(1), PATH, &data(2));
    assert_eq!(server.path, old);
    opened(&mut server, secs(1), new, &first).unwrap();
    assert_eq!(server.path, old, "nobody has shown to be there");
    server.validate(new);
    let second = sealed(&mut client, secs(1), PATH, &data(3));
    opened(&mut server, secs(1), new, &second).unwrap();
    assert_eq!(server.path, new);
    opened(&mut server, secs(1), old, &late).unwrap();
    assert_eq!(server.path, new, "it was late");
    let replayed = opened(&mut server, secs(1), old, &second);
    assert_eq!((replayed, server.path), (Err(Refusal::Replayed), new));
    let request = request(&mut client, 1, 1);
    opened(&mut server, secs(1), new, &request).unwrap();
    assert_eq!(server.poll_transmit(secs(1), &mut vec![]), Some(new));
}

/// A datagram under replaced keys is late, however high its counter is.
#[test]
fn datagrams_of_the_keys_before_move_nothing() {
    let (mut client, mut server) = pair(Limits { rekey_after_messages: 2, ..Default::default() });
    let other = FourTuple { remote: Address { address: 55, port: 5 }, ..PATH.reversed() };
    server.validate(other);
    exchange(&mut client, &mut server, secs(1), 1);
    let request = own(&mut client, secs(1)).unwrap();
    opened(&mut server, secs(1), PATH.reversed(), &request).unwrap();
    let answer = own(&mut server, secs(1)).unwrap();
    let late = sealed(&mut client, secs(1), PATH, &data(5));
    opened(&mut client, secs(1), PATH, &answer).unwrap();
    exchange(&mut client, &mut server, secs(1), 7);
    assert_eq!(opened(&mut server, secs(1), other, &late), Ok(Some(data(5))));
    assert_eq!(server.path, PATH.reversed());
}

/// The address from which the client of [`keyed`] sends afterwards, as the server sees it.
const ELSEWHERE: FourTuple = FourTuple { local: SERVER, remote: Address { address: 66, port: 6 } };

/// A client that has sent its initiation from its address and has the keys; a server that has received nothing from it since; and
/// the lengths of initiation and response.
fn keyed() -> (Seal, Seal, [usize; 2]) {
    let (mut client, mut server, initiation) = half_open();
    let response = sealed(&mut server, secs(0), PATH.reversed(), &syn_ack());
    opened(&mut client, secs(0), PATH, &response).unwrap();
    (client, server, [initiation.len(), response.len()])
}

/// An attacker sees the response on its way to the client's address, and the client's data arrives from another address. That the
/// client has the keys validates neither that other address nor the one that was used before.
#[test]
fn only_the_address_that_got_the_response_is_validated_by_data() {
    let (mut client, mut server, _) = keyed();
    let datagram = sealed(&mut client, secs(0), PATH, &data(1));
    opened(&mut server, secs(0), ELSEWHERE, &datagram).unwrap();
    assert!(server.is_established());
    assert!(!server.addresses.is_validated(ELSEWHERE.remote) && !server.addresses.is_validated(CLIENT));
    let sent = (0..100).filter(|_| server.seal(secs(0), &on(ELSEWHERE), &data(2), &mut vec![]).is_ok()).count();
    assert_eq!(sent, 3, "three times one datagram");
}

/// A peer with genuine keys forges its source address. The seal's own datagrams go to that address, too. However often the peer
/// requests keys, at most three times the bytes of the initiation are sent there.
#[test]
fn whoever_asks_for_keys_from_elsewhere_floods_nobody() {
    let (mut client, mut server, [initiation, response]) = keyed();
    let (mut sent, mut answers) = (response, 0);
    for number in 1..100 {
        let now = secs(10 * u64::from(number));
        let request = request(&mut client, 1, number);
        opened(&mut server, now, ELSEWHERE, &request).unwrap();
        let mut out = vec![];
        if let Some(path) = server.poll_transmit(now, &mut out) {
            assert_eq!(path.remote, CLIENT);
            (sent, answers) = (sent + out.len(), answers + 1);
        }
    }
    assert!(answers > 0 && sent <= 3 * initiation, "{sent} for {initiation}");
}
