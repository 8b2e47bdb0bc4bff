//! What the engine tells the application.

use crate::path::PathId;
use crate::segment::Sid;

/// Something happened that the application may want to act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is over.
    Established {
        /// Streams in each direction; `None` if the peer speaks plain TCP, which has the stream [`Sid::PLAIN`].
        streams: Option<u8>,
    },
    /// There is something to read on a stream. Told again only after [`crate::Read::Nothing`].
    Readable(Sid),
    /// There is room on a stream that had not taken all of a write.
    Writable(Sid),
    /// The peer has all of a stream that was finished; its name can be used again.
    Finished(Sid),
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
}
