//! The relay: a server where ends meet that cannot reach each other.
//!
//! ```text
//! a member ── connection ──> Relay <── connection ── another member      who is there, routes, addresses: messages
//!          ── frames ──────> Forwarder ── frames ──>                     datagrams of the members' own connection
//! ```
//!
//! Members come over UDP, or over TCP where their network blocks UDP (`door`).
//!
//! Members join by a connection of this protocol. So a member has proved its key and its address before it gets anything, and all limits
//! of a server hold. Between members, the relay forwards sealed datagrams, which it cannot read. It decides nothing about them: each
//! member's peers prove who they are to the member itself.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anabranch_proto::FourTuple;
use anabranch_units::Rate;
use bytes::Bytes;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use crate::address;
use crate::carriers;
use crate::config::{Admission, Config};
use crate::connection::Connection;
use crate::door::{Door, Limits, RelayTcp};
use crate::endpoint::Endpoint;
use crate::error::{BindError, RelayError};
use crate::find;
use crate::forward::{Forwarded, Forwarder, MemberId, RouteEnds};
use crate::key::{PublicKey, SecretKey, random};
use crate::message::{Asked, CANDIDATES_MAX, Refusal, RelayMessage, VERSION};
use crate::post::Post;
use crate::ticket::Ticket;

/// A relay, where ends behind NATs meet.
#[derive(Debug)]
pub struct Relay {
    endpoint: Endpoint,
    hall: Arc<Hall>,
    door: Option<Door>,
}

/// The settings of a relay.
#[derive(Clone, Debug)]
pub struct RelayConfig {
    /// Which keys may join.
    pub admission: Admission,
    /// The largest number of members.
    pub members_max: usize,
    /// The same for one IPv4 address, or the first 64 bits of an IPv6 address.
    pub members_per_address: usize,
    /// Routes of a member at a time. A further one ends its oldest.
    pub routes_max: usize,
    /// The rate at which a member may send through the relay, in bytes of UDP payload.
    pub rate: Rate,
    /// Whether members may join over TCP, too, as a last resort where UDP is blocked.
    pub tcp: Option<RelayTcp>,
}

/// What a relay has and has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayStats {
    /// Members at present.
    pub members: usize,
    /// Those of them that come over TCP.
    pub members_over_tcp: usize,
    /// What was forwarded since the start.
    pub forwarded: Forwarded,
}

impl Default for RelayConfig {
    fn default() -> Self {
        Self {
            admission: Admission::Ticket,
            members_max: 1024,
            // A large company behind one address.
            members_per_address: 64,
            routes_max: 64,
            rate: Rate::from_bits_per_second(100_000_000),
            tcp: None,
        }
    }
}

/// Who is there.
#[derive(Debug)]
struct Hall {
    forwarder: Arc<Forwarder>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    members: BTreeMap<PublicKey, Member>,
    /// Routes of which the called end does not know yet, by its number of each.
    waiting: BTreeMap<u64, Waiting>,
    /// Offered codes, by number.
    offers: BTreeMap<u32, Offer>,
    claims: BTreeMap<u64, Claim>,
}

/// A code that a member offers. The relay does not know its words.
#[derive(Debug)]
struct Offer {
    by: MemberId,
    letters: mpsc::Sender<Bytes>,
    claims: u32,
}

/// An attempt at a code.
#[derive(Debug)]
struct Claim {
    /// Who types the code, and who offers it.
    ends: [(MemberId, mpsc::Sender<Bytes>); 2],
}

#[derive(Clone, Debug)]
struct Member {
    id: MemberId,
    /// The address at which others may reach it; `None` if it comes over TCP.
    seen: Option<SocketAddr>,
    letters: mpsc::Sender<Bytes>,
    /// Tells it that the same key has joined again.
    replaced: Arc<Notify>,
}

#[derive(Debug)]
struct Waiting {
    caller: PublicKey,
    /// The caller's number of its call.
    number: u32,
    route: u64,
    token: u64,
    called: MemberId,
    until: Instant,
}

impl Relay {
    /// A relay at this address with this key.
    ///
    /// # Errors
    /// If no socket can be bound, or the settings are invalid.
    pub fn bind(address: SocketAddr, key: &SecretKey, config: RelayConfig) -> Result<Self, BindError> {
        let RelayConfig { admission, members_max, members_per_address, routes_max, rate, tcp } = config;
        let limits = Limits { all: members_max + SPARE, each: members_per_address + SPARE };
        let door = tcp.map(|tcp| Door::open(&tcp, limits)).transpose()?;
        let port = door.as_ref().map(|door| door.public_port);
        let forwarder = Arc::new(Forwarder::new(*key.public().bytes(), rate, routes_max).with_tcp_port(port));
        let config = Config {
            admission: Some(admission),
            connections_max: members_max,
            // A program that was started again joins before its last connection has ended.
            connections_per_key: 4,
            connections_per_address: members_per_address,
            // One more while a member moves.
            paths: 2,
            streams: 16,
            // All that a member can make the relay hold: some messages, each a stream of its own.
            receive_buffer: BUFFER,
            receive_buffer_max: BUFFER,
            send_buffer: BUFFER,
            send_buffer_max: BUFFER,
            send_memory: 2 * BUFFER,
            datagram_send_buffer: 0,
            datagram_receive_buffer: 0,
            ..Config::default()
        };
        let endpoint = Endpoint::bind(address, key, config)?;
        _ = endpoint.shared_lobby().forwarder.set(Arc::clone(&forwarder));
        let hall = Arc::new(Hall { forwarder, state: Mutex::default() });
        Ok(Self { endpoint, hall, door })
    }

    /// Asks who is the relay at one of these addresses, and returns its ticket for [`Endpoint::with_relay`]. The answer is not proved: who
    /// can answer in a relay's place can be the relay, and so see who talks to whom, and stop it, but nothing of what they say. An endpoint
    /// that joins then should ask itself ([`Endpoint::find_relay`]): so it learns whether UDP is of any use.
    ///
    /// # Errors
    /// If no relay answers.
    pub async fn find(addresses: &[SocketAddr]) -> Result<Ticket, RelayError> {
        Ok(find::find(addresses).await?.relay)
    }

    /// The ticket of the relay, for [`Endpoint::with_relay`].
    pub fn ticket(&self) -> Ticket {
        self.endpoint.ticket().with_tcp_port(self.door.as_ref().map(|door| door.public_port))
    }

    /// The address at which it listens on TCP.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        self.door.as_ref().map(Door::address)
    }

    /// The endpoint to which members connect, for its address, its metrics and its end.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Serves members until the socket is gone.
    pub async fn serve(&self) {
        let port = self.door.as_ref().map(|door| door.public_port);
        let members = async {
            while let Some(connection) = self.endpoint.accept().await {
                tokio::spawn(attend(Arc::clone(&self.hall), self.endpoint.uncounted(), connection, port));
            }
        };
        match &self.door {
            Some(door) => tokio::select! {
                () = members => {}
                () = door.serve(&self.endpoint) => {}
            },
            None => members.await,
        }
    }

    /// The present counts.
    pub fn stats(&self) -> RelayStats {
        let (_, members_over_tcp) = self.hall.forwarder.members();
        RelayStats {
            members: self.hall.lock().members.len(),
            members_over_tcp,
            forwarded: self.hall.forwarder.forwarded(),
        }
    }
}

/// Serves a member as long as its connection lasts.
async fn attend(hall: Arc<Hall>, endpoint: Endpoint, connection: Connection, tcp_port: Option<u16>) {
    let mut post = Post::new(&connection);
    let present = tokio::time::timeout(PRESENT_WITHIN, post.next()).await.ok().flatten();
    let is_good = present.and_then(|first| Asked::read(&first)) == Some(Asked::Present { version: VERSION });
    let Some(mut tuple) = connection.live_tuple(None).filter(|_| is_good) else { return connection.abort() };
    let (key, replaced) = (connection.remote_key(), Arc::new(Notify::new()));
    let id = hall.forwarder.add_member(endpoint.now(), tuple);
    let carriers = Arc::clone(&endpoint.shared_lobby().carriers);
    carriers.settle(tuple.local);
    let seen = address::plain(tuple.remote);
    let member = Member { id, seen: reachable(tuple), letters: post.sender(), replaced: Arc::clone(&replaced) };
    if let Some(former) = hall.lock().members.insert(key, member) {
        former.replaced.notify_one();
    }
    post.send(RelayMessage::Member { seen, tcp_port }.write());
    let mut patience = Patience::new();
    loop {
        tokio::select! {
            letter = post.next() => match letter.map(|letter| Asked::read(&letter)) {
                Some(Some(Asked::Call { number, key: called, candidates })) => {
                    let why = if patience.bears() { hall.call(key, number, called, candidates) } else { Some(Refusal::TooOften) };
                    why.into_iter().for_each(|why| post.send(RelayMessage::Refused { number, why }.write()));
                }
                Some(Some(Asked::Ready { route, candidates })) => hall.ready(id, route, candidates),
                Some(Some(Asked::Offer)) => {
                    let number = hall.offer(id, post.sender());
                    number.into_iter().for_each(|number| post.send(RelayMessage::Offered { number }.write()));
                }
                Some(Some(Asked::Claim { claim, number, bytes })) => {
                    let is_claimed = patience.bears() && hall.claim(claim, (id, post.sender()), number, bytes);
                    if !is_claimed {
                        post.send(RelayMessage::NoCode { claim }.write());
                    }
                }
                Some(Some(Asked::Pass { claim, bytes })) => hall.pass(id, claim, bytes),
                Some(Some(Asked::Withdraw)) => hall.withdraw(id),
                // A later version may say more.
                Some(Some(Asked::Present { .. }) | None) => {}
                None => break,
            },
            moved = connection.moved(tuple) => {
                let Some(to) = moved else { break };
                tuple = to;
                hall.on_moved(key, id, tuple);
                post.send(RelayMessage::Member { seen: address::plain(tuple.remote), tcp_port }.write());
            }
            // TCP has ended, and with it the only way to the member.
            () = carriers.over(tuple.local) => {
                connection.abort();
                break;
            }
            () = replaced.notified() => {
                connection.abort();
                break;
            }
        }
    }
    hall.leave(key, id);
    connection.begin_close();
    if carriers::number(tuple.local).is_some() {
        _ = tokio::time::timeout(CLOSE_WITHIN, connection.close()).await;
        carriers.end(tuple.local);
    }
}

/// The address at which a member may be reached by others; `None` for one over TCP.
fn reachable(tuple: FourTuple) -> Option<SocketAddr> {
    carriers::number(tuple.local).is_none().then(|| address::plain(tuple.remote))
}

impl Hall {
    /// A member calls another one. Returns why it cannot.
    fn call(&self, caller: PublicKey, number: u32, called: PublicKey, candidates: Vec<SocketAddr>) -> Option<Refusal> {
        let (route, other, token) = match random() {
            Ok(bytes) => {
                let mut numbers =
                    bytes.chunks_exact(8).map(|chunk| chunk.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)));
                (numbers.next()?, numbers.next()?, numbers.next()?)
            }
            Err(_) => return Some(Refusal::Other),
        };
        let mut state = self.lock();
        let (Some(here), Some(there)) = (state.members.get(&caller).cloned(), state.members.get(&called).cloned())
        else {
            return Some(Refusal::NotThere);
        };
        let now = Instant::now();
        state.waiting.retain(|_, waiting| waiting.until > now);
        if state.waiting.len() >= WAITING_MAX {
            return Some(Refusal::TooOften);
        }
        if !self.forwarder.add_route(here.id, there.id, RouteEnds { caller: route, called: other }) {
            return Some(Refusal::Other);
        }
        let until = now + READY_WITHIN;
        state.waiting.insert(other, Waiting { caller, number, route, token, called: there.id, until });
        let candidates = with_seen(here.seen, candidates);
        _ = there.letters.try_send(RelayMessage::Called { route: other, token, key: caller, candidates }.write());
        None
    }

    /// The called end knows of its route.
    fn ready(&self, called: MemberId, route: u64, candidates: Vec<SocketAddr>) {
        let mut state = self.lock();
        if state.waiting.get(&route).is_none_or(|waiting| waiting.called != called) {
            return;
        }
        let Some(Waiting { caller, number, route, token, .. }) = state.waiting.remove(&route) else { return };
        let seen = state.members.values().find(|member| member.id == called).map(|member| member.seen);
        let (Some(caller), Some(seen)) = (state.members.get(&caller), seen) else { return };
        let candidates = with_seen(seen, candidates);
        _ = caller.letters.try_send(RelayMessage::Route { number, route, token, candidates }.write());
    }

    fn on_moved(&self, key: PublicKey, id: MemberId, tuple: FourTuple) {
        self.forwarder.move_member(id, tuple);
        if let Some(member) = self.lock().members.get_mut(&key).filter(|member| member.id == id) {
            member.seen = reachable(tuple);
        }
    }

    /// A number for a code of this member: the least that is free, as people type it. A member has one.
    fn offer(&self, by: MemberId, letters: mpsc::Sender<Bytes>) -> Option<u32> {
        let mut state = self.lock();
        state.forget_codes(by);
        let number = (1..).find(|number| !state.offers.contains_key(number))?;
        state.offers.insert(number, Offer { by, letters, claims: 0 });
        Some(number)
    }

    /// A member claims a code. Returns whether it may.
    fn claim(&self, claim: u64, (by, letters): (MemberId, mpsc::Sender<Bytes>), number: u32, bytes: Vec<u8>) -> bool {
        let mut state = self.lock();
        let State { offers, claims, .. } = &mut *state;
        let Some(offer) = offers.get_mut(&number).filter(|offer| offer.claims < CLAIMS_MAX && offer.by != by) else {
            return false;
        };
        if claims.contains_key(&claim) {
            return false;
        }
        offer.claims += 1;
        _ = offer.letters.try_send(RelayMessage::Claimed { claim, bytes }.write());
        claims.insert(claim, Claim { ends: [(by, letters), (offer.by, offer.letters.clone())] });
        true
    }

    /// One end of a claim says something to the other.
    fn pass(&self, from: MemberId, claim: u64, bytes: Vec<u8>) {
        let state = self.lock();
        let Some(Claim { ends: [one, two] }) = state.claims.get(&claim) else { return };
        let to = match from {
            _ if from == one.0 => two,
            _ if from == two.0 => one,
            _ => return,
        };
        _ = to.1.try_send(RelayMessage::Passed { claim, bytes }.write());
    }

    /// A member offers no code any more. Its last word may come after this one, and still passes.
    fn withdraw(&self, by: MemberId) {
        self.lock().offers.retain(|_, offer| offer.by != by);
    }

    fn leave(&self, key: PublicKey, id: MemberId) {
        self.forwarder.remove_member(id);
        let mut state = self.lock();
        state.forget_codes(id);
        state.claims.retain(|_, claim| claim.ends[0].0 != id);
        // By now the key may have joined again.
        if state.members.get(&key).is_some_and(|member| member.id == id) {
            state.members.remove(&key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Nothing is left of the codes that a member has offered.
    fn forget_codes(&mut self, by: MemberId) {
        self.offers.retain(|_, offer| offer.by != by);
        self.claims.retain(|_, claim| claim.ends[1].0 != by);
    }
}

/// The address that the relay sees, and then those that the member tells.
fn with_seen(seen: Option<SocketAddr>, mut candidates: Vec<SocketAddr>) -> Vec<SocketAddr> {
    if let Some(seen) = seen {
        candidates.retain(|candidate| *candidate != seen);
        candidates.insert(0, seen);
    }
    candidates.truncate(CANDIDATES_MAX);
    candidates
}

/// How many calls are borne: some at once, then one a second.
#[derive(Debug)]
struct Patience {
    calls: f64,
    since: Instant,
}

impl Patience {
    fn new() -> Self {
        Self { calls: CALLS_AT_ONCE, since: Instant::now() }
    }

    fn bears(&mut self) -> bool {
        let now = Instant::now();
        self.calls = (self.calls + (now - self.since).as_secs_f64()).min(CALLS_AT_ONCE);
        self.since = now;
        let is_borne = self.calls >= 1.0;
        if is_borne {
            self.calls -= 1.0;
        }
        is_borne
    }
}

/// Who connects and does not say what for is no member.
const PRESENT_WITHIN: Duration = Duration::from_secs(5);

/// A called member that does not answer has lost its connection.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// Calls without an answer yet, of all members.
const WAITING_MAX: usize = 4096;

/// Attempts at a code, as the end that offers it ends it after as many. So claims are bounded, too.
const CLAIMS_MAX: u32 = 3;

/// A program that opens its connections at once.
const CALLS_AT_ONCE: f64 = 32.0;

/// TCP connections besides those of members: who joins again, or asks for the key.
const SPARE: usize = 8;

/// The time for the last words of a member over TCP.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// Buffers of a connection with a member.
const BUFFER: u64 = 64 << 10;
