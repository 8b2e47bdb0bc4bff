//! What segments carry: counted in a simulation, bytes on a network. The engine cuts and joins it and never looks inside.

use std::fmt;

use bytes::Bytes;

/// Bytes that can be cut without being copied.
pub trait Payload: Clone + fmt::Debug {
    /// How many bytes.
    fn len(&self) -> u32;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the first `at` bytes off.
    ///
    /// # Panics
    /// If there are fewer.
    #[must_use]
    fn split_to(&mut self, at: u32) -> Self;

    /// Appends `other` if that needs no copying, else gives it back. Small writes that can be joined fill segments.
    ///
    /// # Errors
    /// `other`, if it does not follow this payload in memory.
    fn join(&mut self, other: Self) -> Result<(), Self>;
}

/// So many bytes, of which nobody asks what they say: the payload of simulations.
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
}

/// Bytes of a network. They are shared, not copied: a part of a datagram keeps all of it in memory.
impl Payload for Bytes {
    /// Of 4 GB and more, only so much is taken at once.
    fn len(&self) -> u32 {
        u32::try_from(Self::len(self)).unwrap_or(u32::MAX)
    }

    fn split_to(&mut self, at: u32) -> Self {
        Self::split_to(self, at as usize)
    }

    /// Whether two pieces lie side by side in one allocation, a `Bytes` does not tell; only nothing can be joined.
    fn join(&mut self, other: Self) -> Result<(), Self> {
        if self.is_empty() {
            *self = other;
            return Ok(());
        }
        if other.is_empty() { Ok(()) } else { Err(other) }
    }
}
