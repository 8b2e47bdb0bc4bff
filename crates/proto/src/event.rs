//! Events of the engine for the application.

use std::collections::VecDeque;

use crate::path::PathId;
use crate::segment::Sid;

/// An event that the application may want to act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is over.
    Established {
        /// Streams in each direction; `None` with plain TCP, whose only stream is [`Sid::PLAIN`].
        streams: Option<u16>,
    },
    /// A stream has something to read. Repeated only after a read returned [`crate::Read::Nothing`].
    Readable(Sid),
    /// There is a datagram to read. Repeated only after a read found none.
    DatagramsReadable,
    /// A stream that did not take all of a write has room again.
    Writable(Sid),
    /// The peer has received all of a finished stream, or its reset. The SID can be reused.
    Finished(Sid),
    /// The peer has refused the rest of a stream, which was therefore reset.
    Stopped {
        /// The stream that was reset.
        sid: Sid,
        /// The error code of the peer's application.
        code: u16,
    },
    /// A path was validated and carries data from now on.
    PathValidated(PathId),
    /// A path is silent while others are not. It carries no data until it answers; its data in flight is retransmitted on others.
    PathFailed(PathId),
    /// A silent path has answered, and carries data again.
    PathRestored(PathId),
    /// A path is gone: it never answered, or one end has removed it.
    PathGone(PathId),
    /// For several timeouts the peer has answered short segments, but nothing longer made progress. The path probably does not carry
    /// packets of the least size, 1,200 bytes of UDP payload. The connection goes on.
    Stalled,
    /// The peer has closed, and all its data has arrived.
    PeerClosed,
    /// The connection is over; the last event.
    Closed(CloseReason),
}

/// Why a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// Both ends closed it, and all data arrived.
    Finished,
    /// The application aborted it.
    Aborted,
    /// The peer refused the connection.
    Refused,
    /// The peer has sent a reset.
    Reset,
    /// The peer has ended the connection, which was the idlest, because a limit of connections was reached and it needed the place
    /// for another one.
    GaveWay,
    /// The peer is silent, and the network says that its port is closed.
    PortClosed,
    /// The peer was silent, or made no progress, for too long.
    TimedOut,
    /// The peer answered short segments, but nothing that was sent made progress for too long: the path probably does not carry
    /// packets of the least size, 1,200 bytes of UDP payload.
    Stalled,
    /// The peer acknowledged data that it cannot have received.
    FalseAcknowledgement,
    /// A middlebox takes from segments what their streams need, so that none arrives.
    Mangled,
}

/// Events that wait for the application. There is at most one of each kind per stream, so neither a peer nor an idle application
/// can make the queue grow.
#[derive(Debug)]
pub(crate) struct Events {
    queue: VecDeque<Event>,
    /// The waiting kinds of each stream, up to the highest stream that had any.
    waiting: Vec<u8>,
}

impl Events {
    pub(crate) fn new() -> Self {
        Self { queue: VecDeque::new(), waiting: vec![] }
    }

    /// Queues an event, unless an equal one waits.
    pub(crate) fn push_back(&mut self, event: Event) {
        if let Some((sid, kind)) = event.stream() {
            if self.waiting.len() <= sid.index() {
                self.make_room(sid);
            }
            let waiting = &mut self.waiting[sid.index()];
            if *waiting & kind != 0 {
                return;
            }
            *waiting |= kind;
        }
        self.queue.push_back(event);
    }

    fn make_room(&mut self, sid: Sid) {
        self.waiting.resize(1 + sid.index(), 0);
    }

    pub(crate) fn pop_front(&mut self) -> Option<Event> {
        let event = self.queue.pop_front()?;
        if let Some((sid, kind)) = event.stream() {
            self.waiting[sid.index()] &= !kind;
        }
        Some(event)
    }

    /// For tests: the number of waiting events.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn back_mut(&mut self) -> Option<&mut Event> {
        self.queue.back_mut()
    }
}

impl Event {
    /// The stream of an event, and a bit for its kind.
    fn stream(&self) -> Option<(Sid, u8)> {
        match *self {
            Self::Readable(sid) => Some((sid, 1)),
            Self::Writable(sid) => Some((sid, 2)),
            Self::Finished(sid) => Some((sid, 4)),
            Self::Stopped { sid, .. } => Some((sid, 8)),
            Self::Established { .. }
            | Self::DatagramsReadable
            | Self::PathValidated(_)
            | Self::PathFailed(_)
            | Self::PathRestored(_)
            | Self::PathGone(_)
            | Self::PeerClosed
            | Self::Stalled
            | Self::Closed(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_told_once_until_it_was_heard() {
        let (mut events, sid) = (Events::new(), Sid::new(255));
        for code in 0..3 {
            events.push_back(Event::Readable(sid));
            events.push_back(Event::Stopped { sid, code });
        }
        assert_eq!(events.pop_front(), Some(Event::Readable(sid)));
        events.push_back(Event::Readable(sid));
        assert_eq!(events.pop_front(), Some(Event::Stopped { sid, code: 0 }), "the first is the one that counts");
        assert_eq!(events.pop_front(), Some(Event::Readable(sid)));
        assert_eq!(events.pop_front(), None);
    }
}
