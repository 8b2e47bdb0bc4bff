//! What the engine tells the application.

use std::collections::VecDeque;

use crate::path::PathId;
use crate::segment::Sid;

/// Something happened that the application may want to act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is over.
    Established {
        /// Streams in each direction; `None` if the peer speaks plain TCP, which has the stream [`Sid::PLAIN`].
        streams: Option<u16>,
    },
    /// There is something to read on a stream. Told again only after [`crate::Read::Nothing`].
    Readable(Sid),
    /// There is room on a stream that had not taken all of a write.
    Writable(Sid),
    /// The peer has all that it will get of a stream that was finished or reset; its name can be used again.
    Finished(Sid),
    /// The peer does not want the rest of a stream, and so it was reset.
    Stopped {
        /// Which stream.
        sid: Sid,
        /// Why, in the words of the peer's application.
        code: u16,
    },
    /// A path has been answered: it carries data from now on.
    PathValidated(PathId),
    /// A path is silent while others are not. It carries nothing until it answers; what was lost with it is sent on others.
    PathFailed(PathId),
    /// It has answered, and carries data again.
    PathRestored(PathId),
    /// A path is no more: it was never answered, or one of the two has given it up.
    PathGone(PathId),
    /// The peer sends nothing more; everything that it sent has arrived.
    PeerClosed,
    /// The connection is gone. Nothing follows.
    Closed(CloseReason),
}

/// Why a connection is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// Both sides closed it, and everything arrived.
    Finished,
    /// The application aborted it.
    Aborted,
    /// The peer refused it.
    Refused,
    /// The peer reset it.
    Reset,
    /// The peer did not answer for too long.
    TimedOut,
    /// The peer acknowledged what it cannot have got.
    FalseAcknowledgement,
}

/// What the application has not been told yet. Of each kind there is one for each stream at most, so that neither a peer nor
/// an application that does not listen makes it grow.
#[derive(Debug)]
pub(crate) struct Events {
    queue: VecDeque<Event>,
    /// The kinds that wait, by stream, as far as there was any.
    waiting: Vec<u8>,
}

impl Events {
    pub(crate) fn new() -> Self {
        Self { queue: VecDeque::new(), waiting: vec![] }
    }

    /// Tells the application something, unless it is about to hear it anyway.
    #[inline]
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

    #[cold]
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

    /// For tests: how many.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn back_mut(&mut self) -> Option<&mut Event> {
        self.queue.back_mut()
    }
}

impl Event {
    /// Which stream it is about, and a bit for each kind of event.
    fn stream(&self) -> Option<(Sid, u8)> {
        match *self {
            Self::Readable(sid) => Some((sid, 1)),
            Self::Writable(sid) => Some((sid, 2)),
            Self::Finished(sid) => Some((sid, 4)),
            Self::Stopped { sid, .. } => Some((sid, 8)),
            Self::Established { .. }
            | Self::PathValidated(_)
            | Self::PathFailed(_)
            | Self::PathRestored(_)
            | Self::PathGone(_)
            | Self::PeerClosed
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
