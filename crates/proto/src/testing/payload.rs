//! Bytes that know their position in their stream.

use crate::Payload;

/// Bytes that know their position in their stream, so a test detects lost, duplicated or confused data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marked {
    pub(crate) tag: u32,
    pub(crate) start: u64,
    pub(crate) len: u32,
}

impl Payload for Marked {
    fn len(&self) -> u32 {
        self.len
    }

    fn split_to(&mut self, at: u32) -> Self {
        assert!(at <= self.len, "no more is taken off than there is");
        let part = Self { len: at, ..*self };
        (self.start, self.len) = (self.start + u64::from(at), self.len - at);
        part
    }

    fn join(&mut self, other: Self) -> Result<(), Self> {
        if other.tag != self.tag || other.start != self.start + u64::from(self.len) {
            return Err(other);
        }
        self.len += other.len;
        Ok(())
    }

    fn gather(parts: impl Iterator<Item = Self>, len: u32) -> Self {
        let whole = parts.reduce(|mut whole, part| {
            whole.join(part).expect("parts of a stream follow each other");
            whole
        });
        whole.filter(|whole| whole.len == len).expect("there are as many bytes as were asked for")
    }

    fn absorb(&mut self, other: Self, most: u32) -> Result<(), Self> {
        if self.len + other.len > most { Err(other) } else { self.join(other) }
    }

    fn detach(&mut self) {}
}
