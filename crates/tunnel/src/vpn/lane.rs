//! What waits for the other end of a connection.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::Notify;

use super::order::RowPlace;
use super::packet::Header;
use super::queue::{Queue, Taken};

/// The packets for a client, or for the server.
#[derive(Debug)]
pub(crate) struct Lane {
    state: Mutex<State>,
    wake: Notify,
}

#[derive(Debug)]
struct State {
    queue: Queue<Waiting>,
    is_closed: bool,
}

/// A packet with room for the head of its datagram in front.
#[derive(Debug)]
pub(crate) struct Waiting {
    bytes: Vec<u8>,
    row: u8,
}

impl Waiting {
    pub(crate) fn new(header: &Header, packet: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(HEAD_LEN + packet.len());
        bytes.resize(HEAD_LEN, 0);
        bytes.extend_from_slice(packet);
        let row = if header.needs_order() { RowPlace::row_of(header.flow()) } else { 0 };
        Self { bytes, row }
    }

    /// The row of its place.
    pub(crate) fn row(&self) -> u8 {
        self.row
    }

    /// The datagram of this packet.
    pub(crate) fn framed(mut self, number: u32, place: RowPlace) -> Bytes {
        self.bytes[..4].copy_from_slice(&number.to_le_bytes());
        self.bytes[4] = place.row;
        self.bytes[5..HEAD_LEN].copy_from_slice(&place.number.to_le_bytes());
        self.bytes.into()
    }
}

impl AsRef<[u8]> for Waiting {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[HEAD_LEN..]
    }
}

impl Lane {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::new(State { queue: Queue::new(), is_closed: false }), wake: Notify::new() }
    }

    /// Puts in a packet for the other end.
    pub(crate) fn push(&self, header: &Header, packet: &[u8]) {
        self.lock().queue.push(Instant::now(), header.flow(), Waiting::new(header, packet));
        self.wake.notify_one();
    }

    /// The next packet; `None` if the lane is closed.
    pub(crate) async fn next(&self) -> Option<Taken<Waiting>> {
        loop {
            {
                let mut state = self.lock();
                if state.is_closed {
                    return None;
                }
                if let Some(taken) = state.queue.pop(Instant::now()) {
                    return Some(taken);
                }
            }
            // A push in between has left its permit.
            self.wake.notified().await;
        }
    }

    /// Nothing is sent any more.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.wake.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The number of the flow, as in all datagrams of a tunnel, and the packet's place.
pub(crate) const HEAD_LEN: usize = 4 + 1 + 2;

/// Takes the place from the front of a datagram without its flow's number.
pub(crate) fn take_place(datagram: &mut Bytes) -> Option<RowPlace> {
    let [row, low, high] = *datagram.first_chunk()?;
    _ = datagram.split_to(3);
    Some(RowPlace { row, number: u16::from_le_bytes([low, high]) })
}
