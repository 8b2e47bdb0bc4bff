//! Streams, which carry bytes in one direction.

mod recv;
mod send;

pub use self::recv::RecvStream;
pub use self::send::SendStream;
