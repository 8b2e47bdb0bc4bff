//! What the engine tells the application.

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
