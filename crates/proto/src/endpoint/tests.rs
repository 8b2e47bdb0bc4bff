//! Endpoints connected by simulated links.

mod links;
mod resets;
mod shards;
mod shares;
mod trace;

use std::collections::BTreeMap;

use anabranch_cc::{Settings, registry};
use anabranch_units::Span;

use super::*;
use crate::seal::{Full, Pace, Refusal};
use crate::testing::ms;
use crate::{Address, CloseReason, PathId, PathState, Read, Sid};

/// Endpoints with a one-way delay of ten milliseconds, each with its own address.
struct Room {
    now: Time,
    ends: Vec<End>,
    flying: BTreeMap<(Time, u64), (Arrival, Vec<u8>)>,
    order: u64,
    /// How long datagrams wait at each end before they are read.
    late: Vec<Span>,
    /// Datagrams for this address do not arrive.
    lost: Option<Address>,
    /// The address that a NAT gives to client 1, which does not see it.
    nat: Option<Address>,
    /// The link in front of a client's address; without an entry its rate is unlimited.
    links: BTreeMap<Address, Link>,
    /// Datagrams sent to each end.
    sent: Vec<u64>,
    /// Why connections were refused.
    refusals: BTreeMap<ConnectionId, Full>,
}

/// A slow link. It drops datagrams that are too long, or that find its queue full, silently.
#[derive(Clone, Copy)]
struct Link {
    packet_max: usize,
    /// The transmission time of a byte.
    spacing: Span,
    /// The same on the way back, if it differs.
    spacing_back: Option<Span>,
    /// The longest queueing delay.
    queue: Span,
    /// The queueing delay from which ECN-capable datagrams are marked.
    marks_from: Span,
    /// When it is free, per direction.
    free_at: [Time; 2],
    /// Datagrams that were too long.
    refused: u64,
    /// The longest datagram that it carried.
    longest: usize,
}

impl Link {
    /// A link of 10 Mbit/s with packets of at most `packet_max` bytes.
    fn new(packet_max: usize) -> Self {
        Self {
            packet_max,
            spacing: Span::from_ticks(800),
            spacing_back: None,
            queue: ms(50),
            marks_from: Span::MAX,
            free_at: [Time::ZERO; 2],
            refused: 0,
            longest: 0,
        }
    }

    /// When a datagram arrives at the other end.
    fn carry(&mut self, now: Time, is_up: bool, len: usize, ecn: &mut Option<EcnCodepoint>) -> Option<Time> {
        let packet = len + IPV6;
        if packet > self.packet_max {
            self.refused += 1;
            return None;
        }
        let free_at = &mut self.free_at[usize::from(is_up)];
        if free_at.since(now) > self.queue {
            return None;
        }
        if free_at.since(now) > self.marks_from {
            *ecn = ecn.map(|_| EcnCodepoint::Ce);
        }
        let spacing = self.spacing_back.filter(|_| !is_up).unwrap_or(self.spacing);
        *free_at = now.max(*free_at) + spacing * packet as u64;
        self.longest = self.longest.max(len);
        Some(*free_at + ms(10))
    }
}

/// Addresses here are IPv6: bytes of the headers of IPv6 and UDP.
const IPV6: usize = 48;

struct End {
    endpoint: Endpoint,
    events: Vec<EndpointEvent>,
}

fn address(end: usize) -> Address {
    Address { address: end as u128 + 1, port: 7 }
}

/// The endpoint with an address.
fn at(address: Address) -> usize {
    (address.address as usize - 1) % 10
}

fn tuple(from: usize, to: usize) -> FourTuple {
    FourTuple { local: address(from), remote: address(to) }
}

fn connection() -> Config {
    let law = Settings::default_for(registry::find("reno").unwrap());
    Config { streams: 8, paths_max: 4, ..Config::new(law) }
}

fn secret(end: usize) -> SecretKey {
    SecretKey::new([end as u8 + 1; 32])
}

fn server() -> ServerConfig {
    ServerConfig {
        listener: ListenerConfig::default(),
        admission: Admission::Anyone,
        shares: Shares::default(),
        connection: connection(),
    }
}

fn config(server: Option<ServerConfig>) -> EndpointConfig {
    EndpointConfig { connections_max: 100, seal: SealConfig::default(), server }
}

fn endpoint(end: usize, config: EndpointConfig) -> Endpoint {
    Endpoint::new(Time::ZERO, secret(end), config, [end as u8 + 100; 32])
}

/// The shards of an endpoint.
fn divided(end: usize, shards: u8, config: EndpointConfig) -> Vec<Endpoint> {
    let seeds: Vec<_> = (0..shards).map(|shard| [end as u8 + 100 + shard; 32]).collect();
    Endpoint::divided(Time::ZERO, &secret(end), config, &seeds)
}

impl Room {
    fn new(endpoints: Vec<Endpoint>) -> Self {
        let (sent, late) = (vec![0; endpoints.len()], vec![Span::ZERO; endpoints.len()]);
        let ends = endpoints.into_iter().map(|endpoint| End { endpoint, events: vec![] }).collect();
        let (flying, links) = (BTreeMap::new(), BTreeMap::new());
        Self {
            now: Time::ZERO,
            ends,
            flying,
            order: 0,
            late,
            lost: None,
            nat: None,
            links,
            sent,
            refusals: BTreeMap::new(),
        }
    }

    /// A server at 0, and a client at 1 that has opened a connection to it.
    fn pair() -> (Self, ConnectionId, ConnectionId) {
        let mut room = Self::new(vec![endpoint(0, config(Some(server()))), endpoint(1, config(None))]);
        let client = room.call(1, 0, 1);
        room.run_for(ms(100));
        let server = room.ends[0].events.first().expect("it is established").connection;
        (room, client, server)
    }

    #[track_caller]
    fn call(&mut self, from: usize, to: usize, stamp: u64) -> ConnectionId {
        let stamp = Timestamp::since_1970(Span::from_secs(stamp));
        let now = self.now;
        let id = self.ends[from].endpoint.connect(now, stamp, secret(to).public(), tuple(from, to), connection());
        self.drain();
        id.expect("there is room")
    }

    fn end(&mut self, end: usize, id: ConnectionId) -> &mut Connection<Bytes> {
        self.ends[end].endpoint.connection(id).expect("it is there")
    }

    fn drain(&mut self) {
        for (index, end) in self.ends.iter_mut().enumerate() {
            let mut out = vec![];
            while let Some(batch) = end.endpoint.poll_transmit(self.now, 10, &mut out) {
                assert_eq!(batch.len(), out.len());
                assert_eq!(batch.count, out.len().div_ceil(batch.size));
                assert!(batch.count <= 10);
                assert!(batch.len() <= 65_507, "the payload of the largest UDP packet");
                self.sent[index] += batch.count as u64;
                let is_up = batch.tuple.remote == address(0);
                let client = if is_up { batch.tuple.local } else { batch.tuple.remote };
                let link = self.links.get_mut(&client);
                let is_lost = Some(batch.tuple.remote) == self.lost;
                let mut fly = |arrival: Time, ecn: Option<EcnCodepoint>, datagrams: &[u8]| {
                    self.order += 1;
                    let mut tuple = batch.tuple.reversed();
                    match self.nat {
                        Some(nat) if tuple.remote == address(1) => tuple.remote = nat,
                        Some(nat) if tuple.local == nat => tuple.local = address(1),
                        // The NAT has forgotten the former address.
                        Some(_) if tuple.local == address(1) => return,
                        _ => {}
                    }
                    let came = Arrival { at: arrival, tuple, size: batch.size, ecn };
                    let late = self.late.get(at(came.tuple.local)).copied().unwrap_or(Span::ZERO);
                    self.flying.insert((arrival + late, self.order), (came, datagrams.to_vec()));
                };
                match link {
                    _ if is_lost => {}
                    None => fly(self.now + ms(10), batch.ecn, &out),
                    Some(link) => {
                        for datagram in out.chunks(batch.size) {
                            let mut ecn = batch.ecn;
                            if let Some(arrival) = link.carry(self.now, is_up, datagram.len(), &mut ecn) {
                                fly(arrival, ecn, datagram);
                            }
                        }
                    }
                }
                out.clear();
            }
            while let Some(told) = end.endpoint.poll_event() {
                let full = end.endpoint.full(told.connection);
                self.refusals.extend(full.map(|full| (told.connection, full)));
                end.events.push(told);
            }
        }
    }

    fn run_for(&mut self, span: Span) {
        let until = self.now + span;
        self.drain();
        loop {
            let timers = self.ends.iter().map(|end| end.endpoint.poll_timeout()).fold(Time::NEVER, Time::min);
            let next = self.flying.keys().next().map_or(Time::NEVER, |key| key.0).min(timers);
            if next > until {
                break;
            }
            self.now = next.max(self.now);
            while let Some(first) = self.flying.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (arrival, bytes) = first.remove();
                self.deliver(&arrival, &bytes);
            }
            for end in &mut self.ends {
                if end.endpoint.poll_timeout() <= self.now {
                    end.endpoint.handle_timeout(self.now);
                }
            }
            self.drain();
        }
        self.now = until;
    }

    /// Delivers to the endpoint with that address; if there is none, the datagram is lost.
    fn deliver(&mut self, arrival: &Arrival, bytes: &[u8]) {
        let Some(end) = self.ends.get_mut(at(arrival.tuple.local)) else { return };
        end.endpoint.handle_datagrams(self.now, arrival, BytesMut::from(bytes));
    }

    /// Writes up to `bytes` to a new stream. Returns the stream.
    fn write(&mut self, end: usize, id: ConnectionId, bytes: usize) -> Sid {
        let mut streams = self.end(end, id).streams();
        let sid = streams.open().expect("there are eight");
        let mut payload = Bytes::from(vec![end as u8; bytes]);
        assert_eq!(streams.write(sid, &mut payload), Ok(bytes as u32));
        streams.finish(sid).expect("it is open");
        self.drain();
        sid
    }

    fn read(&mut self, end: usize, id: ConnectionId, sid: Sid) -> (usize, bool) {
        let mut streams = self.end(end, id).streams();
        let (mut bytes, mut has_ended) = (0, false);
        loop {
            match streams.read(sid, u32::MAX).expect("there is such a stream") {
                Read::Data(data) => bytes += data.len(),
                Read::End => has_ended = true,
                Read::Reset(code) => panic!("reset with {code}"),
                Read::Nothing => break,
            }
        }
        self.drain();
        (bytes, has_ended)
    }
}

/// A connection, data in both directions, and the close; then no state is left.
#[test]
fn two_ends_talk_and_part() {
    let (mut room, client, server) = Room::pair();
    let kinds: Vec<_> =
        room.ends.iter().map(|end| end.events.iter().map(|told| told.event).collect::<Vec<_>>()).collect();
    assert_eq!(kinds, [[Event::Established { streams: Some(8) }], [Event::Established { streams: Some(8) }]]);
    assert_eq!(room.ends[0].endpoint.remote(server), Some(secret(1).public()));
    let (up, down) = (room.write(1, client, 300_000), room.write(0, server, 200_000));
    room.run_for(ms(1000));
    assert_eq!(room.read(0, server, up), (300_000, true));
    assert_eq!(room.read(1, client, down), (200_000, true));
    room.end(1, client).close();
    room.end(0, server).close();
    room.run_for(Span::from_secs(100));
    for end in &mut room.ends {
        let closed = end.events.last().map(|told| told.event);
        assert_eq!(closed, Some(Event::Closed(CloseReason::Finished)));
        assert!(end.endpoint.is_empty());
    }
    assert!(room.ends[1].endpoint.connection(client).is_none());
}

/// Many connections of one socket, each with its own keys and bytes.
#[test]
fn many_connections_share_a_socket() {
    let mut room =
        Room::new(vec![endpoint(0, config(Some(server()))), endpoint(1, config(None)), endpoint(2, config(None))]);
    let calls: Vec<_> =
        (0..40).map(|call| (1 + call as usize % 2, room.call(1 + call as usize % 2, 0, call))).collect();
    room.run_for(ms(2000));
    let servers: Vec<_> = room.ends[0].events.iter().map(|told| told.connection).collect();
    assert_eq!((servers.len(), room.ends[0].endpoint.len()), (40, 40));
    for (place, &(end, id)) in calls.iter().enumerate() {
        room.write(end, id, 1000 + place);
    }
    room.run_for(ms(500));
    let mut read: Vec<_> = servers.into_iter().map(|id| room.read(0, id, Sid::new(1)).0).collect();
    read.sort_unstable();
    assert_eq!(read, (1000..1040).collect::<Vec<_>>());
}

/// A peer whose key is not on the list gets no answer and takes no memory.
#[test]
fn peer_not_admitted_gets_no_answer() {
    let admission = Admission::Keys(BTreeSet::from([secret(2).public()]));
    let list = ServerConfig { admission, ..server() };
    let mut room =
        Room::new(vec![endpoint(0, config(Some(list))), endpoint(1, config(None)), endpoint(2, config(None))]);
    room.call(1, 0, 1);
    room.run_for(ms(100));
    assert_eq!((room.sent[0], room.ends[0].endpoint.len()), (0, 0));
    assert_eq!(room.ends[0].endpoint.tally().not_admitted, 1);
    room.call(2, 0, 1);
    room.run_for(ms(100));
    assert_eq!((room.ends[0].endpoint.len(), room.ends[2].events.len()), (1, 1));
}

/// Datagrams that are not ours, or that name an unknown connection, change nothing and are counted.
#[test]
fn strange_datagrams_change_nothing() {
    let (mut room, client, _) = Room::pair();
    let before = room.sent.clone();
    for number in 0..10_000u32 {
        let mut datagram = vec![0; 200];
        datagram[..4].copy_from_slice(&[(number % 7) as u8, 0, 0, 0]);
        datagram[4..8].copy_from_slice(&number.wrapping_mul(2_654_435_769).to_be_bytes());
        room.deliver(&Arrival { at: room.now, tuple: tuple(0, 1), size: 100, ecn: None }, &datagram);
    }
    room.run_for(ms(1000));
    // Of those that look like data, a burst and those of a second are answered with a reset.
    let more = room.sent.iter().sum::<u64>() - before.iter().sum::<u64>();
    assert!(more <= 70 && more == room.ends[0].endpoint.tally().resets_sent, "{more}");
    assert_eq!(room.ends[0].endpoint.len(), 1);
    let sid = room.write(1, client, 10);
    room.run_for(ms(100));
    let server = room.ends[0].events[0].connection;
    assert_eq!(room.read(0, server, sid), (10, true));
}

/// The responder's first segments on a new path are not dropped: a window is sent as soon as the path is validated.
#[test]
fn the_first_window_on_a_new_path_arrives() {
    let (mut room, client, server) = Room::pair();
    // The client moves to an address that is new to the server. From now on all datagrams go there.
    let moved = FourTuple { local: Address { address: 12, port: 9 }, remote: address(0) };
    let now = room.now;
    room.end(1, client).paths().add(now, moved).expect("paths are negotiated");
    room.run_for(ms(200));
    let old = room.end(1, client).paths().find(&tuple(1, 0)).expect("it is the first");
    room.end(1, client).paths().remove(now, old).expect("there is another");
    room.run_for(ms(200));
    let refused = room.ends[0].endpoint.seal_tally(server).expect("it is there");
    let sid = room.write(0, server, 100_000);
    room.run_for(ms(400));
    assert_eq!(room.read(1, client, sid), (100_000, true));
    let again: u64 = room.end(0, server).path_reports().map(|(_, path)| path.tally.sent_again).sum();
    assert_eq!((again, refused.refused(Refusal::Forged)), (0, 0), "nothing was lost");
}

/// An attacker who sees a datagram of the client forwards it from another address before the original arrives: it is authentic
/// and new. The owner of that address gets challenges, and at most three times as many bytes as came from there ([rfc-9000] sec.
/// 8.1).
#[test]
fn forged_address_gets_at_most_three_times_its_bytes() {
    let (mut room, client, server) = Room::pair();
    let victim = Address { address: 23, port: 9 };
    let mut streams = room.end(1, client).streams();
    let sid = streams.open().expect("there are eight");
    streams.write(sid, &mut Bytes::from(vec![1; 100])).expect("it is open");
    let (mut now, mut out) = (room.now, vec![]);
    let batch = room.ends[1].endpoint.poll_transmit(now, 1, &mut out).expect("100 bytes");
    let tuple = FourTuple { local: address(0), remote: victim };
    room.deliver(&Arrival { at: now, tuple, size: batch.size, ecn: None }, &out);
    assert_eq!(room.end(0, server).path_reports().count(), 2, "the server looks into it");
    let (mut heard, end) = (0, &mut room.ends[0].endpoint);
    for _ in 0..1000 {
        let mut sent = vec![];
        while let Some(batch) = end.poll_transmit(now, 10, &mut sent) {
            heard += if batch.tuple.remote == victim { batch.len() } else { 0 };
            sent.clear();
        }
        now = now.max(end.poll_timeout().min(now + ms(1000)));
        end.handle_timeout(now);
    }
    assert!(heard > 0 && heard <= 3 * out.len(), "{heard} for {}", out.len());
}

/// The keys have sealed as much as they may, and no new keys are agreed on because nothing comes back. Segments that cannot be
/// sealed are not taken from the connection. So the law sees no false losses, and everything sent was sealed.
#[test]
fn unsealed_datagram_is_not_sent() {
    let mut seal = SealConfig::default();
    (seal.limits.messages, seal.limits.rekey_after) = (50, Span::from_secs(1 << 20));
    let mut room =
        Room::new(vec![endpoint(0, config(Some(server()))), endpoint(1, EndpointConfig { seal, ..config(None) })]);
    let client = room.call(1, 0, 1);
    room.run_for(ms(100));
    let mut streams = room.end(1, client).streams();
    let sid = streams.open().expect("there are eight");
    streams.write(sid, &mut Bytes::from(vec![1; 500_000])).expect("it is open");
    room.drain();
    room.run_for(Span::from_secs(30));
    let sent = room.sent[1];
    let tally = room.end(1, client).path(PathId::FIRST).expect("it is there").tally;
    assert!((40..=60).contains(&sent), "{sent}");
    assert!(tally.sent <= sent, "{tally:?}, and {sent} datagrams have left");
}

/// Initiations arrive from many addresses, faster than the driver sends: the number of waiting cookies is limited.
#[test]
fn cookies_that_wait_have_a_limit() {
    let listener = ListenerConfig { unproven: Pace { per_second: 0, burst: 0 }, ..ListenerConfig::default() };
    let mut room =
        Room::new(vec![endpoint(0, config(Some(ServerConfig { listener, ..server() }))), endpoint(1, config(None))]);
    let stamp = Timestamp::since_1970(Span::from_secs(1));
    let client = &mut room.ends[1].endpoint;
    client.connect(Time::ZERO, stamp, secret(0).public(), tuple(1, 0), connection()).expect("there is room");
    let mut initiation = vec![];
    client.poll_transmit(Time::ZERO, 1, &mut initiation).expect("it calls");
    for number in 0..1000 {
        let tuple = FourTuple { local: address(0), remote: Address { address: 1000 + number, port: 1 } };
        let size = initiation.len();
        room.deliver(&Arrival { at: Time::ZERO, tuple, size, ecn: None }, &initiation);
    }
    assert_eq!(room.ends[0].endpoint.tally().replies_dropped, 1000 - 256);
    room.drain();
    assert_eq!((room.sent[0], room.ends[0].endpoint.len()), (256, 0));
}

/// The application names the address of a new path. It is challenged there, although nothing has arrived from it.
#[test]
fn a_path_to_an_address_that_was_named_is_set_up() {
    let (mut room, client, server) = Room::pair();
    let (own, theirs) = (Address { address: 12, port: 9 }, Address { address: 11, port: 9 });
    let second = FourTuple { local: own, remote: theirs };
    let now = room.now;
    let id = room.end(1, client).paths().add(now, second).expect("paths are negotiated");
    room.run_for(ms(200));
    assert_eq!(room.end(1, client).path_state(id), Some(PathState::Live));
    assert_eq!(room.end(0, server).path_reports().count(), 2);
}

/// The leave of a path is lost, and the peer continues to use the path. It gets another leave, in a datagram that belongs to no
/// path any more.
#[test]
fn a_leave_that_is_lost_is_said_again() {
    let (mut room, client, server) = Room::pair();
    let (now, second) = (room.now, FourTuple { local: Address { address: 12, port: 9 }, remote: address(0) });
    room.end(1, client).paths().add(now, second).expect("paths are negotiated");
    room.run_for(ms(200));
    let old = room.end(1, client).paths().find(&tuple(1, 0)).expect("it is the first");
    room.lost = Some(address(0));
    let now = room.now;
    room.end(1, client).paths().remove(now, old).expect("there is another");
    room.run_for(ms(1));
    room.lost = None;
    assert_eq!(room.end(0, server).path_reports().count(), 2, "it has heard nothing");
    let sid = room.write(0, server, 100_000);
    room.run_for(ms(2000));
    assert_eq!(room.read(1, client, sid), (100_000, true));
    assert_eq!(room.end(0, server).path_reports().count(), 1);
}

/// The number of connections is limited, and closed ones make room.
#[test]
fn connections_have_a_limit() {
    let mut room = Room::new(vec![
        endpoint(0, EndpointConfig { connections_max: 3, ..config(Some(server())) }),
        endpoint(1, config(None)),
    ]);
    let calls: Vec<_> = (0..5).map(|call| room.call(1, 0, call)).collect();
    room.run_for(ms(100));
    assert_eq!((room.ends[0].endpoint.len(), room.ends[0].endpoint.tally().too_many), (3, 2));
    calls.iter().take(3).for_each(|&id| room.end(1, id).abort());
    room.run_for(Span::from_secs(10));
    assert_eq!(room.ends[0].endpoint.len(), 0, "those that had found no room know it");
    room.call(1, 0, 6);
    room.run_for(ms(100));
    assert_eq!(room.ends[0].endpoint.len(), 1);
}

/// A driver that reads late states when datagrams arrived. Neither end counts its delay as network delay, which is twice ten
/// milliseconds on any path.
#[test]
fn rtt_excludes_time_until_datagram_is_read() {
    let mut room = Room::new(vec![endpoint(0, config(Some(server()))), endpoint(1, config(None))]);
    room.late[1] = ms(4);
    let client = room.call(1, 0, 1);
    room.run_for(ms(100));
    let server = room.ends[0].events.first().expect("it is established").connection;
    let rtt = |room: &mut Room, end, id, path| room.end(end, id).path(PathId::new(path)).expect("it is there");
    assert_eq!(rtt(&mut room, 1, client, 0).rtt_smoothed, Some(ms(20)), "of the handshake");
    let (now, moved) = (room.now, FourTuple { local: Address { address: 12, port: 9 }, remote: address(0) });
    room.end(1, client).paths().add(now, moved).expect("paths are negotiated");
    room.run_for(ms(200));
    assert_eq!(rtt(&mut room, 1, client, 1).rtt_smoothed, Some(ms(20)), "of the challenge");
    let open = room.end(1, client).streams().open().expect("there are eight");
    // First the sender is late, then the receiver, whose ACKs report the delay.
    for reader in [1, 0] {
        room.late = vec![Span::ZERO; 2];
        room.late[reader] = ms(4);
        for number in 0..20 {
            // The last thing to be acknowledged is a record (the end of a stream), or data, as no end follows.
            let sid = if number % 2 == 0 {
                room.write(1, client, 3000)
            } else {
                let mut payload = Bytes::from(vec![1; 3000]);
                assert_eq!(room.end(1, client).streams().write(open, &mut payload), Ok(3000));
                room.drain();
                open
            };
            room.run_for(ms(50));
            room.read(0, server, sid);
        }
        let paths = room.end(1, client).path_reports().map(|(_, path)| path.tally);
        let (samples, sum) = paths.fold((0, Span::ZERO), |sum, path| (sum.0 + path.rtt_samples, sum.1 + path.rtt_sum));
        assert!(samples >= 20, "{samples}");
        assert_eq!(sum, ms(20) * samples, "{reader} reads late");
    }
}
