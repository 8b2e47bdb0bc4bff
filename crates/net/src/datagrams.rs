//! Unreliable datagrams of a connection.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use anabranch_proto::{SendDatagramError, Urgency};
use anabranch_units::Time;
use bytes::Bytes;

use crate::call::{Call, Stage};
use crate::clock::span;
use crate::connection::Connection;
use crate::error::DatagramError;

impl Connection {
    /// Sends a message that fits one packet, without a copy and without waiting. It arrives once or not at all; a lost one is not
    /// retransmitted, and messages may overtake each other. If the send buffer is full, its oldest datagrams are dropped
    /// ([`Config::datagram_send_buffer`](crate::Config::datagram_send_buffer)), and counted in
    /// [`DatagramStats::dropped_unsent`](crate::DatagramStats::dropped_unsent).
    ///
    /// # Errors
    /// If the datagram is too large ([`Connection::max_datagram_size`]), an end takes no datagrams, this end has closed, or the connection is lost.
    pub fn send_datagram(&self, datagram: Bytes) -> Result<(), DatagramError> {
        self.send_until(datagram, |_| Time::NEVER, Urgency::Usual)
    }

    /// As [`Connection::send_datagram`], for a datagram that is of no use later: if it has not been sent within this time, because
    /// the network takes less than there is to send, it is dropped.
    ///
    /// # Errors
    /// As there.
    pub fn send_datagram_within(&self, datagram: Bytes, within: Duration) -> Result<(), DatagramError> {
        self.send_until(datagram, |now| now.saturating_add(span(within)), Urgency::Usual)
    }

    /// As [`Connection::send_datagram_within`], for a datagram that is to arrive soon, such as a packet of a call beside a large transfer: it leaves before
    /// those that are not urgent, and over several paths on the one on which it is expected to arrive first. Where the others leave on whichever path has
    /// room, this one waits for room on a quick path rather than take a slow one, for at most the difference of their delays.
    ///
    /// At most 32 kB of urgent datagrams wait; more of them wait with the others. Together they get half of what may leave while others wait, too.
    /// Congestion control limits all alike.
    ///
    /// # Errors
    /// As there.
    pub fn send_urgent_datagram(&self, datagram: Bytes, within: Duration) -> Result<(), DatagramError> {
        self.send_until(datagram, |now| now.saturating_add(span(within)), Urgency::Urgent)
    }

    fn send_until(
        &self,
        datagram: Bytes,
        expires: impl FnOnce(Time) -> Time,
        urgency: Urgency,
    ) -> Result<(), DatagramError> {
        let (shared, id) = (self.handle.shared(), self.handle.id());
        shared.with(|state| {
            let now = state.at(shared.clock.now());
            let (call, engine, _) = state.parts(id);
            refusal(call)?;
            let connection = engine.connection(id).ok_or(DatagramError::Closed)?;
            let sent = connection.datagrams().send(now, datagram, expires(now), urgency).map_err(Into::into);
            // Also after an error: a datagram that is too large begins a search for larger packets.
            state.rouse();
            sent
        })
    }

    /// The bytes of the largest datagram that can be sent now: a packet of the path that carries the largest ones. It grows when
    /// probes find that the path carries more than the 1,200 bytes of UDP payload with which it begins, and may shrink again.
    ///
    /// # Errors
    /// If an end takes no datagrams, this end has closed, or the connection is lost.
    pub fn max_datagram_size(&self) -> Result<usize, DatagramError> {
        let (shared, id) = (self.handle.shared(), self.handle.id());
        shared.with(|state| {
            let (call, engine, _) = state.parts(id);
            refusal(call)?;
            let connection = engine.view(id).ok_or(DatagramError::Closed)?;
            Ok(connection.datagram_len_max()? as usize)
        })
    }

    /// Waits for the next datagram, in the order of arrival. Datagrams that nobody reads are dropped, the oldest first
    /// ([`Config::datagram_receive_buffer`](crate::Config::datagram_receive_buffer)).
    ///
    /// # Errors
    /// If the peer has closed or the connection is lost, and all that arrived before was read.
    pub async fn read_datagram(&self) -> Result<Bytes, DatagramError> {
        poll_fn(|cx| self.poll_read_datagram(cx)).await
    }

    /// Polls for the next datagram: as [`Connection::read_datagram`].
    ///
    /// # Errors
    /// As there.
    pub fn poll_read_datagram(&self, cx: &Context<'_>) -> Poll<Result<Bytes, DatagramError>> {
        let id = self.handle.id();
        self.handle.shared().with(|state| {
            let (call, engine, _) = state.parts(id);
            // Nothing of the engine's output changes by the read, so the driver need not be roused.
            if let Some(datagram) = call.read_datagram(engine.connection(id)) {
                return Poll::Ready(Ok(datagram));
            }
            if let Some(lost) = call.lost() {
                return Poll::Ready(Err(lost.into()));
            }
            if call.has_peer_closed || call.closed.is_some() {
                return Poll::Ready(Err(DatagramError::Closed));
            }
            call.receiving.add(cx);
            Poll::Pending
        })
    }
}

/// Why nothing can be sent.
fn refusal(call: &Call) -> Result<(), DatagramError> {
    match call.lost() {
        Some(lost) => Err(lost.into()),
        None if call.stage >= Stage::Closing || call.closed.is_some() => Err(DatagramError::Closed),
        None => Ok(()),
    }
}

impl From<SendDatagramError> for DatagramError {
    fn from(error: SendDatagramError) -> Self {
        match error {
            SendDatagramError::NotOpen => Self::Closed,
            SendDatagramError::Disabled => Self::Disabled,
            SendDatagramError::Unsupported => Self::Unsupported,
            SendDatagramError::TooLarge { len, max } => Self::TooLarge { len: len as usize, max: max as usize },
        }
    }
}

impl From<crate::Lost> for DatagramError {
    fn from(lost: crate::Lost) -> Self {
        Self::Lost(lost)
    }
}
