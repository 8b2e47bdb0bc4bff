//! The buffer of a socket, in which arrived data waits for the engine, and its parts.
//!
//! All connections of a socket fill one buffer. Those that receive much over short paths count themselves, once in each [`PERIOD`], and
//! take equal parts of it. Who stops is not counted any more, without a word. A connection that receives little needs no part.

use std::sync::{Arc, Mutex, PoisonError};

use anabranch_units::{Span, Time};

/// Bytes that a host can hold between their arrival and the engine. Clones are the same buffer: the connections whose settings have it
/// share it.
#[derive(Clone, Debug)]
pub struct ArrivalBuffer {
    bytes: u64,
    users: Arc<Mutex<Users>>,
}

/// The connections counted in this period, and in the one before.
#[derive(Debug, Default)]
struct Users {
    period: u64,
    now: u64,
    before: u64,
}

/// What a connection remembers of its buffer.
#[derive(Debug, Default)]
pub(crate) struct User {
    /// The period in which it was counted last; the first one is 1. 0 if it never was.
    counted: u64,
    /// What had arrived at its last round trip, in bytes.
    arrived: u64,
}

impl ArrivalBuffer {
    /// A buffer of so many bytes.
    pub fn new(bytes: u64) -> Self {
        Self { bytes, users: Arc::default() }
    }

    /// The part of a connection at the end of a round trip, until which `arrived` bytes had come in all. Before much has arrived, it is at most
    /// [`PART_FIRST`]: what has been announced is not taken back.
    pub(crate) fn part(&self, now: Time, user: &mut User, arrived: u64) -> u64 {
        if self.bytes == u64::MAX {
            return u64::MAX;
        }
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        // The shards of a socket read their clocks one after the other.
        let period = (1 + now.ticks() / PERIOD.ticks()).max(users.period);
        if period > users.period {
            let before = if period == users.period + 1 { users.now } else { 0 };
            *users = Users { period, now: 0, before };
        }
        if arrived - user.arrived >= PART_MIN / 2 && user.counted < period {
            user.counted = period;
            users.now += 1;
        }
        user.arrived = arrived;
        let most = if user.counted == 0 { PART_FIRST } else { u64::MAX };
        (self.bytes / users.now.max(users.before).max(1)).max(PART_MIN.min(self.bytes)).min(most)
    }
}

impl Default for ArrivalBuffer {
    /// A buffer without end.
    fn default() -> Self {
        Self::new(u64::MAX)
    }
}

/// Hundreds of round trips of a short path, so that no user is missed.
const PERIOD: Span = Span::from_millis(250);

/// The least part: eleven full segments, with which the initial window makes a round trip.
const PART_MIN: u64 = 16 << 10;

/// The first part, until the end of the first round trip: 2 Gbit/s on the longest of these paths. A hundred connections that begin at once can have 26 MB
/// on their way before they share.
const PART_FIRST: u64 = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    /// A round trip of a connection in which this much arrives, and its part.
    fn round(buffer: &ArrivalBuffer, millis: u64, user: &mut User, bytes: u64) -> u64 {
        buffer.part(Time::ZERO + Span::from_millis(millis), user, user.arrived + bytes)
    }

    #[test]
    fn busy_connections_have_equal_parts_and_an_idle_one_none() {
        let buffer = ArrivalBuffer::new(1_200_000);
        let mut users: [User; 4] = std::array::from_fn(|_| User::default());
        let [first, second, third, light] = &mut users;
        assert_eq!(round(&buffer, 1, first, 50_000), 1_200_000);
        assert_eq!(round(&buffer, 2, second, 50_000), 600_000);
        assert_eq!(round(&buffer, 3, light, 500), PART_FIRST, "it is not counted");
        assert_eq!((round(&buffer, 4, third, 50_000), round(&buffer, 5, first, 50_000)), (400_000, 400_000));
        // In the next period they count for as long as it lasts, also if they are silent.
        assert_eq!(round(&buffer, 251, first, 50_000), 400_000);
        assert_eq!(round(&buffer, 252, second, 50_000), 400_000);
        assert_eq!(round(&buffer, 501, first, 50_000), 600_000, "the third was silent");
        assert_eq!(round(&buffer, 5_000, first, 50_000), 1_200_000, "so were all");
    }

    #[test]
    fn least_part_lets_an_initial_window_pass() {
        let buffer = ArrivalBuffer::new(100_000);
        let mut users: Vec<_> = (0..50).map(|_| User::default()).collect();
        let parts: Vec<_> = users.iter_mut().map(|user| round(&buffer, 1, user, 20_000)).collect();
        assert_eq!((parts[0], parts[4], parts[49]), (100_000, 20_000, PART_MIN));
        assert_eq!(round(&ArrivalBuffer::new(4_000), 1, &mut User::default(), 4_000), 4_000, "there is no more");
    }
}
