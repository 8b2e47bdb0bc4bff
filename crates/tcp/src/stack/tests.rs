//! Two stacks back to back, and a stack against strangers.

mod requirements;

use std::collections::BTreeMap;

use anabranch_proto::{AcknowledgementOptions, Content, HandshakeOptions, Header, Options, Timestamps, wire};
use proptest::prelude::*;

use super::*;
use crate::packet::{Body, IpFields, Packet, write_segment};
use crate::testing::{HERE, Node as _, PORT, STRANGER, THERE, World, content, end, settings, too_big, v6};

fn stack(address: u128, backlog: usize) -> Stack {
    Stack::new(settings(address, backlog, 0), [address as u8; 32]).unwrap()
}

impl World<Stack> {
    fn new(backlog: usize) -> Self {
        Self::of([HERE, THERE].map(|address| settings(address, backlog, 0)))
    }

    fn connect(&mut self) -> SocketId {
        self.hosts[0].connect(self.now, end(HERE, 0), end(THERE, PORT), 0).unwrap()
    }

    /// Connects, and returns both ends.
    fn pair(&mut self) -> [SocketId; 2] {
        let client = self.connect();
        self.run(Span::from_millis(100));
        [client, self.hosts[1].accept(PORT).expect("a connection")]
    }
}

/// Sends `data` from one end and reads it at the other.
fn transfer(world: &mut World<Stack>, from: (usize, SocketId), to: (usize, SocketId), data: &Bytes) -> Vec<u8> {
    let (mut rest, mut got) = (data.clone(), vec![]);
    for _ in 0..20_000 {
        if !rest.is_empty() {
            world.hosts[from.0].write(from.1, Sid::PLAIN, &mut rest).unwrap();
            if rest.is_empty() {
                world.hosts[from.0].close(from.1);
            }
        }
        world.run(Span::from_millis(5));
        loop {
            match world.hosts[to.0].read(to.1, u32::MAX).unwrap() {
                Read::Data(data) => got.extend_from_slice(&data),
                Read::End => return got,
                Read::Nothing => break,
                Read::Reset(_) => panic!("plain TCP has no such thing"),
            }
        }
    }
    panic!("{} of {} bytes", got.len(), data.len());
}

#[test]
fn every_byte_arrives_whatever_is_lost() {
    for loses in [0, 20, 7] {
        let mut world = World::new(16);
        world.hosts[1].listen(PORT).unwrap();
        let [client, server] = world.pair();
        world.loses = loses;
        let data = content(300_000);
        assert!(transfer(&mut world, (0, client), (1, server), &data) == data, "there, {loses}");
        assert!(transfer(&mut world, (1, server), (0, client), &data) == data, "back, {loses}");
        world.loses = 0;
        world.run(Span::from_secs(130));
        assert_eq!(world.hosts[0].closed(client), Some(CloseReason::Finished));
        assert_eq!(world.hosts[1].closed(server), Some(CloseReason::Finished));
        for (host, id) in [(0, client), (1, server)] {
            world.hosts[host].release(id);
            assert!(world.hosts[host].is_empty());
            assert_eq!(world.hosts[host].poll_timeout(), Time::NEVER);
        }
    }
}

#[test]
fn port_without_listener_refuses() {
    let mut world = World::new(16);
    let client = world.connect();
    world.run(Span::from_millis(100));
    assert_eq!(world.hosts[0].closed(client), Some(CloseReason::Refused));
    assert_eq!(world.hosts[1].tally().resets, 1);
}

/// With a backlog of 16, 50 connections come up: those beyond it by cookies, once there is a place.
#[test]
fn full_backlog_answers_with_cookies_that_open_connections() {
    let mut world = World::new(16);
    world.hosts[1].listen(PORT).unwrap();
    let clients: Vec<_> = (0..50).map(|_| world.connect()).collect();
    world.run(Span::from_millis(25));
    assert_eq!(world.hosts[1].len(), 16, "the listener keeps no more");
    assert_eq!(world.hosts[1].tally().cookies_sent, 34);
    let mut servers = vec![];
    for round in 0..400 {
        while let Some(id) = world.hosts[1].accept(PORT) {
            servers.push(id);
        }
        for &client in &clients {
            // What is sent brings the acknowledgement of the cookie again.
            if round == 5 {
                world.hosts[0].write(client, Sid::PLAIN, &mut Bytes::from_static(b"hello")).unwrap();
            }
        }
        world.run(Span::from_millis(50));
    }
    assert_eq!((servers.len(), world.hosts[1].tally().cookies_used), (50, 34));
    for server in servers {
        assert_eq!(world.hosts[1].read(server, 100), Ok(Read::Data(Bytes::from_static(b"hello"))));
    }
}

/// Where nobody accepts for a second, clients that a cookie has answered send several segments in vain. None is reset, and all come again.
#[test]
fn segments_after_a_cookie_wait_for_a_place() {
    let mut world = World::new(16);
    world.hosts[1].listen(PORT).unwrap();
    let clients: Vec<_> = (0..50).map(|_| world.connect()).collect();
    world.run(Span::from_millis(100));
    for &client in &clients {
        world.hosts[0].write(client, Sid::PLAIN, &mut content(5000)).unwrap();
    }
    world.run(Span::from_secs(1));
    assert_eq!(world.hosts[1].tally().resets, 0);
    let mut servers = BTreeMap::new();
    for _ in 0..400 {
        while let Some(id) = world.hosts[1].accept(PORT) {
            servers.insert(id, vec![]);
        }
        for (&id, got) in &mut servers {
            while let Ok(Read::Data(data)) = world.hosts[1].read(id, 10_000) {
                got.extend(data);
            }
        }
        world.run(Span::from_millis(50));
    }
    assert_eq!((world.hosts[1].tally().cookies_used, world.hosts[1].tally().resets), (34, 0));
    assert!(servers.len() == 50 && servers.values().all(|got| content(5000) == got[..]));
}

/// A flood of SYNs from strangers takes no memory beyond the backlog, and a connection beside it comes up.
#[test]
fn flood_of_syns_leaves_the_listener_open() {
    let mut world = World::new(8);
    world.hosts[1].listen(PORT).unwrap();
    for port in 1..5000 {
        let tuple = FourTuple { local: end(STRANGER, port), remote: end(THERE, PORT) };
        world.hosts[1].handle_packet(world.now, &syn(tuple, SeqNumber(port.into())));
        let mut out = vec![];
        _ = world.hosts[1].poll_transmit(world.now, &mut out);
    }
    assert_eq!(world.hosts[1].len(), 8);
    let [client, server] = world.pair();
    world.hosts[0].write(client, Sid::PLAIN, &mut Bytes::from_static(b"hello")).unwrap();
    world.run(Span::from_millis(100));
    assert_eq!(world.hosts[1].read(server, 100), Ok(Read::Data(Bytes::from_static(b"hello"))));
}

/// Connections in TIME-WAIT give way to new ones when all sockets are in use.
#[test]
fn full_stack_drops_the_oldest_time_wait() {
    let mut world = World::new(16);
    world.hosts[1].settings.sockets_max = 20;
    world.hosts[1].listen(PORT).unwrap();
    for _ in 0..100 {
        let [client, server] = world.pair();
        world.hosts[1].release(server);
        world.run(Span::from_millis(50));
        world.hosts[0].release(client);
        world.run(Span::from_millis(50));
        assert!(world.hosts[1].len() <= 20);
    }
    assert_eq!(world.hosts[1].tally().cookies_sent, 0);
    assert_eq!(world.hosts[1].len(), 20);
}

fn packet(tuple: FourTuple, header: Header, options: Options) -> Bytes {
    let segment = Segment { header, options, stream_header: None, content: Content::Nothing };
    let mut out = vec![];
    write_segment(tuple, IpFields::default(), None, None, &segment, None, &mut out);
    out.into()
}

/// [rfc-9293] sec. 3.6.1: in TIME-WAIT a SYN beyond the old numbers begins a new connection; an old one is answered by an acknowledgement.
#[test]
fn new_syn_in_time_wait_begins_a_connection() {
    let mut world = World::new(16);
    world.hosts[1].listen(PORT).unwrap();
    let [client, server] = world.pair();
    let from = world.hosts[0].ends(client).unwrap();
    world.hosts[1].close(server);
    world.run(Span::from_millis(100));
    world.hosts[0].close(client);
    world.run(Span::from_millis(100));
    assert_eq!(world.hosts[1].state(server), Some(State::TimeWait));
    world.hosts[0].release(client);
    let first = world.hosts[0].connect(world.now, from.local, from.remote, 0).unwrap();
    world.run(Span::from_millis(100));
    assert_eq!(world.hosts[0].state(first), Some(State::Established), "the clock of numbers has gone on");
    let second = world.hosts[1].accept(PORT).unwrap();
    assert_ne!(second, server);
    assert_eq!(world.hosts[1].read(server, 1), Ok(Read::End));
}

/// [rfc-5927] sec. 4.1: who does not know a number in flight cannot end a connection, and no message ends one that is open.
#[test]
fn only_notice_about_flight_refuses_connection() {
    for (known, state) in [(false, Some(State::SynSent)), (true, Some(State::Closed))] {
        let mut world = World::new(16);
        let client = world.connect();
        let mut out = vec![];
        assert!(world.hosts[0].poll_transmit(world.now, &mut out));
        if !known {
            // The number of the quoted segment.
            out[27] ^= 1;
        }
        world.hosts[0].handle_packet(world.now, &unreachable_port(&out));
        assert_eq!(world.hosts[0].state(client), state, "{known}");
        world.flush();
        assert_eq!(world.hosts[0].closed(client), known.then_some(CloseReason::PortClosed));
    }
    let mut world = World::new(16);
    world.hosts[1].listen(PORT).unwrap();
    let [client, _] = world.pair();
    world.hosts[0].write(client, Sid::PLAIN, &mut Bytes::from_static(b"x")).unwrap();
    let mut out = vec![];
    assert!(world.hosts[0].poll_transmit(world.now, &mut out));
    world.hosts[0].handle_packet(world.now, &unreachable_port(&out));
    assert_eq!((world.hosts[0].tally().notices, world.hosts[0].state(client)), (1, Some(State::Established)));
}

/// The ICMP message that the port is closed, about this packet.
fn unreachable_port(about: &[u8]) -> Bytes {
    icmp([3, 3], about)
}

/// The ICMP message with this type and code, about this packet.
fn icmp([kind, code]: [u8; 2], about: &[u8]) -> Bytes {
    let mut message = [&[kind, code, 0, 0, 0, 0, 0, 0][..], &about[..28]].concat();
    let sum = wire::internet_checksum(&[&message]);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let header =
        etherparse::Ipv4Header::new(message.len() as u16, 64, etherparse::IpNumber::ICMP, [10, 0, 0, 2], [10, 0, 0, 1]);
    [&header.unwrap().to_bytes()[..], &message].concat().into()
}

/// IPv4 packets forbid fragments, and IPv6 routers make none.
#[test]
fn packets_are_as_long_as_ethernet_carries() {
    let mut world = World::new(16);
    world.hosts[1].listen(PORT).unwrap();
    for (local, remote) in [(HERE, THERE), (v6(HERE), v6(THERE))] {
        let client = world.hosts[0].connect(world.now, end(local, 0), end(remote, PORT), 0).unwrap();
        world.run(Span::from_millis(100));
        world.hosts[0].write(client, Sid::PLAIN, &mut content(100_000)).unwrap();
        world.hosts[0].handle_timeout(world.now);
        let mut packets = vec![];
        loop {
            let mut out = vec![];
            if !world.hosts[0].poll_transmit(world.now, &mut out) {
                break;
            }
            packets.push(out);
        }
        assert_eq!(packets.iter().map(Vec::len).max(), Some(1500));
        assert!(local != HERE || packets.iter().all(|packet| packet[4..8] == [0, 0, 0x40, 0]));
    }
}

/// A world with streams or without, IPv4 or IPv6, in which a client has a server there.
fn world_with_path(streams: u16, is_v4: bool) -> (World<Stack>, SocketId, SocketId, Sid) {
    let mut world = World::<Stack>::of([HERE, THERE].map(|address| settings(address, 16, streams)));
    world.hosts[1].listen(PORT).unwrap();
    let of = |address| if is_v4 { address } else { v6(address) };
    let client = world.hosts[0].connect(world.now, end(of(HERE), 0), end(of(THERE), PORT), streams).unwrap();
    world.run(Span::from_millis(100));
    let server = world.hosts[1].accept(PORT).unwrap();
    let sid = if streams > 0 { world.hosts[0].streams(client).unwrap().open().unwrap() } else { Sid::PLAIN };
    (world, client, server, sid)
}

/// Sends 300 kB over it, of which a part is in flight when the path becomes narrow. Returns the time that it took.
#[track_caller]
fn send_over(world: &mut World<Stack>, [client, server]: [SocketId; 2], sid: Sid) -> Span {
    let data = content(300_000);
    let (mut rest, mut got, begin) = (data.clone(), vec![], world.now);
    while got.len() < data.len() {
        world.hosts[0].write(client, sid, &mut rest).unwrap();
        world.run(Span::from_millis(5));
        while let Some(Ok(Read::Data(data))) =
            world.hosts[1].streams(server).map(|mut streams| streams.read(sid, u32::MAX))
        {
            got.extend_from_slice(&data);
        }
        assert!(world.now - begin < Span::from_secs(60), "{} of {} bytes", got.len(), data.len());
    }
    assert!(got == data);
    world.now - begin
}

/// A narrow path, whose routers say so: long packets that are in flight come again in parts, later ones are shorter, and none is fragmented.
#[test]
fn segments_fit_the_mtu_that_routers_tell() {
    for (streams, is_v4, mtu) in
        [(0, true, 1400), (8, true, 1400), (0, false, 1300), (8, false, 1300), (0, true, 600), (8, true, 600)]
    {
        let (mut world, client, server, sid) = world_with_path(streams, is_v4);
        world.mtu = (mtu, true);
        let took = send_over(&mut world, [client, server], sid);
        assert!(took < Span::from_millis(900), "{took:?} with {streams} streams and {mtu}");
        assert!(world.fragmented == 0 && world.too_long <= 12, "{} were too long, {mtu}", world.too_long);
        assert!(world.hosts[0].tally().too_big > 0);
        // A later connection to that address knows it.
        let before = world.too_long;
        let tuple = world.hosts[0].ends(client).unwrap();
        let again = world.hosts[0].connect(world.now, Address { port: 0, ..tuple.local }, tuple.remote, 0).unwrap();
        world.run(Span::from_millis(100));
        world.hosts[0].write(again, Sid::PLAIN, &mut content(50_000)).unwrap();
        world.run(Span::from_secs(1));
        assert_eq!(world.too_long, before);
        // After ten minutes it is tried anew.
        world.mtu = (1500, true);
        world.run(Span::from_secs(610));
        assert_eq!(world.hosts[0].mtus.of(tuple.remote.address), Mtu::NONE);
    }
}

/// Routers that drop long packets and say nothing: two timeouts, then packets of 1280 bytes.
#[test]
fn silent_routers_are_found_out() {
    for (streams, is_v4) in [(0, true), (8, true), (0, false), (8, false)] {
        let (mut world, client, server, sid) = world_with_path(streams, is_v4);
        world.mtu = (1280, false);
        let took = send_over(&mut world, [client, server], sid);
        assert!(took < Span::from_secs(4), "{took:?}");
    }
}

/// Random losses are no reason to send shorter packets.
#[test]
fn losses_do_not_shorten_packets() {
    let (mut world, client, server, sid) = world_with_path(8, true);
    world.loses = 9;
    send_over(&mut world, [client, server], sid);
    assert_eq!(world.hosts[0].mtus.of(THERE), Mtu::NONE);
}

/// A doubt is none any more if something was acknowledged since.
#[test]
fn doubts_apart_do_not_shorten_packets() {
    let (mut world, client, server, sid) = world_with_path(0, true);
    let now = world.now;
    world.hosts[0].on_doubt(now, client);
    send_over(&mut world, [client, server], sid);
    let now = world.now;
    world.hosts[0].on_doubt(now, client);
    assert_eq!(world.hosts[0].mtus.of(THERE), Mtu::NONE);
    world.hosts[0].on_doubt(now, client);
    assert_eq!(world.hosts[0].mtus.of(THERE).packet, 1280);
}

/// What routers say: those of before [rfc-1191] nothing, for which it has 1006 bytes; and a larger size than one that is known is of an earlier packet.
#[test]
fn least_of_what_routers_tell_counts() {
    let (mut world, client, ..) = world_with_path(0, true);
    let tuple = world.hosts[0].ends(client).unwrap();
    for (told, known) in [(1400, 1400), (0, 1006), (1200, 1006), (600, 600), (0, 600)] {
        world.hosts[0].on_too_big(world.now, tuple, told);
        assert_eq!(world.hosts[0].mtus.of(THERE).packet, known);
    }
}

/// A path that carries less than what we send at least: its packets may be fragmented, with an identification each.
#[test]
fn path_below_the_least_mtu_has_fragments() {
    let (mut world, client, server, sid) = world_with_path(0, true);
    world.mtu = (400, true);
    send_over(&mut world, [client, server], sid);
    assert!(world.fragmented > 500 && world.too_long <= 12);
}

/// [rfc-5927] sec. 7.2: who does not know a number in flight cannot shorten packets, and nobody can make them tiny.
#[test]
fn forged_mtu_has_no_effect() {
    let (mut world, client, ..) = world_with_path(0, true);
    world.hosts[0].write(client, Sid::PLAIN, &mut content(5000)).unwrap();
    let mut out = vec![];
    assert!(world.hosts[0].poll_transmit(world.now, &mut out));
    let mut forged = out.clone();
    forged[25] ^= 0x40;
    world.hosts[0].handle_packet(world.now, &too_big(&forged, 600));
    assert_eq!(world.hosts[0].mtus.of(THERE), Mtu::NONE);
    for told in [68, 1, 0] {
        world.hosts[0].handle_packet(world.now, &too_big(&out, told));
        let known = world.hosts[0].mtus.of(THERE);
        assert!(known.packet >= 552, "{known:?}");
    }
    // Many addresses are known at most.
    for address in 0..5000 {
        let tuple = FourTuple { local: end(HERE, 1), remote: end(0xffff_0b00_0000 + address, 1) };
        world.hosts[0].on_too_big(world.now, tuple, 1000);
    }
    assert_eq!(world.hosts[0].mtus.len(), 1024);
}

#[test]
fn ping_is_answered_alike() {
    let mut host = stack(HERE, 1);
    let mut message = vec![8, 0, 0, 0, 1, 2, 3, 4, 5];
    let sum = wire::internet_checksum(&[&message]);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let header =
        etherparse::Ipv4Header::new(message.len() as u16, 64, etherparse::IpNumber::ICMP, [10, 0, 0, 2], [10, 0, 0, 1]);
    let ping = [&header.unwrap().to_bytes()[..], &message].concat();
    host.handle_packet(Time::ZERO, &ping.into());
    let mut out = vec![];
    assert!(host.poll_transmit(Time::ZERO, &mut out));
    assert_eq!((&out[12..20], out[20], &out[24..]), (&[10, 0, 0, 1, 10, 0, 0, 2][..], 0, &message[4..]));
    assert_eq!(wire::internet_checksum(&[&out[20..]]), 0);
    assert_eq!(wire::internet_checksum(&[&out[..20]]), 0);
}

/// [rfc-2525] sec. 2.17: who writes to an end that nobody reads any more learns it.
#[test]
fn data_for_released_socket_resets() {
    let mut world = World::new(16);
    world.hosts[1].listen(PORT).unwrap();
    let [client, server] = world.pair();
    world.hosts[1].release(server);
    world.run(Span::from_millis(100));
    world.hosts[0].write(client, Sid::PLAIN, &mut Bytes::from_static(b"late")).unwrap();
    world.run(Span::from_millis(100));
    assert_eq!(world.hosts[0].closed(client), Some(CloseReason::Reset));
    assert!(world.hosts[1].is_empty());
}

/// A listener that begins at the port of an earlier one counts its own handshakes alone.
#[test]
fn later_listener_at_a_port_counts_its_own() {
    let mut world = World::new(16);
    world.hosts[1].listen(PORT).unwrap();
    world.connect();
    world.run(Span::from_millis(15));
    world.hosts[1].unlisten(PORT);
    world.hosts[1].listen(PORT).unwrap();
    world.run(Span::from_millis(100));
    let listener = &world.hosts[1].listeners[&PORT];
    assert_eq!((listener.half_open, listener.ready.len()), (0, 0));
}

/// The peer resets and connects again from the same port; what the application reads of the old connection does not touch the new one.
#[test]
fn old_socket_leaves_new_connection_of_same_ends() {
    let mut world = World::new(16);
    world.hosts[1].listen(PORT).unwrap();
    let [client, server] = world.pair();
    let from = world.hosts[0].ends(client).unwrap();
    world.hosts[0].abort(client);
    world.run(Span::from_millis(50));
    world.hosts[0].release(client);
    let again = world.hosts[0].connect(world.now, from.local, from.remote, 0).unwrap();
    world.run(Span::from_millis(100));
    let second = world.hosts[1].accept(PORT).unwrap();
    assert_eq!(world.hosts[1].read(server, 10), Err(SocketError::Closed(CloseReason::Reset)));
    world.run(Span::from_millis(100));
    world.hosts[0].write(again, Sid::PLAIN, &mut Bytes::from_static(b"hello")).unwrap();
    world.run(Span::from_secs(1));
    assert_eq!(world.hosts[1].read(second, 100), Ok(Read::Data(Bytes::from_static(b"hello"))));
}

/// A reset and a SYN with the same ends are handled before anything is sent.
#[test]
fn syn_straight_after_reset_begins_a_connection() {
    let mut world = World::new(16);
    world.hosts[1].listen(PORT).unwrap();
    let [client, server] = world.pair();
    let tuple = world.hosts[0].ends(client).unwrap();
    let seq = world.hosts[0].sockets[&client].initial.plus(1);
    let plain = Options::Acknowledgement(AcknowledgementOptions::default());
    let rst = packet(tuple, Header { seq, flags: Flags::RST, ..Header::default() }, plain);
    world.hosts[1].handle_packet(world.now, &rst);
    world.hosts[1].handle_packet(world.now, &syn(tuple, seq.plus(100_000)));
    assert_eq!(answers(&mut world.hosts[1], world.now), [Flags::SYN | Flags::ACK]);
    // The first one did not end well.
    assert_eq!(world.hosts[1].read(server, 10), Err(SocketError::Closed(CloseReason::Reset)));
}

#[test]
fn end_is_read_again_and_again() {
    let mut world = World::new(16);
    world.hosts[1].listen(PORT).unwrap();
    let [client, server] = world.pair();
    world.hosts[0].close(client);
    world.run(Span::from_millis(100));
    for _ in 0..3 {
        assert_eq!(world.hosts[1].read(server, 10), Ok(Read::End));
    }
}

/// With a round trip of 500 ms, a connection that a cookie opened retransmits nothing: its handshake gives no RTT.
#[test]
fn cookie_gives_no_sample_of_the_rtt() {
    let mut world = World::new(1);
    world.delay = Span::from_millis(250);
    world.hosts[1].listen(PORT).unwrap();
    let stranger = FourTuple { local: end(STRANGER, 9), remote: end(THERE, PORT) };
    world.hosts[1].handle_packet(world.now, &syn(stranger, SeqNumber(5)));
    world.connect();
    world.run(Span::from_millis(900));
    assert_eq!(world.hosts[1].tally().cookies_used, 1);
    let server = world.hosts[1].accept(PORT).unwrap();
    assert_eq!(world.hosts[1].path(server).unwrap().rtt_smoothed, None);
    world.hosts[1].write(server, Sid::PLAIN, &mut content(4000)).unwrap();
    world.run(Span::from_millis(900));
    assert_eq!(world.hosts[1].path(server).unwrap().tally.timeouts, 0);
}

/// If nobody accepts, a further peer is not told that it is connected.
#[test]
fn full_queue_of_connections_leaves_syns_unanswered() {
    let mut world = World::new(1);
    world.hosts[1].listen(PORT).unwrap();
    world.connect();
    world.run(Span::from_millis(100));
    let second = world.connect();
    world.run(Span::from_millis(500));
    assert_eq!(world.hosts[0].state(second), Some(State::SynSent));
    assert!(world.hosts[1].accept(PORT).is_some());
    world.run(Span::from_secs(5));
    assert_eq!(world.hosts[0].state(second), Some(State::Established));
    assert!(world.hosts[1].accept(PORT).is_some());
}

/// Nobody's SYN takes a place for longer than half a minute, and nobody's silence for longer than a minute or two once the application has let go.
#[test]
fn silent_peers_are_given_up() {
    let mut world = World::new(16);
    world.hosts[1].listen(PORT).unwrap();
    let stranger = FourTuple { local: end(STRANGER, 9), remote: end(THERE, PORT) };
    world.hosts[1].handle_packet(world.now, &syn(stranger, SeqNumber(5)));
    world.run(Span::from_secs(31));
    assert!(world.hosts[1].is_empty());
    // One is silent after its FIN, one keeps its window shut and answers probes.
    let [silent, first] = world.pair();
    let [shut, second] = world.pair();
    let mut data = content(40_000_000);
    for _ in 0..200 {
        world.hosts[1].write(second, Sid::PLAIN, &mut data).unwrap();
        world.run(Span::from_millis(20));
    }
    world.hosts[0].close(silent);
    world.hosts[0].close(shut);
    world.run(Span::from_millis(100));
    world.hosts[1].release(second);
    world.run(Span::from_secs(130));
    assert_eq!(world.hosts[1].state(second), None);
    world.loses = 1;
    world.hosts[1].release(first);
    world.run(Span::from_secs(130));
    assert!(world.hosts[1].is_empty());
}

/// Sockets that the application has let go of give way: their silent peers lock nobody out.
#[test]
fn released_sockets_give_way() {
    let mut world = World::new(16);
    world.hosts[1].settings.sockets_max = 20;
    world.hosts[1].listen(PORT).unwrap();
    for _ in 0..20 {
        let [_, server] = world.pair();
        world.hosts[1].release(server);
    }
    let [client, _] = world.pair();
    assert_eq!(world.hosts[0].state(client), Some(State::Established));
    assert!(world.hosts[1].released.len() <= 2 * 20 + RELEASED_LEAST);
}

/// A SYN to which nobody listens does not end TIME-WAIT ([rfc-1337]).
#[test]
fn time_wait_survives_syn_without_listener() {
    let mut world = World::new(16);
    world.hosts[1].listen(PORT).unwrap();
    let [client, server] = world.pair();
    world.hosts[0].close(client);
    world.run(Span::from_millis(100));
    world.hosts[1].close(server);
    world.run(Span::from_millis(100));
    assert_eq!(world.hosts[0].state(client), Some(State::TimeWait));
    let from = world.hosts[0].ends(client).unwrap();
    let peer = world.hosts[0].sockets[&client].peer_initial.unwrap();
    world.hosts[0].handle_packet(world.now, &syn(from.reversed(), peer.plus(1_000_000_000)));
    assert_eq!(world.hosts[0].state(client), Some(State::TimeWait));
    assert_eq!(world.hosts[0].tally().resets, 0);
}

/// Forged SYNs cannot make two listeners, or one and itself, answer each other for ever.
#[test]
fn forged_syns_start_no_storm() {
    let mut world = World::new(16);
    world.hosts.iter_mut().for_each(|host| host.listen(PORT).unwrap());
    let tuple = FourTuple { local: end(HERE, PORT), remote: end(THERE, PORT) };
    world.hosts[1].handle_packet(world.now, &syn(tuple, SeqNumber(5)));
    world.hosts[0].handle_packet(world.now, &syn(tuple.reversed(), SeqNumber(5)));
    let own = FourTuple { local: end(THERE, PORT), remote: end(THERE, PORT) };
    world.hosts[1].handle_packet(world.now, &syn(own, SeqNumber(5)));
    world.run(Span::from_secs(10));
    assert!(world.sent < 200, "{} packets", world.sent);
    assert_eq!(world.hosts[1].tally().not_ours, 1);
}

fn syn(tuple: FourTuple, seq: SeqNumber) -> Bytes {
    let options = Options::Handshake(HandshakeOptions { mss: Some(1460), ..HandshakeOptions::default() });
    packet(tuple, Header { seq, flags: Flags::SYN, ..Header::default() }, options)
}

/// The flags of all that a stack sends now.
fn answers(host: &mut Stack, now: Time) -> Vec<Flags> {
    let mut flags = vec![];
    loop {
        let mut out = vec![];
        if !host.poll_transmit(now, &mut out) {
            return flags;
        }
        let Ok(Packet { body: Body::Segment(segment), .. }) = Packet::read(&out.into()) else { panic!("a segment") };
        flags.push(wire::flags(&segment));
    }
}

#[test]
fn ended_listener_resets_what_nobody_has_accepted() {
    let mut world = World::new(16);
    world.hosts[1].listen(PORT).unwrap();
    assert_eq!(world.hosts[1].listen(PORT), Err(SocketError::PortInUse));
    let client = world.connect();
    world.run(Span::from_millis(100));
    world.hosts[1].unlisten(PORT);
    world.run(Span::from_millis(100));
    assert_eq!(world.hosts[0].closed(client), Some(CloseReason::Reset));
    assert!(world.hosts[1].is_empty());
}

proptest! {
    /// Nothing that a stranger sends makes a stack panic, and every answer is a packet.
    #[test]
    fn stranger_cannot_make_it_panic(
        packets in prop::collection::vec(
            (0u32..4, 0u32..4, any::<u16>(), any::<u32>(), prop::collection::vec(any::<u8>(), 0..80), any::<bool>()), 1..60,
        ),
    ) {
        let mut host = stack(THERE, 2);
        host.listen(PORT).unwrap();
        let mut now = Time::ZERO + Span::from_secs(10);
        for (seq, ack, bits, cut, bytes, is_raw) in packets {
            let tuple = FourTuple { local: end(STRANGER, 1 + (cut % 3) as u16), remote: end(THERE, PORT) };
            let flags = [Flags::SYN, Flags::ACK, Flags::FIN, Flags::RST]
                .into_iter()
                .enumerate()
                .filter(|(bit, _)| bits >> bit & 1 == 1)
                .fold(Flags::default(), |all, (_, flag)| all | flag);
            let header = Header { seq: SeqNumber(seq), ack: SeqNumber(ack), flags, window: bits, ..Header::default() };
            let options = match flags.contains(Flags::SYN) {
                true => Options::Handshake(HandshakeOptions::default()),
                false => Options::Acknowledgement(AcknowledgementOptions::default()),
            };
            let content = if bytes.is_empty() { Content::Nothing } else { Content::Data(Bytes::from(bytes.clone())) };
            let segment = Segment { header, options, stream_header: None, content };
            let mut out = vec![];
            write_segment(tuple, IpFields::default(), None, None, &segment, None, &mut out);
            if is_raw {
                out = bytes;
            } else if bits & 0x100 != 0 {
                let at = cut as usize % out.len();
                out[at] ^= (bits >> 9) as u8;
            }
            host.handle_packet(now, &out.into());
            now += Span::from_millis(u64::from(cut % 700));
            host.handle_timeout(now);
            let mut out = vec![];
            while host.poll_transmit(now, &mut out) {
                prop_assert!(Packet::read(&std::mem::take(&mut out).into()).is_ok());
            }
            if let Some(id) = host.accept(PORT) {
                _ = host.read(id, 10);
                host.release(id);
            }
            prop_assert!(host.len() <= 2000);
        }
    }
}
