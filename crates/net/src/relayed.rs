//! The peers that an endpoint reaches through relays: which route each has, and how a relay is reached.
//!
//! The engine sees such a peer at an address of its own ([`frame::tuple`]). What it sends there is wrapped in frames for the relay, and
//! what comes from the relay is unwrapped. So the way through a relay is a path like any other. It is always a backup: it carries data as
//! long as no other path does.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use anabranch_proto::endpoint::{Batch, ConnectionId};
use anabranch_proto::{Address, FourTuple};
use bytes::BytesMut;

use crate::address;
use crate::carriers;
use crate::frame::{self, HEADER, Kind};
use crate::socket::Received;
use crate::waiting::only;

/// All relays of an endpoint, and the peers behind them.
#[derive(Debug, Default)]
pub(crate) struct Relayed {
    /// Whether there is any. Most endpoints have none, and need no lock to know it.
    is_used: AtomicBool,
    state: Mutex<State>,
}

/// The number of a relay of an endpoint.
pub(crate) type RelayId = u32;

/// What happens, for the task of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    /// A probe with this token has come on this four-tuple.
    Probe { token: u64, tuple: FourTuple },
    /// A connection with the peer of this number is established. It is in this shard.
    Established { place: usize, connection: ConnectionId, number: u32 },
}

#[derive(Debug, Default)]
struct State {
    relays: BTreeMap<RelayId, Relay>,
    made: RelayId,
    /// By the number of the peer.
    routes: BTreeMap<u32, Route>,
    numbers: BTreeMap<Route, u32>,
    latest: u32,
}

#[derive(Debug, Default)]
struct Relay {
    /// How it is reached, while this end is a member.
    via: Option<FourTuple>,
    /// Whether an attempt to reach it again has failed.
    is_lost: bool,
    notes: VecDeque<Note>,
    /// The task of the relay, while it waits for a note.
    task: Option<Waker>,
}

/// A route of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Route {
    relay: RelayId,
    route: u64,
}

impl Relayed {
    /// Whether there is any relay.
    pub(crate) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    /// A new relay; `None` if there are too many.
    pub(crate) fn add_relay(&self) -> Option<RelayId> {
        let mut state = self.lock();
        if state.relays.len() >= RELAYS_MAX {
            return None;
        }
        state.made += 1;
        let id = state.made;
        state.relays.insert(id, Relay::default());
        self.is_used.store(true, Ordering::Relaxed);
        Some(id)
    }

    /// The relay, and the ways to all peers behind it, are gone.
    pub(crate) fn remove_relay(&self, id: RelayId) {
        let mut state = self.lock();
        state.relays.remove(&id);
        state.routes.retain(|_, route| route.relay != id);
        state.numbers.retain(|route, _| route.relay != id);
        self.is_used.store(!state.relays.is_empty(), Ordering::Relaxed);
    }

    /// The relay is reached from this bound address of this end at that one of its own. `None` if it is not.
    pub(crate) fn reach(&self, id: RelayId, via: Option<FourTuple>) {
        if let Some(relay) = self.lock().relays.get_mut(&id) {
            (relay.via, relay.is_lost) = (via, false);
        }
    }

    /// The relay is not reached any more. How it was reached remains known.
    pub(crate) fn lose(&self, id: RelayId) {
        if let Some(relay) = self.lock().relays.get_mut(&id) {
            relay.is_lost = true;
        }
    }

    /// Whether the relay of a peer was lost.
    pub(crate) fn is_lost(&self, remote: Address) -> bool {
        let state = self.lock();
        let route = frame::number(remote).and_then(|number| state.routes.get(&number));
        route.and_then(|route| state.relays.get(&route.relay)).is_some_and(|relay| relay.is_lost)
    }

    /// The four-tuple of the peer with this route; a new one if it has none yet, or has this `number` already.
    pub(crate) fn add_route(&self, relay: RelayId, route: u64, number: Option<u32>) -> u32 {
        let (mut state, route) = (self.lock(), Route { relay, route });
        let known = number.or_else(|| state.numbers.get(&route).copied());
        let number = known.unwrap_or_else(|| {
            state.latest = state.latest.checked_add(1).unwrap_or(1);
            state.latest
        });
        if let Some(former) = state.routes.insert(number, route) {
            state.numbers.remove(&former);
        }
        state.numbers.insert(route, number);
        // A relay that makes too many loses the oldest.
        if state.routes.len() > ROUTES_MAX
            && let Some((_, oldest)) = state.routes.pop_first()
        {
            state.numbers.remove(&oldest);
        }
        number
    }

    /// The peer with this number is not reached any more.
    pub(crate) fn remove_route(&self, number: u32) {
        let mut state = self.lock();
        if let Some(route) = state.routes.remove(&number) {
            state.numbers.remove(&route);
        }
    }

    /// How the relay of a peer is reached, for looking whether it is there. `None` if it is no such peer.
    pub(crate) fn via(&self, remote: Address) -> Option<FourTuple> {
        let state = self.lock();
        let route = state.routes.get(&frame::number(remote)?)?;
        state.relays.get(&route.relay)?.via
    }

    /// Wraps datagrams for a peer into frames, from the byte at `from` on, as many as the kernel takes at once. Returns the batch to send,
    /// and the byte up to which it reaches. `None` if the peer cannot be reached: then they are lost.
    pub(crate) fn wrap(&self, batch: &Batch, bytes: &[u8], from: usize, out: &mut Vec<u8>) -> Option<(Batch, usize)> {
        let (via, route) = {
            let state = self.lock();
            let route = state.routes.get(&frame::number(batch.tuple.remote)?)?;
            (state.relays.get(&route.relay)?.via?, route.route)
        };
        out.clear();
        let (header, size) = (frame::header(Kind::Data, route), batch.size.max(1));
        let (mut count, mut until) = (0, from);
        for datagram in bytes[from..].chunks(size) {
            if out.len() + HEADER + datagram.len() > BYTES_MAX {
                break;
            }
            out.extend_from_slice(&header);
            out.extend_from_slice(datagram);
            (count, until) = (count + 1, until + datagram.len());
        }
        let mut wrapped = *batch;
        (wrapped.tuple, wrapped.size, wrapped.count) = (via, size + HEADER, count);
        (count > 0).then_some((wrapped, until))
    }

    /// Takes the frames out of what was read: those with data become datagrams of their peers, others are noted.
    pub(crate) fn unwrap(&self, received: &mut Vec<Received>) {
        if !self.is_used() || !received.iter().any(has_frames) {
            return;
        }
        let mut woken = vec![];
        {
            let mut state = self.lock();
            for batch in std::mem::take(received) {
                if has_frames(&batch) {
                    state.unwrap(&batch, received, &mut woken);
                } else {
                    received.push(batch);
                }
            }
        }
        woken.into_iter().for_each(Waker::wake);
    }

    /// A connection with a peer behind a relay is established.
    pub(crate) fn on_established(&self, place: usize, connection: ConnectionId, number: u32) {
        let mut state = self.lock();
        let Some(relay) = state.routes.get(&number).map(|route| route.relay) else { return };
        let task =
            state.relays.get_mut(&relay).and_then(|relay| relay.note(Note::Established { place, connection, number }));
        drop(state);
        task.into_iter().for_each(Waker::wake);
    }

    /// Waits for something to happen with this relay.
    pub(crate) async fn note(&self, id: RelayId) -> Note {
        poll_fn(|cx| {
            let mut state = self.lock();
            let Some(relay) = state.relays.get_mut(&id) else { return Poll::Pending };
            if let Some(note) = relay.notes.pop_front() {
                return Poll::Ready(note);
            }
            only(&mut relay.task, cx);
            Poll::Pending
        })
        .await
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn unwrap(&mut self, batch: &Received, received: &mut Vec<Received>, woken: &mut Vec<Waker>) {
        let Received { arrival, datagrams, has_time } = batch;
        // Datagrams that follow each other and have one peer stay a batch. Those without a number belong to nobody.
        let mut latest: Option<(Option<u32>, usize, BytesMut)> = None;
        let mut pass = |(number, size, datagrams): (Option<u32>, usize, BytesMut)| {
            let tuple = number.map_or(arrival.tuple, frame::tuple);
            let arrival = anabranch_proto::endpoint::Arrival { tuple, size, ..*arrival };
            received.push(Received { arrival, datagrams, has_time: *has_time });
        };
        for datagram in datagrams.chunks(arrival.size.max(1)) {
            let (number, bytes) = match frame::read(datagram) {
                Some((Kind::Data, route)) => {
                    let is_of = |relay: &&RelayId| {
                        self.relays[*relay].via.is_some_and(|via| carriers::is_from(&via, &arrival.tuple))
                            && self.numbers.contains_key(&Route { relay: **relay, route })
                    };
                    let Some(relay) = self.relays.keys().find(is_of) else { continue };
                    (self.numbers.get(&Route { relay: *relay, route }).copied(), &datagram[HEADER..])
                }
                Some((Kind::Probe, token)) => {
                    // Whose it is, the tasks know by the token.
                    let note = Note::Probe { token, tuple: arrival.tuple };
                    woken.extend(self.relays.values_mut().filter_map(|relay| relay.note(note)));
                    continue;
                }
                Some((Kind::Question | Kind::Answer, _)) => continue,
                None => (None, datagram),
            };
            match &mut latest {
                Some((same, size, all)) if *same == number && all.len() % *size == 0 && bytes.len() <= *size => {
                    all.extend_from_slice(bytes);
                }
                _ => latest.replace((number, bytes.len(), BytesMut::from(bytes))).into_iter().for_each(&mut pass),
            }
        }
        latest.into_iter().for_each(pass);
    }
}

impl Relay {
    /// Returns the task to wake.
    fn note(&mut self, note: Note) -> Option<Waker> {
        if self.notes.len() < NOTES_MAX {
            self.notes.push_back(note);
        }
        self.task.take()
    }
}

fn has_frames(batch: &Received) -> bool {
    batch.datagrams.chunks(batch.arrival.size.max(1)).any(frame::begins)
}

/// The four-tuple by which a relay is reached: from any address of the socket, so that it remains when that changes.
pub(crate) fn via(bound: SocketAddr, remote: Address) -> FourTuple {
    FourTuple { local: address::of(bound), remote }
}

/// Relays of an endpoint at a time.
const RELAYS_MAX: usize = 8;

/// Peers behind relays at a time. A relay gives each member as many (`Relay`), so none is lost.
const ROUTES_MAX: usize = 256;

/// What waits for the task of a relay. Probes beyond it are lost as in a network.
const NOTES_MAX: usize = 256;

/// The bytes that the kernel takes at once: an IP packet minus headers.
const BYTES_MAX: usize = 65_000;

#[cfg(test)]
mod tests {
    use std::task::Context;

    use anabranch_proto::endpoint::Arrival;
    use anabranch_units::Time;

    use super::*;

    fn at(text: &str) -> Address {
        address::of(text.parse().unwrap())
    }

    fn relayed() -> (Relayed, RelayId, u32) {
        let relayed = Relayed::default();
        let relay = relayed.add_relay().unwrap();
        relayed.reach(relay, Some(via("0.0.0.0:7".parse().unwrap(), at("192.0.2.1:9"))));
        let number = relayed.add_route(relay, 0xabcd, None);
        (relayed, relay, number)
    }

    fn received(from: &str, size: usize, datagrams: &[Vec<u8>]) -> Vec<Received> {
        let tuple = FourTuple { local: at("10.0.0.1:7"), remote: at(from) };
        let arrival = Arrival { at: Time::ZERO, tuple, size, ecn: None };
        vec![Received { arrival, datagrams: BytesMut::from(&datagrams.concat()[..]), has_time: false }]
    }

    fn data(route: u64, bytes: &[u8]) -> Vec<u8> {
        [&frame::header(Kind::Data, route)[..], bytes].concat()
    }

    #[test]
    fn datagrams_through_a_relay_come_out_as_they_went_in() {
        let (relayed, _, number) = relayed();
        let bytes: Vec<u8> = (0..2_500_u32).map(|place| place as u8).collect();
        let mut batch = Batch::marked(frame::tuple(number), None, 1_000);
        batch.count = 3;
        let mut out = vec![];
        let (wrapped, until) = relayed.wrap(&batch, &bytes, 0, &mut out).unwrap();
        assert_eq!((wrapped.size, wrapped.count, until, out.len()), (1_012, 3, 2_500, 2_500 + 3 * HEADER));
        assert_eq!(wrapped.tuple, via("0.0.0.0:7".parse().unwrap(), at("192.0.2.1:9")));
        let mut back = received("192.0.2.1:9", 1_012, &[out]);
        relayed.unwrap(&mut back);
        let [back] = &back[..] else { panic!("{back:?}") };
        assert_eq!(
            (&back.datagrams[..], back.arrival.size, back.arrival.tuple),
            (&bytes[..], 1_000, frame::tuple(number))
        );
    }

    /// 65 datagrams of 1,000 bytes are more with their headers than the kernel takes at once.
    #[test]
    fn batch_that_is_too_long_with_headers_goes_in_parts() {
        let (relayed, _, number) = relayed();
        let bytes = vec![7; 65_000];
        let mut batch = Batch::marked(frame::tuple(number), None, 1_000);
        batch.count = 65;
        let mut out = vec![];
        let (first, until) = relayed.wrap(&batch, &bytes, 0, &mut out).unwrap();
        assert_eq!((first.count, until), (64, 64_000));
        let (second, until) = relayed.wrap(&batch, &bytes, until, &mut out).unwrap();
        assert_eq!((second.count, until, out.len()), (1, 65_000, 1_012));
    }

    /// What comes in one batch from the relay: its own datagrams, those of peers, of nobody, and probes.
    #[test]
    fn mixed_batch_is_taken_apart() {
        let (relayed, relay, number) = relayed();
        let other = relayed.add_route(relay, 0xef, None);
        let own = vec![4; 62];
        let probe = [&frame::header(Kind::Probe, 5)[..], &[0; 50]].concat();
        let all = [
            own.clone(),
            data(0xabcd, &[1; 50]),
            data(0xabcd, &[2; 50]),
            data(1, &[3; 50]),
            probe,
            data(0xef, &[4; 9]),
        ];
        let mut batches = received("192.0.2.1:9", 62, &all);
        relayed.unwrap(&mut batches);
        let got: Vec<_> =
            batches.iter().map(|it| (it.arrival.tuple.remote, it.arrival.size, it.datagrams.to_vec())).collect();
        let expected = [
            (at("192.0.2.1:9"), 62, own),
            (frame::tuple(number).remote, 50, [[1; 50], [2; 50]].concat()),
            (frame::tuple(other).remote, 9, vec![4; 9]),
        ];
        assert_eq!(got, expected);
        let mut note = Box::pin(relayed.note(relay));
        let note = note.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let tuple = FourTuple { local: at("10.0.0.1:7"), remote: at("192.0.2.1:9") };
        assert_eq!(note, Poll::Ready(Note::Probe { token: 5, tuple }));
    }

    /// Whoever knows a route cannot speak for its relay from elsewhere.
    #[test]
    fn frame_from_another_address_than_the_relays_is_dropped() {
        let (relayed, relay, _) = relayed();
        let mut batches = received("192.0.2.66:9", 62, &[data(0xabcd, &[1; 50])]);
        relayed.unwrap(&mut batches);
        assert!(batches.is_empty());
        relayed.remove_relay(relay);
        let mut batches = received("192.0.2.1:9", 62, &[data(0xabcd, &[1; 50])]);
        relayed.unwrap(&mut batches);
        assert_eq!(batches.len(), 1, "without a relay the engine counts it as unknown");
    }

    #[test]
    fn routes_and_notes_and_relays_have_limits() {
        let (relayed, relay, first) = relayed();
        (1..1_000).for_each(|route| _ = relayed.add_route(relay, route, None));
        let state = relayed.lock();
        assert_eq!((state.routes.len(), state.numbers.len()), (ROUTES_MAX, ROUTES_MAX));
        drop(state);
        assert_eq!(relayed.via(frame::tuple(first).remote), None, "the oldest is gone");
        let probes = vec![frame::header(Kind::Probe, 5).to_vec(); 1_000];
        relayed.unwrap(&mut received("198.51.100.1:1", HEADER, &probes));
        assert_eq!(relayed.lock().relays[&relay].notes.len(), NOTES_MAX);
        assert_eq!((1..100).filter(|_| relayed.add_relay().is_some()).count(), RELAYS_MAX - 1);
    }

    #[test]
    fn relay_is_lost_until_it_is_reached_again() {
        let (relayed, relay, number) = relayed();
        let remote = frame::tuple(number).remote;
        assert!(!relayed.is_lost(remote));
        relayed.lose(relay);
        assert!(relayed.is_lost(remote) && relayed.via(remote).is_some() && !relayed.is_lost(at("192.0.2.1:9")));
        relayed.reach(relay, Some(via("0.0.0.0:7".parse().unwrap(), at("192.0.2.1:9"))));
        assert!(!relayed.is_lost(remote));
    }

    /// A relay that was restarted gives a new route; the peer keeps its number, and so the connection its path.
    #[test]
    fn number_outlives_a_route() {
        let (relayed, relay, number) = relayed();
        assert_eq!(relayed.add_route(relay, 0x77, Some(number)), number);
        let mut out = vec![];
        let batch = Batch::marked(frame::tuple(number), None, 5);
        relayed.wrap(&batch, &[1; 5], 0, &mut out).unwrap();
        assert_eq!(out, data(0x77, &[1; 5]));
        let mut batches = received("192.0.2.1:9", 17, &[data(0xabcd, &[1; 5])]);
        relayed.unwrap(&mut batches);
        assert!(batches.is_empty(), "the old route is gone");
    }
}
