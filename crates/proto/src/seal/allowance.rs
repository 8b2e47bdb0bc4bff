//! The anti-amplification limit ([rfc-9000] sec. 8): an attacker with a forged address cannot make us flood its owner.

use std::collections::VecDeque;

use crate::path::Address;

/// The number of bytes that may be sent to each address.
#[derive(Clone, Debug, Default)]
pub(super) struct Allowances {
    /// Validated addresses, the latest last.
    validated: VecDeque<Address>,
    /// Other addresses, the latest last.
    others: VecDeque<Allowance>,
}

#[derive(Clone, Copy, Debug)]
struct Allowance {
    address: Address,
    /// Bytes that may still be sent there.
    bytes: u64,
}

impl Allowances {
    /// An authentic datagram of `bytes` bytes arrived from an address.
    pub(super) fn on_received(&mut self, address: Address, bytes: usize) {
        if self.is_validated(address) {
            return;
        }
        let bytes = FACTOR * bytes as u64;
        match self.others.iter_mut().find(|other| other.address == address) {
            Some(other) => other.bytes = other.bytes.saturating_add(bytes),
            None => push(&mut self.others, Allowance { address, bytes }),
        }
    }

    /// The address is validated.
    pub(super) fn validate(&mut self, address: Address) {
        if !self.is_validated(address) {
            self.others.retain(|other| other.address != address);
            push(&mut self.validated, address);
        }
    }

    /// Whether `bytes` bytes may be sent there.
    pub(super) fn allows(&self, address: Address, bytes: usize) -> bool {
        self.room(address) >= bytes
    }

    /// The number of bytes that may be sent there.
    pub(super) fn room(&self, address: Address) -> usize {
        if self.is_validated(address) {
            return usize::MAX;
        }
        let other = self.others.iter().find(|other| other.address == address);
        other.map_or(0, |other| usize::try_from(other.bytes).unwrap_or(usize::MAX))
    }

    /// `bytes` bytes are sent there.
    pub(super) fn on_sent(&mut self, address: Address, bytes: usize) {
        if let Some(other) = self.others.iter_mut().find(|other| other.address == address) {
            other.bytes = other.bytes.saturating_sub(bytes as u64);
        }
    }

    pub(super) fn is_validated(&self, address: Address) -> bool {
        self.validated.contains(&address)
    }
}

/// Appends an item. If the list is full, the oldest is removed.
fn push<T>(list: &mut VecDeque<T>, item: T) {
    if list.len() >= ADDRESSES_MAX {
        list.pop_front();
    }
    list.push_back(item);
}

/// [rfc-9000] sec. 8.1: three times the bytes received.
const FACTOR: u64 = 3;

/// A connection has only a few paths. If a peer uses more addresses at a time, the oldest must be validated again.
const ADDRESSES_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_times_what_came_and_no_byte_more() {
        let (mut allowances, address) = (Allowances::default(), Address { address: 5, port: 5 });
        assert!(!allowances.allows(address, 1));
        allowances.on_received(address, 100);
        assert!(allowances.allows(address, 300) && !allowances.allows(address, 301));
        allowances.on_sent(address, 200);
        assert!(allowances.allows(address, 100) && !allowances.allows(address, 101));
        allowances.validate(address);
        assert!(allowances.allows(address, 1 << 40));
    }

    #[test]
    fn many_addresses_take_no_more_room_than_a_few() {
        let mut allowances = Allowances::default();
        for number in 0..1000 {
            let address = Address { address: number, port: 1 };
            allowances.on_received(address, 1);
            allowances.validate(Address { port: 2, ..address });
        }
        assert_eq!((allowances.validated.len(), allowances.others.len()), (16, 16));
    }
}
