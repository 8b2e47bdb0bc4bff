//! What [rfc-9293] requires and no other test shows; the page docs/rfc-9293.md names them.

use super::*;

/// [rfc-9293] MUST-46: a peer is one host.
#[test]
fn connect_to_multicast_or_broadcast_is_refused() {
    let mut host = stack(HERE, 2);
    let v4 = |address: [u8; 4]| u128::from(u32::from_be_bytes(address)) | 0xffff << 32;
    for address in [v4([224, 0, 0, 1]), v4([255, 255, 255, 255]), v4([0, 0, 0, 0])] {
        let remote = end(address, PORT);
        assert_eq!(host.connect(Time::ZERO, end(HERE, 0), remote, 0), Err(SocketError::NoHost), "{address:x}");
    }
    for address in [0xff02 << 112 | 1, 0] {
        let remote = end(address, PORT);
        assert_eq!(host.connect(Time::ZERO, end(v6(HERE), 0), remote, 0), Err(SocketError::NoHost), "{address:x}");
    }
    assert_eq!(host.connect(Time::ZERO, end(HERE, 0), end(THERE, 0), 0), Err(SocketError::NoHost), "port 0");
}

/// [rfc-9293] MUST-57 and MUST-63: a SYN from or to an address of several hosts is not answered.
#[test]
fn segments_of_multicast_addresses_are_dropped() {
    let mut host = stack(THERE, 2);
    host.listen(PORT).unwrap();
    let multicast = 0xffff_e000_0001;
    for (to, from) in [(multicast, STRANGER), (THERE, multicast), (THERE, 0xffff_ffff_ffff), (THERE, THERE)] {
        let tuple = FourTuple { local: end(from, 9), remote: end(to, PORT) };
        host.handle_packet(Time::ZERO, &syn(tuple, SeqNumber(5)));
        assert_eq!(answers(&mut host, Time::ZERO), [], "from {from:x} to {to:x}");
    }
    assert_eq!(host.tally().not_ours, 4);
}

/// [rfc-9293] MUST-61: the last of what was written has the flag PSH, however long it is, and nothing before it.
#[test]
fn last_segment_of_a_write_is_pushed() {
    let mut world = World::new(16);
    world.hosts[1].listen(PORT).unwrap();
    let [client, _] = world.pair();
    world.run(Span::from_millis(100));
    for (len, count) in [(2 * 1448, 2), (2 * 1448 + 1, 3), (1, 1)] {
        world.hosts[0].write(client, Sid::PLAIN, &mut content(len)).unwrap();
        let flags = answers(&mut world.hosts[0], world.now);
        let pushed: Vec<_> = flags.iter().map(|flags| flags.contains(Flags::PSH)).collect();
        let expected: Vec<_> = (1..=count).map(|at| at == count).collect();
        assert_eq!(pushed, expected, "{len} bytes");
        // What is lost here comes again.
        world.run(Span::from_secs(5));
    }
}

/// [rfc-9293] MUST-55 and MUST-56: source quench means nothing, and soft errors abort no connection, not even one that is being opened.
#[test]
fn soft_errors_and_source_quench_abort_nothing() {
    for kind in [[4, 0], [3, 0], [3, 1], [3, 5], [3, 13], [11, 0], [11, 1], [12, 0]] {
        let mut world = World::new(16);
        let client = world.connect();
        let mut out = vec![];
        assert!(world.hosts[0].poll_transmit(world.now, &mut out));
        world.hosts[0].handle_packet(world.now, &icmp(kind, &out));
        assert_eq!(answers(&mut world.hosts[0], world.now), [], "{kind:?}");
        assert_eq!(world.hosts[0].state(client), Some(State::SynSent), "{kind:?}");
    }
}

/// [rfc-9293] MUST-47 and SHLD-25: a message about a segment in flight is told until something is acknowledged; one by a stranger is not. It is there when the
/// connection is given up.
#[test]
fn soft_error_is_told_until_there_is_progress() {
    let soft =
        [([3, 0], NoticeKind::Unreachable), ([3, 3], NoticeKind::PortUnreachable), ([11, 0], NoticeKind::TimeExceeded)];
    for (kind, told) in soft {
        let mut world = World::new(16);
        world.hosts[1].listen(PORT).unwrap();
        let [client, _] = world.pair();
        for is_known in [false, true] {
            world.hosts[0].write(client, Sid::PLAIN, &mut Bytes::from_static(b"x")).unwrap();
            let mut out = vec![];
            assert!(world.hosts[0].poll_transmit(world.now, &mut out));
            // The number of the quoted segment, half of all numbers away.
            out[24] ^= if is_known { 0 } else { 0x80 };
            world.hosts[0].handle_packet(world.now, &icmp(kind, &out));
            assert_eq!(world.hosts[0].soft_error(client), is_known.then_some(told), "{kind:?}");
            world.run(Span::from_secs(3));
            assert_eq!(world.hosts[0].soft_error(client), None, "{kind:?}");
        }
    }
    let mut world = World::new(16);
    let client = world.connect();
    let mut out = vec![];
    assert!(world.hosts[0].poll_transmit(world.now, &mut out));
    world.hosts[0].handle_packet(world.now, &icmp([11, 0], &out));
    world.middlebox = |_, _| vec![];
    world.run(Span::from_secs(400));
    assert_eq!(world.hosts[0].closed(client), Some(CloseReason::TimedOut));
    assert_eq!(world.hosts[0].soft_error(client), Some(NoticeKind::TimeExceeded));
}

/// [rfc-9293] MUST-50: options of the IP header that nobody knows are passed over.
#[test]
fn ip_options_are_passed_over() {
    let mut host = stack(THERE, 2);
    host.listen(PORT).unwrap();
    let tuple = FourTuple { local: end(STRANGER, 9), remote: end(THERE, PORT) };
    let plain = syn(tuple, SeqNumber(5));
    let mut header = etherparse::Ipv4Header::from_slice(&plain).unwrap().0;
    // A record of the route, a stream identifier, one that does not exist, and the end.
    let options = [7, 3, 4, 0x88, 4, 1, 2, 0x9e, 2, 1, 0, 0];
    header.options = options.into();
    header.total_len += options.len() as u16;
    header.header_checksum = header.calc_header_checksum();
    host.handle_packet(Time::ZERO, &[&header.to_bytes()[..], &plain[20..]].concat().into());
    assert_eq!(answers(&mut host, Time::ZERO), [Flags::SYN | Flags::ACK]);
}

/// [rfc-9293] MUST-11: a reset takes a connection that was opened by its peer back to its listener; one that both open is refused.
#[test]
fn reset_in_syn_received_depends_on_who_opened() {
    let reset = |tuple, seq: SeqNumber| {
        let header = Header { seq, flags: Flags::RST, ..Header::default() };
        packet(tuple, header, Options::Acknowledgement(AcknowledgementOptions::default()))
    };
    let mut host = stack(THERE, 2);
    host.listen(PORT).unwrap();
    let tuple = FourTuple { local: end(STRANGER, 9), remote: end(THERE, PORT) };
    host.handle_packet(Time::ZERO, &syn(tuple, SeqNumber(5)));
    host.handle_packet(Time::ZERO, &reset(tuple, SeqNumber(6)));
    assert_eq!(answers(&mut host, Time::ZERO), []);
    assert!(host.is_empty() && host.accept(PORT).is_none());
    host.handle_packet(Time::ZERO, &syn(tuple, SeqNumber(500)));
    assert_eq!(answers(&mut host, Time::ZERO), [Flags::SYN | Flags::ACK], "it listens still");
    // A simultaneous open.
    let mut host = stack(HERE, 2);
    let id = host.connect(Time::ZERO, end(HERE, 7), end(THERE, PORT), 0).unwrap();
    assert_eq!(answers(&mut host, Time::ZERO), [Flags::SYN]);
    let tuple = FourTuple { local: end(THERE, PORT), remote: end(HERE, 7) };
    host.handle_packet(Time::ZERO, &syn(tuple, SeqNumber(5)));
    assert_eq!(host.state(id), Some(State::SynReceived));
    host.handle_packet(Time::ZERO, &reset(tuple, SeqNumber(6)));
    assert_eq!(answers(&mut host, Time::ZERO), []);
    assert_eq!(host.closed(id), Some(CloseReason::Refused));
}

/// [rfc-9293] MUST-58 and MUST-59: all that has arrived is processed before it is acknowledged, once.
#[test]
fn queued_segments_are_acknowledged_together() {
    let mut world = World::new(16);
    world.hosts[1].listen(PORT).unwrap();
    let [client, server] = world.pair();
    world.run(Span::from_millis(100));
    world.hosts[0].write(client, Sid::PLAIN, &mut content(5 * 1448)).unwrap();
    let mut packets = vec![];
    loop {
        let mut out = vec![];
        if !world.hosts[0].poll_transmit(world.now, &mut out) {
            break;
        }
        packets.push(Bytes::from(out));
    }
    assert_eq!(packets.len(), 5);
    packets.iter().for_each(|packet| world.hosts[1].handle_packet(world.now, packet));
    assert_eq!(answers(&mut world.hosts[1], world.now), [Flags::ACK]);
    assert!(matches!(world.hosts[1].read(server, 10), Ok(Read::Data(_))));
}

/// [rfc-9293] MUST-48 and MUST-49: the Diffserv field and the hop limit are the application's, in IPv4 and IPv6, and in each part of a segment that is cut.
#[test]
fn ip_fields_are_those_of_the_application() {
    assert!(IpFields::new(0, 0).is_none() && IpFields::new(1, 64).is_none());
    for is_v4 in [true, false] {
        let (mut world, client, _, _) = world_with_path(0, is_v4);
        let headers = |world: &mut World<Stack>| {
            world.hosts[0].write(client, Sid::PLAIN, &mut content(3000)).unwrap();
            let mut headers = vec![];
            let mut out = vec![];
            while world.hosts[0].poll_transmit(world.now, &mut out) {
                let ends = world.hosts[0].ends(client).unwrap();
                let parts = packet::split(ends, &out, 800);
                let fields = |packet: &Vec<u8>| match is_v4 {
                    true => (packet[1] >> 2, packet[8]),
                    false => ((packet[0] << 4 | packet[1] >> 4) >> 2, packet[7]),
                };
                assert!(parts.iter().all(|part| fields(part) == fields(&out)));
                headers.push(fields(&out));
                out.clear();
            }
            headers
        };
        assert_eq!(headers(&mut world), [(0, 64); 3]);
        // Expedited forwarding.
        world.hosts[0].set_ip_fields(client, IpFields::new(9, 46).unwrap()).unwrap();
        assert_eq!(headers(&mut world), [(46, 9); 3]);
    }
}

/// [rfc-6191] sec. 2: a SYN ends TIME-WAIT if its timestamp is later, whatever its number is; with an equal one, or none, its number decides. An older
/// one ends nothing.
#[test]
fn timestamps_tell_a_new_connection_in_time_wait() {
    for (step, by_number, is_new) in [
        (Some(1), -1_000_000, true),
        (Some(-1), 1_000_000, false),
        (Some(0), 1_000_000, true),
        (Some(0), -1_000_000, false),
        (None, 1_000_000, true),
        (None, -1_000_000, false),
    ] {
        let mut world = World::new(16);
        world.hosts[1].listen(PORT).unwrap();
        let [client, server] = world.pair();
        let tuple = world.hosts[0].ends(client).unwrap();
        world.hosts[1].close(server);
        world.run(Span::from_millis(100));
        world.hosts[0].close(client);
        world.run(Span::from_millis(100));
        let socket = &world.hosts[1].sockets[&server];
        assert_eq!(socket.connection.state(), State::TimeWait);
        let recent = socket.connection.recent_timestamp().unwrap();
        let seq = SeqNumber(socket.expected().unwrap().0.wrapping_add_signed(by_number));
        let timestamps = step.map(|step| Timestamps { value: recent.wrapping_add_signed(step), echo: 0 });
        let options = HandshakeOptions { mss: Some(1460), timestamps, ..HandshakeOptions::default() };
        let header = Header { seq, flags: Flags::SYN, ..Header::default() };
        let syn = packet(tuple, header, Options::Handshake(options));
        world.hosts[1].handle_packet(world.now, &syn);
        let answer = answers(&mut world.hosts[1], world.now);
        let expected = if is_new { Flags::SYN | Flags::ACK } else { Flags::ACK };
        assert_eq!(answer, [expected], "timestamp {step:?}, number {by_number}");
    }
}

/// [rfc-7323] sec. 5.4: the clock of one pair of ends goes on from connection to connection, and other ends know nothing of it.
#[test]
fn later_connection_of_same_ends_has_later_timestamps() {
    let mut host = stack(HERE, 2);
    let mut at = |ms, port| {
        let now = Time::ZERO + Span::from_millis(ms);
        let id = host.connect(now, end(HERE, port), end(THERE, PORT), 0).unwrap();
        let mut out = vec![];
        assert!(host.poll_transmit(now, &mut out));
        host.remove(id);
        // The timestamp of a SYN whose options begin with the MSS.
        let Ok(Packet { tuple, body: Body::Segment(segment), .. }) = Packet::read(&out.into()) else { panic!("one") };
        let (_, syn) = wire::decode(segment, wire::Checksum::of_path(tuple.reversed())).unwrap();
        syn.timestamps().unwrap().value
    };
    let first = at(0, 5000);
    assert_eq!(at(250, 5000).wrapping_sub(first), 250);
    let others: BTreeSet<_> = (5001..5101).map(|port| at(0, port).wrapping_sub(first) >> 24).collect();
    assert!(others.len() > 50, "{} of 100", others.len());
}

/// The flag URG and the pointer of a packet.
fn mark(packet: &[u8]) -> Option<u16> {
    (packet[33] & 0x20 != 0).then(|| u16::from_be_bytes([packet[38], packet[39]]))
}

fn reads(world: &mut World<Stack>, id: SocketId, most: u32) -> Vec<u8> {
    match world.hosts[1].read(id, most).unwrap() {
        Read::Data(data) => data.to_vec(),
        other => panic!("{other:?}"),
    }
}

/// [rfc-9293] MUST-30, MUST-32, MUST-33 and MUST-62: the pointer names the octet after what is urgent; the application is told of it, and how much there is.
/// The data arrives in its place.
#[test]
fn urgent_data_is_told_and_read_in_its_place() {
    let mut world = World::new(16);
    world.hosts[1].listen(PORT).unwrap();
    let [client, server] = world.pair();
    let data = content(160);
    world.hosts[0].write(client, Sid::PLAIN, &mut data.slice(..100)).unwrap();
    assert_eq!(world.hosts[0].write_urgent(client, &mut data.slice(100..110)), Ok(10));
    let mut out = vec![];
    assert!(world.hosts[0].poll_transmit(world.now, &mut out));
    assert_eq!(mark(&out), Some(110));
    world.hosts[1].handle_packet(world.now, &out.into());
    let mut told = 0;
    let mut out = vec![];
    while world.hosts[1].poll_transmit(world.now, &mut out) {}
    while let Some(event) = world.hosts[1].poll_event() {
        told += u32::from(event == StackEvent::Urgent(server));
    }
    assert_eq!((told, world.hosts[1].urgent(server)), (1, 110));
    world.hosts[0].write(client, Sid::PLAIN, &mut data.slice(110..)).unwrap();
    let mut out = vec![];
    assert!(world.hosts[0].poll_transmit(world.now, &mut out));
    assert_eq!(mark(&out), None, "what follows is not urgent");
    world.hosts[1].handle_packet(world.now, &out.into());
    assert_eq!(reads(&mut world, server, 104), data[..104]);
    assert_eq!(world.hosts[1].urgent(server), 6);
    assert_eq!(reads(&mut world, server, 100), data[104..110]);
    assert_eq!(world.hosts[1].urgent(server), 0);
    assert_eq!(reads(&mut world, server, 100), data[110..]);
}

/// [rfc-9293] MUST-31: more than the field can name is urgent; the mark moves on with the data, and stays where it ends.
#[test]
fn urgent_data_may_have_any_length() {
    let mut world = World::new(16);
    world.hosts[1].listen(PORT).unwrap();
    let [client, server] = world.pair();
    let (data, plain) = (content(200_000), content(5_000));
    let (mut rest, mut after, mut got, mut most) = (data.clone(), plain.clone(), 0_u64, 0);
    world.loses = 17;
    for _ in 0..20_000 {
        if !rest.is_empty() {
            world.hosts[0].write_urgent(client, &mut rest).unwrap();
        } else if !after.is_empty() {
            world.hosts[0].write(client, Sid::PLAIN, &mut after).unwrap();
        }
        world.run(Span::from_millis(5));
        let left = world.hosts[1].urgent(server);
        if left > 0 {
            most = most.max(got + left);
        }
        if let Read::Data(data) = world.hosts[1].read(server, 1000).unwrap() {
            got += data.len() as u64;
        }
        if got == 205_000 {
            assert_eq!(most, 200_000);
            return;
        }
    }
    panic!("{got} bytes");
}

/// [rfc-9293] MUST-66: a mark counts while the own window is shut. That of a stranger, who does not know the window, counts never.
#[test]
fn urgent_pointer_counts_while_the_window_is_shut() {
    let mut world = World::new(16);
    world.hosts[1].listen(PORT).unwrap();
    let [client, server] = world.pair();
    let mut much = content(10_000_000);
    for _ in 0..200 {
        world.hosts[0].write(client, Sid::PLAIN, &mut much).unwrap();
        world.run(Span::from_millis(50));
    }
    let tuple = world.hosts[0].ends(client).unwrap();
    let told = |world: &mut World<Stack>, off: i32| {
        let seq = SeqNumber(world.hosts[1].sockets[&server].expected().unwrap().0.wrapping_add_signed(off));
        let ack = world.hosts[0].sockets[&client].expected().unwrap();
        let header = Header { seq, ack, flags: Flags::ACK, window: 100, ..Header::default() };
        let plain = packet(tuple, header, Options::Acknowledgement(AcknowledgementOptions::default()));
        let mut marked = plain.to_vec();
        (marked[33], marked[38], marked[39]) = (marked[33] | 0x20, 0, 9);
        marked[36..38].fill(0);
        let sum = wire::Checksum::of_path(tuple).of(&marked[20..]).unwrap();
        marked[36..38].copy_from_slice(&sum.to_be_bytes());
        world.hosts[1].handle_packet(world.now, &marked.into());
        world.hosts[1].urgent(server)
    };
    assert_eq!(told(&mut world, -1_000_000), 0);
    assert_eq!(told(&mut world, 100_000_000), 0);
    let waiting = world.hosts[1].sockets[&server].connection.received() - 1;
    assert!(waiting > 100_000, "{waiting} bytes wait");
    assert_eq!(told(&mut world, 0), waiting + 9);
}
