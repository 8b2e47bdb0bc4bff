//! Packets that come at once, handed over as one: what a network card and its driver do with receive offload (GRO).
//!
//! A TUN device does none by itself: each write is a packet of its own for the host. With offloads it takes and gives packets with a header that says into
//! how many they are to be cut (virtio). So what the links let out at one moment is joined here, by flow, and a socket that asks for that (`UDP_GRO`) reads it as one
//! message; for one that does not, and for TCP without it, the kernel cuts it again. What a host sends is cut here, before it enters the world.

use std::io;

use tun_rs::{GROTable, SyncDevice, VIRTIO_NET_HDR_LEN};

/// What is joined for a device, and what is cut.
pub(super) struct Offload {
    table: GROTable,
    /// Each begins with room for a header; the first `count` wait.
    waiting: Vec<Vec<u8>>,
    count: usize,
    /// What was read, with its header.
    whole: Vec<u8>,
    parts: Vec<Vec<u8>>,
    lens: Vec<usize>,
}

/// The kernel makes no more of one UDP packet (`UDP_MAX_SEGMENTS`). A TCP packet of 64 kB has more only if its segments are shorter than 512 bytes, which
/// no MTU from 1280 bytes on makes them.
const PARTS_MAX: usize = 128;

/// Packets that wait at most before they are written: as many as a driver takes from a card at once (`NAPI_POLL_WEIGHT`).
const WAITING_MAX: usize = 64;

/// The longest IP packet.
const WHOLE_MAX: usize = u16::MAX as usize;

/// Room for it, and for as much before and behind it as a header takes: nothing is joined beyond the room that the first packet has.
const JOINED_MAX: usize = WHOLE_MAX + 2 * VIRTIO_NET_HDR_LEN;

impl Offload {
    /// For a device whose packets have up to `mtu` bytes.
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

    /// Takes what the host has sent at once.
    ///
    /// # Errors
    /// What the device says; that there is nothing is one, too.
    pub(super) fn read(&mut self, device: &SyncDevice, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        let Self { whole, parts, lens, .. } = self;
        let count = device.recv_multiple(whole, parts, lens, 0)?;
        parts.iter().zip(lens).take(count).for_each(|(part, len)| take(&part[..*len]));
        Ok(())
    }

    /// Keeps a packet for the host until [`Offload::flush`], or until there are too many.
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

    /// Hands over what waits.
    pub(super) fn flush(&mut self, device: &SyncDevice) {
        if self.count > 0 {
            // A device that is down refuses: then the host is not there, and the packets are lost as on a real one.
            _ = device.send_multiple(&mut self.table, &mut self.waiting[..self.count], VIRTIO_NET_HDR_LEN);
            self.count = 0;
        }
    }
}
