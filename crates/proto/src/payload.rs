//! The payload of segments: a length in simulations, bytes on a network. The engine splits and joins payloads and never reads
//! them.

use std::fmt;

use bytes::{Bytes, BytesMut};

/// Bytes that can be split without a copy.
pub trait Payload: Clone + fmt::Debug {
    /// The number of bytes.
    fn len(&self) -> u32;

    /// Whether there are no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes and returns the first `at` bytes.
    ///
    /// # Panics
    /// If there are fewer than `at` bytes.
    #[must_use]
    fn split_to(&mut self, at: u32) -> Self;

    /// Appends `other` if that needs no copy, else returns it. Joined small writes fill segments.
    ///
    /// # Errors
    /// `other`, if it does not follow this payload in memory.
    fn join(&mut self, other: Self) -> Result<(), Self>;

    /// Joins several payloads of `len` bytes in total by copying them: small writes become a full segment.
    #[must_use]
    fn gather(parts: impl Iterator<Item = Self>, len: u32) -> Self;

    /// Appends a copy of `other` if both together have at most `most` bytes; otherwise returns `other`.
    ///
    /// # Errors
    /// `other`, if it is too long.
    fn absorb(&mut self, other: Self, most: u32) -> Result<(), Self>;

    /// Copies the bytes into their own memory, so that the rest of a shared block can be freed.
    fn detach(&mut self);
}

/// The payload of simulations: a number of bytes without content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Virtual(pub u32);

impl Payload for Virtual {
    fn len(&self) -> u32 {
        self.0
    }

    fn split_to(&mut self, at: u32) -> Self {
        self.0 = self.0.checked_sub(at).expect("no more is taken off than there is");
        Self(at)
    }

    fn join(&mut self, other: Self) -> Result<(), Self> {
        self.0 = self.0.checked_add(other.0).ok_or(other)?;
        Ok(())
    }

    fn gather(_parts: impl Iterator<Item = Self>, len: u32) -> Self {
        Self(len)
    }

    fn absorb(&mut self, other: Self, _most: u32) -> Result<(), Self> {
        self.join(other)
    }

    fn detach(&mut self) {}
}

/// Bytes from a network. They are shared, not copied: a part of a datagram keeps the whole datagram in memory.
impl Payload for Bytes {
    /// A payload of 4 GB or more counts as this many bytes.
    fn len(&self) -> u32 {
        u32::try_from(Self::len(self)).unwrap_or(u32::MAX)
    }

    fn split_to(&mut self, at: u32) -> Self {
        Self::split_to(self, at as usize)
    }

    /// A `Bytes` does not tell whether two pieces are adjacent in memory, so only an empty one can be joined without a copy.
    fn join(&mut self, other: Self) -> Result<(), Self> {
        if self.is_empty() {
            *self = other;
            return Ok(());
        }
        if other.is_empty() { Ok(()) } else { Err(other) }
    }

    fn gather(parts: impl Iterator<Item = Self>, len: u32) -> Self {
        let mut whole = BytesMut::with_capacity(len as usize);
        parts.for_each(|part| whole.extend_from_slice(&part));
        whole.freeze()
    }

    fn absorb(&mut self, other: Self, most: u32) -> Result<(), Self> {
        let len = Self::len(self) + Self::len(&other);
        if len > most as usize {
            return Err(other);
        }
        // After an earlier `absorb` the bytes are in their own memory with spare room.
        let mut whole = std::mem::take(self).try_into_mut().unwrap_or_else(|shared| {
            let mut own = BytesMut::with_capacity(most as usize);
            own.extend_from_slice(&shared);
            own
        });
        whole.extend_from_slice(&other);
        *self = whole.freeze();
        Ok(())
    }

    fn detach(&mut self) {
        *self = Self::copy_from_slice(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_gathered_and_absorbed_in_their_order() {
        let parts = [Bytes::from_static(b"ab"), Bytes::from_static(b"c"), Bytes::from_static(b"def")];
        let mut whole = Bytes::gather(parts.into_iter(), 6);
        assert_eq!(whole, "abcdef");
        assert_eq!(whole.absorb(Bytes::from_static(b"gh"), 8), Ok(()));
        assert_eq!(whole.absorb(Bytes::from_static(b"i"), 8), Err(Bytes::from_static(b"i")));
        let mut part = Payload::split_to(&mut whole, 3);
        part.absorb(Bytes::from_static(b"x"), 8).expect("four are not more than eight");
        assert_eq!((&part[..], &whole[..]), (&b"abcx"[..], &b"defgh"[..]), "a part that is shared is copied");
    }

    /// One byte of a large block keeps the whole block in memory, until it is detached.
    #[test]
    fn detached_payload_frees_its_block() {
        let block = Bytes::from(vec![7; 1 << 16]);
        let mut part = block.slice(5..6);
        part.detach();
        assert!(block.is_unique());
        assert_eq!(&part[..], [7]);
    }
}
