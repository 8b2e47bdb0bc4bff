//! Batches of datagrams to send.

use crate::ecn::EcnCodepoint;
use crate::path::FourTuple;

/// Concatenated datagrams between one pair of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Their source and destination.
    pub tuple: FourTuple,
    /// The ECN codepoint of their packets.
    pub ecn: Option<EcnCodepoint>,
    /// Bytes of each datagram; the last one may be shorter.
    pub size: usize,
    /// The number of datagrams.
    pub count: usize,
    /// The largest number of datagrams.
    count_max: usize,
    /// Bytes of all datagrams, and whether the last one is shorter. A shorter one ends the batch.
    len: usize,
    is_closed: bool,
}

/// The addresses and the ECN codepoint of datagrams.
pub(super) type To = (FourTuple, Option<EcnCodepoint>);

/// Sealed datagrams that did not fit into the last batch.
#[derive(Debug, Default)]
pub(super) struct Spill {
    bytes: Vec<u8>,
    /// Where they go, and the bytes of each; the last one may be shorter.
    of: Option<(To, usize)>,
}

impl Batch {
    pub(super) fn new(count_max: usize) -> Self {
        Self {
            tuple: FourTuple::default(),
            ecn: None,
            size: 0,
            count: 0,
            count_max: count_max.max(1),
            len: 0,
            is_closed: false,
        }
    }

    /// A batch of one datagram.
    pub(super) fn single(tuple: FourTuple, size: usize) -> Self {
        Self { tuple, ecn: None, size, count: 1, count_max: 1, len: size, is_closed: true }
    }

    /// A batch of one datagram with this codepoint, for a driver that tests a socket.
    pub fn marked(tuple: FourTuple, ecn: Option<EcnCodepoint>, size: usize) -> Self {
        Self { ecn, ..Self::single(tuple, size) }
    }

    /// Bytes of all datagrams.
    #[expect(clippy::len_without_is_empty, reason = "a batch has a datagram at least")]
    pub fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_full(&self) -> bool {
        self.is_closed || self.count >= self.count_max || self.len + self.size > BYTES_MAX
    }

    /// Adds `count` datagrams of `size` bytes, `len` bytes in total, if they fit the batch. The last one may be shorter. Returns
    /// whether they were added.
    pub(super) fn take(&mut self, to: To, size: usize, count: usize, len: usize) -> bool {
        if self.count == 0 {
            (self.tuple, self.ecn) = to;
            self.size = size;
        }
        // A shorter datagram can only be the last one.
        let is_alike = size == self.size || count == 1 && size < self.size;
        // A datagram that fills a packet of 65,535 bytes is a batch of its own.
        let is_single = self.count == 0 && count == 1;
        let is_welcome = !self.is_closed && self.count + count <= self.count_max && self.len + len <= BYTES_MAX;
        let is_welcome = is_single || is_welcome;
        if !is_welcome || to != (self.tuple, self.ecn) || !is_alike {
            return false;
        }
        self.count += count;
        self.len += len;
        self.is_closed = self.len < self.count * self.size;
        true
    }
}

impl Spill {
    pub(super) fn put(&mut self, to: To, size: usize, bytes: &[u8]) {
        debug_assert!(self.of.is_none(), "the last one has left");
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.of = Some((to, size));
    }

    /// Begins a batch with the datagrams left from the one before. If they are too many for one batch, it is full, and the rest is left for the
    /// next: the fragments of a segment of 64 kB are longer together than a packet of the system can be.
    pub(super) fn take(&mut self, batch: &mut Batch, out: &mut Vec<u8>) {
        let Some((to, size)) = self.of else { return };
        let count = batch.count_max.min((BYTES_MAX / size).max(1));
        let len = self.bytes.len().min(count * size);
        out.extend(self.bytes.drain(..len));
        batch.take(to, size, len.div_ceil(size), len);
        if self.bytes.is_empty() {
            self.of = None;
        }
    }
}

/// The largest batch in a kernel call: an IP packet minus headers.
const BYTES_MAX: usize = 65_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_takes_datagrams_of_one_length_and_a_shorter_one() {
        let elsewhere = FourTuple { local: crate::Address { address: 1, port: 1 }, ..FourTuple::default() };
        let (here, there, marked) =
            ((FourTuple::default(), None), (elsewhere, None), (FourTuple::default(), Some(EcnCodepoint::Ect0)));
        let mut batch = Batch::new(64);
        assert!(batch.take(here, 1200, 1, 1200) && batch.take(here, 1200, 1, 1200));
        assert!(!batch.take(there, 1200, 1, 1200), "elsewhere");
        assert!(!batch.take(marked, 1200, 1, 1200), "with another codepoint");
        assert!(!batch.take(here, 1201, 1, 1201), "longer");
        assert!(batch.take(here, 60, 1, 60) && batch.is_full(), "shorter, and so the last");
        assert!(!batch.take(here, 1200, 1, 1200));
        assert_eq!((batch.count, batch.size, batch.len()), (3, 1200, 2460));
    }

    /// The batches of `len` bytes of fragments, if the system takes `count_max` datagrams at once: datagrams, and bytes.
    fn spilt(count_max: usize, len: usize) -> Vec<(usize, usize)> {
        let (to, mut spill) = ((FourTuple::default(), None), Spill::default());
        spill.put(to, 1200, &vec![7; len]);
        let mut batches = vec![];
        while spill.of.is_some() {
            let (mut batch, mut out) = (Batch::new(count_max), vec![]);
            spill.take(&mut batch, &mut out);
            assert!(spill.of.is_none() || batch.is_full(), "nothing comes between");
            assert_eq!(out.len(), batch.len());
            batches.push((batch.count, batch.len()));
        }
        batches
    }

    #[test]
    fn fragments_that_are_too_many_for_a_batch_are_divided() {
        let (to, mut batch) = ((FourTuple::default(), None), Batch::new(64));
        assert!(batch.take(to, 60, 1, 60) && !batch.take(to, 1200, 3, 3000), "they are longer");
        assert_eq!(spilt(64, 3000), [(3, 3000)]);
        assert_eq!(spilt(2, 3000), [(2, 2400), (1, 600)]);
        // A segment of 65,000 bytes in fragments.
        assert!(!Batch::new(64).take(to, 1200, 57, 67_900));
        assert_eq!(spilt(64, 67_900), [(54, 64_800), (3, 3100)]);
        assert_eq!(spilt(1, 3600), [(1, 1200); 3], "a system that takes one at a time");
    }
}
