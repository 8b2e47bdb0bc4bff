//! Two hosts whose connections share one, and what middleboxes make of it.

mod paths;

use proptest::prelude::*;

use super::*;
use crate::testing::{HERE, Node, PORT, THERE, World, content, end, settings, too_big};

impl World<Mux> {
    /// The host here asks for `asks` streams, and the one there grants up to `grants`.
    fn sharing(asks: u16, grants: u16) -> Self {
        let mut world = Self::of([settings(HERE, 64, asks), settings(THERE, 64, grants)]);
        world.hosts[1].listen(PORT).unwrap();
        world
    }

    fn connect(&mut self) -> SocketId {
        self.hosts[0].connect(self.now, end(HERE, 0), end(THERE, PORT)).unwrap()
    }

    /// Opens a connection and says something, and accepts it there.
    fn pair(&mut self) -> [SocketId; 2] {
        let client = self.connect();
        self.run(Span::from_millis(100));
        [client, self.hosts[1].accept(PORT).expect("a connection")]
    }

    fn accept_all(&mut self) -> Vec<SocketId> {
        std::iter::from_fn(|| self.hosts[1].accept(PORT)).collect()
    }
}

/// One end of a connection with what it still has to write and has read.
struct Talk {
    host: usize,
    id: SocketId,
    rest: Bytes,
    got: Vec<u8>,
    has_end: bool,
}

impl Talk {
    fn new(host: usize, id: SocketId, rest: Bytes) -> Self {
        Self { host, id, rest, got: vec![], has_end: false }
    }

    fn step(&mut self, world: &mut World<Mux>) {
        let host = &mut world.hosts[self.host];
        if !self.rest.is_empty() && !host.is_opening(self.id) {
            host.write(self.id, &mut self.rest).unwrap();
            if self.rest.is_empty() {
                host.close(self.id);
            }
        }
        while !self.has_end {
            match host.read(self.id, 10_000).unwrap() {
                Read::Data(data) => self.got.extend_from_slice(&data),
                Read::End => self.has_end = true,
                Read::Nothing => return,
                Read::Reset(_) => panic!("a reset is an error"),
            }
        }
    }
}

/// Opens `count` connections that each send `len` bytes there and get them back. Returns the connections below.
#[track_caller]
fn echo(world: &mut World<Mux>, count: usize, len: usize) -> usize {
    let told: Vec<Bytes> = (0..count).map(|at| content(len + at).slice(at..)).collect();
    let mut clients: Vec<_> = told.iter().map(|data| Talk::new(0, world.connect(), data.clone())).collect();
    let mut servers: Vec<Talk> = vec![];
    let mut most = 0;
    for _ in 0..30_000 {
        for talk in clients.iter_mut().chain(&mut servers) {
            if talk.host == 1 && talk.has_end && talk.rest.is_empty() && !talk.got.is_empty() {
                talk.rest = std::mem::take(&mut talk.got).into();
            }
            talk.step(world);
        }
        world.run(Span::from_millis(5));
        servers.extend(world.accept_all().into_iter().map(|id| Talk::new(1, id, Bytes::new())));
        most = most.max(world.hosts[0].len());
        if clients.iter().all(|talk| talk.has_end) {
            break;
        }
    }
    let mut got: Vec<_> = clients.iter().map(|talk| Bytes::from(talk.got.clone())).collect();
    assert_eq!(servers.len(), count);
    for (got, told) in got.drain(..).zip(told) {
        assert!(got == told, "{} of {} bytes", got.len(), told.len());
    }
    world.run(Span::from_millis(500));
    for talk in clients.iter().chain(&servers) {
        assert!(world.hosts[talk.host].is_finished(talk.id), "{:?}", world.hosts[talk.host].closed(talk.id));
        world.hosts[talk.host].release(talk.id);
    }
    most
}

fn is_gone(world: &World<Mux>) -> bool {
    world.hosts.iter().all(|host| {
        host.channels.is_empty() && host.carriers.is_empty() && host.by_peer.is_empty() && host.alone.is_empty()
    }) && world.hosts.iter().all(|host| host.timers.is_empty() && host.ready.values().all(VecDeque::is_empty))
}

#[test]
fn connections_to_one_port_share_one() {
    for loses in [0, 17] {
        let mut world = World::sharing(255, 255);
        world.loses = loses;
        assert_eq!(echo(&mut world, 40, 20_000), 1);
        world.run(Span::from_secs(300));
        assert!(is_gone(&world), "what nobody uses is closed");
        assert!(world.hosts.iter().all(Mux::is_empty));
    }
}

/// A peer without streams: each has its own connection, and the next one is not even asked for.
#[test]
fn connections_to_a_plain_peer_are_its_own() {
    for (asks, grants) in [(255, 0), (0, 255)] {
        let mut world = World::sharing(asks, grants);
        assert_eq!(echo(&mut world, 10, 20_000), 10);
        let later = world.connect();
        assert!(!world.hosts[0].is_shared(later));
        world.run(Span::from_millis(100));
        assert!(world.hosts[1].accept(PORT).is_some());
    }
}

/// One lost SYN, which leads to plain TCP, says nothing of the peer; two in a row do, for ten minutes.
#[test]
fn peer_is_plain_after_two_lost_offers() {
    let mut world = World::sharing(255, 255);
    let mut try_with = |middlebox| {
        world.middlebox = middlebox;
        let client = world.connect();
        world.run(Span::from_millis(1500));
        world.hosts[0].is_shared(client)
    };
    let passes: fn(usize, Vec<u8>) -> Vec<Vec<u8>> = |_, packet| vec![packet];
    assert_eq!([try_with(drops_offers), try_with(passes), try_with(passes)], [false, true, true]);
    let mut world = World::sharing(255, 255);
    for (middlebox, is_shared, wait) in
        [(drops_offers as fn(_, _) -> _, false, 2), (drops_offers, false, 2), (passes, false, 600), (passes, true, 1)]
    {
        world.middlebox = middlebox;
        let client = world.connect();
        world.run(Span::from_secs(wait));
        assert_eq!(world.hosts[0].is_shared(client), is_shared);
    }
}

/// A peer that has shown its streams again is not plain after the next lost SYN.
#[test]
fn shown_streams_are_forgotten_losses() {
    let mut world = World::sharing(255, 255);
    let passes: fn(usize, Vec<u8>) -> Vec<Vec<u8>> = |_, packet| vec![packet];
    let shared = [drops_offers, passes, drops_offers, passes].map(|middlebox| {
        world.middlebox = middlebox;
        let client = world.connect();
        world.run(Span::from_millis(1500));
        let is_shared = world.hosts[0].is_shared(client);
        world.hosts[0].abort(client);
        // Longer than what nobody uses stays open.
        world.run(Span::from_secs(70));
        is_shared
    });
    assert_eq!(shared, [false, true, false, true]);
}

#[test]
fn plain_peers_that_are_known_have_a_limit() {
    let mut world = World::sharing(255, 0);
    for port in 1000..2100 {
        world.hosts[1].listen(port).unwrap();
        let client = world.hosts[0].connect(world.now, end(HERE, 0), end(THERE, port)).unwrap();
        world.run(Span::from_millis(21));
        world.hosts[0].abort(client);
    }
    assert_eq!(world.hosts[0].plain.len(), 1024);
}

/// What nobody uses is closed by the end that opened it, which then has the TIME-WAIT; the other one has nothing left.
#[test]
fn unused_connection_is_closed_by_its_opener() {
    let mut world = World::sharing(255, 255);
    let [client, server] = world.pair();
    // The other end is the first that knows that nobody uses it.
    world.hosts[1].abort(server);
    world.hosts[1].release(server);
    world.hosts[0].release(client);
    world.run(Span::from_secs(61));
    assert!(!world.hosts[0].is_empty() && world.hosts[1].is_empty());
}

/// The opener of a connection that its peer has closed does not keep it.
#[test]
fn connection_that_the_peer_has_closed_is_closed() {
    let mut world = World::sharing(255, 255);
    let [client, server] = world.pair();
    world.hosts[0].abort(client);
    world.hosts[1].release(server);
    world.run(Span::from_millis(100));
    assert_eq!(world.hosts[0].carriers.len(), 1);
    world.hosts[1].end();
    world.run(Span::from_millis(100));
    assert!(world.hosts[0].carriers.is_empty());
}

/// With the buffers of the command, small at first, an answer of eleven segments takes two round trips at most: the initial window has ten.
#[test]
fn small_buffers_do_not_hold_streams_back() {
    let small = |address| {
        let mut settings = settings(address, 64, 255);
        settings.connection.receive_buffer = 256 << 10;
        settings.connection.receive_buffer_max = 16 << 20;
        settings
    };
    let mut world = World::<Mux>::of([small(HERE), small(THERE)]);
    world.hosts[1].listen(PORT).unwrap();
    let [client, server] = world.pair();
    let (mut rest, mut got, begin) = (content(15_000), 0, world.now);
    while got < 15_000 {
        world.hosts[1].write(server, &mut rest).unwrap();
        world.run(Span::from_millis(1));
        while let Ok(Read::Data(data)) = world.hosts[0].read(client, 100_000) {
            got += data.len();
        }
    }
    assert!(world.now - begin <= Span::from_millis(35), "{:?}", world.now - begin);
}

/// More connections than streams need several connections, none of which has too many.
#[test]
fn full_connection_is_followed_by_another() {
    let mut world = World::sharing(4, 255);
    assert_eq!(echo(&mut world, 10, 2000), 3);
}

/// The peer grants fewer streams than were asked for: the others do not wait for a stream that ends.
#[test]
fn channels_beyond_the_granted_streams_have_another_connection() {
    let mut world = World::sharing(255, 3);
    assert_eq!(echo(&mut world, 20, 5000), 7);
}

/// A connection that its peer has just closed for good: what comes late is reset, and the next channel has a new connection.
#[test]
fn late_channel_in_closed_connection_is_reset() {
    let mut world = World::sharing(255, 255);
    let [client, server] = world.pair();
    for (host, id) in [(0, client), (1, server)] {
        world.hosts[host].close(id);
        world.run(Span::from_millis(50));
        _ = world.hosts[host].read(id, 1);
    }
    assert_eq!(world.hosts[0].read(client, 1), Ok(Read::End));
    assert_eq!(world.hosts[1].read(server, 1), Ok(Read::End));
    world.run(Span::from_millis(100));
    world.hosts[1].end();
    world.flush();
    let late = world.connect();
    world.run(Span::from_secs(1));
    assert_eq!(world.hosts[0].closed(late), Some(CloseReason::Reset));
    world.pair();
}

/// A lost segment stops only its own stream: of two connections that share one, the other's data is read before the lost part comes again.
#[test]
fn lost_segment_stops_its_own_channel_alone() {
    let mut world = World::sharing(255, 255);
    let [first, there] = world.pair();
    let [second, other] = world.pair();
    // The number and the data of a channel that has said nothing.
    world.hosts[0].write(first, &mut Bytes::from_static(b"lost")).unwrap();
    world.loses = 1;
    world.flush();
    world.loses = 0;
    world.hosts[0].write(second, &mut Bytes::from_static(b"here")).unwrap();
    world.run(Span::from_millis(11));
    assert_eq!(world.hosts[1].read(other, 10), Ok(Read::Data(Bytes::from_static(b"here"))));
    assert_eq!(world.hosts[1].read(there, 10), Ok(Read::Nothing));
    world.run(Span::from_secs(1));
    assert_eq!(world.hosts[1].read(there, 10), Ok(Read::Data(Bytes::from_static(b"lost"))));
}

#[test]
fn abort_resets_one_channel_alone() {
    for from in [0, 1] {
        let mut world = World::sharing(255, 255);
        let [first, there] = world.pair();
        let [second, other] = world.pair();
        for (host, id) in [(0, first), (1, there)] {
            world.hosts[host].write(id, &mut content(3000)).unwrap();
        }
        world.run(Span::from_millis(100));
        world.hosts[from].abort([first, there][from]);
        world.run(Span::from_millis(100));
        let to = 1 - from;
        let id = [first, there][to];
        while let Ok(Read::Data(_)) = world.hosts[to].read(id, 10_000) {}
        assert_eq!(world.hosts[to].read(id, 10), Err(SocketError::Closed(CloseReason::Reset)));
        assert_eq!(world.hosts[from].closed([first, there][from]), Some(CloseReason::Aborted));
        world.hosts[0].write(second, &mut Bytes::from_static(b"on")).unwrap();
        world.run(Span::from_millis(100));
        assert_eq!(world.hosts[1].read(other, 10), Ok(Read::Data(Bytes::from_static(b"on"))));
    }
}

/// The connection that channels share at this host.
fn carrier(world: &World<Mux>, host: usize) -> SocketId {
    *world.hosts[host].carriers.keys().next().unwrap()
}

/// A client that has said all waits for the answer only. It learns that none comes, even if the number at its begin is lost or has no stream.
#[test]
fn abort_before_the_answer_is_told() {
    for case in ["lost", "no stream"] {
        let mut world = World::sharing(2, 2);
        world.pair();
        world.flush();
        let id = carrier(&world, 1);
        let taken = (case == "no stream").then(|| world.hosts[1].stack.streams(id).unwrap().open().unwrap());
        let client = world.connect();
        world.hosts[0].write(client, &mut content(3000)).unwrap();
        world.hosts[0].close(client);
        world.middlebox = |host, packet| if host == 0 { vec![] } else { vec![packet] };
        world.run(Span::from_millis(15));
        world.middlebox = |_, packet| vec![packet];
        let server = world.hosts[1].accept(PORT).unwrap();
        world.hosts[1].abort(server);
        world.run(Span::from_secs(1));
        if let Some(sid) = taken {
            assert_eq!(world.hosts[0].closed(client), None);
            world.hosts[1].stack.streams(id).unwrap().finish(sid).unwrap();
            world.run(Span::from_secs(1));
        }
        assert_eq!(world.hosts[0].closed(client), Some(CloseReason::Reset), "{case}");
    }
}

/// A refused channel whose client has already said all.
#[test]
fn refusal_after_the_end_is_told() {
    let mut world = World::sharing(255, 255);
    world.pair();
    let clients: Vec<_> = (0..65).map(|_| world.connect()).collect();
    for &client in &clients {
        world.hosts[0].write(client, &mut content(10)).unwrap();
        world.hosts[0].close(client);
    }
    world.run(Span::from_secs(1));
    let refused: Vec<_> = clients.iter().map(|&id| world.hosts[0].closed(id)).collect();
    assert_eq!(refused[..64], [None; 64]);
    assert_eq!(refused[64], Some(CloseReason::Refused));
}

/// [rfc-2525] sec. 2.17: who writes to an end that nobody reads any more learns it.
#[test]
fn data_for_released_channel_resets_it() {
    let mut world = World::sharing(255, 255);
    let [client, server] = world.pair();
    world.hosts[1].release(server);
    world.run(Span::from_millis(100));
    assert_eq!(world.hosts[0].read(client, 10), Ok(Read::End));
    world.hosts[0].write(client, &mut Bytes::from_static(b"late")).unwrap();
    world.run(Span::from_millis(100));
    assert_eq!(world.hosts[0].closed(client), Some(CloseReason::Reset));
    assert!(world.hosts[1].channels.is_empty());
}

#[test]
fn ended_listener_refuses_channels() {
    let mut world = World::sharing(255, 255);
    let [first, there] = world.pair();
    let waiting = world.connect();
    world.run(Span::from_millis(100));
    world.hosts[1].unlisten(PORT);
    let late = world.connect();
    world.run(Span::from_millis(100));
    assert_eq!(world.hosts[0].closed(waiting), Some(CloseReason::Reset));
    assert_eq!(world.hosts[0].closed(late), Some(CloseReason::Refused));
    world.hosts[0].write(first, &mut Bytes::from_static(b"on")).unwrap();
    world.run(Span::from_millis(100));
    assert_eq!(world.hosts[1].read(there, 10), Ok(Read::Data(Bytes::from_static(b"on"))));
}

/// Channels that nobody accepts are refused beyond the backlog of 64.
#[test]
fn unaccepted_channels_have_a_limit() {
    let mut world = World::sharing(255, 255);
    world.pair();
    let clients: Vec<_> = (0..100).map(|_| world.connect()).collect();
    world.run(Span::from_millis(200));
    let refused = |id: &&SocketId| world.hosts[0].closed(**id) == Some(CloseReason::Refused);
    assert_eq!(clients.iter().filter(refused).count(), 100 - 64);
    assert_eq!(world.accept_all().len(), 64);
}

/// Accepted or not, channels have places of sockets.
#[test]
fn channels_have_the_limit_of_sockets() {
    let mut few = settings(THERE, 64, 255);
    few.sockets_max = 10;
    let mut world = World::<Mux>::of([settings(HERE, 64, 255), few]);
    world.hosts[1].listen(PORT).unwrap();
    let servers: Vec<_> = (0..10).map(|_| world.pair()).collect();
    let late = world.connect();
    world.run(Span::from_millis(100));
    assert_eq!(world.hosts[0].closed(late), Some(CloseReason::Refused));
    world.hosts[0].abort(servers[3][0]);
    world.run(Span::from_millis(100));
    world.hosts[1].release(servers[3][1]);
    world.pair();
}

/// A peer that breaks the rules: two streams for one channel, or more channels without an answer than streams, end the connection; an answer to no channel is
/// stopped.
#[test]
fn rogue_streams_are_refused() {
    let write_stream = |world: &mut World<Mux>, host: usize, number: u32| {
        let id = carrier(world, host);
        let mut streams = world.hosts[host].stack.streams(id).unwrap();
        let sid = streams.open().unwrap();
        streams.write(sid, &mut Bytes::copy_from_slice(&number.to_be_bytes())).unwrap();
        sid
    };
    let mut world = World::sharing(255, 255);
    let [client, server] = world.pair();
    let sid = write_stream(&mut world, 1, 77);
    world.run(Span::from_millis(100));
    let id = carrier(&world, 1);
    let mut streams = world.hosts[1].stack.streams(id).unwrap();
    assert!(streams.write(sid, &mut content(10)).is_err());
    assert_eq!([world.hosts[0].closed(client), world.hosts[1].closed(server)], [None, None]);
    write_stream(&mut world, 0, 0);
    world.run(Span::from_millis(100));
    assert_eq!(world.hosts[0].closed(client), Some(CloseReason::Reset));

    let mut world = World::sharing(3, 3);
    let [client, _] = world.pair();
    let id = carrier(&world, 1);
    while world.hosts[1].stack.streams(id).unwrap().open().is_ok() {}
    world.hosts[1].unlisten(PORT);
    for number in 1..=4 {
        assert_eq!(world.hosts[0].closed(client), None);
        let sid = write_stream(&mut world, 0, number);
        let id = carrier(&world, 0);
        world.hosts[0].stack.streams(id).unwrap().finish(sid).unwrap();
        world.run(Span::from_millis(100));
    }
    assert_eq!(world.hosts[0].closed(client), Some(CloseReason::Reset));
}

#[test]
fn lost_connection_ends_its_channels() {
    let mut world = World::sharing(255, 255);
    let [client, server] = world.pair();
    world.hosts[1].abort_all();
    world.run(Span::from_millis(100));
    assert_eq!(world.hosts[0].closed(client), Some(CloseReason::Reset));
    assert_eq!(world.hosts[1].closed(server), Some(CloseReason::Aborted));
    // The next one opens a connection again.
    world.pair();
}

#[test]
fn refused_connection_refuses_all_that_wait() {
    let mut world = World::sharing(255, 255);
    world.hosts[1].unlisten(PORT);
    let clients: Vec<_> = (0..3).map(|_| world.connect()).collect();
    assert!(clients.iter().all(|id| world.hosts[0].is_opening(*id)));
    world.run(Span::from_millis(100));
    for client in clients {
        assert_eq!(world.hosts[0].closed(client), Some(CloseReason::Refused));
        world.hosts[0].release(client);
    }
    assert!(is_gone(&world));
}

/// Written and closed before the handshake is over, with streams and without.
#[test]
fn early_end_comes_after_the_data() {
    for grants in [255, 0] {
        let mut world = World::sharing(255, grants);
        let clients: Vec<_> = (0..3).map(|_| world.connect()).collect();
        for &client in &clients {
            assert_eq!(world.hosts[0].write(client, &mut content(10)).unwrap_or(0), 0);
        }
        world.run(Span::from_millis(100));
        for &client in &clients {
            world.hosts[0].write(client, &mut content(10)).unwrap();
            world.hosts[0].release(client);
        }
        world.run(Span::from_millis(100));
        let servers = world.accept_all();
        assert_eq!(servers.len(), 3);
        for server in servers {
            assert_eq!(world.hosts[1].read(server, 100), Ok(Read::Data(content(10))));
            assert_eq!(world.hosts[1].read(server, 100), Ok(Read::End));
            world.hosts[1].release(server);
        }
        world.run(Span::from_millis(100));
        assert!(world.hosts[0].channels.is_empty());
    }
}

/// The TCP header of an IPv4 packet, and what follows its options.
fn parts(packet: &[u8]) -> (usize, usize) {
    (20, 20 + usize::from(packet[32] >> 4) * 4)
}

/// A packet with changed bytes, whose lengths and checksums are right again.
fn sealed(mut packet: Vec<u8>) -> Vec<u8> {
    let len = packet.len() as u16;
    packet[2..4].copy_from_slice(&len.to_be_bytes());
    packet[10..12].fill(0);
    let sum = anabranch_proto::wire::internet_checksum(&[&packet[..20]]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet[36..38].fill(0);
    let pseudo = [&packet[12..20], &[0, 6], &(len - 20).to_be_bytes()[..]].concat();
    let sum = anabranch_proto::wire::internet_checksum(&[&pseudo, &packet[20..]]);
    packet[36..38].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// Splits each segment of more than 600 bytes in two, as an offload does: both have all options.
fn splits(_: usize, packet: Vec<u8>) -> Vec<Vec<u8>> {
    let (tcp, content) = parts(&packet);
    if packet.len() - content <= 600 {
        return vec![packet];
    }
    let half = content + 600;
    let mut second = [&packet[..content], &packet[half..]].concat();
    let seq = u32::from_be_bytes([second[24], second[25], second[26], second[27]]).wrapping_add(600);
    second[tcp + 4..tcp + 8].copy_from_slice(&seq.to_be_bytes());
    vec![sealed(packet[..half].to_vec()), sealed(second)]
}

/// Takes the unknown option from every packet.
fn strips_option(_: usize, mut packet: Vec<u8>) -> Vec<Vec<u8>> {
    let (_, content) = parts(&packet);
    let mut at = 40;
    while at + 1 < content {
        match packet[at] {
            0 => break,
            1 => at += 1,
            253 => {
                let len = usize::from(packet[at + 1]);
                packet[at..at + len].fill(1);
            }
            _ => at += usize::from(packet[at + 1]).max(2),
        }
    }
    vec![sealed(packet)]
}

fn clears_flag(_: usize, mut packet: Vec<u8>) -> Vec<Vec<u8>> {
    packet[32] &= !2;
    vec![sealed(packet)]
}

fn is_syn(packet: &[u8]) -> bool {
    packet[33] & 2 != 0
}

/// Drops SYNs with the unknown option.
fn drops_offers(host: usize, packet: Vec<u8>) -> Vec<Vec<u8>> {
    let has_option = strips_option(host, packet.clone()) != [sealed(packet.clone())];
    if is_syn(&packet) && has_option { vec![] } else { vec![packet] }
}

/// Moves all numbers of one direction, as old firewalls do.
fn shifts_numbers(host: usize, mut packet: Vec<u8>) -> Vec<Vec<u8>> {
    let (at, by) = if host == 1 { (24, 3_000_000_000u32) } else { (28, 0u32.wrapping_sub(3_000_000_000)) };
    let number = u32::from_be_bytes([packet[at], packet[at + 1], packet[at + 2], packet[at + 3]]);
    packet[at..at + 4].copy_from_slice(&number.wrapping_add(by).to_be_bytes());
    vec![sealed(packet)]
}

/// Whatever a middlebox does, every byte arrives; where it takes what streams need, over plain TCP.
#[test]
fn every_byte_arrives_through_middleboxes() {
    type Middlebox = fn(usize, Vec<u8>) -> Vec<Vec<u8>>;
    let here: [Middlebox; 3] = [
        |host, packet| if host == 0 { strips_option(host, packet) } else { vec![packet] },
        |host, packet| if host == 0 { clears_flag(host, packet) } else { vec![packet] },
        |host, packet| if host == 0 { drops_offers(host, packet) } else { vec![packet] },
    ];
    let all: [(Middlebox, usize); 8] = [
        (splits, 1),
        (shifts_numbers, 1),
        (strips_option, 4),
        (clears_flag, 4),
        (drops_offers, 4),
        (here[0], 4),
        (here[1], 4),
        (here[2], 4),
    ];
    for (number, (middlebox, connections)) in all.into_iter().enumerate() {
        for loses in [0, 23] {
            let mut world = World::sharing(255, 255);
            world.middlebox = middlebox;
            world.loses = loses;
            let most = echo(&mut world, 4, 30_000);
            assert_eq!(most, connections, "middlebox {number}");
        }
    }
}

/// What the network says of the shared connection is the reason when a connection is given up.
#[test]
fn soft_error_of_shared_connection_is_kept() {
    let mut world = World::sharing(255, 255);
    let client = world.connect();
    let mut out = vec![];
    assert!(Node::poll_transmit(&mut world.hosts[0], world.now, &mut out));
    assert_eq!(world.hosts[0].soft_error(client), None);
    // The router's message that the packet is too long, as one that the host cannot be reached.
    let mut told = too_big(&out, 0).to_vec();
    told[20..24].copy_from_slice(&[3, 1, 0, 0]);
    let sum = anabranch_proto::wire::internet_checksum(&[&told[20..]]);
    told[22..24].copy_from_slice(&sum.to_be_bytes());
    Node::handle_packet(&mut world.hosts[0], world.now, &told.into());
    world.middlebox = |_, _| vec![];
    for _ in 0..2 {
        assert_eq!(world.hosts[0].soft_error(client), Some(NoticeKind::Unreachable));
        world.run(Span::from_secs(400));
        assert_eq!(world.hosts[0].closed(client), Some(CloseReason::TimedOut));
    }
}

/// A middlebox that lets the SYNs pass and takes the option, or the flag, from all else: nothing wrong is read, and both ends learn it.
#[test]
fn mangled_streams_end_the_connection() {
    type Middlebox = fn(usize, Vec<u8>) -> Vec<Vec<u8>>;
    let middleboxes: [Middlebox; 2] = [
        |host, packet| if is_syn(&packet) { vec![packet] } else { strips_option(host, packet) },
        |host, packet| if is_syn(&packet) { vec![packet] } else { clears_flag(host, packet) },
    ];
    for middlebox in middleboxes {
        let mut world = World::sharing(255, 255);
        world.middlebox = middlebox;
        let client = world.connect();
        world.run(Span::from_millis(100));
        world.hosts[0].write(client, &mut content(3000)).unwrap();
        world.run(Span::from_secs(60));
        for id in world.accept_all() {
            assert!(!matches!(world.hosts[1].read(id, 10_000), Ok(Read::Data(_))));
        }
        assert_eq!(world.hosts[0].closed(client), Some(CloseReason::Reset));
        assert!(world.hosts[1].tally().mangled >= 8);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Channels are opened, written, read, closed, aborted and released in any order, with losses: nothing panics, and in the end nothing is left.
    #[test]
    fn any_order_of_calls_leaves_nothing(
        calls in prop::collection::vec((0u8..8, any::<prop::sample::Index>(), 0usize..2), 1..120),
        grants in prop_oneof![Just(0u16), Just(2), Just(255)],
        loses in prop_oneof![Just(0u64), Just(9)],
    ) {
        let mut world = World::sharing(255, grants);
        world.loses = loses;
        let mut held: [Vec<SocketId>; 2] = [vec![], vec![]];
        for (call, which, host) in calls {
            let id = (!held[host].is_empty()).then(|| *which.get(&held[host]));
            match (call, id) {
                (0 | 1, _) => held[0].push(world.connect()),
                (2, Some(id)) => _ = world.hosts[host].write(id, &mut content(2000)),
                (3, Some(id)) => _ = world.hosts[host].read(id, 1500),
                (4, Some(id)) => world.hosts[host].close(id),
                (5, Some(id)) => world.hosts[host].abort(id),
                (6, Some(id)) => {
                    world.hosts[host].release(id);
                    held[host].retain(|other| *other != id);
                }
                _ => world.run(Span::from_millis(13)),
            }
            held[1].extend(world.accept_all());
        }
        for _ in 0..40 {
            for (host, held) in world.hosts.iter_mut().zip(&mut held) {
                held.drain(..).for_each(|id| host.release(id));
            }
            world.run(Span::from_secs(20));
            held[1].extend(world.accept_all());
        }
        prop_assert!(is_gone(&world), "{:#?}", world.hosts[0].channels);
        prop_assert!(world.hosts.iter().all(Mux::is_empty));
    }
}
