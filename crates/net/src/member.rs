//! Keeps an endpoint a member of a relay: joins, joins again after a loss, gets routes, and looks for ways around the relay.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anabranch_proto::{FourTuple, PathId, PathState};
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::address;
use crate::clock::span;
use crate::endpoint::Endpoint;
use crate::error::{ConnectError, RelayError};
use crate::frame::{self, Kind};
use crate::joining::{self, Carried, Joined};
use crate::key::PublicKey;
use crate::membership::{Mail, MemberPlace, Membership, Order, Standing};
use crate::message::{Asked, CANDIDATES_MAX, RelayMessage, VERSION};
use crate::post::Post;
use crate::punch::{self, Punch};
use crate::relayed::{self, Note, RelayId};
use crate::sockets::{Sockets, serving};
use crate::ticket::Ticket;

/// The membership of an endpoint in this relay: the one that it has, or a new one, for which it tries to join.
pub(crate) fn membership(endpoint: &Endpoint, relay: &Ticket) -> Result<Arc<Membership>, RelayError> {
    let mut lobby = endpoint.shared_lobby().lock();
    if let Some(known) = lobby.memberships.iter().find(|known| known.relay.key() == relay.key()) {
        return Ok(Arc::clone(known));
    }
    let id = endpoint.shared_lobby().relayed.add_relay().ok_or(RelayError::TooMany)?;
    let (membership, orders, standing) = Membership::new(relay.clone());
    let membership = Arc::new(membership);
    lobby.memberships.push(Arc::clone(&membership));
    drop(lobby);
    let task = Member {
        endpoint: endpoint.uncounted(),
        relay: relay.clone(),
        id,
        peers: BTreeMap::new(),
        codes: Codes::default(),
        over_tcp: None,
    };
    tokio::spawn(task.run(orders, standing));
    Ok(membership)
}

struct Member {
    /// It keeps nothing open.
    endpoint: Endpoint,
    relay: Ticket,
    id: RelayId,
    /// Those with a route, by number.
    peers: BTreeMap<u32, Peer>,
    codes: Codes,
    /// The address of the relay, while it is reached over TCP.
    over_tcp: Option<SocketAddr>,
}

/// Who waits for what comes for codes. Nobody does when the membership ends.
#[derive(Default)]
struct Codes {
    offer: Option<mpsc::Sender<Mail>>,
    claims: BTreeMap<u64, mpsc::Sender<Mail>>,
}

/// A peer behind the relay.
struct Peer {
    key: PublicKey,
    is_caller: bool,
    token: u64,
    candidates: Vec<SocketAddr>,
    punch: Option<Punch>,
    /// When to call again, if the relay was restarted and the peer has not joined it again yet.
    again: Option<Instant>,
    /// The path that was chosen, until it is validated or given up.
    trial: Option<(PathId, FourTuple, Instant)>,
}

/// A call that waits for its route.
struct Pending {
    key: PublicKey,
    /// A peer that has a number already, from before the relay was lost.
    known: Option<u32>,
    answer: Option<oneshot::Sender<Result<u32, RelayError>>>,
}

impl Member {
    async fn run(mut self, mut orders: mpsc::Receiver<Order>, standing: watch::Sender<Standing>) {
        let mut pause = PAUSE_MIN;
        loop {
            // UDP has its chance each time. If it was of no use just now, TCP begins at the same time, and needs some round trips more.
            let was_silent = self.endpoint.shared_lobby().lock().take_silent(self.relay.key());
            let is_udp_silent = was_silent || self.over_tcp.take().is_some();
            let error = match joining::join(&self.endpoint, &self.relay, is_udp_silent).await {
                Ok(joined) => {
                    pause = PAUSE_MIN;
                    self.over_tcp = joined.carried.as_ref().map(|carried| carried.address);
                    let ended = self.attend(&joined, &mut orders, &standing).await;
                    joined.begin_close();
                    ended
                }
                Err(error) => {
                    self.endpoint.shared_lobby().relayed.lose(self.id);
                    RelayError::of(error)
                }
            };
            self.codes = Codes::default();
            // How the relay is reached remains known, so that connections over it notice that its port is closed.
            standing.send_replace(Standing::Lost(error.clone()));
            let again = Instant::now() + pause;
            pause = (2 * pause).min(PAUSE_MAX);
            while Instant::now() < again && self.is_wanted() {
                match tokio::time::timeout(LOOK.min(again - Instant::now()), orders.recv()).await {
                    Ok(Some(Order::Call(_, answer))) => _ = answer.send(Err(error.clone())),
                    Ok(None) => break,
                    // Who offers or claims a code learns of it when its mailbox is dropped.
                    Ok(Some(_)) | Err(_) => {}
                }
            }
            if !self.is_wanted() {
                break;
            }
        }
        let lobby = self.endpoint.shared_lobby();
        lobby.relayed.remove_relay(self.id);
        lobby.lock().memberships.retain(|known| known.relay.key() != self.relay.key());
    }

    /// Whether the endpoint or one of its connections still needs the relay.
    fn is_wanted(&self) -> bool {
        let own = self.endpoint.shared_lobby().lock().memberships.len();
        let (is_open, is_gone) = {
            let lobby = self.endpoint.shared_lobby().lock();
            (lobby.handles > 0, lobby.is_gone)
        };
        !is_gone && (is_open || self.endpoint.connections() > own)
    }

    /// Is a member as long as the connection lasts.
    async fn attend(
        &mut self,
        joined: &Joined,
        orders: &mut mpsc::Receiver<Order>,
        standing: &watch::Sender<Standing>,
    ) -> RelayError {
        let Joined { connection, carried } = joined;
        let Some(remote) = connection.paths().first().map(|path| address::of(path.remote)) else {
            return RelayError::Gone;
        };
        let Ok(sockets) = self.endpoint.share_sockets() else { return RelayError::Gone };
        let mut post = Post::new(connection);
        post.send(Asked::Present { version: VERSION }.write());
        let (mut pending, mut calls) = (BTreeMap::new(), 0_u32);
        let (mut reached, mut ask_at) = (None, Instant::now() + SILENT);
        loop {
            let now = Instant::now();
            self.punch(now, &sockets);
            // If the relay was restarted, it says so when it is asked, and connections go on when both ends have joined again.
            if ask_at <= now {
                ask_at = now + SILENT;
                let long = span(SILENT);
                if self.peers.keys().any(|number| self.endpoint.is_silent_on(frame::tuple(*number), long)) {
                    connection.ask();
                }
            }
            let due = self.peers.values().any(|peer| peer.again.is_some_and(|again| again <= now));
            if due {
                self.call_again(now, &mut pending, &mut calls, &post);
            }
            let Some(local) = connection.paths().first().map(|path| address::of(path.local)) else {
                return RelayError::Gone;
            };
            let via = match carried {
                Some(carried) => Some(carried.tuple()),
                None => {
                    let home = serving(sockets.addresses(), local).map(|place| sockets.addresses()[place]);
                    home.map(|home| relayed::via(home, remote))
                }
            };
            if via.is_some() && via != reached {
                reached = via;
                self.endpoint.shared_lobby().relayed.reach(self.id, via);
            }
            let deadline = self.peers.values().filter_map(Peer::deadline).min().unwrap_or(now + LOOK).min(now + LOOK);
            tokio::select! {
                letter = post.next() => {
                    let Some(letter) = letter else { return RelayError::Gone };
                    self.read(&letter, &mut pending, &post, standing);
                    // From before the relay was lost.
                    if matches!(RelayMessage::read(&letter), Some(RelayMessage::Member { .. })) {
                        self.peers.values_mut().for_each(|peer| peer.again = peer.is_caller.then_some(now));
                        self.call_again(now, &mut pending, &mut calls, &post);
                    }
                }
                order = orders.recv() => {
                    match order {
                        Some(Order::Call(key, answer)) => {
                            let call = Pending { key, known: None, answer: Some(answer) };
                            self.call(call, &mut pending, &mut calls, &post);
                        }
                        Some(order) => self.codes.order(order, &post),
                        None => return RelayError::Gone,
                    }
                }
                () = over(carried) => {
                    connection.abort();
                    return RelayError::Gone;
                }
                note = self.endpoint.shared_lobby().relayed.note(self.id) => self.hear(note, &sockets),
                () = tokio::time::sleep_until(deadline) => {
                    if !self.is_wanted() {
                        return RelayError::Gone;
                    }
                }
            }
        }
    }

    fn call(&self, call: Pending, pending: &mut BTreeMap<u32, Pending>, calls: &mut u32, post: &Post) {
        *calls = calls.wrapping_add(1);
        let asked = Asked::Call { number: *calls, key: call.key, candidates: self.candidates() };
        // What the relay never answers gives way.
        if pending.len() >= PENDING_MAX {
            pending.pop_first();
        }
        pending.insert(*calls, call);
        post.send(asked.write());
    }

    /// The relay was restarted: its routes are gone, and connections over it need new ones. The end that called asks for them.
    fn call_again(&mut self, now: Instant, pending: &mut BTreeMap<u32, Pending>, calls: &mut u32, post: &Post) {
        let is_due = |peer: &Peer| peer.again.is_some_and(|again| again <= now);
        let due: Vec<_> =
            self.peers.iter().filter(|(_, peer)| is_due(peer)).map(|(number, peer)| (*number, peer.key)).collect();
        for (number, key) in due {
            if let Some(peer) = self.peers.get_mut(&number) {
                peer.again = None;
            }
            if self.endpoint.has_path(frame::tuple(number)) {
                self.call(Pending { key, known: Some(number), answer: None }, pending, calls, post);
            } else {
                self.peers.remove(&number);
                self.endpoint.shared_lobby().relayed.remove_route(number);
            }
        }
    }

    fn candidates(&self) -> Vec<SocketAddr> {
        let mut own = punch::candidates(self.endpoint.own_addresses());
        // The relay adds one.
        own.truncate(CANDIDATES_MAX - 1);
        own
    }

    /// A message of the relay.
    fn read(
        &mut self,
        letter: &Bytes,
        pending: &mut BTreeMap<u32, Pending>,
        post: &Post,
        standing: &watch::Sender<Standing>,
    ) {
        let lobby = self.endpoint.shared_lobby();
        match RelayMessage::read(letter) {
            Some(RelayMessage::Member { seen, tcp_port }) => {
                let place = MemberPlace { seen, tcp_port, over_tcp: self.over_tcp };
                standing.send_replace(Standing::Member(place));
            }
            Some(RelayMessage::Route { number, route, token, candidates }) => {
                let Some(Pending { key, known, answer }) = pending.remove(&number) else { return };
                let number = lobby.relayed.add_route(self.id, route, known);
                if known.is_none() {
                    self.add_peer(number, Peer::new(key, true, token, candidates));
                }
                answer.into_iter().for_each(|answer| _ = answer.send(Ok(number)));
            }
            Some(RelayMessage::Refused { number, why }) => {
                let Some(Pending { known, answer, .. }) = pending.remove(&number) else { return };
                if let Some(peer) = known.and_then(|known| self.peers.get_mut(&known)) {
                    peer.again = Some(Instant::now() + AGAIN);
                }
                answer.into_iter().for_each(|answer| _ = answer.send(Err(RelayError::Refused(why))));
            }
            Some(RelayMessage::Called { route, token, key, candidates }) => {
                let number = lobby.relayed.add_route(self.id, route, None);
                self.add_peer(number, Peer::new(key, false, token, candidates));
                post.send(Asked::Ready { route, candidates: self.candidates() }.write());
            }
            Some(told) => self.codes.read(told),
            // Of a later version.
            None => {}
        }
    }

    fn add_peer(&mut self, number: u32, peer: Peer) {
        self.peers.insert(number, peer);
        if self.peers.len() > PEERS_MAX {
            self.peers.pop_first();
        }
    }

    fn hear(&mut self, note: Note, sockets: &Sockets) {
        let now = Instant::now();
        match note {
            Note::Established { place, connection, number } => {
                let Some(peer) = self.peers.get_mut(&number) else { return };
                let Peer { token, is_caller, candidates, .. } = peer;
                peer.punch = Some(Punch::new(now, (place, connection), *token, *is_caller, candidates));
            }
            Note::Probe { token, tuple } => {
                let punches = self.peers.values_mut().filter_map(|peer| peer.punch.as_mut());
                if let Some(punch) = { punches }.find(|punch| punch.token == token)
                    && punch.on_probe(now, tuple)
                {
                    send_probe(sockets, &tuple, token);
                }
            }
        }
    }

    /// Does what is due of all searches.
    fn punch(&mut self, now: Instant, sockets: &Sockets) {
        for peer in self.peers.values_mut() {
            let Some(punch) = &mut peer.punch else { continue };
            let token = punch.token;
            for remote in punch.poll_probes(now) {
                for bound in sockets.addresses() {
                    let local = address::of(*bound);
                    if bound.ip().is_unspecified() && bound.is_ipv6() || local.is_ipv4() == remote.is_ipv4() {
                        send_probe(sockets, &FourTuple { local, remote: *remote }, token);
                    }
                }
            }
            if let Some((path, tuple, until)) = peer.trial {
                match self.endpoint.path_state(punch.place, punch.connection, path, tuple) {
                    Some(PathState::Live) => {
                        peer.trial = None;
                        peer.punch = None;
                        continue;
                    }
                    Some(_) if now < until => {}
                    state => {
                        if state.is_some() {
                            self.endpoint.remove_path(punch.place, punch.connection, path);
                        }
                        peer.trial = None;
                        punch.on_failed(now);
                    }
                }
            } else if let Some(tuple) = punch.poll_choice(now) {
                let added = self.endpoint.add_path(punch.place, punch.connection, tuple);
                peer.trial = added.map(|path| (path, tuple, now + TRIAL));
                if added.is_none() {
                    punch.on_failed(now);
                }
            }
            if punch.is_over(now) && peer.trial.is_none() {
                peer.punch = None;
            }
        }
    }
}

impl Codes {
    fn order(&mut self, order: Order, post: &Post) {
        let asked = match order {
            Order::Call(..) => return,
            Order::Offer(mail) => {
                self.offer = Some(mail);
                Asked::Offer
            }
            Order::Claim { claim, number, bytes, mail } => {
                self.claims.retain(|_, mail| !mail.is_closed());
                self.claims.insert(claim, mail);
                Asked::Claim { claim, number, bytes }
            }
            Order::Pass { claim, bytes } => Asked::Pass { claim, bytes },
            Order::Withdraw => {
                self.offer = None;
                Asked::Withdraw
            }
        };
        post.send(asked.write());
    }

    fn read(&mut self, told: RelayMessage) {
        let offer = self.offer.as_ref();
        let (mailbox, mail) = match told {
            RelayMessage::Offered { number } => (offer, Mail::Offered(number)),
            RelayMessage::Claimed { claim, bytes } => (offer, Mail::Claimed { claim, bytes }),
            RelayMessage::Passed { claim, bytes } => (self.claims.get(&claim).or(offer), Mail::Passed { claim, bytes }),
            RelayMessage::NoCode { claim } => (self.claims.get(&claim), Mail::NotThere),
            RelayMessage::Member { .. }
            | RelayMessage::Route { .. }
            | RelayMessage::Refused { .. }
            | RelayMessage::Called { .. } => return,
        };
        if let Some(mailbox) = mailbox {
            _ = mailbox.try_send(mail);
        }
    }
}

impl Peer {
    fn new(key: PublicKey, is_caller: bool, token: u64, candidates: Vec<SocketAddr>) -> Self {
        Self { key, is_caller, token, candidates, punch: None, again: None, trial: None }
    }

    fn deadline(&self) -> Option<Instant> {
        let trial = self.trial.map(|_| Instant::now() + TRIAL_LOOK);
        [self.punch.as_ref().and_then(Punch::deadline), trial].into_iter().flatten().min()
    }
}

impl RelayError {
    /// Why the relay could not be joined.
    fn of(error: ConnectError) -> Self {
        match error {
            ConnectError::NoAnswer(addresses) => Self::NoAnswer(addresses),
            other => Self::NotJoined(other.to_string()),
        }
    }
}

/// Waits until the TCP connection is over, if there is one.
async fn over(carried: &Option<Carried>) {
    match carried {
        Some(carried) => carried.over().await,
        None => std::future::pending().await,
    }
}

fn send_probe(sockets: &Sockets, tuple: &FourTuple, token: u64) {
    _ = sockets.try_send(tuple, None, frame::HEADER, &frame::header(Kind::Probe, token));
}

/// The pause before a relay that was lost is called again.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// How long a connection that has only the relay may hear nothing before the relay is asked.
const SILENT: Duration = Duration::from_secs(2);

/// The pause between two calls of a peer that has not joined a restarted relay yet.
const AGAIN: Duration = Duration::from_secs(1);

/// How often it is looked whether the relay is still needed.
const LOOK: Duration = Duration::from_secs(1);

/// How long a path may take to be validated: three challenges. And how often it is looked at.
const TRIAL: Duration = Duration::from_secs(4);
const TRIAL_LOOK: Duration = Duration::from_millis(100);

/// Calls without an answer, and peers.
const PENDING_MAX: usize = 64;
const PEERS_MAX: usize = 256;
