//! The forwarding side of a relay: it passes frames from one member to another, and answers who it is. It keeps nothing of them.
//!
//! A route has a number at each of its two ends, of 64 random bits, known to the relay and that end alone. A frame is forwarded if it
//! comes from the address that its member has proved, and while the member's rate allows it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anabranch_proto::FourTuple;
use anabranch_units::{Rate, Span, Time};
use bytes::BytesMut;

use crate::carriers;
use crate::frame::{self, HEADER, Kind};
use crate::socket::Received;
use crate::sockets::Sockets;

/// The routes of a relay.
#[derive(Debug)]
pub(crate) struct Forwarder {
    state: Mutex<State>,
    key: [u8; 32],
    /// The TCP port that members are told.
    tcp_port: Option<u16>,
    /// The rate of each member.
    rate: Rate,
    routes_max: usize,
}

/// The number of a member.
pub(crate) type MemberId = u64;

/// What a relay has forwarded, and what it has dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forwarded {
    /// Datagrams passed on.
    pub datagrams: u64,
    /// Their bytes, without headers.
    pub bytes: u64,
    /// Datagrams beyond the rate of their member.
    pub too_fast: u64,
    /// Datagrams that did not fit into the queue of a member's TCP connection.
    pub congested: u64,
    /// Datagrams without a route, or from another address than their member's.
    pub unknown: u64,
}

#[derive(Debug, Default)]
struct State {
    members: BTreeMap<MemberId, Member>,
    made: MemberId,
    routes: BTreeMap<u64, Route>,
    forwarded: Forwarded,
    /// Answers of this second.
    answers: (Time, u32),
}

#[derive(Debug)]
struct Member {
    /// Its validated address, as this end sees it.
    tuple: FourTuple,
    bucket: Bucket,
    /// Its ends of routes, the oldest first.
    routes: Vec<u64>,
}

/// One end of a route.
#[derive(Clone, Copy, Debug)]
struct Route {
    /// The member that sends frames with this number.
    from: MemberId,
    to: MemberId,
    /// The number at the other end.
    other: u64,
}

/// Bytes that a member may send now.
#[derive(Debug)]
struct Bucket {
    bytes: f64,
    filled: Time,
}

/// A new route, by its numbers at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RouteEnds {
    pub(crate) caller: u64,
    pub(crate) called: u64,
}

impl Forwarder {
    pub(crate) fn new(key: [u8; 32], rate: Rate, routes_max: usize) -> Self {
        Self { state: Mutex::default(), key, tcp_port: None, rate, routes_max }
    }

    /// The same, of a relay that listens on TCP, too.
    pub(crate) fn with_tcp_port(self, tcp_port: Option<u16>) -> Self {
        Self { tcp_port, ..self }
    }

    /// The members over UDP, and those over TCP.
    pub(crate) fn members(&self) -> (usize, usize) {
        let state = self.lock();
        let over_tcp = state.members.values().filter(|member| carriers::number(member.tuple.local).is_some()).count();
        (state.members.len() - over_tcp, over_tcp)
    }

    /// A member with this validated address.
    pub(crate) fn add_member(&self, now: Time, tuple: FourTuple) -> MemberId {
        let mut state = self.lock();
        state.made += 1;
        let id = state.made;
        let bucket = Bucket { bytes: self.burst(), filled: now };
        state.members.insert(id, Member { tuple, bucket, routes: vec![] });
        id
    }

    /// The member has another address now.
    pub(crate) fn move_member(&self, id: MemberId, tuple: FourTuple) {
        if let Some(member) = self.lock().members.get_mut(&id) {
            member.tuple = tuple;
        }
    }

    /// The member is gone, and its routes with it.
    pub(crate) fn remove_member(&self, id: MemberId) {
        let mut state = self.lock();
        let Some(member) = state.members.remove(&id) else { return };
        member.routes.into_iter().for_each(|route| state.remove(route));
    }

    /// A route between two members, by numbers that are random. At the limit of routes of either, its oldest one ends.
    pub(crate) fn add_route(&self, caller: MemberId, called: MemberId, ends: RouteEnds) -> bool {
        let mut state = self.lock();
        let is_known = |state: &State, number: u64| state.routes.contains_key(&number);
        let is_possible = caller != called
            && ends.caller != ends.called
            && [caller, called].iter().all(|id| state.members.contains_key(id))
            && [ends.caller, ends.called].iter().all(|number| !is_known(&state, *number));
        if !is_possible {
            return false;
        }
        for (from, to, own, other) in
            [(caller, called, ends.caller, ends.called), (called, caller, ends.called, ends.caller)]
        {
            let oldest = state.members.get(&from).filter(|member| member.routes.len() >= self.routes_max);
            if let Some(oldest) = oldest.and_then(|member| member.routes.first().copied()) {
                state.remove(oldest);
            }
            state.routes.insert(own, Route { from, to, other });
            state.members.entry(from).and_modify(|member| member.routes.push(own));
        }
        true
    }

    pub(crate) fn forwarded(&self) -> Forwarded {
        self.lock().forwarded
    }

    /// Takes the frames out of what was read, and passes them on.
    pub(crate) fn forward(&self, now: Time, received: &mut Vec<Received>, sockets: &Sockets) {
        if !received.iter().any(|batch| batch.datagrams.chunks(batch.arrival.size.max(1)).any(frame::begins)) {
            return;
        }
        let mut state = self.lock();
        let all = std::mem::take(received);
        for batch in all {
            self.forward_batch(&mut state, now, batch, received, sockets);
        }
    }

    /// Divides a batch into runs of frames of one route, and what is no frame.
    fn forward_batch(
        &self,
        state: &mut State,
        now: Time,
        batch: Received,
        received: &mut Vec<Received>,
        sockets: &Sockets,
    ) {
        let Received { arrival, mut datagrams, has_time } = batch;
        let size = arrival.size.max(1);
        while !datagrams.is_empty() {
            let kind = |datagram: &[u8]| if frame::begins(datagram) { Some(frame::read(datagram)) } else { None };
            let first = kind(&datagrams[..size.min(datagrams.len())]);
            let len = datagrams.chunks(size).take_while(|next| kind(next) == first).map(<[u8]>::len).sum();
            let run = datagrams.split_to(len);
            match first {
                None => received.push(Received { arrival, datagrams: run, has_time }),
                Some(Some((Kind::Data, number))) => {
                    let Some((run, to)) = self.pass(state, now, number, &arrival.tuple, run, size) else { continue };
                    if !sockets.try_send(&to, arrival.ecn, size, &run) {
                        // Those of a batch that had room are few.
                        state.forwarded.congested += run.len().div_ceil(size) as u64;
                    }
                }
                Some(Some((Kind::Question, number))) if state.may_answer(now) => {
                    // Shorter than the question, and only once for a run of equal ones.
                    let answer = frame::answer(number, &self.key, self.tcp_port);
                    sockets.try_send(&arrival.tuple, None, answer.len(), &answer);
                }
                Some(_) => state.forwarded.unknown += 1,
            }
        }
    }

    /// Gives frames of a route the number at its other end. Returns what the rate allows, and where it goes.
    fn pass(
        &self,
        state: &mut State,
        now: Time,
        number: u64,
        from: &FourTuple,
        mut run: BytesMut,
        size: usize,
    ) -> Option<(BytesMut, FourTuple)> {
        let count = run.len().div_ceil(size) as u64;
        let State { members, routes, forwarded, .. } = state;
        let route = routes.get(&number).copied();
        let sender =
            route.and_then(|route| members.get_mut(&route.from)).filter(|it| carriers::is_from(&it.tuple, from));
        let (Some(route), Some(sender)) = (route, sender) else {
            forwarded.unknown += count;
            return None;
        };
        sender.bucket.fill(now, self.rate, self.burst());
        let mut allowed = 0;
        for datagram in run.chunks_mut(size) {
            // A small datagram costs the relay as much as a large one.
            let cost = datagram.len().max(COST_MIN) as f64;
            if sender.bucket.bytes < cost {
                break;
            }
            sender.bucket.bytes -= cost;
            allowed += datagram.len();
            datagram[..HEADER].copy_from_slice(&frame::header(Kind::Data, route.other));
        }
        run.truncate(allowed);
        let passed = allowed.div_ceil(size) as u64;
        forwarded.too_fast += count - passed;
        let to = members.get(&route.to)?.tuple;
        forwarded.datagrams += passed;
        forwarded.bytes += allowed as u64 - passed * HEADER as u64;
        (allowed > 0).then_some((run, to))
    }

    /// What a member may send at once: a quarter of a second, and a batch at least.
    fn burst(&self) -> f64 {
        (self.rate.bits_per_second() as f64 / 8.0 / 4.0).max(BURST_MIN)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Ends a route, at both ends.
    fn remove(&mut self, number: u64) {
        let Some(route) = self.routes.remove(&number) else { return };
        self.routes.remove(&route.other);
        for (member, number) in [(route.from, number), (route.to, route.other)] {
            if let Some(member) = self.members.get_mut(&member) {
                member.routes.retain(|other| *other != number);
            }
        }
    }

    fn may_answer(&mut self, now: Time) -> bool {
        let (second, count) = &mut self.answers;
        if now.since(*second) >= Span::from_secs(1) {
            (*second, *count) = (now, 0);
        }
        *count += 1;
        *count <= ANSWERS_MAX
    }
}

impl Bucket {
    fn fill(&mut self, now: Time, rate: Rate, most: f64) {
        let more = now.since(self.filled).as_secs_f64() * rate.bits_per_second() as f64 / 8.0;
        (self.bytes, self.filled) = ((self.bytes + more).min(most), now);
    }
}

/// The least bytes that a datagram counts for.
const COST_MIN: usize = 100;

/// The largest message that the kernel gives at once.
const BURST_MIN: f64 = 65_536.0;

/// Answers to questions in a second, to all together: each question is of a program that has just been started.
const ANSWERS_MAX: u32 = 1_000;

#[cfg(test)]
mod tests;
