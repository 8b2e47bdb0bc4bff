//! The secret of a stack: from it come initial sequence numbers, secrets of connections and cookies.

use anabranch_proto::{Address, FourTuple, Secret, SeqNumber};
use anabranch_units::Time;
use ring::hmac;

/// The secret of a stack.
#[derive(Clone, Debug)]
pub(crate) struct StackKey(hmac::Key);

/// What a tag is for. Tags of different uses are independent.
#[derive(Clone, Copy, Debug)]
enum Use {
    Initial = 0,
    Secret = 1,
    Cookie = 2,
    Port = 3,
    Class = 4,
    Clock = 5,
}

impl StackKey {
    /// `seed` must come from the system's random source.
    pub(crate) fn new(seed: [u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, &seed))
    }

    /// The initial sequence number of a connection: a clock of 4 µs, moved for each pair of ends by what no one else knows ([rfc-6528] sec. 3). So a
    /// connection begins above an earlier one with the same ends.
    pub(crate) fn initial(&self, now: Time, tuple: FourTuple) -> SeqNumber {
        let clock = (now.since(Time::ZERO).ticks() / INITIAL_TICK_NS) as u32;
        SeqNumber(clock.wrapping_add(word(&self.tag(Use::Initial, tuple, &[]))))
    }

    /// The secret of a connection with this initial sequence number; `count` makes it different from that of any other.
    pub(crate) fn secret(&self, tuple: FourTuple, count: u64, initial: SeqNumber) -> Secret {
        let tag = self.tag(Use::Secret, tuple, &count.to_be_bytes());
        let mut seed = [0; 32];
        seed.copy_from_slice(tag.as_ref());
        Secret::numbered(seed, initial).with_clock(self.clock(tuple))
    }

    /// Where the timestamp clock of a pair of ends begins: the same for all their connections, so that a later one has later timestamps, and no one else
    /// knows it ([rfc-7323] sec. 5.4).
    fn clock(&self, tuple: FourTuple) -> u32 {
        word(&self.tag(Use::Clock, tuple, &[]))
    }

    /// A tag of a cookie, with the peer's initial number or without: 12 bits.
    pub(crate) fn cookie(&self, tuple: FourTuple, peer_initial: Option<SeqNumber>, minute: u64, size: u8) -> u32 {
        let content = [&minute.to_be_bytes()[..], &[size]].concat();
        let content = peer_initial.map_or(content.clone(), |peer| [&content, &peer.0.to_be_bytes()[..]].concat());
        word(&self.tag(Use::Cookie, tuple, &content)) >> 20
    }

    /// A random number for an ephemeral port; `count` makes it another one each time.
    pub(crate) fn port(&self, tuple: FourTuple, count: u64) -> u32 {
        word(&self.tag(Use::Port, tuple, &count.to_be_bytes()))
    }

    /// The class of a peer by its address: peers do not know who shares theirs.
    pub(crate) fn class(&self, tuple: FourTuple) -> u8 {
        let hosts =
            FourTuple { local: Address { port: 0, ..tuple.local }, remote: Address { port: 0, ..tuple.remote } };
        word(&self.tag(Use::Class, hosts, &[])) as u8
    }

    fn tag(&self, of: Use, tuple: FourTuple, content: &[u8]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(&[of as u8]);
        for end in [tuple.local, tuple.remote] {
            context.update(&end.address.to_be_bytes());
            context.update(&end.port.to_be_bytes());
        }
        context.update(content);
        context.sign()
    }
}

fn word(tag: &hmac::Tag) -> u32 {
    tag.as_ref().first_chunk().copied().map_or(0, u32::from_be_bytes)
}

/// [rfc-6528] sec. 3: the clock of initial sequence numbers.
const INITIAL_TICK_NS: u64 = 4000;

#[cfg(test)]
mod tests {
    use anabranch_units::Span;

    use super::*;

    fn tuple(port: u16) -> FourTuple {
        let end = |address, port| Address { address, port };
        FourTuple { local: end(0xffff_0a00_0001, 80), remote: end(0xffff_0a00_0002, port) }
    }

    /// [rfc-6528] sec. 3 and [rfc-9293] MUST-8: the numbers of one pair of ends follow a clock of 4 µs, which comes round.
    #[test]
    fn initial_number_follows_a_clock_of_four_microseconds() {
        let key = StackKey::new([7; 32]);
        let at = |micros| key.initial(Time::ZERO + Span::from_micros(micros), tuple(9)).0;
        let begin = at(0);
        for (micros, ticks) in [(3, 0), (4, 1), (1_000_000, 250_000), (1 << 34, 0), ((1 << 34) + 8, 2)] {
            assert_eq!(at(micros).wrapping_sub(begin), ticks, "{micros} µs");
        }
    }

    /// [rfc-9293] MUST-9: who sees the numbers of his own connections learns nothing of those of others. With 1000 ports the distances of neighbours
    /// differ, and the upper bit of a number is set in about half.
    #[test]
    fn initial_numbers_of_other_ends_tell_nothing() {
        let key = StackKey::new([7; 32]);
        let numbers: Vec<_> = (1..=1000).map(|port| key.initial(Time::ZERO, tuple(port)).0).collect();
        let mut steps: Vec<_> = numbers.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
        steps.sort_unstable();
        steps.dedup();
        assert_eq!(steps.len(), 999);
        let high = numbers.iter().filter(|number| **number >> 31 == 1).count();
        // Five standard deviations of a fair coin: 5 * sqrt(1000 / 4) = 79.
        assert!((421..=579).contains(&high), "{high}");
        assert_ne!(StackKey::new([8; 32]).initial(Time::ZERO, tuple(1)), key.initial(Time::ZERO, tuple(1)));
    }
}
