//! The order of packets that have taken several paths.
//!
//! The paths' delays differ, so packets of a flow overtake each other; TCP takes three that came before their turn for a loss, and slows down. So the
//! sender numbers the packets of flows that need order, in one of 255 rows by the flow's hash, and the receiver holds what comes before its turn: for as
//! long as the difference of the paths tells, and then what is missing counts as lost. With one path nothing is held.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A packet's place: its row, and its number there. Row 0 has no order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowPlace {
    pub(crate) row: u8,
    pub(crate) number: u16,
}

/// Numbers the packets that are sent.
#[derive(Debug)]
pub(crate) struct Numbers([u16; ROWS]);

/// Packets that came before their turn.
#[derive(Debug)]
pub(crate) struct Order<P> {
    rows: BTreeMap<u8, Row<P>>,
    held: usize,
    /// Packets that came after their turn was over.
    pub(crate) late: u64,
}

#[derive(Debug)]
struct Row<P> {
    next: u16,
    /// By distance from the number that was next when the row was made.
    held: BTreeMap<u64, (Instant, P)>,
    /// `next` as such a distance.
    place: u64,
}

impl RowPlace {
    pub(crate) fn row_of(flow: u64) -> u8 {
        // Other bits than those by which flows wait.
        (1 + (flow >> 32) % (ROWS as u64 - 1)) as u8
    }
}

impl Numbers {
    pub(crate) fn new() -> Self {
        Self([0; ROWS])
    }

    /// The place of the next packet of a row.
    pub(crate) fn next(&mut self, row: u8) -> RowPlace {
        let next = &mut self.0[usize::from(row)];
        let number = *next;
        if row != 0 {
            *next = next.wrapping_add(1);
        }
        RowPlace { row, number }
    }
}

impl<P> Order<P> {
    pub(crate) fn new() -> Self {
        Self { rows: BTreeMap::new(), held: 0, late: 0 }
    }

    /// A packet has come, and is held for `hold` at most. Calls `deliver` for what has its turn now.
    pub(crate) fn put(&mut self, now: Instant, hold: Duration, place: RowPlace, packet: P, mut deliver: impl FnMut(P)) {
        if place.row == 0 {
            return deliver(packet);
        }
        let row = self.rows.entry(place.row).or_insert(Row { next: place.number, held: BTreeMap::new(), place: 0 });
        let ahead = place.number.wrapping_sub(row.next);
        if ahead > u16::MAX / 2 {
            self.late += 1;
            return deliver(packet);
        }
        if ahead > 0 && usize::from(ahead) <= HELD_MAX && self.held < HELD_MAX && !hold.is_zero() {
            // A number that is held already is a copy, which nobody sends.
            let is_new = row.held.insert(row.place + u64::from(ahead), (now, packet)).is_none();
            self.held += usize::from(is_new);
            return;
        }
        if ahead > 0 {
            self.held -= row.skip(ahead, &mut deliver);
        }
        deliver(packet);
        row.advance(1);
        self.held -= row.drain(&mut deliver);
    }

    /// Delivers what has waited for longer than `hold`, as what is missing before it is lost.
    pub(crate) fn release(&mut self, now: Instant, hold: Duration, mut deliver: impl FnMut(P)) {
        for row in self.rows.values_mut() {
            while row.first().is_some_and(|(since, _)| now.duration_since(since) >= hold) {
                let Some((_, ahead)) = row.first() else { break };
                self.held -= row.skip(ahead, &mut deliver);
                self.held -= row.drain(&mut deliver);
            }
        }
    }

    /// When [`Self::release`] has something to do; `None` if nothing is held.
    pub(crate) fn deadline(&self, hold: Duration) -> Option<Instant> {
        if self.held == 0 {
            return None;
        }
        self.rows.values().filter_map(|row| row.first().map(|(since, _)| since + hold)).min()
    }
}

impl<P> Row<P> {
    /// When the first held packet has come, and how far ahead it is.
    fn first(&self) -> Option<(Instant, u16)> {
        self.held.first_key_value().map(|(at, (since, _))| (*since, (at - self.place) as u16))
    }

    fn advance(&mut self, by: u16) {
        self.next = self.next.wrapping_add(by);
        self.place += u64::from(by);
    }

    /// Goes on `by` numbers, and delivers those of them that are held. Returns how many.
    fn skip(&mut self, by: u16, deliver: &mut impl FnMut(P)) -> usize {
        self.advance(by);
        let mut count = 0;
        while let Some(entry) = self.held.first_entry().filter(|entry| *entry.key() < self.place) {
            deliver(entry.remove().1);
            count += 1;
        }
        count
    }

    /// Delivers what is held without a gap. Returns how many are held no longer.
    fn drain(&mut self, deliver: &mut impl FnMut(P)) -> usize {
        let mut count = 0;
        // A copy of what was delivered.
        while let Some(entry) = self.held.first_entry().filter(|entry| *entry.key() < self.place) {
            entry.remove();
            count += 1;
        }
        while let Some((_, packet)) = self.held.remove(&self.place) {
            deliver(packet);
            self.advance(1);
            count += 1;
        }
        count
    }
}

const ROWS: usize = 256;

/// Packets that are held at most: a tenth of a second at 120 Mbit/s. A sender that leaves gaps makes its receiver hold no more.
const HELD_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    const HOLD: Duration = Duration::from_millis(40);

    fn place(number: u16) -> RowPlace {
        RowPlace { row: 1, number }
    }

    /// Packets come at these milliseconds; returns the order in which they are delivered, and when.
    fn play(arrivals: &[(u64, u16)]) -> Vec<(u64, u16)> {
        let (begin, mut order, mut out) = (Instant::now(), Order::new(), vec![]);
        let last = arrivals.last().unwrap().0 + 100;
        for millis in 0..=last {
            let now = begin + Duration::from_millis(millis);
            order.release(now, HOLD, |number| out.push((millis, number)));
            for (_, number) in arrivals.iter().filter(|(at, _)| *at == millis) {
                order.put(now, HOLD, place(*number), *number, |number| out.push((millis, number)));
            }
        }
        assert_eq!((order.held, order.deadline(HOLD)), (0, None));
        out
    }

    #[test]
    fn overtaken_packets_are_put_in_order() {
        let out = play(&[(0, 0), (1, 2), (2, 3), (5, 1), (6, 4)]);
        assert_eq!(out, [(0, 0), (5, 1), (5, 2), (5, 3), (6, 4)]);
    }

    #[test]
    fn lost_packet_holds_the_others_for_the_time() {
        let out = play(&[(0, 0), (1, 2), (20, 4), (30, 5), (50, 6)]);
        assert_eq!(out, [(0, 0), (41, 2), (60, 4), (60, 5), (60, 6)]);
    }

    #[test]
    fn packet_after_its_turn_is_delivered_at_once() {
        assert_eq!(play(&[(0, 0), (1, 2), (50, 1), (51, 3)]), [(0, 0), (41, 2), (50, 1), (51, 3)]);
    }

    #[test]
    fn numbers_begin_again_after_the_last() {
        let out = play(&[(0, 65_534), (1, 0), (2, 65_535), (3, 1)]);
        assert_eq!(out, [(0, 65_534), (2, 65_535), (2, 0), (3, 1)]);
        let mut numbers = Numbers([u16::MAX; ROWS]);
        assert_eq!((numbers.next(3).number, numbers.next(3).number, numbers.next(4).number), (u16::MAX, 0, u16::MAX));
        assert_eq!(numbers.next(0), numbers.next(0));
    }

    #[test]
    fn without_a_hold_nothing_waits() {
        let (now, mut order, mut out) = (Instant::now(), Order::new(), vec![]);
        for number in [0, 2, 1, 3] {
            order.put(now, Duration::ZERO, place(number), number, |number| out.push(number));
        }
        assert_eq!((out, order.held), (vec![0, 2, 1, 3], 0));
    }

    /// A hostile sender numbers its packets as it likes: what is held stays limited, and everything is delivered once.
    #[test]
    fn hostile_numbers_hold_little() {
        let (now, mut order, mut out, mut state) = (Instant::now(), Order::new(), 0, 1_u64);
        for _ in 0..100_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let place = RowPlace { row: (state >> 60) as u8, number: (state >> 33) as u16 & 0x0fff };
            order.put(now, HOLD, place, (), |()| out += 1);
            assert!(order.held <= HELD_MAX);
            assert_eq!(order.held, order.rows.values().map(|row| row.held.len()).sum::<usize>());
        }
        order.release(now + HOLD, HOLD, |()| out += 1);
        assert_eq!(order.held, 0);
        assert!(out > 90_000, "copies of a number are one: {out}");
    }
}
