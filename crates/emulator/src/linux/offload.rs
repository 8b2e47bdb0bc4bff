//! Joins packets that arrive at the same time, as a network card and its driver do with receive offload (GRO).
//!
//! A TUN device joins nothing: each write is one packet for the host. With offloads on, it accepts and returns packets with a
//! virtio header that describes how to split them. So packets that links release at the same time are joined here per flow. A
//! socket with `UDP_GRO` reads them as one message; for other sockets the kernel splits them again. Joined packets from a host
//! are split here before they enter the world.

use std::io;

use tun_rs::{GROTable, SyncDevice, VIRTIO_NET_HDR_LEN};

/// The packets to join for a device, and the packet to split.
pub(super) struct Offload {
    table: GROTable,
    /// The packets to join; each begins with space for a header. The first `count` are in use.
    waiting: Vec<Vec<u8>>,
    count: usize,
    /// A packet as read from the device, with its header.
    whole: Vec<u8>,
    parts: Vec<Vec<u8>>,
    lens: Vec<usize>,
}

/// The kernel splits a UDP packet into at most this many (`UDP_MAX_SEGMENTS`). A TCP packet of 64 kB has more parts only if its
/// segments are below 512 bytes, which does not happen with an MTU of at least 1280 bytes.
const PARTS_MAX: usize = 128;

/// The most packets before a write: a driver takes as many from a card at once (`NAPI_POLL_WEIGHT`).
const WAITING_MAX: usize = 64;

/// The longest IP packet.
const WHOLE_MAX: usize = u16::MAX as usize;

/// The longest packet, with space for a header before and after it. Joining never exceeds the space of the first packet.
const JOINED_MAX: usize = WHOLE_MAX + 2 * VIRTIO_NET_HDR_LEN;

impl Offload {
    /// The offload of a device with this MTU.
    pub(super) fn new(mtu: u16) -> Self {
        Self {
            table: GROTable::new(),
            waiting: vec![],
            count: 0,
            whole: vec![0; VIRTIO_NET_HDR_LEN + WHOLE_MAX],
            parts: vec![vec![0; mtu.into()]; PARTS_MAX],
            lens: vec![0; PARTS_MAX],
        }
    }

    /// Reads a packet from the host, and calls `take` for each part.
    ///
    /// # Errors
    /// The device's error, which includes that there is nothing to read.
    pub(super) fn read(&mut self, device: &SyncDevice, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        let Self { whole, parts, lens, .. } = self;
        let count = device.recv_multiple(whole, parts, lens, 0)?;
        parts.iter().zip(lens).take(count).for_each(|(part, len)| take(&part[..*len]));
        Ok(())
    }

    /// Queues a packet for the host until [`Offload::flush`], or until the queue is full.
    pub(super) fn put(&mut self, device: &SyncDevice, packet: &[u8]) {
        if self.count == WAITING_MAX {
            self.flush(device);
        }
        if self.count == self.waiting.len() {
            self.waiting.push(Vec::with_capacity(JOINED_MAX));
        }
        let room = &mut self.waiting[self.count];
        room.clear();
        room.resize(VIRTIO_NET_HDR_LEN, 0);
        room.extend_from_slice(packet);
        self.count += 1;
    }

    /// Writes the queued packets.
    pub(super) fn flush(&mut self, device: &SyncDevice) {
        if self.count > 0 {
            // A device that is down refuses the packets, which are then lost as on a real network.
            _ = device.send_multiple(&mut self.table, &mut self.waiting[..self.count], VIRTIO_NET_HDR_LEN);
            self.count = 0;
        }
    }
}
