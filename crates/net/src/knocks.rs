//! Asks the network whether a silent peer's port is closed.
//!
//! The computer of a program that was killed answers its datagrams with ICMP port unreachable ([rfc-1122] sec. 4.1.3.1). A socket
//! that is bound alone does not learn of that, so a connected one of its own sends a byte, which no program takes for a datagram of
//! this protocol. Who forges the answer must guess that socket's port; and the engine takes the answer as a hint only.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use anabranch_proto::FourTuple;
use anabranch_units::{Span, Time};

use crate::address;

/// The sockets that have asked and wait for an answer.
#[derive(Debug, Default)]
pub(crate) struct Knocks {
    waiting: Vec<Knock>,
    /// Ports that are closed, as TCP has said.
    refused: VecDeque<FourTuple>,
    /// Ports to ask for again, and when.
    again: VecDeque<(Time, FourTuple)>,
    /// When to look for answers.
    look_at: Time,
}

#[derive(Debug)]
struct Knock {
    tuple: FourTuple,
    socket: UdpSocket,
    until: Time,
}

impl Knocks {
    /// Asks about the remote port of a path. It is that of `asked`, which differs from the path's own four-tuple if there is a relay on the
    /// way. Returns whether anything was sent.
    pub(crate) fn knock(&mut self, now: Time, tuple: FourTuple, asked: FourTuple) -> bool {
        self.waiting.retain(|knock| knock.until > now && knock.tuple != tuple);
        // What cannot be asked is not known, and ends with its timeout.
        let Some(socket) = (self.waiting.len() < WAITING_MAX).then(|| send(asked).ok()).flatten() else { return false };
        self.waiting.push(Knock { tuple, socket, until: now.saturating_add(WAITS) });
        self.look_at = now;
        true
    }

    /// The remote port of a path is closed, which is known without asking. Returns whether it is noted.
    pub(crate) fn refuse(&mut self, now: Time, tuple: FourTuple) -> bool {
        let is_noted = self.refused.len() < WAITING_MAX && !self.refused.contains(&tuple);
        if is_noted {
            self.refused.push_back(tuple);
            self.look_at = now;
        }
        is_noted
    }

    /// When to look for answers, or to ask again; never if none is expected.
    pub(crate) fn deadline(&self) -> Time {
        let is_quiet = self.waiting.is_empty() && self.refused.is_empty();
        let look_at = if is_quiet { Time::NEVER } else { self.look_at };
        self.again.front().map_or(look_at, |(at, _)| look_at.min(*at))
    }

    /// A remote port was refused, which must be said again later: asks again at `at`.
    pub(crate) fn ask_again(&mut self, at: Time, tuple: FourTuple) {
        if self.again.len() < WAITING_MAX && self.again.iter().all(|(_, other)| *other != tuple) {
            let place = self.again.partition_point(|(other, _)| *other <= at);
            self.again.insert(place, (at, tuple));
        }
    }

    /// A four-tuple whose remote port is to be asked for again.
    pub(crate) fn poll_again(&mut self, now: Time) -> Option<FourTuple> {
        self.again.pop_front_if(|(at, _)| *at <= now).map(|(_, tuple)| tuple)
    }

    /// A four-tuple whose remote port is closed.
    pub(crate) fn poll_refused(&mut self, now: Time) -> Option<FourTuple> {
        if let Some(tuple) = self.refused.pop_front() {
            return Some(tuple);
        }
        if self.waiting.is_empty() || now < self.look_at {
            return None;
        }
        self.waiting.retain(|knock| knock.until > now);
        // An error alone wakes no reader of the runtime.
        let is_refused = |knock: &Knock| {
            let error = knock.socket.take_error().ok().flatten();
            error.is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
        };
        match self.waiting.iter().position(is_refused) {
            Some(place) => Some(self.waiting.swap_remove(place).tuple),
            None => {
                self.look_at = now.saturating_add(LOOK_EVERY);
                None
            }
        }
    }
}

fn send(tuple: FourTuple) -> io::Result<UdpSocket> {
    let (local, remote) = (address::plain(tuple.local), address::plain(tuple.remote));
    let local = match (local.ip().is_unspecified(), remote) {
        (false, _) => local.ip(),
        (true, SocketAddr::V4(_)) => Ipv4Addr::UNSPECIFIED.into(),
        (true, SocketAddr::V6(_)) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind(SocketAddr::new(local, 0))?;
    socket.set_nonblocking(true)?;
    socket.connect(remote)?;
    socket.send(&[NOTHING])?;
    Ok(socket)
}

/// A first byte that is never used (docs/wire.md, sec. 3.2).
const NOTHING: u8 = 0;

/// Answers that come later are of no use: the next timeout asks again.
const WAITS: Span = Span::from_secs(5);

/// An answer takes a round trip; looking costs a system call.
const LOOK_EVERY: Span = Span::from_millis(50);

/// Sockets at a time. Connections to one peer share their four-tuple, or ask in turns.
const WAITING_MAX: usize = 16;
