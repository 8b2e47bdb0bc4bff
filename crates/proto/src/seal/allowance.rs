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
    /// What may still be sent there: bytes of UDP payload, and bytes of whole packets with IPv6 headers.
    bytes: u64,
    packets: u64,
}

/// Datagrams of a sender or for an address: their number, and their bytes of UDP payload together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) count: usize,
    pub(super) bytes: usize,
}

impl Load {
    /// One datagram of this size.
    pub(super) const fn one(bytes: usize) -> Self {
        Self { count: 1, bytes }
    }

    fn packets(self) -> u64 {
        (self.bytes + self.count * HEADERS_MOST) as u64
    }
}

impl Allowances {
    /// An authentic datagram of `bytes` bytes arrived from an address.
    pub(super) fn on_received(&mut self, address: Address, bytes: usize) {
        if self.is_validated(address) {
            return;
        }
        let (bytes, packets) = (FACTOR * bytes as u64, FACTOR * Load::one(bytes).packets());
        match self.others.iter_mut().find(|other| other.address == address) {
            Some(other) => {
                other.bytes = other.bytes.saturating_add(bytes);
                other.packets = other.packets.saturating_add(packets);
            }
            None => push(&mut self.others, Allowance { address, bytes, packets }),
        }
    }

    /// The address is validated.
    pub(super) fn validate(&mut self, address: Address) {
        if !self.is_validated(address) {
            self.others.retain(|other| other.address != address);
            push(&mut self.validated, address);
        }
    }

    /// Whether these datagrams may be sent there.
    pub(super) fn allows(&self, address: Address, load: Load) -> bool {
        self.is_validated(address)
            || self
                .other(address)
                .is_some_and(|other| load.bytes as u64 <= other.bytes && load.packets() <= other.packets)
    }

    /// The largest datagram that may be sent there, in bytes of UDP payload.
    pub(super) fn room(&self, address: Address) -> usize {
        if self.is_validated(address) {
            return usize::MAX;
        }
        let room = |other: &Allowance| other.bytes.min(other.packets.saturating_sub(HEADERS_MOST as u64));
        self.other(address).map_or(0, |other| usize::try_from(room(other)).unwrap_or(usize::MAX))
    }

    /// These datagrams are sent there.
    pub(super) fn on_sent(&mut self, address: Address, load: Load) {
        if let Some(other) = self.others.iter_mut().find(|other| other.address == address) {
            other.bytes = other.bytes.saturating_sub(load.bytes as u64);
            other.packets = other.packets.saturating_sub(load.packets());
        }
    }

    fn other(&self, address: Address) -> Option<&Allowance> {
        self.others.iter().find(|other| other.address == address)
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

/// The headers of IPv6 and UDP. Three times the payload in more and smaller packets would be more than three times the bytes on
/// the wire. Both counts have the limit; so it holds with the headers of IPv4, too, which lie between.
const HEADERS_MOST: usize = 48;

/// A connection has only a few paths. If a peer uses more addresses at a time, the oldest must be validated again.
const ADDRESSES_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_times_what_came_and_no_byte_more() {
        let (mut allowances, address) = (Allowances::default(), Address { address: 5, port: 5 });
        assert!(!allowances.allows(address, Load::one(1)));
        allowances.on_received(address, 100);
        assert!(allowances.allows(address, Load::one(300)) && !allowances.allows(address, Load::one(301)));
        allowances.on_sent(address, Load::one(200));
        assert!(allowances.allows(address, Load::one(100)) && !allowances.allows(address, Load::one(101)));
        allowances.validate(address);
        assert!(allowances.allows(address, Load::one(1 << 40)));
    }

    /// 148 bytes came with headers, so 444 may be sent: three packets of 100 bytes with headers of 48, but no four of 75.
    #[test]
    fn headers_count_where_packets_are_more_than_three() {
        let (mut allowances, address) = (Allowances::default(), Address { address: 5, port: 5 });
        allowances.on_received(address, 100);
        assert!(allowances.allows(address, Load { count: 3, bytes: 300 }));
        assert!(!allowances.allows(address, Load { count: 4, bytes: 253 }));
        assert!(allowances.allows(address, Load { count: 4, bytes: 252 }));
        (0..3).for_each(|_| allowances.on_sent(address, Load::one(75)));
        assert_eq!(allowances.room(address), 444 - 3 * 123 - 48);
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
