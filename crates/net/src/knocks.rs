//! Asks the network whether a silent peer's port is closed.
//!
//! The computer of a program that was killed answers its datagrams with ICMP port unreachable ([rfc-1122] sec. 4.1.3.1). A socket
//! that is bound alone does not learn of that, so a connected one of its own sends a byte, which no program takes for a datagram of
//! this protocol. Who forges the answer must guess that socket's port; and the engine takes the answer as a hint only.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use anabranch_proto::FourTuple;
use anabranch_units::{Span, Time};

use crate::address;

/// The sockets that have asked and wait for an answer.
#[derive(Debug, Default)]
pub(crate) struct Knocks {
    waiting: Vec<Knock>,
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
    /// Asks about the remote port of this four-tuple. Returns whether anything was sent.
    pub(crate) fn knock(&mut self, now: Time, tuple: FourTuple) -> bool {
        self.waiting.retain(|knock| knock.until > now && knock.tuple != tuple);
        // What cannot be asked is not known, and ends with its timeout.
        let Some(socket) = (self.waiting.len() < WAITING_MAX).then(|| send(tuple).ok()).flatten() else { return false };
        self.waiting.push(Knock { tuple, socket, until: now.saturating_add(WAITS) });
        self.look_at = now;
        true
    }

    /// When to look for answers; never if none is expected.
    pub(crate) fn deadline(&self) -> Time {
        if self.waiting.is_empty() { Time::NEVER } else { self.look_at }
    }

    /// A four-tuple whose remote port is closed.
    pub(crate) fn poll_refused(&mut self, now: Time) -> Option<FourTuple> {
        if now < self.deadline() {
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
    let socket = UdpSocket::bind(SocketAddr::new(local.ip(), 0))?;
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
