//! Connections over several paths: the host here has two addresses.

use anabranch_proto::{
    AcknowledgementOptions, Content, Flags, Header, Options, PathOption, PathState, Segment, SeqNumber,
};

use super::*;
use crate::packet::write_segment;

const HERE_TOO: u128 = 0xffff_0a00_0009;

/// The host here has a second address, and both allow so many paths.
fn with_paths(here: u8, there: u8) -> World<Mux> {
    let mut settings = [settings(HERE, 64, 9), settings(THERE, 64, 9)];
    settings[0].addresses.push("10.0.0.9".parse().unwrap());
    (settings[0].connection.paths_max, settings[1].connection.paths_max) = (here, there);
    let mut world = World::<Mux>::of(settings);
    world.hosts[1].listen(PORT).unwrap();
    world
}

/// The addresses here of the paths that both ends use.
fn live(world: &mut World<Mux>, [client, server]: [SocketId; 2]) -> [Vec<u128>; 2] {
    let mut of = |host: usize, id| -> Vec<u128> {
        let paths = world.hosts[host].paths(id).into_iter().filter(|path| path.state == PathState::Live);
        paths.map(|path| if host == 0 { path.tuple.local.address } else { path.tuple.remote.address }).collect()
    };
    [of(0, client), of(1, server)]
}

/// Both addresses of an opener carry data. When one of them is cut off, every byte still arrives.
#[test]
fn second_address_is_a_path_that_outlives_the_first() {
    let mut world = with_paths(2, 2);
    let [client, server] = world.pair();
    assert_eq!(live(&mut world, [client, server]), [[HERE, HERE_TOO], [HERE, HERE_TOO]]);
    let data = content(4_000_000);
    let mut talks = [Talk::new(0, client, data.clone()), Talk::new(1, server, Bytes::from_static(b"back"))];
    for step in 0..20_000 {
        talks.iter_mut().for_each(|talk| talk.step(&mut world));
        world.run(Span::from_millis(5));
        if step == 20 {
            let sent = world.hosts[0].paths(client).into_iter().map(|path| path.tally.sent);
            assert!(sent.clone().all(|count| count > 20), "{:?}", sent.collect::<Vec<_>>());
            // The first address.
            world.middlebox = |_, packet| {
                let is_cut = packet[12..16] == [10, 0, 0, 1] || packet[16..20] == [10, 0, 0, 1];
                if is_cut { vec![] } else { vec![packet] }
            };
        }
        if talks.iter().all(|talk| talk.has_end) {
            break;
        }
    }
    assert!(talks[1].got == data, "{} bytes", talks[1].got.len());
    assert_eq!(talks[0].got, b"back");
}

/// The peer answers over both paths, too.
#[test]
fn acceptor_sends_over_the_second_path() {
    let mut world = with_paths(2, 2);
    let [client, server] = world.pair();
    let data = content(1_000_000);
    let mut talks = [Talk::new(0, client, Bytes::from_static(b"to")), Talk::new(1, server, data.clone())];
    for _ in 0..2000 {
        talks.iter_mut().for_each(|talk| talk.step(&mut world));
        if talks.iter().all(|talk| talk.has_end) {
            break;
        }
        world.run(Span::from_millis(5));
    }
    assert!(talks[0].got == data, "{} bytes", talks[0].got.len());
    let sent: Vec<_> = world.hosts[1].paths(server).into_iter().map(|path| path.tally.sent).collect();
    assert!(sent.len() == 2 && sent.iter().all(|count| *count > 100), "{sent:?}");
}

/// A peer that allows one path is not troubled, and a host that allows one asks for no other.
#[test]
fn one_path_is_left_where_an_end_allows_no_more() {
    for (here, there) in [(2, 1), (1, 2)] {
        let mut world = with_paths(here, there);
        let pair = world.pair();
        assert_eq!(live(&mut world, pair), [[HERE], [HERE]], "{here} {there}");
        assert_eq!(echo(&mut world, 3, 20_000), 1);
    }
}

/// Challenges with unknown ends and the ports of a connection begin nothing if they do not fit its numbers.
#[test]
fn challenge_of_a_stranger_begins_no_path() {
    let mut world = with_paths(2, 2);
    let pair = world.pair();
    let ends = world.hosts[1].ends(pair[1]).unwrap();
    let before = world.hosts[1].paths(pair[1]).len();
    for number in 0..100u32 {
        let tuple = FourTuple { local: end(0xffff_0a00_0063, ends.remote.port), remote: ends.local };
        let header = Header {
            seq: SeqNumber(number << 25),
            ack: SeqNumber(number << 25),
            flags: Flags::ACK | Flags::MSE,
            ..Header::default()
        };
        let options = Options::Path(PathOption::Challenge([7; 8]));
        let segment = Segment { header, options, stream_header: None, content: Content::Nothing };
        let mut out = vec![];
        write_segment(tuple, IpFields::default(), None, None, &segment, None, &mut out);
        world.hosts[1].handle_packet(world.now, &out.into());
    }
    // A guess of both numbers succeeds once in some hundred attempts, and then only brings challenges to that address.
    let paths = world.hosts[1].paths(pair[1]);
    assert!(paths.len() <= before + 2, "{}", paths.len());
    world.run(Span::from_secs(30));
    assert_eq!(live(&mut world, pair)[1], [HERE, HERE_TOO]);
}

/// A host on the second way that knows nothing of the connection answers by a reset: the connection goes on by the first one. A stranger, who does not
/// know the number, ends nothing.
#[test]
fn reset_on_the_second_path_ends_only_that() {
    let mut world = with_paths(2, 2);
    let pair = world.pair();
    let carrier = world.hosts[0].carriers.keys().next().copied().unwrap();
    let second = world.hosts[0].paths(pair[0])[1].tuple;
    let reset = |world: &mut World<Mux>, off: u64| {
        let seq = world.hosts[0].stack.expected(carrier).unwrap().plus(off);
        let header = Header { seq, flags: Flags::RST, ..Header::default() };
        let options = Options::Acknowledgement(AcknowledgementOptions::default());
        let segment = Segment { header, options, stream_header: None, content: Content::Nothing };
        let mut out = vec![];
        write_segment(second.reversed(), IpFields::default(), None, None, &segment, None, &mut out);
        world.hosts[0].handle_packet(world.now, &out.into());
        world.run(Span::from_millis(100));
    };
    reset(&mut world, 1);
    assert_eq!(live(&mut world, pair), [[HERE, HERE_TOO], [HERE, HERE_TOO]]);
    reset(&mut world, 0);
    assert_eq!(live(&mut world, pair), [[HERE], [HERE]]);
    assert_eq!(echo(&mut world, 3, 20_000), 1);
}
